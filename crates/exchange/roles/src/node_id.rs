//! The nodes of a system by name.

use std::fmt;
use std::str::FromStr;

use pares_types::{GatewayId, RecorderId, VenueId};

use crate::config::SystemConfig;

/// One node of a system. It also names the log that the node writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeId {
    /// A history recorder.
    Recorder(RecorderId),
    /// An execution venue.
    Venue(VenueId),
    /// A gateway.
    Gateway(GatewayId),
}

impl NodeId {
    /// All nodes of a system, in the order in which they are best started: who is read from first.
    #[must_use]
    pub fn all(config: &SystemConfig) -> Vec<Self> {
        let recorders = config.recorder_ids().map(Self::Recorder);
        let venues = config.venue_ids().map(Self::Venue);
        recorders.chain(venues).chain(config.gateway_ids().map(Self::Gateway)).collect()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorder(id) => write!(f, "recorder-{id}"),
            Self::Venue(id) => write!(f, "venue-{id}"),
            Self::Gateway(id) => write!(f, "gateway-{id}"),
        }
    }
}

impl FromStr for NodeId {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let wrong = || format!("`{name}` is no node; nodes are named like gateway-0, venue-1, recorder-0");
        let (role, id) = name.split_once('-').ok_or_else(wrong)?;
        let id = id.parse().map_err(|_| wrong())?;
        match role {
            "recorder" => Ok(Self::Recorder(RecorderId(id))),
            "venue" => Ok(Self::Venue(VenueId(id))),
            "gateway" => Ok(Self::Gateway(GatewayId(id))),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_named_as_they_print() {
        for node in NodeId::all(&SystemConfig::default()) {
            assert_eq!(node.to_string().parse(), Ok(node));
        }
        assert!("venus-1".parse::<NodeId>().is_err());
    }
}
