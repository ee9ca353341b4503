//! Items in memory, and both sides side by side: the rules over a transaction, and the oracle over plain maps.

use std::collections::BTreeMap;
use std::convert::Infallible;

use pares_broker::{
    Asked, AuditEntry, AuditFault, AuditPage, AuditReplay, AuditReport, BrokerError, BrokerRead, BrokerReply,
    BrokerRequest, HitName, Ledger, QuoteBrought, StockQuote, StockSymbol, UserName, WorkloadLine, answer,
    execute, summary, tell_log,
};
pub(crate) use pares_oracle::shared_data::{is_valid, workload};
use pares_oracle::{Oracle, SeenAccount};
use pares_wice::{Key, Value};

/// What a request writes.
type Writes = BTreeMap<Key, Option<Value>>;

/// Items, and what a request would make of them.
struct Attempt<'a> {
    items: &'a BTreeMap<Key, Value>,
    writes: Writes,
}

impl Ledger for Attempt<'_> {
    type Error = Infallible;

    fn get(&mut self, key: &Key) -> Result<Option<Value>, Infallible> {
        Ok(self.writes.get(key).cloned().unwrap_or_else(|| self.items.get(key).cloned()))
    }

    fn put(&mut self, key: &Key, value: Value) {
        self.writes.insert(key.clone(), Some(value));
    }

    fn delete(&mut self, key: &Key) {
        self.writes.insert(key.clone(), None);
    }
}

/// The rules, and the oracle.
#[derive(Default)]
pub(crate) struct Both {
    pub(crate) shelves: BTreeMap<Key, Value>,
    pub(crate) oracle: Oracle,
}

impl Both {
    /// Executes on both sides; what they answer is the same.
    pub(crate) fn run(&mut self, request: &BrokerRequest) -> BrokerReply {
        let (reply, writes) = attempt(&self.shelves, request).unwrap();
        for (key, value) in writes {
            match value {
                Some(value) => drop(self.shelves.insert(key, value)),
                None => drop(self.shelves.remove(&key)),
            }
        }
        assert_eq!(reply, self.oracle.run(request), "{request:?}");
        reply
    }

    /// Whether both sides hold the same accounts and the same log, and the money of each adds up.
    pub(crate) fn check(&self) {
        for (user, expected) in &self.oracle.users {
            let found = summary(&self.shelves, &UserName::new(user).unwrap()).unwrap().unwrap();
            assert_eq!(expected.seen(), SeenAccount::of(&found), "{user}");
            let holds: u64 = found.buys.iter().map(|pending| pending.cents).sum();
            let reserves: u64 = found.buy_triggers.iter().map(|(_, trigger)| trigger.reserve_cents).sum();
            let has = found.account.cash_cents + holds + reserves + expected.spent;
            assert_eq!(expected.added + expected.received, has, "the money of {user}");
        }
        let log = self.log();
        assert_eq!(log.len(), self.oracle.log.len());
        for (AuditEntry { user, place, record }, expected) in log.into_iter().zip(&self.oracle.log) {
            assert_eq!((&(user.len(), user, place), &record), expected);
        }
    }

    /// The whole log, read in pages.
    pub(crate) fn log(&self) -> Vec<AuditEntry> {
        let (mut log, mut page) = (Vec::new(), self.page(None));
        loop {
            log.extend(page.entries);
            match page.next {
                Some(next) => page = self.page(Some(next)),
                None => break,
            }
        }
        log
    }

    fn page(&self, from: Option<Key>) -> AuditPage {
        use pares_wice::codec::Coded as _;
        let read = BrokerRead::Log { user: None, from };
        let read = BrokerRead::from_bytes(&read.to_bytes()).unwrap();
        AuditPage::from_bytes(&answer(&read, &self.shelves).unwrap()).unwrap()
    }

    /// The log as XML.
    pub(crate) fn xml(&self) -> String {
        let mut text = String::new();
        let told = tell_log(
            |from| Ok::<_, Infallible>(self.page(from)),
            |part| {
                text.push_str(part);
                Ok(())
            },
        );
        told.unwrap();
        text
    }

    /// Replays the log alone; what it leaves is what the oracle has.
    pub(crate) fn replay(&self) -> AuditReport {
        let report = replay(&self.xml()).unwrap();
        for (user, expected) in &self.oracle.users {
            let found = &report.accounts[user];
            assert_eq!(found.cash_cents, i128::from(expected.cash), "{user}");
            let shares: BTreeMap<String, u64> = expected.shares.clone();
            assert_eq!(found.shares, shares, "{user}");
            assert_eq!(found.held_cents(), i128::from(expected.held()), "{user}");
        }
        report
    }
}

pub(crate) fn replay(log: &str) -> Result<AuditReport, AuditFault> {
    let mut replay = AuditReplay::default();
    replay.text(log)?;
    replay.finish()
}

/// Executes a request, after a journey of its bytes.
pub(crate) fn attempt(
    items: &BTreeMap<Key, Value>,
    request: &BrokerRequest,
) -> Result<(BrokerReply, Writes), BrokerError<Infallible>> {
    use pares_wice::codec::Coded as _;
    let request = BrokerRequest::from_bytes(&request.to_bytes()).unwrap();
    let mut attempt = Attempt { items, writes: BTreeMap::new() };
    let reply = execute(&request, &mut attempt)?;
    Ok((BrokerReply::from_bytes(&reply.to_bytes()).unwrap(), attempt.writes))
}

/// A moment that the schema of 2023 allows.
pub(crate) const NOON_MS: u64 = 1_680_000_000_000;

/// A quote that nobody else has asked for: its question is named by stock and stamp.
pub(crate) fn hit(symbol: StockSymbol, price_cents: u64, server_ms: u64) -> QuoteBrought {
    let quote =
        StockQuote { price_cents, symbol, user: "desk".to_owned(), server_ms, key: "<k&y>=".to_owned() };
    let desk = symbol.padded().iter().fold(0, |desk, letter| desk << 8 | u64::from(*letter));
    QuoteBrought { quote, hit: Some(HitName { desk, count: server_ms }) }
}

/// A line of a workload as a request, at a price that is the symbol's for ever; the first to need it hits the server.
pub(crate) fn request_of(line: WorkloadLine, asked: &mut BTreeMap<StockSymbol, u64>) -> BrokerRequest {
    let quote = line.command.symbol.map(|symbol| {
        let count = asked.entry(symbol).or_default();
        *count += 1;
        let brought = hit(symbol, fixed_price(symbol), NOON_MS);
        QuoteBrought { hit: brought.hit.filter(|_| *count == 1), ..brought }
    });
    let asked = Asked::Command { command: line.command, fault: line.fault };
    BrokerRequest { number: line.number, after: 0, name: None, time_ms: NOON_MS, quote, asked }
}

/// Between $1.00 and $500.99, drawn from a seed.
fn fixed_price(symbol: StockSymbol) -> u64 {
    let mut mixed = 0x9e37_79b9_7f4a_7c15_u64;
    for byte in symbol.padded() {
        mixed = (mixed ^ u64::from(byte)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 29;
    }
    100 + mixed % 50_000
}
