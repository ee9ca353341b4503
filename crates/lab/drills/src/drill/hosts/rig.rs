//! Hosts on this machine, the load on them, and one kill.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_config::{HostConfig, InstrumentConfig};
use pares_load::{LabError, Load, LoadPlan, Observed, Rate, Records, Spread, Stretch, own_program, setup};
use pares_node::{Layout, NodeId, Supervisor, SystemConfig, hosts};
use pares_os::CountersReader;
use pares_types::{HostId, VenueId};
use rustix::process::Signal;

use super::{Args, Outcome, WINDOW, not_in_time, percentile_ms};
use crate::drill::diverge::Trace;
use crate::drill::record::{LoadNotes, agreement};

/// How long a host may take to be in step.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_micros(500);
/// How long the load runs before anything counts.
const WARM_UP: Duration = Duration::from_millis(1_000);

/// Hosts with a load on them.
pub(super) struct HostRig {
    config: SystemConfig,
    layouts: Vec<Layout>,
    /// By host; none while it is dead.
    hosts: Vec<Option<Supervisor>>,
    load: Load,
    records: Records<LoadNotes>,
    found: Found,
    /// Removed in the end, unless the operator named it.
    dir: Option<PathBuf>,
}

/// What the rounds gave, nanoseconds.
#[derive(Default)]
struct Found {
    gaps: Vec<u64>,
    quiet: Vec<u64>,
    moved: Vec<u64>,
    back: Vec<u64>,
    elections: u64,
    needless: u64,
}

impl HostRig {
    pub(super) fn start(args: &Args) -> Result<Self, LabError> {
        let config = config(args)?;
        let name = format!("pares-hosts-{}", std::process::id());
        let root = args.dir.clone().unwrap_or_else(|| std::env::temp_dir().join(name));
        let layouts: Vec<Layout> =
            config.hosts.iter().map(|host| Layout::new(root.join(&host.name))).collect();
        hosts::make(&layouts, &config)?;
        let start = |layout: &Layout| start(layout, &config).map(Some);
        let hosts = layouts.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let plan = LoadPlan::new(&config, config.gateways.clone(), Rate::PerSecond(args.rate));
        let plan = LoadPlan { seed: args.seed, resume: true, members: 2 * plan.members, ..plan };
        let records = Records::new(&layouts[0], &config, LoadNotes::of(&plan));
        let load = Load::start(plan)?;
        let dir = args.dir.is_none().then_some(root);
        let mut rig = Self { config, layouts, hosts, load, records, found: Found::default(), dir };
        rig.until("the first answer", |rig| Ok(rig.observed().completed.load(Ordering::Relaxed) > 0))?;
        rig.pause(WARM_UP)?;
        rig.observed().forget_latencies();
        Ok(rig)
    }

    /// A quiet stretch, the death of the host that leads, and its return.
    pub(super) fn round(&mut self, round: u64) -> Result<(), LabError> {
        // Not in step with anything: a multiplicative hash of the round number.
        self.pause(Duration::from_micros(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48))?;
        let victim = self.leader()?;
        self.forget_gaps();
        self.pause(WINDOW)?;
        let quiet = self.gap_of_others(victim);
        self.found.quiet.push(quiet);
        self.observed().enter(Stretch::Disturbed);
        self.forget_gaps();
        self.kill(victim)?;
        self.pause(WINDOW)?;
        let gap = self.gap_of_others(victim);
        self.found.gaps.push(gap);
        self.bring_back(victim)?;
        self.observed().enter(Stretch::Quiet);
        Ok(())
    }

    fn kill(&mut self, victim: HostId) -> Result<(), LabError> {
        self.count_elections(victim);
        let mut supervisor = self.hosts[usize::from(victim.0)].take().expect("only living hosts are killed");
        let nodes = supervisor.nodes();
        nodes.iter().for_each(|&node| supervisor.hold(node, true));
        nodes.iter().try_for_each(|&node| supervisor.signal(node, Signal::KILL))?;
        // Its file of addresses must not look like that of a host that is up.
        drop(supervisor);
        Ok(())
    }

    fn bring_back(&mut self, victim: HostId) -> Result<(), LabError> {
        let (begun, place) = (Instant::now(), usize::from(victim.0));
        self.hosts[place] = Some(start(&self.layouts[place], &self.config)?);
        self.until("a host that was killed", |rig| Ok(rig.is_in_step(victim)))?;
        self.found.back.push(begun.elapsed().as_nanos() as u64);
        self.observed().recall(true);
        self.until("a member", |rig| Ok(rig.observed().away.load(Ordering::Relaxed) == 0))?;
        self.observed().recall(false);
        let moved = self.observed().take_gap_max_ns_of(place);
        self.found.moved.push(moved);
        Ok(())
    }

    /// Whether the host's venue has executed about what the others' have.
    fn is_in_step(&self, host: HostId) -> bool {
        let executed = |host: HostId| {
            let name = NodeId::Venue(VenueId(host.0.into())).to_string();
            let counters = CountersReader::open(&self.layouts[usize::from(host.0)].counters(&name)).ok()?;
            let positions = counters.iter().filter(|(name, _)| name.starts_with("position-"));
            Some((counters.get("resynced")?, positions.map(|(_, position)| position).sum::<u64>()))
        };
        let furthest = self.config.host_ids().filter_map(executed).map(|(_, at)| at).max();
        executed(host).is_some_and(|(resynced, at)| resynced == 1 && at + 1_000 >= furthest.unwrap_or(0))
    }

