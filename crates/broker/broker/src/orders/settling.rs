//! What the exchange tells, each message once: what it does and that it was counted commit together.

use super::asked::{OrderEvent, OrderReply, Settlement};
use super::rows::{self as order_rows, OrderStage};
use super::standing::Touched;
use super::{OrderHappened, OrderNote, OrderTerms};
use crate::command::TradeWay;
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::rows;

/// The exchange's codes of causes that end an order with time.
const EXPIRING: [u8; 3] = [10, 11, 12];

/// Hundredths of a cent in a cent.
const UNITS: u64 = 100;

impl<L: Ledger> Turn<'_, L> {
    /// The number of the next message of a shard.
    fn next_told(&mut self, shard: u32) -> Stopped<u64, L> {
        Ok(rows::take(self.ledger, &order_rows::told(shard))?.unwrap_or(1))
    }

    pub(super) fn pass(&mut self, term: u64, shard: u32, from: u64, to: u64) -> Stopped<BrokerReply, L> {
        self.of_term(term)?;
        let next = self.next_told(shard)?;
        if from > next {
            return Ok(BrokerReply::Early);
        }
        if to > next {
            rows::put(self.ledger, &order_rows::told(shard), &to);
        }
        Ok(BrokerReply::Order { reply: OrderReply::Passed { next: next.max(to) } })
    }

    pub(super) fn settle_order(&mut self, told: &Settlement) -> Stopped<BrokerReply, L> {
        self.of_term(told.term)?;
        let next = self.next_told(told.shard)?;
        if told.number != next {
            return Ok(if told.number < next { BrokerReply::Unchanged } else { BrokerReply::Early });
        }
        let order = self.find_order(&told.of)?;
        let mut at = self.touch(&told.of, order)?;
        self.apply(&mut at, told.event)?;
        rows::put(self.ledger, &order_rows::told(told.shard), &(next + 1));
        Ok(self.put_touched(at))
    }

    fn apply(&mut self, at: &mut Touched, event: OrderEvent) -> Result<(), Refusal> {
        if at.order.name == 0 {
            return Err(Refusal::OtherOrder);
        }
        let is_new = at.order.state == OrderStage::Routed;
        if is_new {
            at.order.state = OrderStage::Open;
        }
        match event {
            OrderEvent::Accepted => {
                if is_new {
                    self.note_of(at, at.order.left, OrderHappened::Accepted);
                }
                Ok(())
            }
            OrderEvent::Refused { reason } if is_new => self.refused(at, reason),
            OrderEvent::Refused { .. } => Err(Refusal::OtherOrder),
            OrderEvent::Traded { price, shares } => self.traded(at, (price, shares)),
            OrderEvent::Cancelled { cause, shares } => self.cancelled(at, (cause, shares)),
            OrderEvent::Void { price, shares } => self.voided(at, (price, shares)),
        }
    }

    /// It never was there: all of it is left. One that the exchange has told of before was there.
    pub(super) fn refused(&mut self, at: &mut Touched, reason: u8) -> Result<(), Refusal> {
        let left = at.order.left;
        self.release_order(at, left)?;
        at.order.why = reason;
        self.end_order(at, OrderStage::Refused);
        Ok(())
    }

    fn traded(&mut self, at: &mut Touched, (price, shares): (u64, u64)) -> Result<(), Refusal> {
        let OrderTerms { way, limit_cents, .. } = at.order.terms;
        let is_within = match way {
            TradeWay::Buy => price <= limit_cents * UNITS,
            TradeWay::Sell => price >= limit_cents * UNITS,
        };
        let value = price.checked_mul(shares).and_then(|value| at.order.value.checked_add(value));
        let value = value.filter(|_| is_within && shares <= at.order.left).ok_or(Refusal::OtherOrder)?;
        let cents = self.revalue(at, value, (shares, OrderHappened::Traded));
        let back = match way {
            TradeWay::Buy => limit_cents * shares - cents,
            TradeWay::Sell => cents,
        };
        self.give_cash(&mut at.standing.account, at.of.number, back)?;
        if way == TradeWay::Buy {
            at.standing.receive(shares)?;
        }
        (at.order.left, at.order.filled) = (at.order.left - shares, at.order.filled + shares);
        at.standing.ends(way, shares);
        at.standing.count_trade(way, price, shares, cents, false);
        if at.order.left == 0 {
            self.end_order(at, OrderStage::Filled);
        }
        Ok(())
    }

    /// What has traded of an order is worth `value` now. The difference in whole cents, which the log has.
    fn revalue(&mut self, at: &mut Touched, value: u64, (shares, happened): (u64, OrderHappened)) -> u64 {
        let cents = at.order.charge(value).abs_diff(at.order.charge(at.order.value));
        at.order.value = value;
        let OrderTerms { symbol, way, .. } = at.order.terms;
        self.note(OrderNote { order: at.of.number, way, symbol, shares, cents, happened });
        cents
    }

    fn cancelled(&mut self, at: &mut Touched, (cause, shares): (u8, u64)) -> Result<(), Refusal> {
        if shares > at.order.left {
            return Err(Refusal::OtherOrder);
        }
        self.release_order(at, shares)?;
        at.order.why = cause;
        if at.order.left == 0 && !at.order.has_ended() {
            let has_expired = EXPIRING.contains(&cause);
            let state = if has_expired { OrderStage::Expired } else { OrderStage::Cancelled };
            self.end_order(at, state);
        }
        Ok(())
    }

    /// The trade goes back; the order does not. What the customer has no more is owed.
    fn voided(&mut self, at: &mut Touched, (price, shares): (u64, u64)) -> Result<(), Refusal> {
        let value = price.checked_mul(shares).and_then(|value| at.order.value.checked_sub(value));
        let value = value.filter(|_| shares <= at.order.filled).ok_or(Refusal::OtherOrder)?;
        let OrderTerms { symbol, way, .. } = at.order.terms;
        let cents = self.revalue(at, value, (shares, OrderHappened::Void));
        match way {
            TradeWay::Buy => {
                at.standing.customer.owed_stocks += u64::from(at.standing.exposure.owed == 0);
                at.standing.exposure.owed += shares;
                self.give_cash(&mut at.standing.account, at.of.number, cents)?;
            }
            TradeWay::Sell => {
                at.standing.customer.owed_cents += cents;
                at.standing.customer.owed_for = Some(symbol);
                at.standing.receive(shares)?;
            }
        }
        at.order.filled -= shares;
        at.standing.count_trade(way, price, shares, cents, true);
        Ok(())
    }
}
