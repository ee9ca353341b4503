//! Which node runs at which host.
//!
//! One file describes the whole system and is the same at every host, so that no two hosts can disagree about who has a vote. A host knows
//! only its own name, and starts the nodes that the file gives it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use pares_types::HostId;
use serde::{Deserialize, Serialize};

use crate::{ConfigError, NodeId, SystemConfig};

/// Fewer cannot lose one and decide.
const HOSTS_MIN: usize = 3;
/// The replicated log has no more members.
const HOSTS_MAX: usize = 9;
const NAME_MAX: usize = 32;

/// One host: where the others reach it, and the nodes that run there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// What operators call it.
    pub name: String,
    /// Where the other hosts' orderers connect.
    pub orders: SocketAddr,
    /// Where the other hosts fetch the logs that are written here.
    pub mirror: SocketAddr,
    /// The gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<u16>,
    /// The venues. A host without any is a witness: it orders and records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub venues: Vec<u16>,
    /// The recorder.
    pub recorder: u16,
    /// The publishers of market data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publishers: Vec<u16>,
    /// The replayers of market data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replayers: Vec<u16>,
}

impl HostConfig {
    /// Whether the node runs here. `host` is this host.
    fn has(&self, host: HostId, node: NodeId) -> bool {
        match node {
            NodeId::Recorder(id) => self.recorder == id.0,
            NodeId::Venue(id) => self.venues.contains(&id.0),
            NodeId::Gateway(id) => self.gateways.contains(&id.0),
            NodeId::Publisher(id) => self.publishers.contains(&id.0),
            NodeId::Replayer(id) => self.replayers.contains(&id.0),
            NodeId::Orderer(id) | NodeId::Mirror(id) => id == host,
        }
    }
}

