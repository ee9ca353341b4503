//! Triggers: an amount is set, then a price, and the first quote at that price or better fires it, once.
//!
//! A trigger that is set while the quote at hand is good enough fires in the same transaction. Any other firing is a request of its own, which reads the
//! armed trigger: of all fronts that try, one commits.

use crate::audit::AuditNote;
use crate::command::{StockSymbol, TradeWay, UserName, Verb};
use crate::execute::{Stop, Stopped, Subject, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::rows::{self, Armed, BUY_TRIGGER, BuyTrigger, SELL_TRIGGER, SellTrigger};

impl<L: Ledger> Turn<'_, L> {
    /// Reserves cash. A price that was set before is cleared.
    pub(crate) fn set_buy_amount(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        let reserve = self.buy_trigger(of.user, of.symbol)?.unwrap_or_default().reserve_cents;
        match of.cents.checked_sub(reserve) {
            Some(more) => {
                self.may_buy(of.user, of.symbol)?;
                self.debit(&mut account, more)?;
            }
            None => self.credit(&mut account, self.request.number, reserve - of.cents)?,
        }
        let trigger = BuyTrigger { reserve_cents: of.cents, armed: None };
        rows::put(self.ledger, &rows::of_symbol(BUY_TRIGGER, of.user, of.symbol), &trigger);
        self.disarm(TradeWay::Buy, of.user, of.symbol);
        self.row.account = account;
        Ok(BrokerReply::Cash { cash_cents: account.cash_cents })
    }

    pub(crate) fn set_buy_trigger(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        self.account()?;
        let trigger = self.buy_trigger(of.user, of.symbol)?.ok_or(Refusal::NoAmountSet)?;
        let armed = Armed { price_cents: of.cents, shares: 0, number: self.request.number };
        let armed = BuyTrigger { armed: Some(armed), ..trigger };
        rows::put(self.ledger, &rows::of_symbol(BUY_TRIGGER, of.user, of.symbol), &armed);
        // Fronts find it by this price: at one above the reserve it buys no share.
        let fires_at = of.cents.min(trigger.reserve_cents);
        rows::put(self.ledger, &rows::armed(of.symbol, TradeWay::Buy, of.user), &fires_at);
        match self.fire_buy(of.user, of.symbol) {
            Ok(BrokerReply::Unchanged) | Err(Stop::Refused(_)) => Ok(BrokerReply::Armed { shares: 0 }),
            fired => fired,
        }
    }

    pub(crate) fn cancel_set_buy(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        let trigger = self.buy_trigger(of.user, of.symbol)?.ok_or(Refusal::NoAmountSet)?;
        self.credit(&mut account, self.request.number, trigger.reserve_cents)?;
        self.remove(TradeWay::Buy, of.user, of.symbol);
        self.row.account = account;
        Ok(BrokerReply::Cash { cash_cents: account.cash_cents })
    }

    /// Reserves nothing yet. An armed trigger gives its shares back.
    pub(crate) fn set_sell_amount(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        self.account()?;
        let reserved = self.sell_trigger(of.user, of.symbol)?.and_then(|trigger| trigger.armed);
        let owned = self.owned(of, reserved)?;
        if owned == 0 {
            return Err(Refusal::InsufficientShares.into());
        }
        self.put_shares(of.user, of.symbol, owned);
        let trigger = SellTrigger { amount_cents: of.cents, armed: None };
        rows::put(self.ledger, &rows::of_symbol(SELL_TRIGGER, of.user, of.symbol), &trigger);
        self.disarm(TradeWay::Sell, of.user, of.symbol);
        Ok(BrokerReply::Done)
    }

    /// Reserves as many shares as the amount comes to at this price.
    pub(crate) fn set_sell_trigger(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        self.account()?;
        let trigger = self.sell_trigger(of.user, of.symbol)?.ok_or(Refusal::NoAmountSet)?;
        let shares = trigger.amount_cents / of.cents;
        if shares == 0 {
            return Err(Refusal::BelowOneShare.into());
        }
        let owned = self.owned(of, trigger.armed)?;
        let left = owned.checked_sub(shares).ok_or(Refusal::InsufficientShares)?;
        let armed = Armed { price_cents: of.cents, shares, number: self.request.number };
        let armed = SellTrigger { armed: Some(armed), ..trigger };
        self.put_shares(of.user, of.symbol, left);
        rows::put(self.ledger, &rows::of_symbol(SELL_TRIGGER, of.user, of.symbol), &armed);
        rows::put(self.ledger, &rows::armed(of.symbol, TradeWay::Sell, of.user), &of.cents);
        match self.fire_sell(of.user, of.symbol) {
            Ok(BrokerReply::Unchanged) | Err(Stop::Refused(_)) => Ok(BrokerReply::Armed { shares }),
            fired => fired,
        }
    }

    pub(crate) fn cancel_set_sell(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        self.account()?;
        let trigger = self.sell_trigger(of.user, of.symbol)?.ok_or(Refusal::NoAmountSet)?;
        let owned = self.owned(of, trigger.armed)?;
        self.put_shares(of.user, of.symbol, owned);
        self.remove(TradeWay::Sell, of.user, of.symbol);
        Ok(BrokerReply::Done)
    }
}

