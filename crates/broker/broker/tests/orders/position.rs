//! The position limit against an oracle: whatever is pending, reserved or on the exchange, an order is taken exactly if all of it stays within the limit.

use std::collections::BTreeMap;

use pares_broker::{
    Asked, BrokerReply, CustomerLimits, CustomerOrderId, OrderAsked, OrderEvent, Refusal, TradeWay,
};
use proptest::prelude::*;

use crate::support::{Broker, SHARES, jo, max, symbol};

const POSITION_MAX: u64 = 140;

/// What jo has of the stock, in the most obvious form: the sum of what came and went, whatever it is held by, and what may come.
struct Position {
    broker: Broker,
    owned: i64,
    /// Way, shares left, shares filled.
    orders: BTreeMap<CustomerOrderId, (TradeWay, u64, u64)>,
    buys: Vec<u64>,
    /// Shares that a trigger buys at its price.
    trigger: u64,
}

impl Position {
    fn new() -> Self {
        let mut broker = Broker::new();
        broker.command("ADD,jo,1000000.00");
        let limits = CustomerLimits {
            shares_max: 1_000,
            cents_max: 1_000_000_000,
            open_max: 100,
            position_max: POSITION_MAX,
            loss_max: 0,
        };
        broker.ask(OrderAsked::Limit { user: jo(), limits, by: max() });
        let owned = i64::try_from(SHARES).unwrap();
        Self { broker, owned, orders: BTreeMap::new(), buys: Vec::new(), trigger: 0 }
    }

    fn with(&self, shares: u64) -> i64 {
        let orders = self.orders.values().filter(|order| order.0 == TradeWay::Buy).map(|order| order.1);
        let coming = orders.chain(self.buys.iter().copied()).chain([self.trigger, shares]);
        self.owned + i64::try_from(coming.sum::<u64>()).unwrap()
    }

    fn owns(&mut self, way: TradeWay, shares: u64) {
        let shares = i64::try_from(shares).unwrap();
        self.owned += if way == TradeWay::Buy { shares } else { -shares };
    }

    fn place(&mut self, way: TradeWay, shares: u64) -> Result<(), TestCaseError> {
        let is_over = way == TradeWay::Buy && self.with(shares) > i64::try_from(POSITION_MAX).unwrap();
        match self.broker.place(way, shares, 1_000) {
            Ok(of) => {
                prop_assert!(!is_over, "{} with {shares} more is taken", self.with(0));
                self.broker.name(&of);
                self.orders.insert(of, (way, shares, 0));
            }
            Err(Refusal::PositionLimit) => {
                prop_assert!(is_over, "{} with {shares} more is refused", self.with(0));
            }
            // For want of shares, cash, or what is owed: of the position it says nothing.
            Err(_) => {}
        }
        Ok(())
    }

    /// The exchange tells something of one of the orders.
    fn tell(&mut self, which: usize, kind: u8, shares: u64) {
        let count = self.orders.len().max(1);
        let Some((of, order)) = self.orders.iter_mut().nth(which % count) else { return };
        let (of, way, price) = (of.clone(), order.0, 100_000);
        match kind % 3 {
            0 if order.1 > 0 => {
                let shares = shares.clamp(1, order.1);
                (order.1, order.2) = (order.1 - shares, order.2 + shares);
                self.owns(way, shares);
                self.broker.tell(&of, OrderEvent::Traded { price, shares });
            }
            1 if order.1 > 0 => {
                let shares = std::mem::take(&mut order.1);
                self.broker.tell(&of, OrderEvent::Cancelled { cause: 1, shares });
            }
            2 if order.2 > 0 => {
                let shares = shares.clamp(1, order.2);
                order.2 -= shares;
                let back = if way == TradeWay::Buy { TradeWay::Sell } else { TradeWay::Buy };
                self.owns(back, shares);
                self.broker.tell(&of, OrderEvent::Void { price, shares });
            }
            _ => {}
        }
    }

