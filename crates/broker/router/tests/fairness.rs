//! What has to wait keeps nothing else waiting.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::collections::BTreeMap;

use pares_broker::{
    BrokerReply, CustomerOrderId, ORDERS_PAGE_MAX, Order, OrderAsked, OrderLife, OrderRead, OrderReply,
    OrderStage, OrderTerms, RouterSeat, StockSymbol, TradeWay, UserName,
};
use pares_router::{ListedStock, Router, RouterEffect};
use pares_types::InstrumentId;
use pares_wice::codec::Coded as _;

/// No shard has more orders without an answer.
const UNANSWERED: u64 = 256;

struct Desk {
    router: Router,
    now_ms: u64,
    names: u64,
    /// Orders that wait, by their numbers, and their stock.
    waiting: BTreeMap<u64, StockSymbol>,
    /// Names of cancels that are wished.
    unwanted: Vec<u64>,
    unwanted_from: Vec<u64>,
}

fn stock(letters: &str) -> StockSymbol {
    StockSymbol::new(letters).unwrap()
}

fn order(symbol: StockSymbol) -> Order {
    let terms = OrderTerms { symbol, way: TradeWay::Buy, shares: 1, limit_cents: 1, life: OrderLife::Day };
    let (state, left) = (OrderStage::Waiting, 1);
    Order { terms, state, why: 0, left, filled: 0, value: 0, name: 0, is_unwanted: false, placed_ms: 0 }
}

impl Desk {
    /// An active router, of two shards: stock A is on 0, B on 1.
    fn new() -> Self {
        let mut desk = Self {
            router: Router::new(1, 1),
            now_ms: 1_000,
            names: 0,
            waiting: BTreeMap::new(),
            unwanted: Vec::new(),
            unwanted_from: Vec::new(),
        };
        desk.tick();
        let listed = [("A", 0), ("B", 1)].map(|(letters, shard)| {
            (stock(letters), ListedStock { instrument: InstrumentId(shard + 1), shard })
        });
        desk.router.connected(listed.into(), desk.now_ms);
        desk.carry_out();
        desk
    }

    fn tick(&mut self) {
        self.now_ms += 20;
        self.router.tick(self.now_ms);
        self.carry_out();
    }

    /// No gateway ever answers.
    fn carry_out(&mut self) {
        for effect in self.router.take_effects() {
            match effect {
                RouterEffect::Ask { id, asked } => {
                    let reply = BrokerReply::Order { reply: self.execute(asked) };
                    self.router.answered(id, reply, self.now_ms);
                }
                RouterEffect::Look { id, read } => {
                    let bytes = self.read(read);
                    self.router.found(id, &bytes, self.now_ms).unwrap();
                }
                _ => {}
            }
            self.carry_out();
        }
    }

    fn execute(&mut self, asked: OrderAsked) -> OrderReply {
        match asked {
            OrderAsked::Claim { .. } => OrderReply::Claimed { term: 1 },
            OrderAsked::Name { orders, .. } => {
                let mut names = Vec::new();
                for of in orders {
                    self.waiting.remove(&of.number).unwrap();
                    self.names += 1;
                    names.push((of, 1 << 48 | self.names));
                }
                OrderReply::Named { names }
            }
            other => panic!("{other:?}"),
        }
    }

    fn read(&mut self, read: OrderRead) -> Vec<u8> {
        match read {
            OrderRead::Waiting { after } => {
                let from = after.map_or(0, |of| of.number + 1);
                let of = |number| CustomerOrderId { user: UserName::new("jo").unwrap(), number };
                let found = self.waiting.range(from..).take(ORDERS_PAGE_MAX);
                found.map(|(number, symbol)| (of(*number), order(*symbol))).collect::<Vec<_>>().to_bytes()
            }
            OrderRead::Unwanted { from } => {
                self.unwanted_from.push(from);
                let found = self.unwanted.iter().filter(|name| **name >= from).take(ORDERS_PAGE_MAX);
                found.copied().collect::<Vec<_>>().to_bytes()
            }
            OrderRead::Router => Option::<RouterSeat>::None.to_bytes(),
            OrderRead::Told => Vec::<(u32, u64)>::new().to_bytes(),
            OrderRead::Open { .. } => Vec::<(CustomerOrderId, Order)>::new().to_bytes(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn silent_shard_delays_no_other_shard() {
    let mut desk = Desk::new();
    desk.waiting = (0..1_000).map(|number| (number, stock("A"))).collect();
    desk.waiting.insert(5_000, stock("B"));
    for _ in 0..20 {
        desk.tick();
    }
    assert_eq!(desk.names, UNANSWERED + 1);
    assert!(!desk.waiting.contains_key(&5_000), "it lies behind hundreds that wait for their shard");
}

#[test]
fn all_cancels_that_are_wished_are_looked_at() {
    let mut desk = Desk::new();
    desk.unwanted = (1..=250).collect();
    desk.unwanted_from.clear();
    desk.tick();
    assert_eq!(desk.unwanted_from, [0, 101, 201]);
}
