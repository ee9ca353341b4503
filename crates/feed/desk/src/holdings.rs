//! What a member's trades come to: of each instrument, shares bought less shares sold, and what they cost.
//!
//! Traders need not agree on it: it is a function of the reports in the stream, so every trader who has all of them has the same.
//! A trade that is declared void names its order and not its side, so the sides of orders that traded are kept.

use std::collections::BTreeMap;

use pares_types::{InstrumentId, OrderId, Price, Quantity, Reply, Side};

/// Of one instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Shares bought less shares sold.
    pub shares: i128,
    /// Paid for what was bought less received for what was sold, in units of 1/10,000.
    pub paid: i128,
}

/// Of all.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    holdings: BTreeMap<InstrumentId, Holding>,
    sides: BTreeMap<OrderId, Side>,
}

impl Holdings {
    /// The next report. Each is to be told once, in the stream's order.
    pub fn on_reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Trade(trade) => {
                self.sides.insert(trade.order, trade.side);
                self.add(trade.instrument, trade.side, trade.price, trade.quantity);
            }
            Reply::Busted(busted) => {
                // Of a trade from before the stream began nothing was counted.
                if let Some(&side) = self.sides.get(&busted.order) {
                    self.add(busted.instrument, side.opposite(), busted.price, busted.quantity);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, instrument: InstrumentId, side: Side, price: Price, quantity: Quantity) {
        let holding = self.holdings.entry(instrument).or_default();
        let shares = i128::from(quantity.0);
        let shares = if side == Side::Buy { shares } else { -shares };
        holding.shares += shares;
        holding.paid += shares * i128::from(price.0);
    }

    /// Of an instrument; `None` if it was never traded.
    #[must_use]
    pub fn get(&self, instrument: InstrumentId) -> Option<Holding> {
        self.holdings.get(&instrument).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_exercise::replies;
    use pares_types::{Trade, TradeBusted};

    fn trade(order: u64, side: Side, price: i64, quantity: u64) -> Reply {
        let (price, quantity) = (Price(price), Quantity(quantity));
        let instrument = InstrumentId(1);
        Reply::Trade(Trade { instrument, side, price, quantity, ..replies::trade(order, 1) })
    }

    fn busted(order: u64, price: i64, quantity: u64) -> Reply {
        let (price, quantity) = (Price(price), Quantity(quantity));
        let instrument = InstrumentId(1);
        Reply::Busted(TradeBusted { instrument, price, quantity, ..replies::busted(order, 2) })
    }

    #[test]
    fn bought_sold_add_up_without_void_trades() {
        let mut holdings = Holdings::default();
        assert_eq!(holdings.get(InstrumentId(1)), None);
        holdings.on_reply(&trade(1, Side::Buy, 100, 30));
        holdings.on_reply(&trade(2, Side::Sell, 110, 50));
        assert_eq!(holdings.get(InstrumentId(1)), Some(Holding { shares: -20, paid: 3_000 - 5_500 }));
        holdings.on_reply(&busted(2, 110, 50));
        holdings.on_reply(&busted(7, 110, 50));
        assert_eq!(holdings.get(InstrumentId(1)), Some(Holding { shares: 30, paid: 3_000 }));
    }
}
