//! One drill under way: the system, its load, and a round of quiet and fault.

use std::time::{Duration, Instant};

use pares_load::{Killer, LabError, Load, LoadPlan, Observed, Records, ScratchSystem, Stretch, Venues};
use pares_node::NodeId;
use pares_types::{GatewayId, RecorderId};

use super::figures::{Figures, Samples};
use super::flood::Flooder;
use super::record::{self, LoadNotes};
use super::{Args, FaultKind, disk, diverge, everything, flood, gateway, poison, recorder, venue};

/// The stretch after a fault, or after nothing, in which the longest gap is sought.
pub(super) const WINDOW: Duration = Duration::from_millis(40);
/// How long what was hit may take to be back.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at whether it is.
const LOOK: Duration = Duration::from_micros(500);
/// Room that a small disk has for each round, and to begin with.
const ROUND_MIB: u64 = 24;
/// How long the load runs before anything counts.
const WARM_UP: Duration = Duration::from_millis(500);

/// A drill under way.
pub(super) struct Drill {
    fault: FaultKind,
    pub(super) system: ScratchSystem,
    pub(super) venues: Venues,
    pub(super) killer: Killer,
    pub(super) records: Records<LoadNotes>,
    pub(super) samples: Samples,
    pub(super) flooder: Flooder,
    load: Load,
}

