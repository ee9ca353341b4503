//! The application of the simulation: accounts and transfers between them. It writes down what each execution saw and did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_site::{Application, ApplicationError, View};
use pares_store::{Reads, Work};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange, SiteId, TransactionId, Value, Version, Write};

use super::check::digest;
use crate::random::Random;

/// Accounts; few, so that transfers meet.
const ACCOUNTS: u64 = 12;
/// Of 1,000 transfers, how many go by additions.
const BY_ADDING_PERMILLE: u64 = 300;
/// An account below this gives nothing.
const DEBT_MAX: i128 = 25;

/// A transfer that a client wants done, once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) id: TransactionId,
    from: u64,
    to: u64,
    amount: i64,
    by_adding: bool,
}

impl Request {
    pub(super) fn draw(id: TransactionId, random: &mut Random) -> Self {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let by_adding = random.chance(BY_ADDING_PERMILLE);
        Self { id, from, to, amount: random.between(1, 9) as i64, by_adding }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        ((self.id, self.from), (self.to, (self.amount, self.by_adding))).encode(&mut bytes);
        bytes
    }

    fn from_bytes(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let ((id, from), (to, (amount, by_adding))) = Coded::decode(&mut bytes)?;
        Ok(Self { id, from, to, amount, by_adding })
    }
}

/// One execution of a request.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) id: TransactionId,
    pub(super) snapshot: Version,
    pub(super) reads: Vec<(Key, Option<Value>)>,
    pub(super) writes: Vec<Write>,
    /// The site executed the request again in the same life, so this one has been aborted.
    pub(super) aborted: bool,
}

/// All executions; the place of each is its number.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) executions: Vec<Execution>,
    /// Lives of all sites.
    lives: u64,
    last: BTreeMap<(SiteId, u64, TransactionId), usize>,
}

impl Ledger {
    pub(super) fn aborted(&self) -> u64 {
        self.executions.iter().filter(|execution| execution.aborted).count() as u64
    }
}

/// The ledger as all sites write it.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Ledger>>);

impl Shared {
    pub(super) fn open(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The application at one site in one life. A site makes itself a clone for each: also when it begins again by itself, and forgets what it had submitted.
pub(super) struct Bank {
    site: SiteId,
    life: u64,
    ledger: Shared,
}

impl Clone for Bank {
    fn clone(&self) -> Self {
        Self::new(self.site, self.ledger.clone())
    }
}

impl Bank {
    pub(super) fn new(site: SiteId, ledger: Shared) -> Self {
        ledger.open().lives += 1;
        let life = ledger.open().lives;
        Self { site, life, ledger }
    }

    /// Writes down an execution; the reply is its number.
    fn note(&self, execution: Execution) -> String {
        let mut ledger = self.ledger.open();
        let number = ledger.executions.len();
        if let Some(earlier) = ledger.last.insert((self.site, self.life, execution.id), number) {
            ledger.executions[earlier].aborted = true;
        }
        ledger.executions.push(execution);
        number.to_string()
    }
}

impl Application for Bank {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        let request =
            Request::from_bytes(request).map_err(|error| ApplicationError::Refused(error.to_string()))?;
        let (snapshot, mut reads, mut writes) = (work.base().version(), Vec::new(), Vec::new());
        let mut refused = false;
        for (account, amount) in [(request.from, -request.amount), (request.to, request.amount)] {
            if request.by_adding {
                writes.push(Write::add(format!("counter/{account}").as_str(), amount));
                continue;
            }
            let key = Key::from(format!("account/{account}").as_str());
            let value = work.get(&key)?;
            let balance = value.as_ref().and_then(Value::as_counter).unwrap_or(0) + i128::from(amount);
            refused |= balance < -DEBT_MAX;
            reads.push((key.clone(), value));
            writes.push(Write::put(key, Value::counter(balance)));
        }
        if refused {
            writes.clear();
        }
        for write in &writes {
            match &write.change {
                pares_wice::Change::Put(value) => work.put(&write.key, value.clone()),
                pares_wice::Change::Add(delta) => work.add(&write.key, *delta)?,
                pares_wice::Change::Delete => work.delete(&write.key),
            }
        }
        let number = self.note(Execution { id: request.id, snapshot, reads, writes, aborted: false });
        if refused { Err(ApplicationError::Refused(number)) } else { Ok(number.into_bytes()) }
    }

    /// All money, which is 0 at every version; and a digest of all there is, by which the version is known.
    fn read(&self, _request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        let all: BTreeMap<Key, Value> =
            items.first(&KeyRange::prefix(b""), usize::MAX)?.into_iter().collect();
        Ok(format!("{} {}", total(all.iter()), digest(&all)).into_bytes())
    }
}

/// All money among some items.
pub(super) fn total<'a>(items: impl Iterator<Item = (&'a Key, &'a Value)>) -> i128 {
    let money = items.filter(|(key, _)| !key.as_bytes().starts_with(REPLIES));
    money.filter_map(|(_, value)| value.as_counter()).sum()
}

/// What a read was answered: all money, and the digest of all there is.
pub(super) fn looked(reply: &[u8]) -> Option<(i128, u64)> {
    let (total, digest) = core::str::from_utf8(reply).ok()?.split_once(' ')?;
    Some((total.parse().ok()?, digest.parse().ok()?))
}

/// What the names of the items begin with that remember replies.
const REPLIES: &[u8] = b"\0reply/";

/// The request that a version answers, and the number of the execution, as the item says that remembers the reply.
pub(super) fn answered(key: &Key, value: &Value) -> Option<(TransactionId, usize)> {
    let (client, mut bytes) = (key.as_bytes().strip_prefix(REPLIES)?.first_chunk()?, value.as_bytes());
    let (sequence, _code) = <(u64, u8)>::decode(&mut bytes).ok()?;
    Some((TransactionId { client: u64::from_be_bytes(*client), sequence }, number(bytes)?))
}

/// The number of the execution that a reply speaks of.
pub(super) fn number(reply: &[u8]) -> Option<usize> {
    core::str::from_utf8(reply).ok()?.parse().ok()
}
