//! What a void trade left owed, at what is not an order: it is paid from whatever comes, and comes before buys at quotes.

use super::rows::{self as order_rows, Exposure};
use crate::command::{StockSymbol, UserName};
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::rows;

impl<L: Ledger> Turn<'_, L> {
    /// Who owes cash buys nothing, and who owes shares nothing but these.
    pub(crate) fn may_buy(&mut self, user: &UserName, symbol: StockSymbol) -> Stopped<(), L> {
        if !self.row.is_in_debt {
            return Ok(());
        }
        let customer = self.customer(user)?;
        let exposure: Option<Exposure> = rows::take(self.ledger, &order_rows::exposure(user, symbol))?;
        let owes_others = customer.owed_stocks > 0 && exposure.unwrap_or_default().owed == 0;
        if customer.owed_cents > 0 || owes_others { Err(Refusal::InDebt.into()) } else { Ok(()) }
    }

    /// Pays what is owed from what a command has made free, and says in its reply what is left.
    pub(crate) fn repaid(&mut self, mut reply: BrokerReply) -> Stopped<BrokerReply, L> {
        let is_due = self.row.is_in_debt && reply != BrokerReply::Unchanged;
        let Some(user) = self.user.filter(|_| is_due) else { return Ok(reply) };
        let owed_for = self.customer(user)?.owed_for;
        let received = std::mem::take(&mut self.received);
        for symbol in owed_for.into_iter().chain(received) {
            let standing = self.standing(user, symbol)?;
            self.put_standing(standing);
        }
        if let BrokerReply::Cash { cash_cents } = &mut reply {
            *cash_cents = self.row.account.cash_cents;
        }
        Ok(reply)
    }
}
