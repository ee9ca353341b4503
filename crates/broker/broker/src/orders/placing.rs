//! What customers ask, and supervisors about them.

use super::OrderHappened;
use super::asked::OrderReply;
use super::rows::{self as order_rows, CustomerLimits, Order, OrderStage, Queue};
use super::standing::{Standing, Touched};
use super::terms::{CustomerOrderId, OrderTerms};
use crate::audit::AuditNote;
use crate::command::{TradeWay, UserName};
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::money::CENTS_MAX;
use crate::people::is_supervisor;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::rows;

impl<L: Ledger> Turn<'_, L> {
    /// Holds for an order. Nothing leaves before that has committed.
    pub(super) fn place(&mut self, user: &UserName, terms: OrderTerms) -> Stopped<BrokerReply, L> {
        let standing = self.standing(user, terms.symbol)?;
        let cents = checked_cost(&standing, terms)?;
        if terms.way == TradeWay::Buy {
            self.within_position(&standing, terms)?;
        }
        may_hold(&standing, terms, cents)?;
        let (number, OrderTerms { way, shares, .. }) = (self.request.number, terms);
        let of = CustomerOrderId { user: user.clone(), number };
        self.ledger.put(&order_rows::waiting(&of), order_rows::mark());
        let mut at = Touched { of, order: Order::placed(terms, self.time_ms), standing };
        self.note_of(&at, shares, OrderHappened::Placed);
        let standing = &mut at.standing;
        match way {
            TradeWay::Buy => self.take_cash(&mut standing.account, number, cents),
            TradeWay::Sell => standing.shares -= shares,
        }
        *standing.exposure.working(way) += shares;
        standing.customer.open.push(number);
        rows::put(self.ledger, &order_rows::place(user, standing.customer.placed), &number);
        standing.customer.placed += 1;
        self.put_touched(at);
        Ok(BrokerReply::Order { reply: OrderReply::Placed { order: number } })
    }

    /// One that waits has ended with this; of one that is named the exchange has the last word.
    pub(super) fn cancel_order(&mut self, of: &CustomerOrderId) -> Stopped<BrokerReply, L> {
        let order = self.find_order(of)?;
        if order.has_ended() {
            return Err(Refusal::OrderEnded.into());
        }
        let mut at = self.touch(of, order)?;
        if order.state == OrderStage::Waiting {
            self.release_order(&mut at, order.left)?;
            self.end_order(&mut at, OrderStage::Cancelled);
            return Ok(self.put_touched(at));
        }
        at.order.is_unwanted = true;
        self.ledger.put(&order_rows::queued(Queue::Unwanted, order.name), order_rows::mark());
        self.put_touched(at);
        Ok(BrokerReply::Order { reply: OrderReply::Cancelling })
    }

    pub(super) fn limit(
        &mut self,
        user: &UserName,
        limits: CustomerLimits,
        by: &UserName,
    ) -> Stopped<BrokerReply, L> {
        self.account()?;
        self.check_supervisor(user, by)?;
        self.notes.push(AuditNote::Limited { by: by.clone(), limits });
        let customer = super::Customer { limits, ..self.customer(user)? };
        rows::put(self.ledger, &order_rows::customer(user), &customer);
        Ok(BrokerReply::Done)
    }

    /// A supervisor asks, and of another. A front looks too, but at rights as they were a moment before.
    fn check_supervisor(&mut self, user: &UserName, by: &UserName) -> Stopped<(), L> {
        if by == user {
            return Err(Refusal::OwnLimits.into());
        }
        if is_supervisor(self.ledger, by)? { Ok(()) } else { Err(Refusal::NoRight.into()) }
    }

    /// The kill switch: what waits is cancelled with it, for the rest cancels are wished.
    pub(super) fn block(
        &mut self,
        user: &UserName,
        is_blocked: bool,
        by: &UserName,
    ) -> Stopped<BrokerReply, L> {
        self.account()?;
        self.check_supervisor(user, by)?;
        self.notes.push(AuditNote::Blocked { by: by.clone(), is_blocked });
        if is_blocked {
            for number in self.customer(user)?.open {
                self.cancel_order(&CustomerOrderId { user: user.clone(), number })?;
            }
        }
        let customer = super::Customer { is_blocked, ..self.customer(user)? };
        rows::put(self.ledger, &order_rows::customer(user), &customer);
        Ok(BrokerReply::Done)
    }
}

/// What it costs at its limit, if that is allowed.
fn checked_cost(standing: &Standing, terms: OrderTerms) -> Result<u64, Refusal> {
    let OrderTerms { shares, limit_cents, .. } = terms;
    let cents = shares.checked_mul(limit_cents).filter(|cents| (1..=CENTS_MAX).contains(cents));
    let cents = cents.ok_or(Refusal::BadOrder)?;
    let customer = &standing.customer;
    let limits = customer.limits.in_force();
    let loss = u64::try_from(customer.result_cents.saturating_neg()).unwrap_or_default();
    let checks = [
        (customer.is_blocked, Refusal::Blocked),
        (shares > limits.shares_max || cents > limits.cents_max, Refusal::OrderTooLarge),
        (customer.open.len() as u64 >= limits.open_max, Refusal::TooManyOrders),
        (loss >= limits.loss_max, Refusal::LossLimit),
        (customer.owed_stocks > 0 && standing.exposure.owed == 0, Refusal::InDebt),
    ];
    checks.iter().find(|(is_so, _)| *is_so).map_or(Ok(cents), |(_, refusal)| Err(*refusal))
}

/// Whether it can be held besides what is owed.
fn may_hold(standing: &Standing, terms: OrderTerms, cents: u64) -> Result<(), Refusal> {
    let (has, wanted, owed, lacking) = match terms.way {
        TradeWay::Buy => {
            let owed = standing.customer.owed_cents;
            (standing.account.cash_cents, cents, owed, Refusal::InsufficientCash)
        }
        TradeWay::Sell => {
            (standing.shares, terms.shares, standing.exposure.owed, Refusal::InsufficientShares)
        }
    };
    match has.checked_sub(wanted) {
        None => Err(lacking),
        Some(left) if left < owed => Err(Refusal::InDebt),
        Some(_) => Ok(()),
    }
}
