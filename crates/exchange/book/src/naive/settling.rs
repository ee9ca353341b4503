//! Settling: stops that are due, and pegs whose price has moved. docs/rules.md, section 5.

use core::cmp::Reverse;

use pares_types::{EventSink, IncomingCause, OrderKind, Peg, Phase, Price, RestCause, Side};

use super::matching::Incoming;
use super::{NaiveBook, Step, limit_of};
use crate::RestingOrder;

/// Something to settle.
enum Due {
    Stop(RestingOrder),
    Reprice(RestingOrder, Price),
    Withdraw(RestingOrder),
}

impl NaiveBook {
    /// Triggers stops and moves pegs until nothing is due or half the step is spent: each has at least the other half
    /// to trade in.
    pub(super) fn settle(&mut self, step: &mut Step<impl EventSink>) {
        while !step.is_half_spent(self.instrument.step_max)
            && let Some(due) = self.due()
        {
            match due {
                Due::Stop(order) => self.trigger(step, order),
                Due::Reprice(order, target) => self.reprice(step, order, target),
                Due::Withdraw(order) => self.withdraw(step, &order),
            }
        }
    }

    /// Whether a stop or peg is unsettled.
    pub(super) fn is_unsettled(&self) -> bool {
        self.due().is_some()
    }

    fn due(&self) -> Option<Due> {
        if self.trading.phase != Phase::Continuous || self.trading.transition.is_some() {
            return None;
        }
        self.due_stop().map(Due::Stop).or_else(|| self.due_peg())
    }

    /// Of the due buys the first by lowest trigger, of the due sells the first by highest trigger; of
    /// these two the older.
    fn due_stop(&self) -> Option<RestingOrder> {
        let last = self.trading.last?;
        let stops = |side| {
            let waiting = self.held.iter().filter(move |order| order.side == side);
            waiting.filter_map(|order| Some((order.trigger?, *order)))
        };
        let buys = stops(Side::Buy).filter(|(trigger, _)| last >= *trigger);
        let sells = stops(Side::Sell).filter(|(trigger, _)| last <= *trigger);
        let buy = buys.min_by_key(|(trigger, order)| (*trigger, order.priority));
        let sell = sells.min_by_key(|(trigger, order)| (Reverse(*trigger), order.priority));
        let first = buy.into_iter().chain(sell).min_by_key(|(_, order)| order.priority);
        first.map(|(_, order)| order)
    }

    fn trigger(&mut self, step: &mut Step<impl EventSink>, order: RestingOrder) {
        self.remove(&order);
        let price = limit_of(order.kind).unwrap_or(Price(0));
        step.incoming(&order, price, IncomingCause::Triggered);
        let triggered = RestingOrder { trigger: None, ..order };
        self.execute(step, Incoming::of(triggered), Some(RestCause::Triggered));
    }

    /// The first pegged order whose target is not where it is.
    fn due_peg(&self) -> Option<Due> {
        self.pegged().into_iter().find_map(|order| match self.target(&order) {
            Some(target) if order.is_held() || order.price != target => Some(Due::Reprice(order, target)),
            None if !order.is_held() => Some(Due::Withdraw(order)),
            _ => None,
        })
    }

    fn reprice(&mut self, step: &mut Step<impl EventSink>, order: RestingOrder, target: Price) {
        self.remove(&order);
        step.incoming(&order, target, IncomingCause::Repriced);
        self.execute(step, Incoming { order, limit: target }, Some(RestCause::Repriced));
    }

    /// The price a pegged order should have; `None` without the prices it needs.
    fn target(&self, order: &RestingOrder) -> Option<Price> {
        let OrderKind::Pegged { to, limit } = order.kind else { unreachable!("only pegged orders have one") };
        let target = match to {
            Peg::Best => self.best_unpegged(order.side)?,
            Peg::Mid => {
                let bid = i128::from(self.best_unpegged(Side::Buy)?.0);
                let offer = i128::from(self.best_unpegged(Side::Sell)?.0);
                let down = (bid + offer).div_euclid(2);
                let up = down + (bid + offer).rem_euclid(2);
                let price = |half| Price(i64::try_from(half).expect("it lies between two prices"));
                match order.side {
                    Side::Buy => self.instrument.ticks.round_down(price(down)),
                    Side::Sell => self.instrument.ticks.round_up(price(up)),
                }
            }
        };
        Some(match order.side {
            Side::Buy => target.min(limit),
            Side::Sell => target.max(limit),
        })
    }

    /// The best price of a side; pegged orders do not count.
    fn best_unpegged(&self, side: Side) -> Option<Price> {
        self.side(side).iter().find(|order| !order.is_pegged()).map(|order| order.price)
    }
}
