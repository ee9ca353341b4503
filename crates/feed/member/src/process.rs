//! A member server as a process: its duty cycle on a directory and sockets.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pares_config::{Layout, SystemConfig, bells};
use pares_node::sockets::{BELL, RealSockets, connections_within_limits};
use pares_node::{HostWorld, NodeError, duty};
use pares_os::{Bell, Bells};
use pares_roles::World;
use pares_roles::world::Ring;
use pares_types::{GatewayId, ShardId};

use crate::config::{MemberConfig, submissions};
use crate::reports::CopiedTo;
use crate::server::MemberServer;
use crate::server::PEERS_MAX;
use crate::sources::Sources;
use crate::world::{MemberSockets, address_file};
use crate::{market, reports};

/// A member server on this host.
pub type HostServer = MemberServer<HostWorld, MemberSockets>;

/// Where a member's system has its settings.
#[must_use]
pub fn config_file(layout: &Layout) -> std::path::PathBuf {
    layout.root().join("member.toml")
}

/// Opens a server in this process, and its bell.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn open(server: u16, layout: &Layout) -> Result<(HostServer, Bell), NodeError> {
    let mut config = MemberConfig::load(&config_file(layout))?;
    config.traders_max = connections_within_limits(config.traders_max, PEERS_MAX, "traders_max");
    if server >= config.count() {
        return Err(NodeError::Refused(format!("there is no server {server} in member.toml")));
    }
    let world = HostWorld::new(layout)?;
    let all = Bells::create(&layout.run()).map_err(std::io::Error::other);
    let bell = all.and_then(|all| all.listen(bells::of(submissions(server)), BELL));
    let bell = bell.map_err(NodeError::io("listening to the bell"))?;
    // The exchange's sockets know where a gateway listens; a server has a gateway's place among them.
    let system = SystemConfig { gateways: config.servers.clone(), ..SystemConfig::default() };
    let sockets = RealSockets::open(GatewayId(server), &system, layout, &bell).map_err(cannot_listen)?;
    let group = config.groups.get(usize::from(server)).copied();
    let sockets = MemberSockets::new(sockets, layout.clone(), (group, config.groups_interface));
    let sockets = sockets.map_err(NodeError::io("opening a socket for the server's group"))?;
    Ok((MemberServer::open(server, &config, world, sockets)?, bell))
}

/// Says which setting of a member's system chooses the address.
fn cannot_listen(error: NodeError) -> NodeError {
    match error {
        NodeError::Listen { address, source, .. } => NodeError::Refused(format!(
            "cannot listen at {address} ({source}): change `servers` in member.toml, or `pares member up --port` at the first start"
        )),
        error => error,
    }
}

/// Runs a server until `stop` is set.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run_with(
    server: u16,
    layout: &Layout,
    sources: Sources,
    stop: &Arc<AtomicBool>,
) -> Result<(), NodeError> {
    let (duty, bell) = open(server, layout)?;
    serve(server, layout, (duty.with_sources(sources), bell), stop)
}

fn serve(
    server: u16,
    layout: &Layout,
    (mut duty, mut bell): (HostServer, Bell),
    stop: &Arc<AtomicBool>,
) -> Result<(), NodeError> {
    let pid = format!("{}\n", std::process::id());
    pares_os::replace_file_unsynced(&layout.pid(submissions(server)), pid.as_bytes())
        .map_err(NodeError::io("announcing the server"))?;
    duty::run(&mut duty, &mut bell, stop, |server, bell, max| {
        server.poll_sockets(max)?;
        bell.cancel();
        bell.drain();
        Ok(())
    })
}

/// Runs a server until a signal stops the process, with the sources that its settings name.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run(server: u16, layout: &Layout) -> Result<(), NodeError> {
    let stop = pares_os::process::stop_on_signals().map_err(NodeError::io("installing a signal handler"))?;
    let (mut duty, bell) = open(server, layout)?;
    let config = MemberConfig::load(&config_file(layout))?;
    let world = HostWorld::new(layout)?;
    let sources = sources(server, &config, &world, |shard| duty.copied_to(shard))?;
    serve(server, layout, (duty.with_sources(sources), bell), &stop)
}

/// What the settings name.
fn sources(
    server: u16,
    config: &MemberConfig,
    world: &HostWorld,
    mut copied_to: impl FnMut(ShardId) -> Result<CopiedTo, NodeError>,
) -> Result<Sources, NodeError> {
    let mut sources = Sources::default();
    if let Some(market) = &config.market {
        let (mut ringer, world) = (world.ringer(), world.clone());
        let ring = move || ringer.ring(submissions(server));
        let received = market::receive(market, ring, move |why| world.complain(&why));
        sources.market = Some(received.map_err(NodeError::io("receiving market data"))?);
    }
    if let Some(exchange) = &config.exchange {
        let shards = exchange.shards.iter().map(|&shard| ShardId(shard));
        let shards = shards.map(|shard| Ok((shard, copied_to(shard)?))).collect::<Result<_, NodeError>>()?;
        let (mut ringer, world) = (world.ringer(), world.clone());
        let ring = move || ringer.ring(submissions(server));
        let copied = reports::copy(exchange, server, shards, ring, move |why| world.complain(&why));
        sources.reports = Some(Box::new(copied.map_err(NodeError::io("copying the exchange's reports"))?));
    }
    Ok(sources)
}

/// Forgets where a server listened, so that no trader connects there before it listens again.
pub(crate) fn forget_pid(layout: &Layout, server: u16) {
    let _ = std::fs::remove_file(layout.pid(submissions(server)));
}

/// Whether a process has announced itself as this server.
#[must_use]
pub fn announced(layout: &Layout, server: u16) -> Option<u32> {
    let text = std::fs::read_to_string(layout.pid(submissions(server))).ok()?;
    text.trim().parse().ok().filter(|_| address_file(layout, server).exists())
}
