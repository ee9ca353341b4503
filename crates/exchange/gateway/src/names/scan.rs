//! Orders found by looking at all names.
//!
//! An order keeps its place in the table from when its name is first seen until nothing is left of it. So a look at all places
//! in order, with pauses, meets each order once that was there all the time.

use std::collections::BTreeSet;
use std::ops::Range;

use pares_types::{GatewayId, MemberId};

use super::{Name, Names};

impl Name {
    /// Whether it is an order in flight, or one of which something is left. Never of a forgotten name: it was finished.
    fn is_living_order(&self) -> bool {
        self.kind.is_order() && !self.is_finished()
    }
}

impl Names {
    /// The sessions of which guarded orders are in flight or live that this gateway took in.
    pub(crate) fn guards(&self, gateway: GatewayId) -> BTreeSet<(MemberId, u16)> {
        let is_own = |entry: &&Name| entry.is_living_order() && entry.id.gateway() == gateway;
        let own = self.entries.iter().filter(is_own);
        own.filter_map(|entry| Some((entry.member, entry.client_order_id.guard()?))).collect()
    }

    /// The member's orders that are in flight or live among those places, and the next place after each.
    pub(crate) fn orders_in(
        &self,
        member: MemberId,
        places: Range<usize>,
    ) -> impl Iterator<Item = (usize, &Name)> + '_ {
        let next = places.start + 1..;
        let entries = self.entries.get(places).unwrap_or_default();
        let is_own = move |(_, entry): &(usize, &Name)| entry.member == member && entry.is_living_order();
        next.zip(entries).filter(is_own)
    }

    pub(crate) fn places(&self) -> usize {
        self.entries.len()
    }
}
