//! The nodes of a system by name.

use std::fmt;
use std::str::FromStr;

use pares_types::{GatewayId, HostId, PublisherId, RecorderId, ReplayerId, VenueId};

use crate::SystemConfig;

/// One node of a system. It also names the log that the node writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeId {
    /// A history recorder.
    Recorder(RecorderId),
    /// The orderer of a host.
    Orderer(HostId),
    /// What keeps the mirrors of a host: it sends the logs that are written there and receives the others'. It writes no log of its own.
    Mirror(HostId),
    /// An execution venue.
    Venue(VenueId),
    /// A gateway.
    Gateway(GatewayId),
    /// A publisher of market data.
    Publisher(PublisherId),
    /// A replayer of market data. It writes no log.
    Replayer(ReplayerId),
}

impl NodeId {
    /// All nodes of a system, in the order in which they are best started: who is read from first.
    #[must_use]
    pub fn all(config: &SystemConfig) -> Vec<Self> {
        let recorders = config.recorder_ids().map(Self::Recorder);
        let orderers = config.host_ids().map(Self::Orderer);
        let mirrors = config.host_ids().map(Self::Mirror);
        let venues = config.venue_ids().map(Self::Venue);
        let gateways = config.gateway_ids().map(Self::Gateway);
        let publishers = config.publisher_ids().map(Self::Publisher);
        let replayers = config.replayer_ids().map(Self::Replayer);
        recorders
            .chain(orderers)
            .chain(mirrors)
            .chain(venues)
            .chain(gateways)
            .chain(publishers)
            .chain(replayers)
            .collect()
    }

    /// Those that run at a host, in that order; all of a system that is at one host.
    #[must_use]
    pub fn at(config: &SystemConfig, host: Option<HostId>) -> Vec<Self> {
        let mut nodes = Self::all(config);
        nodes.retain(|&node| config.host_of(node) == host);
        nodes
    }

    /// Whether the system trades no less without it.
    #[must_use]
    pub fn only_tells(self) -> bool {
        matches!(self, Self::Publisher(_) | Self::Replayer(_))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorder(id) => write!(f, "recorder-{id}"),
            Self::Orderer(id) => write!(f, "orderer-{id}"),
            Self::Mirror(id) => write!(f, "mirror-{id}"),
            Self::Venue(id) => write!(f, "venue-{id}"),
            Self::Gateway(id) => write!(f, "gateway-{id}"),
            Self::Publisher(id) => write!(f, "publisher-{id}"),
            Self::Replayer(id) => write!(f, "replayer-{id}"),
        }
    }
}

impl FromStr for NodeId {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{name}` is not a node; expected a name such as gateway-0, venue-1 or recorder-0");
        let (role, id) = name.split_once('-').ok_or_else(wrong)?;
        let id: u16 = id.parse().map_err(|_| wrong())?;
        match role {
            "mirror" => id.try_into().map(|id| Self::Mirror(HostId(id))).map_err(|_| wrong()),
            "orderer" => id.try_into().map(|id| Self::Orderer(HostId(id))).map_err(|_| wrong()),
            "recorder" => Ok(Self::Recorder(RecorderId(id))),
            "venue" => Ok(Self::Venue(VenueId(id))),
            "gateway" => Ok(Self::Gateway(GatewayId(id))),
            "publisher" => Ok(Self::Publisher(PublisherId(id))),
            "replayer" => Ok(Self::Replayer(ReplayerId(id))),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeedConfig;

    #[test]
    fn nodes_are_named_as_they_print() {
        let config = SystemConfig { feed: Some(FeedConfig::default()), ..SystemConfig::default() };
        let all = NodeId::all(&config);
        assert_eq!(all.iter().filter(|node| node.only_tells()).count(), 4);
        for node in all {
            assert_eq!(node.to_string().parse(), Ok(node));
        }
        assert!("venus-1".parse::<NodeId>().is_err());
    }
}
