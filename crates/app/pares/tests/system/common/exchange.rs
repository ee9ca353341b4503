//! A system in a directory of its own, and harm to it.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use pares_client::{Client, ClientError, Options, Tls};
use pares_config::{FeedConfig, InstrumentConfig};
use pares_node::supervisor::Death;
use pares_node::{Layout, NodeId, Supervisor, SystemConfig, keys};
use pares_os::CountersReader;
use pares_types::{GatewayId, MemberId, RecorderId, VenueId};
use rustix::process::Signal;
use tempfile::TempDir;

use super::eventually;
use super::process::{Ran, pares};

pub(crate) use crate::PROGRAM;

pub(crate) fn gateway(id: u16) -> NodeId {
    NodeId::Gateway(GatewayId(id))
}

pub(crate) fn venue(id: u16) -> NodeId {
    NodeId::Venue(VenueId(id))
}

pub(crate) fn recorder(id: u16) -> NodeId {
    NodeId::Recorder(RecorderId(id))
}

/// A small system: `gateways` gateways on ports of the system's choice, two venues, two recorders, three
/// instruments of which the first two share a shard.
pub(crate) fn small(gateways: usize) -> SystemConfig {
    let instrument = |id, symbol: &str, shard| InstrumentConfig {
        shard: Some(shard),
        orders_max: 2_000,
        ..InstrumentConfig::new(id, symbol)
    };
    SystemConfig {
        window: 4_096,
        checkpoint_every: 512,
        names_max: 1 << 18,
        // How long a machine may be busy elsewhere decides no test; what a hypervisor takes counts as processor time.
        quorum_patience_ms: 0,
        wait_target_ms: 0,
        engine_budget_ms: 1_000,
        segment_mib: 2,
        gateways: vec![SocketAddr::from(([127, 0, 0, 1], 0)); gateways],
        instruments: vec![instrument(1, "ALFA", 0), instrument(2, "BRAVO", 0), instrument(3, "CHARLIE", 1)],
        ..SystemConfig::default()
    }
}

/// The same system with market data: two publishers, on lines of free ports, and two replayers.
pub(crate) fn with_feed(config: SystemConfig) -> SystemConfig {
    let shards = u16::try_from(config.shards().unwrap().len()).unwrap();
    let [line_a, line_b] = [0, 1].map(|_| free_line(shards));
    let replayers = vec![SocketAddr::from(([127, 0, 0, 1], 0)); 2];
    SystemConfig { feed: Some(FeedConfig { line_a, line_b, replayers, ..FeedConfig::default() }), ..config }
}

/// An address whose port and those above it, one for each shard, are nobody's.
fn free_line(shards: u16) -> SocketAddr {
    let is_free = |port| UdpSocket::bind(("127.0.0.1", port)).is_ok();
    // Ports that the system gives to nobody by itself, other ones each time.
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() as u16).wrapping_mul(53);
    let ports = std::iter::repeat_with(|| {
        20_000 + own.wrapping_add(NEXT.fetch_add(shards, Ordering::Relaxed)) % 12_000
    });
    let mut lines = ports.take(1_000);
    let port = lines.find(|&port| (port..port + shards).all(is_free)).expect("some ports are free");
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A running system.
pub(crate) struct Exchange {
    /// None if the system is stopped, or another process runs it.
    supervisor: Option<Supervisor>,
    config: SystemConfig,
    layout: Layout,
    /// Whether the dead stay dead.
    looking_away: bool,
    /// Kept until the last user of the directory is gone.
    dir: Arc<TempDir>,
}

impl Exchange {
    /// Starts a new system.
    pub(crate) fn start(config: &SystemConfig) -> Self {
        Self::start_armed(config, &[])
    }

    /// Starts the system in that directory, new or not.
    pub(crate) fn start_in(dir: Arc<TempDir>, config: &SystemConfig) -> Self {
        let mut exchange = Self::watch(dir, config);
        exchange.start_again();
        exchange
    }

