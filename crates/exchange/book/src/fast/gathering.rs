//! Orders that join a call: they trade with nobody, and meet their owner's orders (docs/rules.md, sections 3, 6, 7).

use super::incoming::{End, Incoming};
use super::matching::Stop;
use super::node::Node;
use super::{FastBook, Step};
use pares_table::SlabIndex;
use pares_types::{EventSink, SelfTrade, Side};

impl FastBook {
    /// An order comes to rest although it crosses, and a volatility call begins, in whose auction it must not meet its owner.
    /// None begins if that is whom it crossed.
    pub(super) fn rest_crossing<S: EventSink>(
        &mut self,
        incoming: &mut Incoming,
        step: &mut Step<'_, S>,
    ) -> End {
        match self.meet_owner(incoming, step) {
            Stop::NoPrice => {
                let breaches = self.is_breach(incoming, step);
                self.rest(incoming, incoming.limit);
                self.report_rest(incoming, step);
                if breaches {
                    self.begin_volatility_call(step);
                }
                End::Rests
            }
            Stop::Filled => {
                self.forget(incoming);
                End::Filled
            }
            stop => self.end_early(incoming, stop, step),
        }
    }

    /// An order joins a call.
    pub(super) fn gather<S: EventSink>(&mut self, incoming: &mut Incoming, step: &mut Step<'_, S>) -> End {
        match self.meet_owner(incoming, step) {
            Stop::NoPrice => {
                self.rest(incoming, self.call_price(incoming.terms.side, incoming.terms.kind));
                self.report_rest(incoming, step);
                End::Rests
            }
            stop => self.end_early(incoming, stop, step),
        }
    }

    /// Prevents that an order trades with its owner's in an auction; [`Stop::NoPrice`] if it may rest.
    fn meet_owner<S: EventSink>(&mut self, incoming: &mut Incoming, step: &mut Step<'_, S>) -> Stop {
        let mut is_first = true;
        for slot in self.own_crossing(incoming) {
            if incoming.left.is_zero() {
                break;
            }
            if step.is_full() && !is_first {
                return Stop::StepLimit;
            }
            is_first = false;
            if self.prevent(incoming, slot, step) {
                return Stop::SelfTrade;
            }
        }
        Stop::NoPrice
    }

    /// The owner's orders of the other side that it must not trade with, as they would trade.
    fn own_crossing(&self, incoming: &Incoming) -> Vec<SlabIndex<Node>> {
        if incoming.terms.self_trade == SelfTrade::Allow {
            return Vec::new();
        }
        let other = incoming.terms.side.opposite();
        let price = |slot: SlabIndex<Node>| self.store.levels[self.store.nodes[slot].level].price;
        let crosses = |slot: &SlabIndex<Node>| {
            let node = &self.store.nodes[*slot];
            let on_book = node.level != SlabIndex::NONE;
            on_book && node.rank.traits().side() == other && incoming.accepts(price(*slot))
        };
        let own = self.store.orders_of(incoming.terms.member).filter(crosses);
        let mut own: Vec<SlabIndex<Node>> = own.collect();
        own.sort_unstable_by_key(|slot| {
            let price = i128::from(price(*slot).0);
            (if other == Side::Buy { -price } else { price }, self.store.nodes[*slot].rank.priority())
        });
        own
    }
}
