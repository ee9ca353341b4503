//! What becomes of orders, counted share by share along a shard's record.

use std::collections::BTreeMap;

use pares_types::{ClientOrderId, Command, Event, InstrumentId, MemberId, OrderId, Outcome, Side, Status};

use crate::record::Record;

/// What became of an order's shares.
pub(crate) struct Shares {
    /// Whose it is, and its name for it.
    pub(crate) owner: (MemberId, ClientOrderId),
    side: Side,
    pub(crate) instrument: InstrumentId,
    entered: u64,
    executed: u64,
    cancelled: u64,
}

impl Shares {
    pub(crate) fn remaining(&self) -> u64 {
        self.entered.saturating_sub(self.executed + self.cancelled)
    }
}

/// The orders of a shard.
#[derive(Default)]
pub(crate) struct Accounts {
    pub(crate) orders: BTreeMap<OrderId, Shares>,
}

impl Accounts {
    /// Follows a record as docs/rules.md, section 9 says: what comes before the first [`Event::Incoming`] is of the request's
    /// own order, then the outcome counts, then the rest.
    pub(crate) fn follow(&mut self, record: &Record) -> Result<(), String> {
        let is_incoming = |event: &Event| matches!(event, Event::Incoming { .. });
        let own = record.events.iter().position(is_incoming).unwrap_or(record.events.len());
        let refused = record.outcome.status == Status::Refused;
        if refused && record.events[..own].iter().any(moves_shares) {
            return Err("a refusal with effects".into());
        }
        if !refused {
            self.enter(record)?;
        }
        let mut incoming = record.outcome.order;
        for event in &record.events[..own] {
            self.event(&mut incoming, event)?;
        }
        if !refused {
            self.settle(record)?;
        }
        record.events[own..].iter().try_for_each(|event| self.event(&mut incoming, event))
    }

    fn enter(&mut self, record: &Record) -> Result<(), String> {
        let Outcome { order, .. } = record.outcome;
        match record.request.command {
            Command::Enter(new) => {
                let (side, entered) = (new.side, new.quantity.0);
                let instrument = record.request.instrument;
                let owner = (record.request.member, record.request.client_order_id);
                let shares = Shares { owner, side, instrument, entered, executed: 0, cancelled: 0 };
                let twice = self.orders.insert(order, shares).is_some();
                if twice { Err(format!("order {order} entered twice")) } else { Ok(()) }
            }
            Command::Amend(amendment) => {
                let shares = self.orders.get_mut(&order).ok_or("an unknown order amended")?;
                let total = shares.entered - shares.cancelled;
                shares.entered += amendment.quantity.0.saturating_sub(total);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, incoming: &mut OrderId, event: &Event) -> Result<(), String> {
        match *event {
            Event::Fill { resting, resting_side, quantity, resting_remaining, .. } => {
                let one = self.execute(resting, quantity.0)?;
                let other = self.execute(*incoming, quantity.0)?;
                if one.0 != resting_side || other.0 != resting_side.opposite() || one.1 != other.1 {
                    return Err("a trade needs a buyer and a seller of one instrument".into());
                }
                self.expect_left(resting, resting_remaining.0)
            }
            Event::Cancelled { order, quantity, .. } => {
                let shares = self.orders.get_mut(&order).ok_or("an unknown order cancelled")?;
                shares.cancelled += quantity.0;
                check(shares)
            }
            Event::Incoming { order, quantity, .. } => {
                *incoming = order;
                self.expect_left(order, quantity.0)
            }
            Event::Rested { order, quantity, shown, .. } => {
                let hides = shown > quantity;
                if hides {
                    Err(format!("{order} shows more than it has"))
                } else {
                    self.expect_left(order, quantity.0)
                }
            }
            // Of the market, not of an order.
            _ => Ok(()),
        }
    }

    fn expect_left(&self, order: OrderId, told: u64) -> Result<(), String> {
        let left = self.orders.get(&order).ok_or("an unknown order moved")?.remaining();
        if left == told { Ok(()) } else { Err(format!("{left} shares of {order} are left, not {told}")) }
    }

    fn execute(&mut self, order: OrderId, quantity: u64) -> Result<(Side, InstrumentId), String> {
        let shares = self.orders.get_mut(&order).ok_or("an unknown order traded")?;
        shares.executed += quantity;
        check(shares)?;
        Ok((shares.side, shares.instrument))
    }

    /// The outcome must tell what the events add up to.
    fn settle(&self, record: &Record) -> Result<(), String> {
        let Some(shares) = self.orders.get(&record.outcome.order) else { return Ok(()) };
        let told = (record.outcome.executed.0, record.outcome.remaining.0);
        let counted = (shares.executed, shares.remaining());
        if told == counted { Ok(()) } else { Err(format!("told {told:?}, counted {counted:?}")) }
    }
}

fn moves_shares(event: &Event) -> bool {
    matches!(event, Event::Fill { .. } | Event::Cancelled { .. })
}

fn check(shares: &Shares) -> Result<(), String> {
    let gone = shares.executed + shares.cancelled;
    if gone <= shares.entered { Ok(()) } else { Err(format!("{gone} shares gone of {}", shares.entered)) }
}
