//! Each role as a process.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use pares_config::{Layout, SystemConfig, TlsSetting};
use pares_feed::soup;
use pares_node::config;
use pares_node::sockets::{BELL, Handshaking, RealSockets, connections_within_limits};
use pares_node::{HostWorld, NodeError, NodeId, duty, keys, process};
use pares_os::{Bell, BellKind};
use pares_roles::World;
use pares_tls::ServerConfig;
use pares_types::{PublisherId, ReplayerId};

use crate::lines::{UdpLines, no_feed};
use crate::publisher::PublisherNode;
use crate::replayer::{CLIENTS_MAX, Datagrams, ReplayerNode};

/// Times another free port is tried that no process has for UDP either.
const PORTS_TRIED: usize = 16;
/// TLS handshakes at a time; a new connection then has to try again.
const HANDSHAKES_MAX: usize = 256;

/// Runs a node in this process until it is stopped: one that sends market data here, a venue or a recorder as [`pares_node::process::run`].
///
/// # Errors
/// Whatever keeps it from starting or continuing.
pub fn run(node: NodeId, layout: &Layout) -> Result<(), NodeError> {
    match node.only_tells() {
        true => run_in(node, layout, HostWorld::new(layout)?),
        false => process::run(node, layout),
    }
}

/// Runs a publisher or a replayer in a world of the caller's.
///
/// # Errors
/// As [`run`]; and if it is another node.
pub fn run_in<W: World>(node: NodeId, layout: &Layout, world: W) -> Result<(), NodeError> {
    let config = config::load(&layout.config())?;
    if !NodeId::all(&config).contains(&node) {
        return Err(NodeError::Refused(format!("{node} is not part of {}", layout.config().display())));
    }
    match node {
        NodeId::Publisher(id) => publish(id, &config, layout, world),
        NodeId::Replayer(id) => replay(id, &config, layout, world),
        _ => Err(NodeError::Refused(format!("{node} does not publish market data"))),
    }
}

fn publish<W: World>(
    id: PublisherId,
    config: &SystemConfig,
    layout: &Layout,
    world: W,
) -> Result<(), NodeError> {
    let stop = pares_os::process::stop_on_signals().map_err(NodeError::io("installing a signal handler"))?;
    let node = NodeId::Publisher(id);
    let mut bell = process::listen(node, layout, BellKind::Futex)?;
    let lines = UdpLines::open(id, config)?;
    let open = || PublisherNode::open(id, config, world.clone(), lines);
    let mut publisher = process::start(node, layout, &world, open)?;
    duty::run(&mut publisher, &mut bell, &stop, duty::on_bell)
}

fn replay<W: World>(
    id: ReplayerId,
    config: &SystemConfig,
    layout: &Layout,
    world: W,
) -> Result<(), NodeError> {
    let stop = pares_os::process::stop_on_signals().map_err(NodeError::io("installing a signal handler"))?;
    let node = NodeId::Replayer(id);
    let feed = config.feed.as_ref().ok_or_else(no_feed)?;
    let shaking = if feed.tls == TlsSetting::On { HANDSHAKES_MAX } else { 0 };
    let clients_max = connections_within_limits(CLIENTS_MAX, shaking, "a replayer's most connections");
    let mut bell = process::listen(node, layout, BELL)?;
    let edge = listen(id, config, layout, &bell)?;
    let open = || ReplayerNode::open(id, config, world.clone(), edge, clients_max);
    let mut replayer = process::start(node, layout, &world, open)?;
    duty::run(&mut replayer, &mut bell, &stop, |replayer, bell, max| {
        replayer.poll_sockets(max)?;
        bell.cancel();
        bell.drain();
        Ok(())
    })
}

/// Listens by TCP and UDP at one address, and writes it down; a replayer that starts again, and whose port was the system's choice, takes the same
/// one again.
fn listen(
    id: ReplayerId,
    config: &SystemConfig,
    layout: &Layout,
    bell: &Bell,
) -> Result<(RealSockets, UdpSocket), NodeError> {
    let configured = config.feed.as_ref().ok_or_else(no_feed)?.replayers[usize::from(id.0)];
    let path = layout.replayer_address(id);
    let before = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    let address = before.filter(|_| configured.port() == 0).unwrap_or(configured);
    let tries = if address.port() == 0 { PORTS_TRIED } else { 1 };
    let refused = |source| {
        NodeError::Refused(format!(
            "cannot listen at {address}: {source}. `replayers` in pares.toml chooses the address"
        ))
    };
    let tls = keys::replayer(layout, id, config)?;
    let (mut sockets, datagrams) = bind(address, bell, tls.as_ref(), tries).map_err(refused)?;
    sockets.watch(&datagrams).map_err(NodeError::io("polling the socket for requests"))?;
    pares_os::replace_file_unsynced(&path, sockets.address().to_string().as_bytes())
        .map_err(NodeError::io("writing the replayer's address down"))?;
    Ok((sockets, datagrams))
}

fn bind(
    address: SocketAddr,
    bell: &Bell,
    tls: Option<&Arc<ServerConfig>>,
    tries: usize,
) -> io::Result<(RealSockets, UdpSocket)> {
    let mut refused = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..tries {
        let sockets = RealSockets::listen(address, bell, tls.map(handshaking))?;
        match UdpSocket::bind(sockets.address()) {
            Ok(datagrams) => {
                datagrams.set_nonblocking(true)?;
                return Ok((sockets, datagrams));
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn handshaking(tls: &Arc<ServerConfig>) -> Handshaking {
    let mut refusal = Vec::new();
    soup::write(&mut refusal, b'J', &[soup::NOT_AUTHORIZED]);
    Handshaking { tls: Arc::clone(tls), count_max: HANDSHAKES_MAX, refusal }
}

impl Datagrams for UdpSocket {
    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<(SocketAddr, usize)> {
        self.recv_from(bytes).map(|(count, from)| (from, count))
    }

    fn send(&mut self, to: SocketAddr, packet: &[u8]) {
        // What is lost here is asked for again.
        let _ = self.send_to(packet, to);
    }
}
