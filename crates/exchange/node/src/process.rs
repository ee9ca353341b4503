//! How each node runs as a process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pares_config::{Layout, SystemConfig, bells};
use pares_gateway_role::GatewayNode;
use pares_os::process::Lock;
use pares_os::{Bell, BellKind, Bells};
use pares_port::DoorFactory;
use pares_roles::World;
use pares_roles::recorder::RecorderNode;
use pares_roles::world::Sockets;
use pares_types::GatewayId;

use crate::config;
use crate::sockets::{self, RealSockets};
use crate::{HostWorld, NodeError, NodeId, days, duty, epoch, mirrors, orderer, venue, world};

/// How long a starting node leaves the processor to the others before it takes its share: catching up takes a venue a
/// few milliseconds of it. Large checkpoints add to a venue's.
pub(crate) const BACKGROUND: std::time::Duration = std::time::Duration::from_millis(25);

/// Runs a venue, a recorder, an orderer or the mirrors of a host in this process until it receives a signal to stop.
///
/// # Errors
/// Whatever keeps it from starting or going on.
pub fn run(node: NodeId, layout: &Layout) -> Result<(), NodeError> {
    run_in(node, layout, HostWorld::new(layout)?)
}

/// As [`run`], in a world of the caller's: for one that lets things fail on purpose.
///
/// # Errors
/// As [`run`].
pub fn run_in<W: World>(node: NodeId, layout: &Layout, world: W) -> Result<(), NodeError> {
    let (config, stop) = begin(node, layout)?;
    match node {
        NodeId::Venue(id) => venue::run(id, &config, layout, world, &stop),
        NodeId::Recorder(id) => {
            let mut bell = listen(node, layout, BellKind::Futex)?;
            let open = || RecorderNode::open(id, &config, world.clone(), epoch::of_records(&world, &config)?);
            let mut recorder = start(node, layout, &world, open)?;
            days::look_after(id, &config, layout)?;
            duty::run(&mut recorder, &mut bell, &stop, duty::on_bell)
        }
        NodeId::Orderer(host) => orderer::run(host, &config, layout, world, &stop),
        NodeId::Mirror(host) => {
            // Mirrors that the supervisor takes for missing are mirrors all the same.
            let announced = || announce(node, layout).unwrap_or_else(|error| world::complain(&error));
            mirrors::keep(host, &config, layout, &stop, announced)
        }
        NodeId::Gateway(_) | NodeId::Publisher(_) | NodeId::Replayer(_) => {
            Err(NodeError::Refused(format!("{node} is no venue and no recorder")))
        }
    }
}

/// Runs a gateway in this process until it receives a signal to stop, in a world of the caller's, which also wraps its sockets. The program says
/// by `doors` what stands in front of its connections.
///
/// # Errors
/// As [`run`].
pub fn run_gateway<W: World, S: Sockets>(
    id: GatewayId,
    layout: &Layout,
    world: W,
    doors: Arc<dyn DoorFactory>,
    wrap: impl Fn(RealSockets) -> S,
) -> Result<(), NodeError> {
    let node = NodeId::Gateway(id);
    let (config, stop) = begin(node, layout)?;
    let config = sockets::within_limits(config);
    let mut bell = listen(node, layout, sockets::BELL)?;
    let _claim = claim(node, layout)?;
    let open = || {
        let sockets = RealSockets::open(id, &config, layout, &bell)?.with_operators(id, layout);
        GatewayNode::open(id, &config, world.clone(), wrap(sockets), doors)
    };
    let mut gateway = start(node, layout, &world, open)?;
    duty::run(&mut gateway, &mut bell, &stop, |gateway, bell, max| {
        gateway.poll_sockets(max)?;
        bell.cancel();
        bell.drain();
        Ok(())
    })
}

/// The settings of the node's system, and what says that the process is to stop.
fn begin(node: NodeId, layout: &Layout) -> Result<(SystemConfig, Arc<AtomicBool>), NodeError> {
    let config = config::load(&layout.config())?;
    if !NodeId::all(&config).contains(&node) {
        return Err(NodeError::Refused(format!("{node} is not part of {}", layout.config().display())));
    }
    if !config.hosts.is_empty() {
        duty::at_host();
    }
    let stop = pares_os::process::stop_on_signals().map_err(NodeError::io("installing a signal handler"))?;
    Ok((config, stop))
}

/// A gateway runs once, as long as this is held: a second process that is refused only by the log would have said by then that the gateway is at its own
/// ports.
pub(crate) fn claim(node: NodeId, layout: &Layout) -> Result<Lock, NodeError> {
    let path = layout.claim(node);
    let lock = Lock::take(&path).map_err(NodeError::io("claiming the node"))?;
    lock.ok_or_else(|| {
        NodeError::Refused(format!("{node} runs already: another process has {}", path.display()))
    })
}

/// Opens a node in the background: reading through what there is keeps a processor busy, which those who trade meanwhile
/// need more.
///
/// # Errors
/// As `open`; or if it cannot be announced.
pub fn start<W: World, N>(
    node: NodeId,
    layout: &Layout,
    world: &W,
    open: impl FnOnce() -> Result<N, NodeError>,
) -> Result<N, NodeError> {
    world::enter_background(BACKGROUND);
    let opened = open()?;
    world.leave_background();
    announce(node, layout)?;
    Ok(opened)
}

/// The node's bell.
///
/// # Errors
/// If none is available.
pub fn listen(node: NodeId, layout: &Layout, kind: BellKind) -> Result<Bell, NodeError> {
    let bells = Bells::create(&layout.run()).map_err(std::io::Error::other);
    let listening = bells.and_then(|all| all.listen(bells::of(node), kind));
    listening.map_err(NodeError::io("listening to the bell"))
}

/// Says that the node is up: its process id, in `run/NODE.pid`.
///
/// # Errors
/// If it cannot be written.
pub fn announce(node: NodeId, layout: &Layout) -> Result<(), NodeError> {
    let line = format!("{}\n", std::process::id());
    pares_os::replace_file_unsynced(&layout.pid(node), line.as_bytes())
        .map_err(NodeError::io("announcing the node"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_runs_once() {
        let dir = tempfile::tempdir().unwrap();
        let (node, layout) = (NodeId::Gateway(GatewayId(0)), Layout::new(dir.path()));
        std::fs::create_dir(layout.run()).unwrap();
        let first = claim(node, &layout).unwrap();
        assert!(claim(node, &layout).unwrap_err().to_string().contains("gateway-0 runs already"));
        drop(first);
        claim(node, &layout).unwrap();
    }

    #[test]
    fn gateway_without_operators_socket_serves_members() {
        let (dir, id) = (tempfile::tempdir().unwrap(), GatewayId(0));
        let layout = Layout::new(dir.path());
        std::fs::create_dir(layout.run()).unwrap();
        let bell = listen(NodeId::Gateway(id), &layout, sockets::BELL).unwrap();
        std::fs::create_dir(layout.operators_socket(id)).unwrap();
        let sockets = RealSockets::listen("127.0.0.1:0".parse().unwrap(), &bell, None).unwrap();
        let mut sockets = sockets.with_operators(id, &layout);
        let _client = std::net::TcpStream::connect(sockets.address()).unwrap();
        assert!(matches!(sockets.accept(), Ok(sockets::RealStream::Tcp(_))));
        assert!(sockets.accept_operator().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
    }
}
