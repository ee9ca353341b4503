//! Buys and sells at quotes: held at once, committed or cancelled within 60 seconds.

use crate::audit::AuditNote;
use crate::command::{TradeWay, UserName, Verb};
use crate::execute::{Stopped, Subject, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::request::{Asked, WINDOW_MS};
use crate::rows::{self, Account, PENDING_MAX, Pending};

impl<L: Ledger> Turn<'_, L> {
    /// Holds what so many shares cost, not the whole amount.
    pub(crate) fn buy(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        self.may_buy(of.user, of.symbol)?;
        if account.cash_cents < of.cents {
            return Err(Refusal::InsufficientCash.into());
        }
        let pending = self.dealt(of)?;
        self.has_room(&mut account, TradeWay::Buy)?;
        self.debit(&mut account, pending.cents)?;
        Ok(self.push(Verb::Buy, of.user, account, pending))
    }

    /// Holds the shares; the price is that of the sell, whenever it is committed.
    pub(crate) fn sell(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        let pending = self.dealt(of)?;
        let has = self.shares(of.user, of.symbol)?;
        let left = has.checked_sub(pending.shares).ok_or(Refusal::InsufficientShares)?;
        self.has_room(&mut account, TradeWay::Sell)?;
        self.put_shares(of.user, of.symbol, left);
        Ok(self.push(Verb::Sell, of.user, account, pending))
    }

    /// Commits or cancels the newest: a buy that is committed and a sell that is cancelled bring shares, the others cash.
    pub(crate) fn settle(
        &mut self,
        way: TradeWay,
        is_commit: bool,
        user: &UserName,
    ) -> Stopped<BrokerReply, L> {
        let (mut account, pending) = self.pop(way, user)?;
        if is_commit == (way == TradeWay::Buy) {
            self.receive(user, pending.symbol, pending.shares)?;
        } else {
            self.credit(&mut account, self.request.number, pending.cents)?;
        }
        Ok(self.unstack(way, user, account, pending))
    }

    /// What an amount comes to at the quote: whole shares, at least one.
    fn dealt(&self, of: Subject<'_>) -> Result<Pending, Refusal> {
        let quote = self.quote(of.symbol)?;
        let shares = of.cents / quote.price_cents;
        if shares == 0 {
            return Err(Refusal::BelowOneShare);
        }
        let cents = shares * quote.price_cents;
        Ok(Pending { number: self.request.number, symbol: of.symbol, shares, cents, placed_ms: self.time_ms })
    }

    fn has_room(&self, account: &mut Account, way: TradeWay) -> Result<(), Refusal> {
        if account.stack(way).count() < PENDING_MAX { Ok(()) } else { Err(Refusal::TooManyPending) }
    }

    /// Puts it on top of its stack.
    fn push(&mut self, verb: Verb, user: &UserName, mut account: Account, pending: Pending) -> BrokerReply {
        let way = if verb == Verb::Buy { TradeWay::Buy } else { TradeWay::Sell };
        let Pending { number: origin, symbol, shares, cents, placed_ms } = pending;
        let price_cents = cents / shares;
        let stack = account.stack(way);
        if stack.count() == 0 {
            rows::put(self.ledger, &rows::lapsing(user, way), &placed_ms);
        }
        rows::put(self.ledger, &rows::pending(user, way, stack.top), &pending);
        stack.top += 1;
        self.row.account = account;
        self.notes.push(AuditNote::Deal { origin, verb, symbol, shares, price_cents });
        BrokerReply::Held { shares, price_cents, until_ms: placed_ms + WINDOW_MS }
    }

    /// The newest, if it has not lapsed, and is the one that the request is about where it says so; it stays until [`Turn::unstack`].
    fn pop(&mut self, way: TradeWay, user: &UserName) -> Stopped<(Account, Pending), L> {
        let mut account = self.account()?;
        let stack = account.stack(way);
        if stack.count() == 0 {
            return Err(Refusal::NothingPending.into());
        }
        let place = stack.top - 1;
        let pending: Pending =
            rows::take(self.ledger, &rows::pending(user, way, place))?.ok_or(Refusal::NothingPending)?;
        if let Asked::Settle { number, .. } = self.request.asked
            && number != pending.number
        {
            return Err(Refusal::OtherPending.into());
        }
        if self.has_lapsed(&pending) {
            return Err(Refusal::Lapsed.into());
        }
        Ok((account, pending))
    }

    /// It is no longer pending.
    fn unstack(
        &mut self,
        way: TradeWay,
        user: &UserName,
        mut account: Account,
        pending: Pending,
    ) -> BrokerReply {
        let stack = account.stack(way);
        stack.top -= 1;
        self.ledger.delete(&rows::pending(user, way, stack.top));
        if stack.count() == 0 {
            self.ledger.delete(&rows::lapsing(user, way));
        }
        self.row.account = account;
        BrokerReply::Settled { symbol: pending.symbol, shares: pending.shares, cents: pending.cents }
    }

    pub(crate) fn has_lapsed(&self, pending: &Pending) -> bool {
        self.time_ms > pending.placed_ms.saturating_add(WINDOW_MS)
    }
}
