//! The settings of a member's system: `member.toml`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::market::MarketConfig;
use crate::reports::ExchangeConfig;
use pares_config::{DurabilitySetting, NodeId};
use pares_roles::NodeError;
use pares_types::{GatewayId, RecorderId};
use serde::{Deserialize, Serialize};

/// Servers of one member, at most.
const SERVERS_MAX: usize = 16;

/// A member's system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemberConfig {
    /// Where each server listens. Port 0 takes a free one (see `run/gateway-S.addr`).
    pub servers: Vec<SocketAddr>,
    /// How many servers must have an item before traders receive it.
    pub quorum: u16,
    /// Positions the window holds, a power of two.
    pub window: u32,
    /// Connections a server takes.
    pub traders_max: usize,
    /// What being told promises: `disk`, that it survives the loss of power; `os`, that it survives the death of any process.
    pub durability: DurabilitySetting,
    /// MiB per segment of the logs.
    pub segment_mib: u64,
    /// Where each server sends the stream by UDP, in their order: a multicast group, or an address. None: nowhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<SocketAddr>,
    /// The address of the interface by which groups leave. Beyond loopback every host there reads the stream: nothing of it is encrypted.
    pub groups_interface: Ipv4Addr,
    /// Web pages that may connect, by their origin (`https://desk.example`). Programs have none, and may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub web_origins: Vec<String>,
    /// The exchange whose reports to the member are copied into the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeConfig>,
    /// Where the market comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market: Option<MarketConfig>,
}

impl Default for MemberConfig {
    fn default() -> Self {
        let servers = [7200, 7201].map(|port| SocketAddr::from(([127, 0, 0, 1], port))).to_vec();
        Self {
            servers,
            quorum: 1,
            window: 65_536,
            traders_max: 4_096,
            durability: DurabilitySetting::Os,
            segment_mib: 4,
            groups: Vec::new(),
            groups_interface: Ipv4Addr::LOCALHOST,
            web_origins: Vec::new(),
            exchange: None,
            market: None,
        }
    }
}

impl MemberConfig {
    /// A system of so many servers, on ports that the kernel chooses.
    #[must_use]
    pub fn local(servers: usize) -> Self {
        Self { servers: vec![SocketAddr::from(([127, 0, 0, 1], 0)); servers], ..Self::default() }
    }

    /// How many servers there are.
    ///
    /// # Panics
    /// Never once it is checked.
    #[must_use]
    pub fn count(&self) -> u16 {
        u16::try_from(self.servers.len()).expect("checked")
    }

    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// If it cannot be read, or says something that cannot work.
    pub fn load(path: &Path) -> Result<Self, NodeError> {
        let read = |source| NodeError::Read { path: path.into(), source };
        let text = std::fs::read_to_string(path).map_err(read)?;
        let config: Self = toml::from_str(&text).map_err(|error| NodeError::Config(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// The text of its file.
    ///
    /// # Panics
    /// Never: it can always be written.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string_pretty(self).expect("a configuration is always valid TOML")
    }

    /// Whether that is an IPv4 group, or an address that the interface is meant for.
    fn may_send_to(&self, group: SocketAddr) -> bool {
        let is_near = group.ip().is_multicast() || group.ip().is_loopback();
        group.is_ipv4() && (is_near || !self.groups_interface.is_loopback())
    }

    /// Checks that the settings can work together.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self) -> Result<(), NodeError> {
        let refuse = |why: &str| Err(NodeError::Config(why.into()));
        if !(1..=SERVERS_MAX).contains(&self.servers.len()) {
            return refuse("servers: from 1 to 16 addresses");
        }
        if !(1..=self.servers.len()).contains(&self.quorum.into()) {
            return refuse("quorum: from 1 to the number of servers");
        }
        if !self.window.is_power_of_two() || !(16..=1 << 20).contains(&self.window) {
            return refuse("window: a power of two from 16 to 1,048,576");
        }
        if self.exchange.as_ref().is_some_and(|exchange| exchange.gateways.is_empty()) {
            return refuse("exchange.gateways: at least one");
        }
        if self.traders_max == 0 {
            return refuse("traders_max: at least 1");
        }
        if !self.groups.is_empty() && self.groups.len() != self.servers.len() {
            return refuse("groups: one for each server, or none");
        }
        if let Some(group) = self.groups.iter().find(|&&group| !self.may_send_to(group)) {
            return Err(NodeError::Config(format!(
                "groups: {group} is beyond this machine, where others could read the stream: name an IPv4 \
                 group, which stays on this machine, or allow it with `groups_interface`, the address of \
                 the outgoing network interface"
            )));
        }
        if !(1..=1_024).contains(&self.segment_mib) {
            return refuse("segment_mib: from 1 to 1,024");
        }
        Ok(())
    }
}

/// The log in which a server writes what its traders submit.
#[must_use]
pub fn submissions(server: u16) -> NodeId {
    NodeId::Gateway(GatewayId(server))
}

/// The log in which a server keeps the stream.
#[must_use]
pub fn stream(server: u16) -> NodeId {
    NodeId::Recorder(RecorderId(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_cannot_work_is_refused() {
        let config = MemberConfig::default();
        assert_eq!(toml::from_str::<MemberConfig>(&config.text()).unwrap(), config);
        for wrong in [
            MemberConfig { servers: vec![], ..config.clone() },
            MemberConfig { quorum: 3, ..config.clone() },
            MemberConfig { window: 100, ..config.clone() },
            MemberConfig { groups: vec!["192.0.2.7:7400".parse().unwrap(); 2], ..config.clone() },
            MemberConfig { groups: vec!["[ff02::1]:7400".parse().unwrap(); 2], ..config.clone() },
            MemberConfig { segment_mib: 0, ..config },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