    /// Something at quotes.
    fn at_quotes(&mut self, kind: u8, shares: u64) {
        let amount = format!("{shares}0.00");
        let said = |broker: &mut Broker, line: &str| broker.command(&format!("{line}{amount}"));
        match kind % 8 {
            0 => {
                if let BrokerReply::Held { shares, .. } = said(&mut self.broker, "BUY,jo,ABC,") {
                    self.buys.push(shares);
                }
            }
            1 | 2 => {
                let line = if kind % 8 == 1 { "COMMIT_BUY,jo" } else { "CANCEL_BUY,jo" };
                if let BrokerReply::Settled { shares, .. } = self.broker.command(line) {
                    self.buys.pop();
                    self.owns(TradeWay::Buy, if kind % 8 == 1 { shares } else { 0 });
                }
            }
            3 => drop(said(&mut self.broker, "SELL,jo,ABC,")),
            4 | 5 => {
                let line = if kind % 8 == 4 { "COMMIT_SELL,jo" } else { "CANCEL_SELL,jo" };
                if let BrokerReply::Settled { shares, .. } = self.broker.command(line) {
                    self.owns(TradeWay::Sell, if kind % 8 == 4 { shares } else { 0 });
                }
            }
            6 => self.sell_trigger(&amount),
            _ => self.buy_trigger(shares, &amount),
        }
    }

    fn sell_trigger(&mut self, amount: &str) {
        self.broker.command(&format!("SET_SELL_AMOUNT,jo,ABC,{amount}"));
        self.broker.command("SET_SELL_TRIGGER,jo,ABC,10.01");
    }

    fn buy_trigger(&mut self, shares: u64, amount: &str) {
        if let BrokerReply::Cash { .. } = self.broker.command(&format!("SET_BUY_AMOUNT,jo,ABC,{amount}")) {
            self.trigger = 0;
            if let BrokerReply::Armed { .. } = self.broker.command("SET_BUY_TRIGGER,jo,ABC,5.00") {
                self.trigger = 2 * shares;
            }
        }
    }

    /// Triggers fire at their prices, or a minute passes.
    fn later(&mut self, kind: u8) {
        if kind % 3 == 2 {
            self.broker.now_ms += 60_001;
            for way in [TradeWay::Buy, TradeWay::Sell] {
                self.broker.request(Asked::Lapse { way, user: jo() });
            }
            return self.buys.clear();
        }
        let way = if kind.is_multiple_of(3) { TradeWay::Buy } else { TradeWay::Sell };
        self.broker.price_cents = if way == TradeWay::Buy { 500 } else { 1_001 };
        let fired = self.broker.request(Asked::Fire { way, user: jo(), symbol: symbol() });
        self.broker.price_cents = 1_000;
        if let BrokerReply::Settled { shares, .. } = fired {
            self.owns(way, shares);
            self.trigger = if way == TradeWay::Buy { 0 } else { self.trigger };
        }
    }
}

proptest! {
    #[test]
    fn order_accepted_exactly_within_open_limit(
        steps in prop::collection::vec((0_u8..8, any::<u8>(), any::<usize>(), 1_u64..30), 1..60)
    ) {
        let mut jo = Position::new();
        for (what, kind, which, shares) in steps {
            match what {
                0..=2 => jo.place(if kind.is_multiple_of(3) { TradeWay::Sell } else { TradeWay::Buy }, shares)?,
                3..=4 => jo.tell(which, kind, shares),
                5..=6 => jo.at_quotes(kind, shares),
                _ => jo.later(kind),
            }
        }
        jo.broker.log();
    }
}

#[test]
fn what_is_pending_at_quotes_counts() {
    let mut jo = Position::new();
    jo.broker.command("SELL,jo,ABC,50.00");
    assert_eq!(jo.broker.place(TradeWay::Buy, 41, 1_000), Err(Refusal::PositionLimit), "five come back");
    jo.broker.place(TradeWay::Buy, 40, 1_000).unwrap();
    for _ in 0..256 {
        jo.broker.command("BUY,jo,XYZ,10.00");
    }
    assert_eq!(jo.broker.place(TradeWay::Buy, 1, 1_000), Err(Refusal::TooManyPending), "257 are pending");
    assert_eq!(jo.broker.place(TradeWay::Sell, 1, 1_000).err(), None, "a sell has no such limit");
}
