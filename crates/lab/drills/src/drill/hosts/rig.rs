//! Hosts with a load on them, and one kill.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pares_load::{LabError, Load, LoadPlan, Observed, Rate, Records, ScratchHosts, Spread, Stretch, setup};
use pares_node::{NodeId, SystemConfig};
use pares_os::CountersReader;
use pares_types::{HostId, VenueId};

use super::{Args, Outcome, WINDOW, not_in_time, percentile_ms};
use crate::drill::diverge::Trace;
use crate::drill::record::{LoadNotes, agreement};

/// How long a host may take to be in step.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_micros(500);
/// How long the load runs before anything counts.
const WARM_UP: Duration = Duration::from_millis(1_000);
/// How long members may take to return to a host that is back.
const HOME_MAX: Duration = Duration::from_secs(5);
/// Positions that a venue in step may be behind the furthest.
const BEHIND_MAX: u64 = 1_000;

/// Hosts with a load on them.
pub(super) struct HostRig {
    hosts: ScratchHosts,
    load: Load,
    records: Records<LoadNotes>,
    found: Found,
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
        let settings = SystemConfig {
            durability: args.durability,
            instruments: (1..=args.symbols).map(setup::instrument).collect(),
            ..SystemConfig::default()
        };
        let hosts = ScratchHosts::start(args.hosts, settings, args.dir.clone())?;
        let config = &hosts.config;
        let plan = LoadPlan::new(config, config.gateways.clone(), Rate::PerSecond(args.rate));
        let plan = LoadPlan { seed: args.seed, resume: true, members: 2 * plan.members, ..plan };
        let records = Records::new(hosts.layout(HostId(0)), config, LoadNotes::of(&plan));
        let load = Load::start(plan)?;
        let mut rig = Self { hosts, load, records, found: Found::default() };
        rig.until("the first answer", |rig| Ok(rig.observed().completed.load(Ordering::Relaxed) > 0))?;
        rig.pause(WARM_UP)?;
        rig.observed().forget_latencies();
        Ok(rig)
    }

    /// A quiet stretch, the death of the host that leads, and its return.
    pub(super) fn round(&mut self, round: u64) -> Result<(), LabError> {
        // Not in step with anything: a multiplicative hash of the round number.
        self.pause(Duration::from_micros(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48))?;
        let mut leader = None;
        self.until("a leader", |rig| {
            leader = rig.hosts.leader();
            Ok(leader.is_some())
        })?;
        let victim = leader.ok_or_else(|| not_in_time("a leader"))?;
        self.forget_gaps();
        let quiet = self.gap_of_others(victim)?;
        self.found.quiet.push(quiet);
        self.observed().enter(Stretch::Disturbed);
        self.count_elections(victim);
        self.forget_gaps();
        self.hosts.kill(victim)?;
        let gap = self.gap_of_others(victim)?;
        self.found.gaps.push(gap);
        self.bring_back(victim)?;
        self.observed().enter(Stretch::Quiet);
        Ok(())
    }

    fn bring_back(&mut self, victim: HostId) -> Result<(), LabError> {
        let begun = Instant::now();
        self.hosts.bring_back(victim)?;
        self.until("a host that was killed", |rig| Ok(rig.is_in_step(victim)))?;
        self.found.back.push(begun.elapsed().as_nanos() as u64);
        self.observed().recall(true);
        // On a machine that is overloaded a member always has something open, and stays where it is.
        let begun = Instant::now();
        while self.observed().away.load(Ordering::Relaxed) > 0 && begun.elapsed() < HOME_MAX {
            self.pause(LOOK)?;
        }
        self.observed().recall(false);
        let moved = self.observed().take_gap_max_ns_of(victim.0.into());
        self.found.moved.push(moved);
        Ok(())
    }

    /// Whether the host's venue has executed about what the others' have.
    fn is_in_step(&self, host: HostId) -> bool {
        let executed = |host: HostId| {
            let name = NodeId::Venue(VenueId(host.0.into())).to_string();
            let counters = CountersReader::open(&self.hosts.layout(host).counters(&name)).ok()?;
            let positions = counters.iter().filter(|(name, _)| name.starts_with("position-"));
            Some((counters.get("resynced")?, positions.map(|(_, position)| position).sum::<u64>()))
        };
        let furthest = self.hosts.config.host_ids().filter_map(executed).map(|(_, at)| at).max();
        executed(host).is_some_and(|(resynced, at)| resynced == 1 && at + BEHIND_MAX >= furthest.unwrap_or(0))
    }

    /// Counters do not survive their host.
    fn count_elections(&mut self, host: HostId) {
        let counter = |name| self.hosts.counter(NodeId::Orderer(host), name);
        let (elections, needless) = (counter("elections"), counter("needless"));
        self.found.elections += elections;
        self.found.needless += needless;
    }

    fn observed(&self) -> &Observed {
        self.load.observed()
    }

    fn forget_gaps(&self) {
        (0..self.hosts.config.hosts.len()).for_each(|at| _ = self.observed().take_gap_max_ns_of(at));
    }

    /// The longest gap in the next stretch, of the members of all hosts but one.
    fn gap_of_others(&mut self, victim: HostId) -> Result<u64, LabError> {
        self.pause(WINDOW)?;
        let others = self.hosts.config.host_ids().filter(|&host| host != victim);
        let gap = others.map(|host| self.observed().take_gap_max_ns_of(host.0.into())).max();
        Ok(gap.unwrap_or(0))
    }

    fn pause(&mut self, stretch: Duration) -> Result<(), LabError> {
        let begun = Instant::now();
        while begun.elapsed() < stretch {
            for death in self.hosts.tick() {
                let complaint = death.complaint.unwrap_or_default();
                pares_text::aside!("{} ended ({}): {complaint}", death.node, death.how);
            }
            self.load.goes_on()?;
            std::thread::sleep(LOOK.min(stretch.saturating_sub(begun.elapsed())));
        }
        Ok(())
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
        self.hosts.config.host_ids().for_each(|host| self.count_elections(host));
        let Self { mut hosts, mut records, load, found, .. } = self;
        let observed = load.finish()?;
        let agreed = agreement(&mut records, hosts.supervisor(HostId(0)), &observed, &Trace::default())?;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let us = |stretch, part| observed.latencies(stretch).value_at_quantile(part) as f64 / 1e3;
        let (quiet_p99_us, disturbed_p99_us) = (us(Stretch::Quiet, 0.99), us(Stretch::Disturbed, 0.99));
        let Found { mut gaps, mut quiet, mut moved, back, elections, needless } = found;
        Ok(Outcome {
            drill: "kill-host",
            hosts: hosts.config.hosts.len(),
            count: gaps.len(),
            lost: observed.in_flight(),
            duplicated: load(&observed.duplicated),
            executed_twice: agreed.executed_twice,
            sent_again: load(&observed.retried),
            rejected: load(&observed.rejected),
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
            quiet_p50_us: us(Stretch::Quiet, 0.5),
            quiet_p99_us,
            disturbed_p99_us,
            others_p99_ratio: disturbed_p99_us / quiet_p99_us,
            back_ms: Spread::of(back, 1e6).map_or(0.0, |all| all.median),
            completed: load(&observed.completed),
        })
    }
}
