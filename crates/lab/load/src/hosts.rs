//! A system of several hosts on this machine, for the length of one command: each has a directory, an address of its own (127.0.0.1, .2, ...) and a supervisor.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use pares_config::HostConfig;
use pares_node::supervisor::Death;
use pares_node::{Layout, NodeId, Supervisor, SystemConfig, hosts};
use pares_os::CountersReader;
use pares_types::HostId;
use rustix::process::Signal;

use crate::error::LabError;
use crate::system::own_program;

/// Hosts that run here.
pub struct ScratchHosts {
    /// The system's settings.
    pub config: SystemConfig,
    layouts: Vec<Layout>,
    /// By host; none while it is dead.
    supervisors: Vec<Option<Supervisor>>,
    /// Removed in the end, unless the caller named it.
    scratch: Option<PathBuf>,
}

impl ScratchHosts {
    /// Starts so many hosts with these settings, each with a gateway, a venue and a recorder, in `dir` or where temporary files go.
    ///
    /// # Errors
    /// If one does not come up.
    pub fn start(count: u8, settings: SystemConfig, dir: Option<PathBuf>) -> Result<Self, LabError> {
        let config = over(count, settings)?;
        let keep = dir.is_some();
        let name = format!("pares-hosts-{}", std::process::id());
        let root = dir.unwrap_or_else(|| std::env::temp_dir().join(name));
        let layouts: Vec<Layout> =
            config.hosts.iter().map(|host| Layout::new(root.join(&host.name))).collect();
        hosts::make(&layouts, &config)?;
        let supervisors = layouts.iter().map(|_| None).collect();
        let mut all = Self { config, layouts, supervisors, scratch: (!keep).then_some(root) };
        all.config.host_ids().try_for_each(|host| all.bring_back(host))?;
        Ok(all)
    }

    /// Where a host's files lie.
    #[must_use]
    pub fn layout(&self, host: HostId) -> &Layout {
        &self.layouts[usize::from(host.0)]
    }

    /// Who runs a host.
    ///
    /// # Panics
    /// If it is dead.
    pub fn supervisor(&mut self, host: HostId) -> &mut Supervisor {
        self.supervisors[usize::from(host.0)].as_mut().expect("the host lives")
    }

    /// Kills all of a host's processes at once; they stay dead.
    ///
    /// # Errors
    /// If one does not run.
    ///
    /// # Panics
    /// If it is dead.
    pub fn kill(&mut self, host: HostId) -> Result<(), LabError> {
        let mut supervisor = self.supervisors[usize::from(host.0)].take().expect("the host lives");
        let nodes = supervisor.nodes();
        nodes.iter().for_each(|&node| supervisor.hold(node, true));
        Ok(nodes.iter().try_for_each(|&node| supervisor.signal(node, Signal::KILL))?)
    }

    /// Starts a dead host.
    ///
    /// # Errors
    /// If its nodes do not come up.
    pub fn bring_back(&mut self, host: HostId) -> Result<(), LabError> {
        let layout = self.layout(host).clone();
        let started = Supervisor::start_armed(&own_program()?, layout, &self.config, &[])?;
        self.supervisors[usize::from(host.0)] = Some(started);
        Ok(())
    }

    /// Replaces processes that died by themselves, at all hosts.
    pub fn tick(&mut self) -> Vec<Death> {
        self.supervisors.iter_mut().flatten().flat_map(Supervisor::tick).collect()
    }

    /// A counter of a node, dead or alive; 0 if it has none.
    #[must_use]
    pub fn counter(&self, node: NodeId, counter: &str) -> u64 {
        let Some(host) = self.config.host_of(node) else { return 0 };
        let counters = CountersReader::open(&self.layout(host).counters(&node.to_string()));
        counters.ok().and_then(|counters| counters.get(counter)).unwrap_or_default()
    }

    /// The host whose orderer leads, if one does.
    #[must_use]
    pub fn leader(&self) -> Option<HostId> {
        let lives = |host: &HostId| self.supervisors[usize::from(host.0)].is_some();
        let leads = |host: &HostId| lives(host) && self.counter(NodeId::Orderer(*host), "leads") == 1;
        self.config.host_ids().find(leads)
    }
}

impl Drop for ScratchHosts {
    fn drop(&mut self) {
        self.supervisors.clear();
        // What cannot be removed now is reported by nobody: the command has its result already.
        let _ = self.scratch.take().map(std::fs::remove_dir_all);
    }
}

/// Those settings, over that many hosts at free ports.
fn over(count: u8, settings: SystemConfig) -> Result<SystemConfig, LabError> {
    let nodes = u16::from(count);
    let (gateways, hosts) = (Vec::new(), Vec::new());
    let mut config =
        SystemConfig { venues: nodes, recorders: nodes, quorum: nodes / 2 + 1, gateways, hosts, ..settings };
    for id in 0..count {
        let [gateway, orders, mirror] = free_ports(Ipv4Addr::new(127, 0, 0, id + 1).into())?;
        config.gateways.push(gateway);
        config.hosts.push(HostConfig {
            name: char::from(b'a' + id).to_string(),
            orders,
            mirror,
            gateways: vec![id.into()],
            venues: vec![id.into()],
            recorder: id.into(),
            publishers: Vec::new(),
            replayers: Vec::new(),
        });
    }
    Ok(config)
}

/// Three ports that nobody listens at.
fn free_ports(address: IpAddr) -> Result<[SocketAddr; 3], LabError> {
    let listen = || TcpListener::bind((address, 0)).map_err(LabError::io("looking for free ports"));
    let all = [listen()?, listen()?, listen()?];
    let at = |listener: &TcpListener| listener.local_addr().map_err(LabError::io("asking for a port"));
    Ok([at(&all[0])?, at(&all[1])?, at(&all[2])?])
}
