//! What continues by itself: what a step had to leave, stops that are elected, pegs whose price has moved. docs/rules.md, section 5.

use pares_types::{EventSink, IncomingCause, OrderKind, Peg, Phase, Price, RestCause, Side};

use super::matching::Incoming;
use super::{NaiveBook, Step, limit_of};
use crate::{RestingOrder, Transition, Unfinished};

/// Something to settle.
enum Due {
    Order(Unfinished),
    Transition(Transition),
    Stop(RestingOrder),
    Reprice(RestingOrder, Price),
    Withdraw(RestingOrder),
}

impl NaiveBook {
    /// Does what an earlier step had to leave and what the request led to, as far as the step allows: one thing after the
    /// other, and each to its end.
    pub(super) fn go_on(&mut self, step: &mut Step<impl EventSink>) {
        while !step.is_spent(self.instrument.step_max)
            && let Some(due) = self.due()
        {
            match due {
                Due::Order(unfinished) => self.resume(step, &unfinished),
                Due::Transition(transition) => self.change_phase(step, transition),
                Due::Stop(order) => self.trigger(step, order),
                Due::Reprice(order, target) => self.reprice(step, order, target),
                Due::Withdraw(order) => self.withdraw(step, &order),
            }
        }
    }

    /// Whether something is left to do now.
    pub(super) fn is_unsettled(&self) -> bool {
        self.due().is_some()
    }

    fn due(&self) -> Option<Due> {
        if let Some(unfinished) = self.trading.unfinished {
            return Some(Due::Order(unfinished));
        }
        if let Some(transition) = self.trading.transition {
            return Some(Due::Transition(transition));
        }
        if self.trading.phase != Phase::Continuous {
            return None;
        }
        let elected = self.held.iter().find(|order| order.elected);
        elected.map(|order| Due::Stop(*order)).or_else(|| self.due_peg())
    }

    /// An order continues where the step before had to leave it.
    fn resume(&mut self, step: &mut Step<impl EventSink>, unfinished: &Unfinished) {
        self.trading.unfinished = None;
        let Unfinished { order, limit, gathers, begun, .. } = *unfinished;
        let incoming = Incoming { order, limit, gathers, begun: Some(begun) };
        step.incoming(&order, incoming.price(), IncomingCause::Continued);
        self.execute(step, incoming, Some(RestCause::Continued));
    }

    fn trigger(&mut self, step: &mut Step<impl EventSink>, order: RestingOrder) {
        self.remove(&order);
        let price = limit_of(order.kind).unwrap_or(Price(0));
        step.incoming(&order, price, IncomingCause::Triggered);
        let triggered = RestingOrder { trigger: None, elected: false, ..order };
        self.execute(step, Incoming::of(triggered), Some(RestCause::Triggered));
    }

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
        self.execute(
            step,
            Incoming { order, limit: target, gathers: false, begun: None },
            Some(RestCause::Repriced),
        );
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

    fn best_unpegged(&self, side: Side) -> Option<Price> {
        self.side(side).iter().find(|order| !order.is_pegged()).map(|order| order.price)
    }
}
