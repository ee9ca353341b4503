//! The application of the simulation: accounts, transfers, counters, and the record that makes a client's requests happen once.

use std::collections::BTreeMap;

use pares_wice::{Change, Key, Value, Write};

use crate::random::Random;

/// Accounts; few, so that transfers meet.
const ACCOUNTS: u64 = 12;
/// Of 1,000 transfers, how many go by additions.
const BY_ADDING_PERMILLE: u64 = 300;

/// What a client wants done, once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) client: u64,
    pub(super) sequence: u64,
    from: u64,
    to: u64,
    amount: i64,
    by_adding: bool,
}

/// What its execution saw and did.
#[derive(Clone, Debug, Default)]
pub(super) struct Executed {
    pub(super) reads: Vec<(Key, Option<Value>)>,
    pub(super) writes: Vec<Write>,
}

impl Request {
    pub(super) fn draw(client: u64, sequence: u64, random: &mut Random) -> Self {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let by_adding = random.chance(BY_ADDING_PERMILLE);
        Self { client, sequence, from, to, amount: random.between(1, 9) as i64, by_adding }
    }

    /// The item that says which of the client's requests is done.
    pub(super) fn done_key(client: u64) -> Key {
        Key::from(format!("done/{client}").as_str())
    }

    /// Executes it on what `read` gives.
    pub(super) fn execute(&self, mut read: impl FnMut(&Key) -> Option<Value>) -> Executed {
        let mut executed = Executed::default();
        let mut see = |key: Key| {
            let value = read(&key);
            executed.reads.push((key.clone(), value.clone()));
            (key, value)
        };
        let (done, _) = see(Self::done_key(self.client));
        executed.writes.push(Write::put(done, Value::counter(i128::from(self.sequence))));
        for (account, amount) in [(self.from, -self.amount), (self.to, self.amount)] {
            if self.by_adding {
                executed.writes.push(Write::add(format!("counter/{account}").as_str(), amount));
                continue;
            }
            let (key, value) = see(Key::from(format!("account/{account}").as_str()));
            let balance = value.and_then(|value| value.as_counter()).unwrap_or(0);
            executed.writes.push(Write::put(key, Value::counter(balance + i128::from(amount))));
        }
        executed
    }
}

/// Carries out writes on a plain map.
pub(super) fn apply(items: &mut BTreeMap<Key, Value>, writes: &[Write]) {
    for write in writes {
        match &write.change {
            Change::Put(value) => drop(items.insert(write.key.clone(), value.clone())),
            Change::Delete => drop(items.remove(&write.key)),
            Change::Add(delta) => {
                let total = items.get(&write.key).and_then(Value::as_counter).unwrap_or(0);
                items.insert(write.key.clone(), Value::counter(total + i128::from(*delta)));
            }
        }
    }
}

/// All money; 0 at every version.
pub(super) fn total(items: &BTreeMap<Key, Value>) -> i128 {
    let money = items.iter().filter(|(key, _)| !key.as_bytes().starts_with(b"done/"));
    money.filter_map(|(_, value)| value.as_counter()).sum()
}
