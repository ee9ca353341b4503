//! Whether a quantity could trade at once (docs/rules.md, section 3, *available*), in a bounded number of looks: each fill-or-kill
//! order asks, and one that comes to nothing costs its owner nothing.

use super::incoming::Incoming;
use super::node::{Node, PriceLevel};
use super::{FastBook, Step};
use crate::Instrument;
use pares_table::SlabIndex;
use pares_types::{Price, Quantity, SelfTrade};

impl FastBook {
    /// Whether `wanted` shares could trade at once.
    pub(super) fn is_available<S>(&self, incoming: &Incoming, wanted: Quantity, step: &Step<'_, S>) -> bool {
        let Some(own_prices) = self.own_prices(incoming) else { return false };
        let (lowest, highest) = self.bands(step);
        let (mut sum, mut looks) = (Quantity::ZERO, 0);
        for at in self.store.ladder(incoming.terms.side.opposite()).best_first() {
            let level = &self.store.levels[at];
            if !incoming.accepts(level.price) || level.price < lowest || level.price > highest {
                return false;
            }
            let has_own = own_prices.binary_search(&level.price).is_ok();
            looks += if has_own { 1 + level.orders as usize } else { 1 };
            if looks > Instrument::LOOKS_MAX {
                return false;
            }
            if has_own && incoming.terms.self_trade != SelfTrade::CancelResting {
                return sum.plus(self.shown_before_own(incoming, at)) >= wanted;
            }
            let own = if has_own { self.own_shares(incoming, at) } else { Quantity::ZERO };
            sum = sum.plus(level.shown).plus(level.hidden).minus(own);
            if sum >= wanted {
                return true;
            }
        }
        false
    }

    /// The prices on the other side where the owner has orders that it must not trade with; `None` if it has more orders than are looked at.
    fn own_prices(&self, incoming: &Incoming) -> Option<Vec<Price>> {
        if incoming.terms.self_trade == SelfTrade::Allow {
            return Some(Vec::new());
        }
        let own = self.store.orders_of(incoming.terms.member);
        let own: Vec<SlabIndex<Node>> = own.take(Instrument::LOOKS_MAX + 1).collect();
        if own.len() > Instrument::LOOKS_MAX {
            return None;
        }
        let nodes = own.into_iter().map(|slot| &self.store.nodes[slot]);
        let other = incoming.terms.side.opposite();
        let there = nodes.filter(|node| node.level != SlabIndex::NONE && node.rank.traits().side() == other);
        let mut prices: Vec<Price> = there.map(|node| self.store.levels[node.level].price).collect();
        prices.sort_unstable();
        Some(prices)
    }

    /// Shares shown at a level by orders that come before the owner's first.
    fn shown_before_own(&self, incoming: &Incoming, at: SlabIndex<PriceLevel>) -> Quantity {
        let others = self.store.queue(at).take_while(|slot| !self.is_own(incoming, *slot));
        others.fold(Quantity::ZERO, |sum, slot| sum.plus(self.store.shown(slot)))
    }

    /// All shares of the owner at a level.
    fn own_shares(&self, incoming: &Incoming, at: SlabIndex<PriceLevel>) -> Quantity {
        let own = self.store.queue(at).filter(|slot| self.is_own(incoming, *slot));
        own.fold(Quantity::ZERO, |sum, slot| sum.plus(self.store.nodes[slot].remaining))
    }

    fn is_own(&self, incoming: &Incoming, slot: SlabIndex<Node>) -> bool {
        self.store.member(slot) == incoming.terms.member
    }
}
