//! What the exchange tells, each message once: what it does and that it was counted commit together.

use super::asked::{CustomerOrderId, OrderEvent, OrderReply, Settlement};
use super::rows::{self as order_rows, Order, OrderStage};
use super::standing::Standing;
use super::{OrderHappened, OrderNote, OrderTerms};
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::request::TradeWay;
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
        let mut order = self.find_order(&told.of)?;
        let mut standing = self.standing(&told.of.user, order.terms.symbol)?;
        self.apply(&told.of, &mut order, &mut standing, told.event)?;
        rows::put(self.ledger, &order_rows::told(told.shard), &(next + 1));
        self.put_order(&told.of, &order);
        self.put_standing(standing);
        Ok(BrokerReply::Order { reply: OrderReply::Now { order } })
    }

    fn apply(
        &mut self,
        of: &CustomerOrderId,
        order: &mut Order,
        standing: &mut Standing,
        event: OrderEvent,
    ) -> Result<(), Refusal> {
        if order.name == 0 {
            return Err(Refusal::OtherOrder);
        }
        let is_new = order.state == OrderStage::Routed;
        if is_new {
            order.state = OrderStage::Open;
        }
        match event {
            OrderEvent::Accepted => {
                if is_new {
                    self.note_of(of, order, order.left, OrderHappened::Accepted);
                }
                Ok(())
            }
            OrderEvent::Refused { reason } if is_new => self.refused(of, order, standing, reason),
            OrderEvent::Refused { .. } => Err(Refusal::OtherOrder),
            OrderEvent::Traded { price, shares } => self.traded(of, order, standing, (price, shares)),
            OrderEvent::Cancelled { cause, shares } => self.cancelled(of, order, standing, (cause, shares)),
            OrderEvent::Void { price, shares } => self.voided(of, order, standing, (price, shares)),
        }
    }

    /// It never was there: all of it is left. One that the exchange has told of before was there.
    fn refused(
        &mut self,
        of: &CustomerOrderId,
        order: &mut Order,
        standing: &mut Standing,
        reason: u8,
    ) -> Result<(), Refusal> {
        self.release_order(of, order, standing, order.left)?;
        order.why = reason;
        self.end_order(of, order, standing, OrderStage::Refused);
        Ok(())
    }

    fn traded(
        &mut self,
        of: &CustomerOrderId,
        order: &mut Order,
        standing: &mut Standing,
        (price, shares): (u64, u64),
    ) -> Result<(), Refusal> {
        let OrderTerms { way, limit_cents, .. } = order.terms;
        let is_within = match way {
            TradeWay::Buy => price <= limit_cents * UNITS,
            TradeWay::Sell => price >= limit_cents * UNITS,
        };
        let value = price.checked_mul(shares).and_then(|value| order.value.checked_add(value));
        let value = value.filter(|_| is_within && shares <= order.left).ok_or(Refusal::OtherOrder)?;
        let cents = self.revalue(of, order, value, (shares, OrderHappened::Traded));
        let back = match way {
            TradeWay::Buy => limit_cents * shares - cents,
            TradeWay::Sell => cents,
        };
        self.give_cash(&mut standing.account, of.number, back)?;
        if way == TradeWay::Buy {
            standing.shares = standing.shares.checked_add(shares).ok_or(Refusal::TooMuch)?;
        }
        (order.left, order.filled) = (order.left - shares, order.filled + shares);
        standing.ends(way, shares);
        standing.count_trade(way, price, shares, cents, false);
        if order.left == 0 {
            self.end_order(of, order, standing, OrderStage::Filled);
        }
        Ok(())
    }

    /// What has traded of an order is worth `value` now. The difference in whole cents, which the log has.
    fn revalue(
        &mut self,
        of: &CustomerOrderId,
        order: &mut Order,
        value: u64,
        (shares, happened): (u64, OrderHappened),
    ) -> u64 {
        let cents = order.charge(value).abs_diff(order.charge(order.value));
        order.value = value;
        let OrderTerms { symbol, way, .. } = order.terms;
        self.note(OrderNote { order: of.number, way, symbol, shares, cents, happened });
        cents
    }

    fn cancelled(
        &mut self,
        of: &CustomerOrderId,
        order: &mut Order,
        standing: &mut Standing,
        (cause, shares): (u8, u64),
    ) -> Result<(), Refusal> {
        if shares > order.left {
            return Err(Refusal::OtherOrder);
        }
        self.release_order(of, order, standing, shares)?;
        order.why = cause;
        if order.left == 0 && !order.has_ended() {
            let has_expired = EXPIRING.contains(&cause);
            let state = if has_expired { OrderStage::Expired } else { OrderStage::Cancelled };
            self.end_order(of, order, standing, state);
        }
        Ok(())
    }

    /// The trade goes back; the order does not. What the customer has no more is owed.
    fn voided(
        &mut self,
        of: &CustomerOrderId,
        order: &mut Order,
        standing: &mut Standing,
        (price, shares): (u64, u64),
    ) -> Result<(), Refusal> {
        let value = price.checked_mul(shares).and_then(|value| order.value.checked_sub(value));
        let value = value.filter(|_| shares <= order.filled).ok_or(Refusal::OtherOrder)?;
        let OrderTerms { symbol, way, .. } = order.terms;
        let cents = self.revalue(of, order, value, (shares, OrderHappened::Void));
        match way {
            TradeWay::Buy => {
                standing.customer.owed_stocks += u64::from(standing.exposure.owed == 0);
                standing.exposure.owed += shares;
                self.give_cash(&mut standing.account, of.number, cents)?;
            }
            TradeWay::Sell => {
                standing.customer.owed_cents += cents;
                standing.customer.owed_for = Some(symbol);
                standing.shares = standing.shares.checked_add(shares).ok_or(Refusal::TooMuch)?;
            }
        }
        order.filled -= shares;
        standing.count_trade(way, price, shares, cents, true);
        Ok(())
    }
}