    /// Starts a new system of which every node has these variables in its environment.
    pub(crate) fn start_armed(config: &SystemConfig, arms: &[(&'static str, String)]) -> Self {
        let mut exchange = Self::watch(Arc::new(tempfile::tempdir().unwrap()), config);
        exchange.launch(arms);
        exchange
    }

    /// The system in that directory, which another process starts and stops.
    pub(crate) fn watch(dir: Arc<TempDir>, config: &SystemConfig) -> Self {
        let layout = Layout::new(dir.path());
        Self { supervisor: None, config: config.clone(), layout, looking_away: false, dir }
    }

    /// Stops everything as Ctrl-C does.
    pub(crate) fn stop(&mut self) {
        self.supervisor.take().expect("it runs").stop().unwrap();
    }

    /// Starts a stopped system again.
    pub(crate) fn start_again(&mut self) {
        self.launch(&[]);
    }

    fn launch(&mut self, arms: &[(&'static str, String)]) {
        let started = Supervisor::start_armed(Path::new(PROGRAM), self.layout.clone(), &self.config, arms);
        self.supervisor = Some(started.unwrap_or_else(|error| panic!("{error}\n{}", self.complaints())));
        self.wait_until_up();
    }

    pub(crate) fn supervisor(&mut self) -> &mut Supervisor {
        self.supervisor.as_mut().expect("it runs")
    }

    pub(crate) fn config(&self) -> &SystemConfig {
        &self.config
    }

    /// The system's directory.
    pub(crate) fn dir(&self) -> Arc<TempDir> {
        Arc::clone(&self.dir)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn roles(&self) -> Vec<NodeId> {
        NodeId::all(&self.config)
    }

    /// Where the gateways listen.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.layout, &self.config)
    }

    /// A member signed on at a gateway.
    pub(crate) fn client(&self, gateway: u16, member: u32) -> Client {
        self.connect(gateway, member, self.tls()).unwrap()
    }

    /// The same, believing and showing what `tls` says.
    pub(crate) fn connect(&self, gateway: u16, member: u32, tls: Option<Tls>) -> Result<Client, ClientError> {
        let options = Options { tls, ..Options::default() };
        Client::connect_with(self.addresses()[usize::from(gateway)], MemberId(member), options)
    }

    /// What the operator shows and believes.
    pub(crate) fn tls(&self) -> Option<Tls> {
        keys::operator(&self.layout, &self.config).unwrap().map(Tls::believing)
    }

    /// Restarts what is dead. To be called often while something may die.
    pub(crate) fn tick(&mut self) {
        if self.looking_away {
            return;
        }
        let Some(supervisor) = &mut self.supervisor else { return };
        let deaths = supervisor.tick();
        let shut_out = |role| self.supervisor.as_ref().is_some_and(|system| system.is_shut_out(role));
        // A node whose log another cannot read ends to repair it.
        let repairs = |death: &Death| death.complaint.as_ref().is_some_and(|line| line.contains("repair"));
        let excused = |death: &Death| death.how.contains("SIGKILL") || shut_out(death.node) || repairs(death);
        let by_itself = deaths.iter().find(|death| !excused(death));
        assert_eq!(by_itself, None, "a node died that nobody killed:\n{}", self.complaints());
    }

    /// From now on the dead stay dead, or are restarted again.
    pub(crate) fn look_away(&mut self, looking_away: bool) {
        self.looking_away = looking_away;
    }

    /// kill -9. Whether it was running.
    pub(crate) fn kill(&mut self, role: NodeId) -> bool {
        self.supervisor().signal(role, Signal::KILL).is_ok()
    }

    /// kill -9, and another one is there in its place. A dead one is noticed in some turn, not at once.
    pub(crate) fn replace(&mut self, role: NodeId) {
        let before = self.supervisor().restarts();
        assert!(self.kill(role));
        eventually("it is replaced", || {
            self.tick();
            self.supervisor().restarts() > before
        });
        self.wait_until_up();
    }

    /// Stops a node where it stands (SIGSTOP).
    pub(crate) fn freeze(&mut self, role: NodeId) {
        self.supervisor().signal(role, Signal::STOP).unwrap();
    }

    /// Lets a stopped node continue.
    pub(crate) fn thaw(&mut self, role: NodeId) {
        self.supervisor().signal(role, Signal::CONT).unwrap();
    }

    /// Waits until every node runs.
    pub(crate) fn wait_until_up(&mut self) {
        eventually("every node is up", || {
            self.tick();
            let Some(supervisor) = &self.supervisor else { return true };
            supervisor.missing().is_empty()
        });
    }

    /// What a counter of a node stands at.
    pub(crate) fn counter(&self, role: NodeId, name: &str) -> u64 {
        let counters = CountersReader::open(&self.layout.counters(&role.to_string())).unwrap();
        counters.get(name).unwrap_or_else(|| panic!("{role} has no counter {name}"))
    }

    /// Runs `pares` beside it.
    pub(crate) fn pares(&self, arguments: &str) -> Ran {
        pares(self.layout.root(), arguments)
    }

    /// What the nodes wrote to their standard error.
    pub(crate) fn complaints(&self) -> String {
        let read = |role: &NodeId| std::fs::read_to_string(self.layout.complaints(*role)).unwrap_or_default();
        self.roles().iter().map(|role| format!("--- {role}\n{}", read(role))).collect()
    }
}

/// Where the gateways of a system listen.
pub(crate) fn addresses(layout: &Layout, config: &SystemConfig) -> Vec<SocketAddr> {
    let address = |id| std::fs::read_to_string(layout.gateway_address(id)).unwrap().trim().parse().unwrap();
    config.gateway_ids().map(address).collect()
}
