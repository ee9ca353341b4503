//! How many shares of a stock a customer has, or will have when all that is open comes to its end.
//!
//! Free shares and orders are not all of it: a sell at a quote that is cancelled gives its shares back, a pending buy brings some, and so do triggers. A limit that overlooks them is exceeded without
//! an order. So all of it counts, wherever the shares lie, and what is owed of the stock counts against it.

use super::standing::Standing;
use super::terms::OrderTerms;
use crate::command::TradeWay;
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::rows::{self, Pending};

/// So many pending buys and sells at quotes are counted; who has more of them places no order to buy.
const COUNTED_MAX: u64 = 256;

impl<L: Ledger> Turn<'_, L> {
    /// Whether the limit allows so many shares more.
    pub(super) fn within_position(&mut self, standing: &Standing, terms: OrderTerms) -> Stopped<(), L> {
        let exposure = standing.exposure;
        let at_quotes = self.at_quotes(standing)?;
        let has = [standing.shares, exposure.buying, exposure.selling, at_quotes];
        let position = has.iter().fold(terms.shares, |sum, shares| sum.saturating_add(*shares));
        let max = standing.customer.limits.in_force().position_max;
        if position.saturating_sub(exposure.owed) > max { Err(Refusal::PositionLimit.into()) } else { Ok(()) }
    }

    /// Shares that are pending or reserved at quotes. A buy trigger counts for what its reserve buys at its price; at a better one it buys more.
    fn at_quotes(&mut self, standing: &Standing) -> Stopped<u64, L> {
        let (user, symbol, mut account) = (&standing.user, standing.symbol, standing.account);
        if account.buys.count() + account.sells.count() > COUNTED_MAX {
            return Err(Refusal::TooManyPending.into());
        }
        let mut sum = 0_u64;
        for way in [TradeWay::Buy, TradeWay::Sell] {
            let stack = *account.stack(way);
            for place in stack.bottom..stack.top {
                let pending = rows::take::<Pending, L>(self.ledger, &rows::pending(user, way, place))?;
                // A buy that has lapsed can be committed no more; a sell's shares come back.
                let counts = |pending: &Pending| {
                    pending.symbol == symbol && (way == TradeWay::Sell || !self.has_lapsed(pending))
                };
                sum = sum.saturating_add(pending.filter(counts).map_or(0, |pending| pending.shares));
            }
        }
        let buys = self.buy_trigger(user, symbol)?.unwrap_or_default();
        let buys = buys.armed.map(|armed| buys.reserve_cents / armed.price_cents.max(1));
        let sells = self.sell_trigger(user, symbol)?.and_then(|trigger| trigger.armed);
        let sells = sells.map(|armed| armed.shares);
        Ok([buys, sells].into_iter().flatten().fold(sum, u64::saturating_add))
    }
}
