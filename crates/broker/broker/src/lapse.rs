//! What has been pending for more than 60 seconds is released.
//!
//! A user's times never go back, so the oldest of a stack lapses first, and releasing begins at its bottom. Any number of fronts may ask for it: the
//! transaction reads what it releases, so one of them commits, and the others find nothing.

use crate::audit::AuditNote;
use crate::command::{TradeWay, UserName, Verb};
use crate::execute::{Stop, Stopped, Turn};
use crate::ledger::Ledger;
use crate::reply::BrokerReply;
use crate::rows::{self, Account, Pending};

/// Most that one request releases, so that no transaction is long.
pub const RELEASED_MAX: u64 = 64;

impl<L: Ledger> Turn<'_, L> {
    pub(crate) fn lapse(&mut self, way: TradeWay, user: &UserName) -> Stopped<BrokerReply, L> {
        let mut account = self.account()?;
        let mut count = 0;
        while count < RELEASED_MAX && account.stack(way).count() > 0 {
            let key = rows::pending(user, way, account.stack(way).bottom);
            let Some(pending) = rows::take::<Pending, L>(self.ledger, &key)? else { break };
            if !self.has_lapsed(&pending) {
                break;
            }
            match self.release(way, user, &mut account, &pending) {
                // No account holds so much: it stays where it is, and nothing is lost.
                Err(Stop::Refused(_)) => break,
                released => released?,
            }
            self.ledger.delete(&key);
            account.stack(way).bottom += 1;
            count += 1;
        }
        if count == 0 {
            return Ok(BrokerReply::Unchanged);
        }
        self.note_oldest(way, user, &mut account)?;
        self.row.account = account;
        Ok(BrokerReply::Lapsed { count })
    }

    /// The stack has another oldest, or none: fronts look for it there.
    fn note_oldest(&mut self, way: TradeWay, user: &UserName, account: &mut Account) -> Stopped<(), L> {
        let key = rows::pending(user, way, account.stack(way).bottom);
        match rows::take::<Pending, L>(self.ledger, &key)? {
            Some(oldest) => rows::put(self.ledger, &rows::lapsing(user, way), &oldest.placed_ms),
            None => self.ledger.delete(&rows::lapsing(user, way)),
        }
        Ok(())
    }

    fn release(
        &mut self,
        way: TradeWay,
        user: &UserName,
        account: &mut Account,
        pending: &Pending,
    ) -> Stopped<(), L> {
        let Pending { number: origin, symbol, shares, cents, .. } = *pending;
        let verb = if way == TradeWay::Buy { Verb::Buy } else { Verb::Sell };
        let from = self.notes.len();
        match way {
            TradeWay::Buy => self.credit(account, origin, cents)?,
            TradeWay::Sell => self.receive(user, symbol, shares)?,
        }
        self.notes.insert(from, AuditNote::Done { origin, verb, symbol, cents });
        Ok(())
    }
}
