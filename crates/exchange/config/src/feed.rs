//! Who tells the market data, and where to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use pares_types::ShardId;
use serde::{Deserialize, Serialize};

use crate::{ConfigError, SystemConfig, TlsSetting};

/// Publishers or replayers of one system, at most.
pub const FEED_ROLE_MAX: usize = 8;

/// Market data, as `pares.toml` describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedConfig {
    /// How many publishers. Each sends all messages: two or more on one line each by turns, one alone on both.
    pub publishers: u16,
    /// Where line A of the lowest shard goes: a multicast group, or one receiver. Shard S has the port S higher.
    pub line_a: SocketAddr,
    /// Where line B goes.
    pub line_b: SocketAddr,
    /// The address of the interface by which multicast leaves; 0.0.0.0 leaves it to the system.
    pub interface: Ipv4Addr,
    /// Networks that multicast may cross: 0 for none but this host, 1 for the local one.
    pub ttl: u32,
    /// The replayers' addresses, for UDP and TCP, one per replayer. Port 0 takes a free one (see `run/replayer-R.addr`).
    pub replayers: Vec<SocketAddr>,
    /// Whether the replayers' TCP ports are TLS: snapshots, the day, and the feed as it comes are then proved and encrypted.
    pub tls: TlsSetting,
    /// Whether lines and replayers may reach beyond loopback although nothing on lines is encrypted or proved,
    /// and nothing by UDP.
    pub exposed: bool,
}

impl Default for FeedConfig {
    fn default() -> Self {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            publishers: 2,
            line_a: at(17_100),
            line_b: at(27_100),
            interface: Ipv4Addr::UNSPECIFIED,
            ttl: 1,
            replayers: vec![at(7_300), at(7_301)],
            tls: TlsSetting::Off,
            exposed: false,
        }
    }
}

/// A configuration file's part about market data.
#[derive(Serialize)]
struct Part<'a> {
    feed: &'a FeedConfig,
}

impl FeedConfig {
    /// The text of a configuration file's part about market data.
    ///
    /// # Panics
    /// Never: it can always be written.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string_pretty(&Part { feed: self }).expect("a configuration is always valid TOML")
    }

    /// Where a shard's messages go: lines A and B.
    #[must_use]
    pub fn lines(&self, shard: ShardId) -> [SocketAddr; 2] {
        [self.line_a, self.line_b].map(|line| SocketAddr::new(line.ip(), line.port().saturating_add(shard.0)))
    }

    /// Which of the lines a publisher sends on.
    #[must_use]
    pub fn is_on(&self, publisher: u16, line: usize) -> bool {
        self.publishers < 2 || usize::from(publisher) % 2 == line
    }

    /// Checks that the settings can work together, for shards up to `highest`.
    pub(crate) fn check(&self, highest: ShardId) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError(format!("`feed`: {what}")));
        let counts = [usize::from(self.publishers), self.replayers.len()];
        if counts.iter().any(|count| !(1..=FEED_ROLE_MAX).contains(count)) {
            return wrong(format!("there must be 1 to {FEED_ROLE_MAX} each of publishers and replayers"));
        }
        for (name, line) in [("line_a", self.line_a), ("line_b", self.line_b)] {
            if !line.is_ipv4() {
                return wrong(format!(
                    "`{name}` must be an IPv4 address and a port, such as 239.192.7.1:17100"
                ));
            }
            if line.port() == 0 || line.port().checked_add(highest.0).is_none() {
                return wrong(format!(
                    "`{name}` needs a port above 0, with consecutive ports for all shards up to {highest}"
                ));
            }
        }
        if self.line_a == self.line_b {
            return wrong(
                "`line_a` and `line_b` must differ: each line covers the losses of the other".into(),
            );
        }
        self.check_exposure()
    }

    fn check_exposure(&self) -> Result<(), ConfigError> {
        let mut all = [self.line_a, self.line_b].into_iter().chain(self.replayers.iter().copied());
        let stays = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(group) if group.is_multicast() => self.ttl == 0 || self.interface.is_loopback(),
            ip => ip.is_loopback(),
        };
        match all.find(|address| !self.exposed && !stays(address)) {
            None => Ok(()),
            Some(address) => Err(ConfigError(format!(
                "`feed`: {address} is beyond this machine: others there can read and forge the market data, \
                 and make replayers answer forged addresses. Use loopback (127.0.0.1; groups stay on this \
                 host with `interface = \"127.0.0.1\"` or `ttl = 0`), or set `exposed = true` if that \
                 network is trusted"
            ))),
        }
    }
}

impl SystemConfig {
    /// Checks the market data, if there are any.
    pub(crate) fn check_feed(&self) -> Result<(), ConfigError> {
        let Some(feed) = &self.feed else { return Ok(()) };
        let highest = self.shards()?.keys().next_back().copied().unwrap_or_default();
        feed.check(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(feed: FeedConfig) -> String {
        let config = SystemConfig { feed: Some(feed), ..SystemConfig::default() };
        config.check().map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn each_shard_has_its_ports() {
        let feed = FeedConfig::default();
        let [a, b] = feed.lines(ShardId(3));
        assert_eq!((a.port(), b.port()), (17_103, 27_103));
        assert_eq!(why(feed), "");
        let line_a = "127.0.0.1:65530".parse().unwrap();
        assert!(why(FeedConfig { line_a, ..FeedConfig::default() }).contains("all shards up to 9"));
    }

    #[test]
    fn a_publisher_alone_feeds_both_lines_and_two_one_each() {
        let alone = FeedConfig { publishers: 1, ..FeedConfig::default() };
        assert!(alone.is_on(0, 0) && alone.is_on(0, 1));
        let two = FeedConfig::default();
        assert!(two.is_on(0, 0) && !two.is_on(0, 1) && two.is_on(1, 1) && two.is_on(2, 0));
    }

    #[test]
    fn what_leaves_the_machine_needs_a_word() {
        let group: SocketAddr = "239.192.7.1:17100".parse().unwrap();
        let beyond = FeedConfig { line_a: group, ..FeedConfig::default() };
        assert!(why(beyond.clone()).contains("239.192.7.1:17100 is beyond this machine"));
        assert_eq!(why(FeedConfig { ttl: 0, ..beyond.clone() }), "");
        assert_eq!(why(FeedConfig { exposed: true, ..beyond }), "");
        let replayers = vec!["192.0.2.1:7300".parse().unwrap()];
        assert!(why(FeedConfig { replayers, ..FeedConfig::default() }).contains("beyond"));
    }

    #[test]
    fn lines_differ() {
        let line_b = FeedConfig::default().line_a;
        assert!(why(FeedConfig { line_b, ..FeedConfig::default() }).contains("must differ"));
    }
}