impl Drill {
    /// Starts the system and the load.
    pub(super) fn start(args: &Args) -> Result<Self, LabError> {
        let system = start(args)?;
        let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, args.load.rate);
        let (layout, config) = (system.supervisor.layout(), system.supervisor.config());
        let resume = args.fault().cuts_connections();
        let members =
            if args.fault() == FaultKind::Flood { flood::MEMBERS.max(plan.members) } else { plan.members };
        let plan = LoadPlan { seed: args.load.seed, resume, members, ..plan };
        let (venues, records) =
            (Venues::new(layout, config), Records::new(layout, config, LoadNotes::of(&plan)));
        let flooder = Flooder::new(&plan);
        let load = Load::start(plan)?;
        let samples = Samples::default();
        let mut drill = Self {
            fault: args.fault(),
            system,
            venues,
            killer: Killer::default(),
            records,
            samples,
            flooder,
            load,
        };
        drill.pause(WARM_UP)?;
        drill.observed().forget_latencies();
        Ok(drill)
    }

    /// A quiet stretch, then the fault.
    pub(super) fn round(&mut self, args: &Args, round: u64) -> Result<(), LabError> {
        // Not in step with anything in the system: a multiplicative hash of the round number.
        let jitter_us = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50;
        self.pause(Duration::from_micros(jitter_us))?;
        self.venues.leading();
        let quiet = self.quiet(args, round)?;
        self.samples.baseline.push(quiet);
        self.observed().enter(Stretch::Disturbed);
        let gap = self.deal(args, round)?;
        self.samples.gaps.push(gap);
        self.observed().enter(Stretch::Quiet);
        Ok(())
    }

    /// The longest gap in a quiet stretch, of the same members as in the fault that follows.
    fn quiet(&mut self, args: &Args, round: u64) -> Result<u64, LabError> {
        self.observed().take_gap_max_ns();
        match self.fault {
            FaultKind::KillGateway => gateway::quiet(self, self.gateway(round)),
            FaultKind::Flood => self.longest_gap(Duration::from_millis(args.flood_ms)),
            FaultKind::FillDisk | FaultKind::SlowDisk => {
                self.longest_gap(Duration::from_millis(args.stop_ms))
            }
            _ => self.longest_gap(WINDOW),
        }
    }

    /// The gateway whose turn it is.
    fn gateway(&self, round: u64) -> GatewayId {
        let gateways = self.system.supervisor.config().gateways.len();
        GatewayId(nth(round, u16::try_from(gateways).expect("checked: at most 16")))
    }

    /// Causes the fault, waits until what was hit is back, and gives the longest gap since.
    fn deal(&mut self, args: &Args, round: u64) -> Result<u64, LabError> {
        let recorders = self.system.supervisor.config().recorders;
        match self.fault {
            FaultKind::KillVenue => venue::kill(self),
            FaultKind::StopVenue => venue::stop(self, Duration::from_millis(args.stop_ms)),
            FaultKind::SlowVenue => venue::slow(self, Duration::from_millis(args.stop_ms)),
            FaultKind::KillRecorder => recorder::kill(self, RecorderId(nth(round, recorders))),
            FaultKind::KillGateway => gateway::kill(self, self.gateway(round)),
            FaultKind::Flood => flood::flood(self, Duration::from_millis(args.flood_ms)),
            FaultKind::KillEverything => everything::kill(self),
            FaultKind::FillDisk => {
                disk::fill(self, RecorderId(recorders - 1), Duration::from_millis(args.stop_ms))
            }
            FaultKind::SlowDisk => disk::slow(
                self,
                RecorderId(nth(round, recorders)),
                Duration::from_millis(args.slow_ms),
                Duration::from_millis(args.stop_ms),
            ),
            FaultKind::Poison => poison::poison(self, round),
            FaultKind::Diverge => diverge::diverge(self, args.rate()),
            FaultKind::WipeRecorder => recorder::wipe(self, RecorderId(nth(round, recorders))),
        }
    }

    /// What the load sees.
    pub(super) fn observed(&self) -> &Observed {
        self.load.observed()
    }

    /// Lets what was hit come back: until `back` says so. Gives the longest gap meanwhile.
    ///
    /// # Errors
    /// If it takes too long.
    pub(super) fn wait_until(
        &mut self,
        what: &str,
        mut back: impl FnMut(&mut Self) -> Result<bool, LabError>,
    ) -> Result<u64, LabError> {
        let begun = Instant::now();
        let mut gap = 0;
        while !back(self)? {
            gap = gap.max(self.longest_gap(LOOK)?);
            if begun.elapsed() > PATIENCE {
                return Err(LabError::Failed(format!("{what} did not come back")));
            }
        }
        Ok(gap)
    }

    /// Waits until a killed node is known to be dead, so that nobody takes its last state for that of its successor.
    pub(super) fn wait_until_dead(&mut self, role: NodeId) -> Result<u64, LabError> {
        self.wait_until(&format!("the death of {role}"), |drill| Ok(!drill.system.supervisor.is_up(role)))
    }

    /// The longest time between two answers in the next `stretch`.
    pub(super) fn longest_gap(&mut self, stretch: Duration) -> Result<u64, LabError> {
        self.pause(stretch)?;
        Ok(self.observed().take_gap_max_ns())
    }

    /// Lets time pass while looking after the system.
    pub(super) fn pause(&mut self, stretch: Duration) -> Result<(), LabError> {
        let Self { system, killer, load, .. } = self;
        system.pass(stretch, |deaths| {
            deaths.iter().for_each(|death| _ = killer.on_death(death));
            load.goes_on()
        })
    }

    /// Ends the load, and holds the recorders' logs against each other and against what was answered.
    pub(super) fn finish(self) -> Result<Figures, LabError> {
        let Self { fault, mut system, mut records, samples, load, .. } = self;
        let observed = load.finish()?;
        let agreed = record::agreement(&mut records, &mut system.supervisor, &observed, &samples.trace)?;
        Ok(Figures::new(fault, samples, &observed, agreed))
    }
}

/// Starts the system, with the last recorder on a small disk if that is to be filled.
fn start(args: &Args) -> Result<ScratchSystem, LabError> {
    let (config, dir) = (args.config(), args.load.dir.clone());
    match args.fault() {
        FaultKind::FillDisk => {
            let mib = ROUND_MIB.saturating_mul(args.count().saturating_add(1));
            ScratchSystem::start_on_small_disk(&config, dir, RecorderId(config.recorders - 1), mib)
        }
        FaultKind::Poison => ScratchSystem::start_armed(&config, dir, &poison::arms()),
        _ => ScratchSystem::start(&config, dir),
    }
}

/// The node whose turn it is in that round.
fn nth(round: u64, nodes: u16) -> u16 {
    u16::try_from(round % u64::from(nodes)).expect("below a u16")
}
