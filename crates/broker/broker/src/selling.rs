//! Sells: shares are held at once; the price is that of the sell, whenever it is committed.

use crate::command::{UserName, Verb};
use crate::execute::{Stopped, Subject, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::request::TradeWay;

impl<L: Ledger> Turn<'_, L> {
    pub(crate) fn sell(&mut self, of: Subject<'_>) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        let pending = self.dealt(of)?;
        let has = self.shares(of.user, of.symbol)?;
        let left = has.checked_sub(pending.shares).ok_or(Refusal::InsufficientShares)?;
        self.has_room(&mut account, TradeWay::Sell)?;
        self.put_shares(of.user, of.symbol, left);
        Ok(self.push(Verb::Sell, of.user, account, pending))
    }

    pub(crate) fn commit_sell(&mut self, user: &UserName) -> Stopped<BrokerReply, L> {
        let (mut account, pending) = self.pop(TradeWay::Sell, user)?;
        self.credit(&mut account, self.request.number, pending.cents)?;
        Ok(self.unstack(TradeWay::Sell, user, account, pending))
    }

    pub(crate) fn cancel_sell(&mut self, user: &UserName) -> Stopped<BrokerReply, L> {
        let (account, pending) = self.pop(TradeWay::Sell, user)?;
        self.receive(user, pending.symbol, pending.shares)?;
        Ok(self.unstack(TradeWay::Sell, user, account, pending))
    }
}
