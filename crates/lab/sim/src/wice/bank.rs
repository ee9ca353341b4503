//! The application of the simulation: accounts and transfers between them, or a broker's ([`brokerage`]). It writes down what each execution saw and did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_accounts::Accounts;
use pares_flow::Random;
use pares_site::{Application, ApplicationError, View};
use pares_store::{Reads, Work};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Change, Key, KeyRange, SiteId, TransactionId, Value, Version, Write};

use super::check::digest;
use super::{Plan, brokerage, wards};

/// Accounts; few, so that transfers meet.
const ACCOUNTS: u64 = 12;
/// Of 1,000 transfers, how many go by additions.
const BY_ADDING_PERMILLE: u64 = 300;
/// An account below this gives nothing.
const DEBT_MAX: i128 = 25;

/// Of 1,000 requests to serialisable sites, how many decide by more than they change.
const BY_RULES_PERMILLE: u64 = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Reads two accounts, and writes them.
    Moves,
    /// Adds to two, and reads neither.
    Adds,
    /// Takes from one of a pair what both have.
    Withdraws,
    /// Calls one of the staff to a ward, or sends one home.
    Calls,
}

const KINDS: [Kind; 4] = [Kind::Moves, Kind::Adds, Kind::Withdraws, Kind::Calls];

/// Something that a client wants done, once: most of them transfers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) id: TransactionId,
    kind: Kind,
    from: u64,
    to: u64,
    amount: i64,
}

impl Request {
    /// One for sites that are serialisable, or not.
    pub(super) fn draw(id: TransactionId, serialisable: bool, random: &mut Random) -> Self {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let by_adding = random.chance(BY_ADDING_PERMILLE);
        let amount = random.between(1, 9) as i64;
        let by_rules = serialisable && random.chance(BY_RULES_PERMILLE);
        let kind = match (by_rules, by_adding) {
            (true, _) if random.chance(500) => Kind::Calls,
            (true, _) => Kind::Withdraws,
            (false, true) => Kind::Adds,
            (false, false) => Kind::Moves,
        };
        Self { id, kind, from, to, amount }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        ((self.id, self.from), (self.to, (self.amount, self.kind as u8))).encode(&mut bytes);
        bytes
    }

    fn from_bytes(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let ((id, from), (to, (amount, kind))) = Coded::decode(&mut bytes)?;
        let known: Option<&Kind> = KINDS.get(usize::from(kind));
        let kind = *known.ok_or(DecodeError::Kind(kind, "request"))?;
        Ok(Self { id, kind, from, to, amount })
    }

    /// Moves an amount from one account to the other. Whether it may.
    fn transfer(
        &self,
        work: &mut Work<View<'_>>,
        execution: &mut Execution,
    ) -> Result<bool, ApplicationError> {
        let mut may = true;
        for (account, amount) in [(self.from, -self.amount), (self.to, self.amount)] {
            if self.kind == Kind::Adds {
                execution.writes.push(Write::add(format!("counter/{account}").as_str(), amount));
                continue;
            }
            let key = Key::from(format!("account/{account}").as_str());
            let value = work.get(&key)?;
            let balance = value.as_ref().and_then(Value::as_counter).unwrap_or(0) + i128::from(amount);
            may &= balance >= -DEBT_MAX;
            execution.reads.push((key.clone(), value));
            execution.writes.push(Write::put(key, Value::counter(balance)));
        }
        Ok(may)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Execution {
    pub(super) id: TransactionId,
    pub(super) snapshot: Version,
    pub(super) reads: Vec<(Key, Option<Value>)>,
    /// What it walked, and all that was there.
    pub(super) ranges: Vec<(KeyRange, Vec<(Key, Value)>)>,
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
    plan: Plan,
    site: SiteId,
    life: u64,
    ledger: Shared,
}

/// An execution, and what its client receives behind its number; none if it is refused.
pub(super) type Executed = (Execution, Option<Vec<u8>>);

impl Clone for Bank {
    fn clone(&self) -> Self {
        Self::new(self.plan, self.site, self.ledger.clone())
    }
}

impl Bank {
    pub(super) fn new(plan: Plan, site: SiteId, ledger: Shared) -> Self {
        ledger.open().lives += 1;
        let life = ledger.open().lives;
        Self { plan, site, life, ledger }
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

fn execute(request: &[u8], work: &mut Work<View<'_>>) -> Result<Executed, ApplicationError> {
    let request =
        Request::from_bytes(request).map_err(|error| ApplicationError::Refused(error.to_string()))?;
    let snapshot = work.base().version();
    let mut execution = Execution { id: request.id, snapshot, ..Execution::default() };
    let (number, wanted) = (request.from, request.amount);
    let may = match request.kind {
        Kind::Moves | Kind::Adds => request.transfer(work, &mut execution)?,
        Kind::Withdraws => wards::withdraw(number, wanted, work, &mut execution).map(|()| true)?,
        Kind::Calls => wards::call(number, wanted, work, &mut execution).map(|()| true)?,
    };
    if !may {
        execution.writes.clear();
    }
    Ok((execution, may.then(Vec::new)))
}

impl Application for Bank {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        let (execution, told) = match self.plan.brokers {
            true => brokerage::execute(request, work, self.plan.defect)?,
            false => execute(request, work)?,
        };
        for write in &execution.writes {
            match &write.change {
                Change::Put(value) => work.put(&write.key, value.clone()),
                Change::Add(delta) => work.add(&write.key, *delta)?,
                Change::Delete => work.delete(&write.key),
            }
        }
        let number = self.note(execution);
        match told {
            Some(told) => Ok([number.as_bytes(), &told].concat()),
            None => Err(ApplicationError::Refused(number)),
        }
    }

    /// All money, which is 0 at every version; and a digest of all there is, by which the version is known.
    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        if self.plan.brokers {
            return Accounts.read(request, items);
        }
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

/// The number of the execution that a reply speaks of; a blank and more may be behind it.
pub(super) fn number(reply: &[u8]) -> Option<usize> {
    core::str::from_utf8(reply.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()
}
