//! The accounts as sites have them: every item at every version, requests on snapshots that may be old, the first of two that write the same commits, names remembered for a while.

use std::collections::BTreeMap;

use pares_broker::{
    Asked, BrokerRead, BrokerReply, BrokerRequest, HitName, Ledger, QuoteBrought, Shelf, answer, execute,
    number_in_session, session_of_front,
};
use pares_wice::{Key, KeyRange, TransactionId, Value};

/// What sites do not do, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A repeated command is a new one.
    Numbers,
    /// Commands do not wait for the one before.
    Order,
    /// Each front has its hits for itself.
    Hits,
    /// A name says nothing.
    Names,
    /// Fronts do not look for what others armed and placed.
    Looks,
    /// Every front has the same number.
    Fronts,
}

/// A site remembers so many names of a client.
const NAMES_REMEMBERED: u64 = 64;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Accounts {
    items: BTreeMap<Key, Vec<(u64, Option<Value>)>>,
    pub(crate) version: u64,
    remembered: BTreeMap<(u64, u64), BrokerReply>,
    pub(crate) broken: Option<Broken>,
    drawn: u64,
}

impl Accounts {
    pub(crate) fn with(broken: Option<Broken>) -> Self {
        Self { broken, ..Self::default() }
    }

    /// Executes a request on the state of so many versions ago, and once more on the latest if that was too old.
    pub(crate) fn execute(&mut self, id: TransactionId, request: &BrokerRequest, behind: u64) -> BrokerReply {
        if let Some(reply) = self.remembered.get(&(id.client, id.sequence)) {
            return reply.clone();
        }
        let request = self.broken(request.clone());
        let behind = self.attempt(&request, self.version.saturating_sub(behind));
        let (reply, writes) =
            behind.unwrap_or_else(|| self.attempt(&request, self.version).expect("the latest"));
        if !writes.is_empty() {
            self.version += 1;
            for (key, value) in writes {
                self.items.entry(key).or_default().push((self.version, value));
            }
            self.remembered.insert((id.client, id.sequence), reply.clone());
            self.remembered.remove(&(id.client, id.sequence.saturating_sub(NAMES_REMEMBERED)));
        }
        reply
    }

    /// None if what it writes was changed since.
    fn attempt(
        &self,
        request: &BrokerRequest,
        at: u64,
    ) -> Option<(BrokerReply, BTreeMap<Key, Option<Value>>)> {
        let mut ledger = Transaction { accounts: self, at, writes: BTreeMap::new() };
        let reply = execute(request, &mut ledger).expect("every request can be executed");
        let writes = ledger.writes;
        let is_newer =
            |key: &Key| self.items.get(key).and_then(|all| all.last()).is_some_and(|last| last.0 > at);
        (!writes.keys().any(is_newer)).then_some((reply, writes))
    }

    fn broken(&mut self, mut request: BrokerRequest) -> BrokerRequest {
        self.drawn += 1;
        let drawn = self.drawn;
        match self.broken {
            Some(Broken::Numbers) if request.number > 0 && !request.asked.is_moment() => {
                request.number = number_in_session(session_of_front(1_000_000, 0), drawn);
                (request.after, request.name) = (0, None);
            }
            Some(Broken::Order) => request.after = 0,
            Some(Broken::Names) => request.name = None,
            Some(Broken::Hits) => {
                if let Some(QuoteBrought { hit: Some(hit), .. }) = &mut request.quote {
                    *hit = HitName { desk: 1_000, count: drawn };
                }
            }
            _ => {}
        }
        request
    }

    pub(crate) fn begin_front(&self, request: &BrokerRequest) -> Option<BrokerReply> {
        let is_same = request.asked == Asked::BeginFront && self.broken == Some(Broken::Fronts);
        is_same.then_some(BrokerReply::FrontNumber { front: 1 })
    }

    /// Answers a read from the state of so many versions ago.
    pub(crate) fn read(&self, read: &BrokerRead, behind: u64) -> Vec<u8> {
        let at = self.version.saturating_sub(behind);
        answer(read, &Transaction { accounts: self, at, writes: BTreeMap::new() }).expect("it can be read")
    }
}

struct Transaction<'a> {
    accounts: &'a Accounts,
    at: u64,
    writes: BTreeMap<Key, Option<Value>>,
}

impl Transaction<'_> {
    fn seen(&self, versions: &[(u64, Option<Value>)]) -> Option<Value> {
        versions.iter().rev().find(|(version, _)| *version <= self.at).and_then(|(_, value)| value.clone())
    }
}

impl Ledger for Transaction<'_> {
    type Error = std::convert::Infallible;

    fn get(&mut self, key: &Key) -> Result<Option<Value>, Self::Error> {
        if let Some(written) = self.writes.get(key) {
            return Ok(written.clone());
        }
        Ok(self.accounts.items.get(key).and_then(|versions| self.seen(versions)))
    }

    fn put(&mut self, key: &Key, value: Value) {
        self.writes.insert(key.clone(), Some(value));
    }

    fn delete(&mut self, key: &Key) {
        self.writes.insert(key.clone(), None);
    }
}

impl Shelf for Transaction<'_> {
    type Error = std::convert::Infallible;

    fn first(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Value)>, Self::Error> {
        let all = self.accounts.items.range(range.from.clone()..).take_while(|(key, _)| range.contains(key));
        let there = all.filter_map(|(key, versions)| Some((key.clone(), self.seen(versions)?)));
        Ok(there.take(limit).collect())
    }
}
