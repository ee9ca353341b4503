//! Jo, his account, and an active router.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::convert::Infallible;

use pares_broker::{
    AccountSummary, Asked, AuditNote, AuditReplay, BrokerRead, BrokerReply, BrokerRequest, CustomerOrderId,
    Order, OrderAsked, OrderEvent, OrderHappened, OrderLife, OrderRead, OrderReply, OrderTerms,
    PasswordString, PersonAsked, PersonRight, QuoteBrought, Refusal, RouterSeat, Settlement, Shelf,
    StockQuote, StockSymbol, TradeWay, UserName, WorkloadLine, answer, audit_page, execute, summary,
    tell_log,
};
use pares_wice::codec::Coded;
use pares_wice::{Key, KeyRange, Value};

pub(crate) const PAID_IN: u64 = 1_000_000;
/// Shares that were bought at a quote before, at 10.00.
pub(crate) const SHARES: u64 = 100;
pub(crate) const NOW_MS: u64 = 1_680_000_000_000;

#[derive(Default)]
pub(crate) struct Broker {
    pub(crate) items: BTreeMap<Key, Value>,
    pub(crate) asked: u64,
    pub(crate) now_ms: u64,
    pub(crate) told: u64,
    /// Items that were read from ranges.
    pub(crate) read: Cell<usize>,
    /// At quotes, cents.
    pub(crate) price_cents: u64,
}

/// What is read of it is counted.
impl Shelf for Broker {
    type Error = Infallible;

    fn first(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Value)>, Infallible> {
        let found = self.items.first(range, limit)?;
        self.read.set(self.read.get() + found.len());
        Ok(found)
    }
}

pub(crate) fn jo() -> UserName {
    UserName::new("jo").unwrap()
}

/// A supervisor.
pub(crate) fn max() -> UserName {
    UserName::new("max").unwrap()
}

pub(crate) fn symbol() -> StockSymbol {
    StockSymbol::new("ABC").unwrap()
}

impl Broker {
    /// Jo with cash and shares, max who is a supervisor, and router 1 active in term 1.
    pub(crate) fn new() -> Self {
        let mut broker = Self { now_ms: NOW_MS, price_cents: 1_000, ..Self::default() };
        for line in ["ADD,jo,11000.00", "BUY,jo,ABC,1000.00", "COMMIT_BUY,jo"] {
            assert!(!matches!(broker.command(line), BrokerReply::Refused { .. }));
        }
        broker.gives_max(vec![PersonRight::Supervisor]);
        let claimed = broker.ask(OrderAsked::Claim { router: 1, member: 1, seen: 0 });
        assert_eq!(claimed, BrokerReply::Order { reply: OrderReply::Claimed { term: 1 } });
        broker
    }

    /// Max has these rights from now on.
    pub(crate) fn gives_max(&mut self, rights: Vec<PersonRight>) {
        let (name, password) = (max(), PasswordString(String::new()));
        let add = PersonAsked::Add { name, password, rights: vec![], takes_account: true };
        for asked in [add, PersonAsked::SetRights { name: max(), rights }] {
            let (number, time_ms, asked) = (0, self.now_ms, Asked::Person { asked });
            let request = BrokerRequest { number, after: 0, name: None, time_ms, quote: None, asked };
            execute(&request, &mut self.items).unwrap();
        }
    }

    pub(crate) fn command(&mut self, line: &str) -> BrokerReply {
        let line = WorkloadLine::parse(format!("[1] {line}").as_bytes()).unwrap();
        self.request(Asked::Command { command: line.command, fault: line.fault })
    }

    pub(crate) fn request(&mut self, asked: Asked) -> BrokerReply {
        self.asked += 1;
        let (number, time_ms) = ((1 << 42) + self.asked, self.now_ms);
        let user = "jo".to_owned();
        let asked_for = match &asked {
            Asked::Command { command, .. } => command.symbol,
            Asked::Fire { symbol, .. } => Some(*symbol),
            _ => None,
        };
        let quote = StockQuote {
            price_cents: self.price_cents,
            symbol: asked_for.unwrap_or(symbol()),
            user,
            server_ms: time_ms,
            key: "key".to_owned(),
        };
        let quote = Some(QuoteBrought { quote, hit: None });
        execute(&BrokerRequest { number, after: 0, name: None, time_ms, quote, asked }, &mut self.items)
            .unwrap()
    }

