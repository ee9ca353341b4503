//! Orders on the exchange, as the log tells them: each holds, gives back and moves what its terms say and no other.

use std::collections::BTreeMap;

use super::account::{Checked, ReplayedAccount, Step};
use super::element::cents;
use crate::command::Verb;
use crate::orders::OrderHappened;

/// What a `debugEvent` says of an order: what happened, to how many shares, and cents.
pub(super) type OrderStep = (OrderHappened, u64, u64);

/// Reads `order WORD: SHARES at CENTS`; none if it is about no order.
pub(super) fn order_step(message: &str) -> Option<OrderStep> {
    let (word, deal) = message.strip_prefix("order ")?.split_once(": ")?;
    let happened = OrderHappened::ALL.into_iter().find(|happened| happened.word() == word)?;
    let (shares, amount) = deal.split_once(" at ").or_else(|| deal.split_once(" for "))?;
    Some((happened, shares.parse().ok()?, cents(amount).ok()?))
}

/// An order, from its placing on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedOrder {
    is_buy: bool,
    symbol: String,
    limit: u64,
    /// Shares that are held, or whose cost is.
    left: u64,
    /// Shares that traded and stand.
    filled: u64,
}

impl PlacedOrder {
    pub(super) fn held_cents(&self) -> i128 {
        if self.is_buy { i128::from(self.left) * i128::from(self.limit) } else { 0 }
    }
}

impl ReplayedAccount {
    /// Shares of each stock that orders to sell hold.
    pub(super) fn held_by_orders(&self) -> BTreeMap<String, u64> {
        let mut held = BTreeMap::new();
        for order in self.orders.values().filter(|order| !order.is_buy && order.left > 0) {
            *held.entry(order.symbol.clone()).or_default() += order.left;
        }
        held
    }

    pub(super) fn order_happened(&mut self, step: &Step, order: OrderStep) -> Checked {
        let (happened, shares, cents) = order;
        match happened {
            OrderHappened::Placed => self.order_placed(step, shares, cents),
            OrderHappened::Repaid => self.repaid(step, shares, cents),
            _ => {
                let placed = self.orders.remove(&step.number);
                let mut placed = placed.map_or_else(|| step.wrong("no such order was placed"), Ok)?;
                if placed.is_buy != (step.verb == Verb::Buy) || step.symbol.as_deref() != Some(&placed.symbol)
                {
                    return step.wrong("the order was another");
                }
                match happened {
                    OrderHappened::Traded => self.order_traded(step, &mut placed, shares, cents)?,
                    OrderHappened::Void => self.order_void(step, &mut placed, shares, cents)?,
                    OrderHappened::Accepted if shares > placed.left => {
                        return step.wrong("accepts more than is held");
                    }
                    OrderHappened::Accepted => step.moves(0)?,
                    _ => self.order_released(step, &mut placed, shares)?,
                }
                self.orders.insert(step.number, placed);
                Ok(())
            }
        }
    }

    fn order_placed(&mut self, step: &Step, shares: u64, limit: u64) -> Checked {
        let (is_buy, symbol) = (step.verb == Verb::Buy, step.stock()?);
        let placed = PlacedOrder { is_buy, symbol: symbol.clone(), limit, left: shares, filled: 0 };
        let held = placed.held_cents();
        if self.orders.insert(step.number, placed).is_some() {
            return step.wrong("an order is placed twice");
        }
        if !is_buy {
            self.give(step, &symbol, shares)?;
        }
        step.moves(-held)
    }

    fn order_traded(&mut self, step: &Step, placed: &mut PlacedOrder, shares: u64, cents: u64) -> Checked {
        let at_limit = i128::from(shares) * i128::from(placed.limit);
        let is_within =
            if placed.is_buy { i128::from(cents) <= at_limit } else { i128::from(cents) >= at_limit };
        if shares > placed.left || !is_within {
            return step.wrong("trades more than is left, or beyond its limit");
        }
        (placed.left, placed.filled) = (placed.left - shares, placed.filled + shares);
        if placed.is_buy {
            self.receive(&placed.symbol, shares);
            self.spent_cents += i128::from(cents);
            step.moves(at_limit - i128::from(cents))
        } else {
            self.received_cents += i128::from(cents);
            step.moves(cents.into())
        }
    }

    fn order_released(&mut self, step: &Step, placed: &mut PlacedOrder, shares: u64) -> Checked {
        if shares > placed.left {
            return step.wrong("releases more than is held");
        }
        placed.left -= shares;
        if placed.is_buy {
            step.moves(i128::from(shares) * i128::from(placed.limit))
        } else {
            self.receive(&placed.symbol, shares);
            step.moves(0)
        }
    }

    fn order_void(&mut self, step: &Step, placed: &mut PlacedOrder, shares: u64, cents: u64) -> Checked {
        if shares > placed.filled {
            return step.wrong("voids a trade that did not happen");
        }
        placed.filled -= shares;
        if placed.is_buy {
            *self.owed_shares.entry(placed.symbol.clone()).or_default() += shares;
            self.spent_cents -= i128::from(cents);
            step.moves(cents.into())
        } else {
            self.owed_cents += i128::from(cents);
            self.received_cents -= i128::from(cents);
            self.receive(&placed.symbol, shares);
            step.moves(0)
        }
    }

    fn repaid(&mut self, step: &Step, shares: u64, cents: u64) -> Checked {
        let symbol = step.stock()?;
        let owed = self.owed_shares.get(&symbol).copied().unwrap_or_default();
        if shares > owed || i128::from(cents) > self.owed_cents {
            return step.wrong("repays more than was owed");
        }
        self.owed_shares.insert(symbol.clone(), owed - shares);
        self.owed_cents -= i128::from(cents);
        if shares > 0 {
            self.give(step, &symbol, shares)?;
        }
        step.moves(-i128::from(cents))
    }
}
