//! All of a customer that an order touches, read before anything is decided and written when all is.

use super::asked::OrderReply;
use super::rows::{self as order_rows, Customer, Exposure, Order, OrderStage, Queue};
use super::terms::CustomerOrderId;
use super::{OrderHappened, OrderNote};
use crate::audit::AuditNote;
use crate::command::{StockSymbol, TradeWay, UserName};
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::money::CENTS_MAX;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::rows::{self, Account};

const DAY_MS: u64 = 86_400_000;

/// An order, and all of its customer that it touches.
pub(super) struct Touched {
    pub(super) of: CustomerOrderId,
    pub(super) order: Order,
    pub(super) standing: Standing,
}

/// See the [module](self).
pub(super) struct Standing {
    pub(super) user: UserName,
    pub(super) symbol: StockSymbol,
    pub(super) account: Account,
    pub(super) customer: Customer,
    pub(super) exposure: Exposure,
    /// Free shares of the stock.
    pub(super) shares: u64,
}

impl Standing {
    /// More free shares.
    pub(super) fn receive(&mut self, shares: u64) -> Result<(), Refusal> {
        self.shares = self.shares.checked_add(shares).ok_or(Refusal::TooMuch)?;
        Ok(())
    }

    /// Shares of an order stop working, because they traded or will not.
    pub(super) fn ends(&mut self, way: TradeWay, shares: u64) {
        let working = self.exposure.working(way);
        *working = working.saturating_sub(shares);
    }

    /// Counts a trade for the day, or one that is void with the sign turned: for the day on which the exchange reports that, since an order does not keep the days of its trades.
    pub(super) fn count_trade(&mut self, way: TradeWay, price: u64, shares: u64, cents: u64, is_void: bool) {
        let before = self.exposure.result_cents();
        let sign = if (way == TradeWay::Buy) == is_void { -1 } else { 1 };
        let [shares, cents] = [shares, cents].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        self.exposure.day_shares = self.exposure.day_shares.saturating_add(sign * shares);
        self.exposure.day_cents = self.exposure.day_cents.saturating_sub(sign * cents);
        if !is_void {
            self.exposure.last = price;
        }
        let change = self.exposure.result_cents().saturating_sub(before);
        self.customer.result_cents = self.customer.result_cents.saturating_add(change);
    }
}

