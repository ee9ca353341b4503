//! The nodes' ids.

use pares_types::{GatewayId, PublisherId, RecorderId, ReplayerId, VenueId};

use crate::SystemConfig;

impl SystemConfig {
    /// The gateways' ids.
    pub fn gateway_ids(&self) -> impl Iterator<Item = GatewayId> + use<> {
        (0..u16::try_from(self.gateways.len()).expect("checked: at most 16")).map(GatewayId)
    }

    /// The venues' ids.
    pub fn venue_ids(&self) -> impl Iterator<Item = VenueId> + use<> {
        (0..self.venues).map(VenueId)
    }

    /// The recorders' ids.
    pub fn recorder_ids(&self) -> impl Iterator<Item = RecorderId> + use<> {
        (0..self.recorders).map(RecorderId)
    }

    /// The publishers' ids; none without market data.
    pub fn publisher_ids(&self) -> impl Iterator<Item = PublisherId> + use<> {
        (0..self.feed.as_ref().map_or(0, |feed| feed.publishers)).map(PublisherId)
    }

    /// The replayers' ids; none without market data.
    pub fn replayer_ids(&self) -> impl Iterator<Item = ReplayerId> + use<> {
        let count = self.feed.as_ref().map_or(0, |feed| feed.replayers.len());
        (0..u16::try_from(count).expect("checked: at most 8")).map(ReplayerId)
    }
}
