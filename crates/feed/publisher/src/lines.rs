//! Where a publisher's packets go: UDP, to a multicast group or to one receiver for each line.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use pares_config::{FeedConfig, SystemConfig};
use pares_roles::NodeError;
use pares_types::{PublisherId, ShardId};
use rustix::net::sockopt;

/// What the kernel keeps of packets that are under way, bytes; it gives what it may.
const SEND_BYTES: usize = 4 << 20;

/// The lines of a publisher.
pub trait Lines: Send + 'static {
    /// Sends a packet of a shard. Never waits. Says how many sends failed: such a packet is lost on that line, as others are on the way.
    fn send(&mut self, shard: ShardId, packet: &[u8]) -> u64;
}

/// Lines of the host's network.
#[derive(Debug)]
pub struct UdpLines {
    socket: UdpSocket,
    targets: BTreeMap<ShardId, Vec<SocketAddr>>,
}

impl UdpLines {
    /// The lines that the publisher sends on.
    ///
    /// # Errors
    /// If there is no market data in the configuration, or no socket can be had.
    pub fn open(id: PublisherId, config: &SystemConfig) -> Result<Self, NodeError> {
        let feed = config.feed.as_ref().ok_or_else(no_feed)?;
        let socket = socket(feed).map_err(NodeError::io("opening the socket of the lines"))?;
        let targets = |shard: ShardId| {
            let lines = feed.lines(shard).into_iter().enumerate();
            let lines = lines.filter(|(line, _)| feed.is_on(id.0, *line)).map(|(_, address)| address);
            (shard, lines.collect())
        };
        Ok(Self { socket, targets: config.shards()?.into_keys().map(targets).collect() })
    }
}

/// What a process without anything to tell ends with.
pub(crate) fn no_feed() -> NodeError {
    NodeError::Refused("this system has no market data: pares.toml has no `[feed]`".into())
}

fn socket(feed: &FeedConfig) -> io::Result<UdpSocket> {
    // One that sends to loopback only needs no other interface.
    let local = [feed.line_a, feed.line_b].iter().all(|line| line.ip().is_loopback());
    let from = if local { Ipv4Addr::LOCALHOST } else { feed.interface };
    let socket = UdpSocket::bind((from, 0))?;
    socket.set_nonblocking(true)?;
    socket.set_multicast_ttl_v4(feed.ttl)?;
    socket.set_multicast_loop_v4(true)?;
    if !feed.interface.is_unspecified() {
        sockopt::set_ip_multicast_if(&socket, &feed.interface)?;
    }
    // Less is enough for all but bursts.
    let _ = sockopt::set_socket_send_buffer_size(&socket, SEND_BYTES);
    Ok(socket)
}

impl Lines for UdpLines {
    fn send(&mut self, shard: ShardId, packet: &[u8]) -> u64 {
        let targets = self.targets.get(&shard).map_or(&[][..], Vec::as_slice);
        let failed = targets.iter().filter(|&&target| self.socket.send_to(packet, target).is_err());
        failed.count() as u64
    }
}