impl<L: Ledger> Turn<'_, L> {
    pub(super) fn customer(&mut self, user: &UserName) -> Stopped<Customer, L> {
        Ok(rows::take(self.ledger, &order_rows::customer(user))?.unwrap_or_default())
    }

    pub(super) fn standing(&mut self, user: &UserName, symbol: StockSymbol) -> Stopped<Standing, L> {
        let account = self.account()?;
        let mut customer = self.customer(user)?;
        let exposure = rows::take(self.ledger, &order_rows::exposure(user, symbol))?;
        let mut exposure: Exposure = exposure.unwrap_or_default();
        let day = self.time_ms / DAY_MS;
        customer.on(day);
        exposure.on(day);
        let shares = self.shares(user, symbol)?;
        Ok(Standing { user: user.clone(), symbol, account, customer, exposure, shares })
    }

    /// Writes all of it. What is owed is paid first, as far as it can be.
    pub(super) fn put_standing(&mut self, mut standing: Standing) {
        self.repay(&mut standing);
        let Standing { user, symbol, account, customer, exposure, shares } = standing;
        self.row.is_in_debt = customer.owed_cents > 0 || customer.owed_stocks > 0;
        rows::put(self.ledger, &order_rows::exposure(&user, symbol), &exposure);
        rows::put(self.ledger, &order_rows::customer(&user), &customer);
        self.put_shares(&user, symbol, shares);
        self.row.account = account;
        self.has_advanced = true;
    }

    fn repay(&mut self, standing: &mut Standing) {
        let order = self.request.number;
        let cents = standing.customer.owed_cents.min(standing.account.cash_cents);
        if cents > 0 {
            standing.customer.owed_cents -= cents;
            let symbol = standing.customer.owed_for.unwrap_or(standing.symbol);
            let (way, happened) = (TradeWay::Sell, OrderHappened::Repaid);
            self.note(OrderNote { order, way, symbol, shares: 0, cents, happened });
            self.take_cash(&mut standing.account, order, cents);
        }
        let shares = standing.exposure.owed.min(standing.shares);
        if shares > 0 {
            standing.exposure.owed -= shares;
            standing.customer.owed_stocks -= u64::from(standing.exposure.owed == 0);
            standing.shares -= shares;
            let (way, happened) = (TradeWay::Buy, OrderHappened::Repaid);
            self.note(OrderNote { order, way, symbol: standing.symbol, shares, cents: 0, happened });
        }
    }

    pub(super) fn note(&mut self, note: OrderNote) {
        self.notes.push(AuditNote::Order { note });
    }

    /// Something happened to so many shares of an order, at its limit.
    pub(super) fn note_of(&mut self, at: &Touched, shares: u64, happened: OrderHappened) {
        let crate::OrderTerms { symbol, way, limit_cents, .. } = at.order.terms;
        self.note(OrderNote { order: at.of.number, way, symbol, shares, cents: limit_cents, happened });
    }

    /// Cash goes that is known to be there.
    pub(super) fn take_cash(&mut self, account: &mut Account, origin: u64, cents: u64) {
        account.cash_cents -= cents;
        if cents > 0 {
            self.notes.push(AuditNote::Moved { origin, is_add: false, cents });
        }
    }

    /// Cash comes. What the exchange has done cannot be refused, so an account may hold more by it than can be added to one.
    pub(super) fn give_cash(
        &mut self,
        account: &mut Account,
        origin: u64,
        cents: u64,
    ) -> Result<(), Refusal> {
        let sum = account.cash_cents.checked_add(cents).filter(|sum| *sum <= CENTS_MAX * 1_000);
        account.cash_cents = sum.ok_or(Refusal::TooMuch)?;
        if cents > 0 {
            self.notes.push(AuditNote::Moved { origin, is_add: true, cents });
        }
        Ok(())
    }

    pub(super) fn find_order(&mut self, of: &CustomerOrderId) -> Stopped<Order, L> {
        Ok(rows::take(self.ledger, &order_rows::order(of))?.ok_or(Refusal::NoOrder)?)
    }

    pub(super) fn put_order(&mut self, of: &CustomerOrderId, order: &Order) {
        rows::put(self.ledger, &order_rows::order(of), order);
    }

    /// The order with all that it touches.
    pub(super) fn touch(&mut self, of: &CustomerOrderId, order: Order) -> Stopped<Touched, L> {
        let standing = self.standing(&of.user, order.terms.symbol)?;
        Ok(Touched { of: of.clone(), order, standing })
    }

    /// Writes all of it; the reply shows the order as it is now.
    pub(super) fn put_touched(&mut self, at: Touched) -> BrokerReply {
        let Touched { of, order, standing } = at;
        self.put_order(&of, &order);
        self.put_standing(standing);
        BrokerReply::Order { reply: OrderReply::Now { order } }
    }

    /// So many of its shares will not trade: what was held for them is free.
    pub(super) fn release_order(&mut self, at: &mut Touched, shares: u64) -> Result<(), Refusal> {
        let crate::OrderTerms { way, limit_cents, .. } = at.order.terms;
        self.note_of(at, shares, OrderHappened::Released);
        match way {
            TradeWay::Buy => {
                self.give_cash(&mut at.standing.account, at.of.number, limit_cents * shares)?;
            }
            TradeWay::Sell => at.standing.receive(shares)?,
        }
        at.order.left -= shares;
        at.standing.ends(way, shares);
        Ok(())
    }

    /// It has ended so: no list has it any more.
    pub(super) fn end_order(&mut self, at: &mut Touched, state: OrderStage) {
        at.order.state = state;
        at.standing.customer.open.retain(|open| *open != at.of.number);
        match at.order.name {
            0 => self.ledger.delete(&order_rows::waiting(&at.of)),
            name => {
                self.ledger.delete(&order_rows::queued(Queue::Open, name));
                self.ledger.delete(&order_rows::queued(Queue::Unwanted, name));
            }
        }
    }
}