impl SystemConfig {
    /// The hosts' ids; none if everything runs at one.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..u8::try_from(self.hosts.len()).expect("checked: at most 9")).map(HostId)
    }

    /// The host of that name.
    #[must_use]
    pub fn host_named(&self, name: &str) -> Option<HostId> {
        self.host_ids().zip(&self.hosts).find(|(_, host)| host.name == name).map(|(id, _)| id)
    }

    /// The host at which a node runs; none if everything runs at one.
    #[must_use]
    pub fn host_of(&self, node: NodeId) -> Option<HostId> {
        self.host_ids().zip(&self.hosts).find(|(id, host)| host.has(*id, node)).map(|(id, _)| id)
    }

    pub(crate) fn check_hosts(&self) -> Result<(), ConfigError> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        let wrong = |what: String| Err(ConfigError(format!("`hosts`: {what}")));
        if !(HOSTS_MIN..=HOSTS_MAX).contains(&self.hosts.len()) {
            return wrong(format!(
                "there must be {HOSTS_MIN} to {HOSTS_MAX}, so that most are left when one is lost; a third host may be a witness, \
                 with a recorder and no venue"
            ));
        }
        if self.recorders != u16::try_from(self.hosts.len()).unwrap_or_default()
            || self.quorum <= self.recorders / 2
        {
            return wrong("`recorders` must be one per host, and `quorum` more than half of them".to_owned());
        }
        if !self.sequencer || self.mirror.is_some() {
            return wrong("`sequencer = false` and `mirror` are settings of a system at one host".to_owned());
        }
        self.check_names_and_addresses()?;
        for node in NodeId::all(self) {
            let places = self.host_ids().zip(&self.hosts).filter(|(id, host)| host.has(*id, node)).count();
            if places != 1 {
                let where_to = if places == 0 { "at none" } else { "named at two" };
                return wrong(format!("{node} is {where_to} of them"));
            }
        }
        Ok(())
    }

    fn check_names_and_addresses(&self) -> Result<(), ConfigError> {
        let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for host in &self.hosts {
            let name = &host.name;
            let wrong = |what: String| Err(ConfigError(format!("`hosts`, `{name}`: {what}")));
            let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_letter) {
                return wrong(format!("a name must be 1 to {NAME_MAX} small letters, digits and hyphens"));
            }
            if !names.insert(name) {
                return wrong("two hosts have this name".to_owned());
            }
            for address in [host.orders, host.mirror] {
                if address.port() == 0 || address.ip().is_unspecified() {
                    return wrong(format!("{address}: the others must be able to connect to it"));
                }
                if !addresses.insert(address) {
                    return wrong(format!("{address} is used twice"));
                }
            }
            let (all, known) = (NodeId::all(self), self.nodes_named(host));
            if let Some(node) = known.into_iter().find(|node| !all.contains(node)) {
                return wrong(format!("there is no {node}: they count from 0"));
            }
        }
        Ok(())
    }

    fn nodes_named(&self, host: &HostConfig) -> Vec<NodeId> {
        use pares_types::{GatewayId, PublisherId, RecorderId, ReplayerId, VenueId};
        let gateways = host.gateways.iter().map(|&id| NodeId::Gateway(GatewayId(id)));
        let venues = host.venues.iter().map(|&id| NodeId::Venue(VenueId(id)));
        let publishers = host.publishers.iter().map(|&id| NodeId::Publisher(PublisherId(id)));
        let replayers = host.replayers.iter().map(|&id| NodeId::Replayer(ReplayerId(id)));
        let recorder = [NodeId::Recorder(RecorderId(host.recorder))];
        recorder.into_iter().chain(gateways).chain(venues).chain(publishers).chain(replayers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three hosts with one node of each kind.
    fn three() -> SystemConfig {
        let host = |id: u8| {
            let at = |port: u16| SocketAddr::from(([127, 0, 0, id + 1], port));
            HostConfig {
                name: char::from(b'a' + id).to_string(),
                orders: at(7151),
                mirror: at(7152),
                gateways: vec![id.into()],
                venues: vec![id.into()],
                recorder: id.into(),
                publishers: Vec::new(),
                replayers: Vec::new(),
            }
        };
        SystemConfig {
            venues: 3,
            recorders: 3,
            quorum: 2,
            gateways: (1..4).map(|id| SocketAddr::from(([127, 0, 0, id], 7100))).collect(),
            hosts: (0..3).map(host).collect(),
            ..SystemConfig::default()
        }
    }

    #[test]
    fn hosts_are_read_as_they_are_written() {
        let config = three();
        config.check().unwrap();
        assert_eq!(SystemConfig::parse(&config.text()).unwrap(), config);
        let b = config.host_named("b").unwrap();
        assert_eq!((b, config.host_named("d")), (HostId(1), None));
        let of_b = NodeId::at(&config, Some(b));
        assert_eq!(
            of_b.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["recorder-1", "orderer-1", "mirror-1", "venue-1", "gateway-1"]
        );
        assert!(of_b.iter().all(|&node| config.host_of(node) == Some(b)));
    }

    #[test]
    fn hosts_that_cannot_work_are_refused_by_what_is_wrong() {
        type Change = fn(&mut SystemConfig);
        let refused: [(Change, &str); 12] = [
            (|c| _ = c.hosts.pop(), "there must be 3 to 9"),
            (|c| c.quorum = 1, "`quorum` more than half"),
            (|c| c.recorders = 4, "`recorders` must be one per host"),
            (|c| c.mirror = Some(c.hosts[0].mirror), "settings of a system at one host"),
            (|c| c.hosts[1].name = "a".into(), "`a`: two hosts have this name"),
            (|c| c.hosts[1].name = "B".into(), "`B`: a name must be"),
            (|c| c.hosts[1].mirror = c.hosts[0].orders, "`b`: 127.0.0.1:7151 is used twice"),
            (|c| c.hosts[1].orders.set_port(0), "`b`: 127.0.0.2:0: the others must be able"),
            (|c| c.hosts[1].gateways = Vec::new(), "gateway-1 is at none of them"),
            (|c| c.hosts[1].gateways.push(0), "gateway-0 is named at two of them"),
            (|c| c.hosts[1].venues.push(3), "`b`: there is no venue-3"),
            (|c| c.hosts[1].recorder = 0, "recorder-0 is named at two of them"),
        ];
        for (change, what) in refused {
            let mut config = three();
            change(&mut config);
            let told = config.check().unwrap_err().to_string();
            assert!(told.contains(what), "{told}");
        }
    }

    #[test]
    fn a_host_without_venues_is_a_witness() {
        let mut config = three();
        (config.venues, config.gateways) = (2, config.gateways[..2].to_vec());
        (config.hosts[2].venues, config.hosts[2].gateways) = (Vec::new(), Vec::new());
        config.check().unwrap();
        let of_witness = NodeId::at(&config, Some(HostId(2)));
        assert_eq!(
            of_witness.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["recorder-2", "orderer-2", "mirror-2"]
        );
    }
}
