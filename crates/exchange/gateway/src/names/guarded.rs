//! Which sessions guard orders, by the orders' names.

use std::collections::BTreeSet;

use pares_types::{GatewayId, MemberId};

use super::{Entry, Names};

impl Names {
    /// The sessions of which guarded orders are in flight or live that this gateway took in.
    pub(crate) fn guards(&self, gateway: GatewayId) -> BTreeSet<(MemberId, u16)> {
        let is_own =
            |entry: &&Entry| entry.kind.is_order() && !entry.is_finished() && entry.id.gateway() == gateway;
        let own = self.entries.iter().filter(is_own);
        own.filter_map(|entry| Some((entry.member, entry.client_order_id.guard()?))).collect()
    }
}