/// Firing. It refuses before it writes anything.
impl<L: Ledger> Turn<'_, L> {
    /// Buys as many shares as the reserve pays for; the rest comes back. If it pays for none, the trigger stays armed.
    pub(crate) fn fire_buy(&mut self, user: &UserName, symbol: StockSymbol) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        let trigger = self.buy_trigger(user, symbol)?.unwrap_or_default();
        let Some(armed) = trigger.armed else { return Ok(BrokerReply::Unchanged) };
        let price_cents = self.quote(symbol)?.price_cents;
        let shares = trigger.reserve_cents / price_cents;
        if price_cents > armed.price_cents || shares == 0 {
            return Ok(BrokerReply::Unchanged);
        }
        let cents = shares * price_cents;
        let has = self.shares(user, symbol)?.checked_add(shares).ok_or(Refusal::TooMuch)?;
        let from = self.notes.len();
        self.credit(&mut account, armed.number, trigger.reserve_cents - cents)?;
        self.note_fired(from, Verb::SetBuyTrigger, symbol, &Armed { shares, ..armed }, price_cents);
        self.put_shares(user, symbol, has);
        self.remove(TradeWay::Buy, user, symbol);
        self.row.account = account;
        Ok(BrokerReply::Settled { symbol, shares, cents })
    }

    /// Sells the reserved shares.
    pub(crate) fn fire_sell(&mut self, user: &UserName, symbol: StockSymbol) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        let trigger = self.sell_trigger(user, symbol)?.unwrap_or_default();
        let Some(armed) = trigger.armed else { return Ok(BrokerReply::Unchanged) };
        let price_cents = self.quote(symbol)?.price_cents;
        if price_cents < armed.price_cents {
            return Ok(BrokerReply::Unchanged);
        }
        let cents = armed.shares.checked_mul(price_cents).ok_or(Refusal::TooMuch)?;
        let from = self.notes.len();
        self.credit(&mut account, armed.number, cents)?;
        self.note_fired(from, Verb::SetSellTrigger, symbol, &armed, price_cents);
        self.remove(TradeWay::Sell, user, symbol);
        self.row.account = account;
        Ok(BrokerReply::Settled { symbol, shares: armed.shares, cents })
    }

    pub(crate) fn buy_trigger(
        &mut self,
        user: &UserName,
        symbol: StockSymbol,
    ) -> Stopped<Option<BuyTrigger>, L> {
        Ok(rows::take(self.ledger, &rows::of_symbol(BUY_TRIGGER, user, symbol))?)
    }

    pub(crate) fn sell_trigger(
        &mut self,
        user: &UserName,
        symbol: StockSymbol,
    ) -> Stopped<Option<SellTrigger>, L> {
        Ok(rows::take(self.ledger, &rows::of_symbol(SELL_TRIGGER, user, symbol))?)
    }

    /// Free shares, and those that this trigger has reserved.
    fn owned(&mut self, of: Subject<'_>, reserved: Option<Armed>) -> Stopped<u64, L> {
        let free = self.shares(of.user, of.symbol)?;
        let reserved = reserved.map_or(0, |armed| armed.shares);
        Ok(free.checked_add(reserved).ok_or(Refusal::TooMuch)?)
    }

    fn disarm(&mut self, way: TradeWay, user: &UserName, symbol: StockSymbol) {
        self.ledger.delete(&rows::armed(symbol, way, user));
    }

    fn remove(&mut self, way: TradeWay, user: &UserName, symbol: StockSymbol) {
        let kind = if way == TradeWay::Buy { BUY_TRIGGER } else { SELL_TRIGGER };
        self.ledger.delete(&rows::of_symbol(kind, user, symbol));
        self.disarm(way, user, symbol);
    }

    /// The log's note of a firing, before what it moved, which begins at `from`.
    fn note_fired(&mut self, from: usize, verb: Verb, symbol: StockSymbol, armed: &Armed, price_cents: u64) {
        let (origin, shares) = (armed.number, armed.shares);
        let done = AuditNote::Done { origin, verb, symbol, cents: shares * price_cents };
        let deal = AuditNote::Deal { origin, verb, symbol, shares, price_cents };
        self.notes.splice(from..from, [done, deal]);
    }
}