    pub(crate) fn ask(&mut self, asked: OrderAsked) -> BrokerReply {
        self.request(Asked::Order { asked })
    }

    pub(crate) fn place(
        &mut self,
        way: TradeWay,
        shares: u64,
        limit_cents: u64,
    ) -> Result<CustomerOrderId, Refusal> {
        let terms = OrderTerms { symbol: symbol(), way, shares, limit_cents, life: OrderLife::Day };
        match self.ask(OrderAsked::Place { user: jo(), terms }) {
            BrokerReply::Order { reply: OrderReply::Placed { order } } => {
                Ok(CustomerOrderId { user: jo(), number: order })
            }
            BrokerReply::Refused { refusal } => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    /// An order that the router has named.
    pub(crate) fn routed(&mut self, way: TradeWay, shares: u64, limit_cents: u64) -> CustomerOrderId {
        let of = self.place(way, shares, limit_cents).unwrap();
        self.name(&of);
        of
    }

    pub(crate) fn name(&mut self, of: &CustomerOrderId) -> u64 {
        match self.ask(OrderAsked::Name { term: 1, orders: vec![of.clone()] }) {
            BrokerReply::Order { reply: OrderReply::Named { names } } => names[0].1,
            other => panic!("{other:?}"),
        }
    }

    /// The exchange tells the next message.
    pub(crate) fn tell(&mut self, of: &CustomerOrderId, event: OrderEvent) -> Order {
        self.told += 1;
        let settlement = Settlement { term: 1, shard: 0, number: self.told, of: of.clone(), event };
        match self.ask(OrderAsked::Settle { settlement }) {
            BrokerReply::Order { reply: OrderReply::Now { order } } => order,
            other => panic!("{other:?}"),
        }
    }

    /// How often a router has claimed.
    pub(crate) fn claims(&self) -> u64 {
        let seat: Option<RouterSeat> = self.listed(OrderRead::Router);
        seat.unwrap().claims
    }

    pub(crate) fn listed<T: Coded>(&self, read: OrderRead) -> T {
        T::from_bytes(&answer(&BrokerRead::Order { read }, self).unwrap()).unwrap()
    }

    pub(crate) fn summary(&self) -> AccountSummary {
        summary(&self.items, &jo()).unwrap().unwrap()
    }

    pub(crate) fn has(&self) -> (u64, u64) {
        let AccountSummary { account, shares, .. } = self.summary();
        (account.cash_cents, shares.first().map_or(0, |(_, shares)| *shares))
    }

    /// Jo's log, whose replay leaves what jo has.
    pub(crate) fn log(&self) -> String {
        let (mut text, mut replay) = (String::new(), AuditReplay::default());
        let page = |from: Option<Key>| audit_page(&self.items, None, from.as_ref());
        tell_log(page, |part| {
            text.push_str(part);
            Ok(())
        })
        .unwrap();
        replay.text(&text).unwrap();
        let report = replay.finish().unwrap();
        assert!(report.accounts["jo"].is(&self.summary()), "{report:?}, and {:?}", self.summary());
        text
    }

    /// What was repaid of which stock, shares and cents, in the log's order.
    pub(crate) fn repaid(&self) -> Vec<(StockSymbol, u64, u64)> {
        let entries = audit_page(&self.items, None, None).unwrap().entries;
        let notes = entries.into_iter().flat_map(|entry| entry.record.notes);
        notes
            .filter_map(|note| match note {
                AuditNote::Order { note } if note.happened == OrderHappened::Repaid => {
                    Some((note.symbol, note.shares, note.cents))
                }
                _ => None,
            })
            .collect()
    }

    /// As many free shares as there can be: one more is too much.
    pub(crate) fn fill(&mut self) {
        self.items.insert(Key::new(b"bh\x02joABC"), Value::new(u64::MAX.to_le_bytes()));
    }
}

pub(crate) fn refused(refusal: Refusal) -> BrokerReply {
    BrokerReply::Refused { refusal }
}