    /// The host whose orderer leads.
    fn leader(&mut self) -> Result<HostId, LabError> {
        let mut leader = None;
        self.until("a leader", |rig| {
            let leads = |host: &HostId| rig.counter_of(*host, "leads") == 1;
            leader = rig.config.host_ids().find(leads);
            Ok(leader.is_some())
        })?;
        leader.ok_or_else(|| not_in_time("a leader"))
    }

    fn counter_of(&self, host: HostId, counter: &str) -> u64 {
        let name = NodeId::Orderer(host).to_string();
        let counters = CountersReader::open(&self.layouts[usize::from(host.0)].counters(&name));
        counters.ok().and_then(|counters| counters.get(counter)).unwrap_or_default()
    }

    /// Counters do not survive their host.
    fn count_elections(&mut self, host: HostId) {
        self.found.elections += self.counter_of(host, "elections");
        self.found.needless += self.counter_of(host, "needless");
    }

    fn observed(&self) -> &Observed {
        self.load.observed()
    }

    fn forget_gaps(&self) {
        (0..self.hosts.len()).for_each(|gateway| _ = self.observed().take_gap_max_ns_of(gateway));
    }

    fn gap_of_others(&self, victim: HostId) -> u64 {
        let others = (0..self.hosts.len()).filter(|&gateway| gateway != usize::from(victim.0));
        others.map(|gateway| self.observed().take_gap_max_ns_of(gateway)).max().unwrap_or(0)
    }

    fn pause(&mut self, stretch: Duration) -> Result<(), LabError> {
        let begun = Instant::now();
        while begun.elapsed() < stretch {
            self.look_after()?;
            std::thread::sleep(LOOK.min(stretch.saturating_sub(begun.elapsed())));
        }
        Ok(())
    }

    fn look_after(&mut self) -> Result<(), LabError> {
        for death in self.hosts.iter_mut().flatten().flat_map(Supervisor::tick) {
            let complaint = death.complaint.unwrap_or_default();
            pares_text::aside!("{} ended ({}): {complaint}", death.node, death.how);
        }
        self.load.goes_on()
    }

    fn until(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&mut Self) -> Result<bool, LabError>,
    ) -> Result<(), LabError> {
        let begun = Instant::now();
        while !is_so(self)? {
            if begun.elapsed() > PATIENCE {
                return Err(not_in_time(what));
            }
            self.pause(LOOK)?;
        }
        Ok(())
    }

    /// Ends the load, and holds the recorders' logs, as one host has them, against each other and what was answered.
    pub(super) fn finish(mut self) -> Result<Outcome, LabError> {
        self.config.host_ids().for_each(|host| self.count_elections(host));
        let Self { mut hosts, mut records, load, found, dir, .. } = self;
        let observed = load.finish()?;
        let first = hosts[0].as_mut().expect("all hosts are back");
        let agreed = agreement(&mut records, first, &observed, &Trace::default())?;
        drop(hosts);
        let removed = dir.map_or(Ok(()), std::fs::remove_dir_all);
        removed.map_err(LabError::io("removing the hosts' directory"))?;
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let p99 = |stretch| observed.latencies(stretch).value_at_quantile(0.99) as f64 / 1e3;
        let (quiet_p99_us, disturbed_p99_us) = (p99(Stretch::Quiet), p99(Stretch::Disturbed));
        let Found { mut gaps, mut quiet, mut moved, back, elections, needless } = found;
        Ok(Outcome {
            drill: "kill-host",
            hosts: u8::try_from(self.layouts.len()).expect("at most nine"),
            count: gaps.len(),
            lost: observed.in_flight(),
            duplicated: load(&observed.duplicated) + agreed.executed_twice,
            sent_again: load(&observed.retried),
            acknowledged_lost: agreed.acknowledged_lost,
            records_differing: agreed.differing,
            records: agreed.records,
            p50_gap_ms: percentile_ms(&mut gaps, 50),
            p99_gap_ms: percentile_ms(&mut gaps, 99),
            max_gap_ms: percentile_ms(&mut gaps, 100),
            quiet_p50_gap_ms: percentile_ms(&mut quiet, 50),
            quiet_max_gap_ms: percentile_ms(&mut quiet, 100),
            moved_p50_gap_ms: percentile_ms(&mut moved, 50),
            moved_max_gap_ms: percentile_ms(&mut moved, 100),
            elections,
            needless_elections: needless,
            quiet_p99_us,
            disturbed_p99_us,
            others_p99_ratio: disturbed_p99_us / quiet_p99_us,
            back_ms: Spread::of(back, 1e6).map_or(0.0, |all| all.median),
            completed: load(&observed.completed),
        })
    }
}

fn start(layout: &Layout, config: &SystemConfig) -> Result<Supervisor, LabError> {
    Ok(Supervisor::start_armed(&own_program()?, layout.clone(), config, &[])?)
}

/// A system over that many hosts, at free ports.
fn config(args: &Args) -> Result<SystemConfig, LabError> {
    let count = u16::from(args.hosts);
    let mut config = SystemConfig {
        durability: args.durability,
        venues: count,
        recorders: count,
        quorum: count / 2 + 1,
        gateways: Vec::new(),
        instruments: (1..=args.symbols).map(setup::instrument).collect::<Vec<InstrumentConfig>>(),
        ..SystemConfig::default()
    };
    for id in 0..args.hosts {
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
    let [first, second, third] = all.each_ref().map(TcpListener::local_addr);
    let failed = LabError::io("asking for a port");
    (|| Ok([first?, second?, third?]))().map_err(failed)
}
