//! What to receive, and from where.

use std::net::{Ipv4Addr, SocketAddr};

use pares_tls::Trust;
use pares_types::ShardId;

/// Where the packets of shards come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedLines {
    /// Nowhere: all comes by TCP.
    None,
    /// To these addresses of lines A and B, for shard 0; those of another shard have its number added to the port.
    From(SocketAddr, SocketAddr),
    /// To these addresses of lines A and B: one pair for each shard, in the order of [`ReceiverConfig::shards`].
    Each(Vec<(SocketAddr, SocketAddr)>),
}

/// What to receive.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Which shards.
    pub shards: Vec<ShardId>,
    /// Where their packets come to: multicast groups, or addresses of this host.
    pub lines: FeedLines,
    /// Where replayers answer requests, by UDP. Answers from other addresses are not taken.
    pub requests: Vec<SocketAddr>,
    /// Where replayers serve replays and snapshots, by TCP.
    pub tcp: Vec<SocketAddr>,
    /// Without lines: a session of a business day is received from its first message on if it has at most so many, and otherwise from a snapshot on.
    pub replayed_max: u64,
    /// Whom to believe to be a replayer, if those speak TLS: the exchange's authority.
    pub tls: Option<Trust>,
    /// The address of this host's interface that hears multicast groups; unspecified: the system's choice.
    pub interface: Ipv4Addr,
    /// What each line's socket is to hold while this program does something else. The system may allow less.
    pub socket_bytes: usize,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            shards: vec![ShardId(0)],
            lines: FeedLines::None,
            requests: Vec::new(),
            tcp: Vec::new(),
            replayed_max: 0,
            tls: None,
            interface: Ipv4Addr::UNSPECIFIED,
            socket_bytes: 16 << 20,
        }
    }
}

/// Why nothing can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// Neither lines nor TCP.
    #[error("no source of market data: give lines or TCP addresses")]
    Nowhere,
    /// A shard whose lines are not given.
    #[error("the lines of shard {} are not given, or have no port", .0.0)]
    NoLines(ShardId),
    /// A socket could not be opened.
    #[error("a socket for {address}: {error}")]
    Socket {
        /// For this address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The system does not say which sockets are ready.
    #[error("waiting for sockets: {0}")]
    Waiting(#[from] std::io::Error),
}

impl ReceiverConfig {
    /// The addresses of the lines of the shard with that index; `None` without lines.
    pub(crate) fn lines_of(&self, index: usize) -> Result<Option<[SocketAddr; 2]>, ReceiverError> {
        let shard = self.shards[index];
        let lines = match &self.lines {
            FeedLines::None => return Ok(None),
            FeedLines::From(a, b) => Some([*a, *b]).and_then(|lines| shifted(lines, shard)),
            FeedLines::Each(all) => all.get(index).map(|&(a, b)| [a, b]),
        };
        lines.map(Some).ok_or(ReceiverError::NoLines(shard))
    }
}

fn shifted(lines: [SocketAddr; 2], shard: ShardId) -> Option<[SocketAddr; 2]> {
    let shifted = lines.map(|line| Some(SocketAddr::new(line.ip(), line.port().checked_add(shard.0)?)));
    Some([shifted[0]?, shifted[1]?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_shard_have_its_number_added_to_their_ports() {
        let line = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let config = ReceiverConfig {
            shards: vec![ShardId(7), ShardId(65_000)],
            lines: FeedLines::From(line(1_000), line(2_000)),
            ..ReceiverConfig::default()
        };
        assert_eq!(config.lines_of(0).unwrap(), Some([line(1_007), line(2_007)]));
        assert!(matches!(config.lines_of(1), Err(ReceiverError::NoLines(ShardId(65_000)))));
    }
}
