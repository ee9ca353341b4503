//! `pares bench checkpoint`: do clients notice that a venue takes a checkpoint of a large state, or joins with one?
//!
//! ```text
//!  fill: resting orders      round:  quiet ... | a checkpoint is under way | kill -9 of a venue ... it has caught up    x rounds
//!  through the gateway               quiet_p99 | checkpoint_p99            | join_p99
//! ```
//! It waits until every shard has a checkpoint of after the filling before it begins. Checkpoints are not asked for: venues take
//! them as they always do, and their counters say when (`checkpointing` is 1 meanwhile, `checkpoint_bytes` counts up). They are
//! looked at every millisecond, and each latency is filed under what was under way when the answer came. Half a second behind
//! each disturbance belongs to it: recorders verify and name the file then.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_config::{DurabilitySetting, InstrumentConfig};
use pares_load::{
    Killer, LabError, LabResult, Load, LoadPlan, Rate, ScratchSystem, Stolen, Stretch, Venues,
    check_patience, failed, none_of, print_figures, setup::durability,
};
use pares_node::checkpoints::{self, StoredCheckpoint};
use pares_node::{HostWorld, Layout, NodeId, SystemConfig};
use pares_os::CountersReader;
use pares_text::progress;
use pares_types::{Position, ShardId, VenueId};
use serde::Serialize;

use self::filling::fill;
use crate::experiment::stage::median;

mod filling;

/// Bytes of a plain order in a checkpoint.
const ORDER_BYTES: u64 = 64;
/// What still belongs to a disturbance.
const AFTERMATH: Duration = Duration::from_millis(500);
/// How long a checkpoint or a join may be waited for.
const PATIENCE: Duration = Duration::from_secs(900);

/// Arguments of `pares bench checkpoint`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// MiB of state: plain resting orders, 64 bytes each in a checkpoint
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=16_384))]
    state_mib: u64,
    /// Requests per second during the measurement
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
    /// Rounds; the figures are their medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Least quiet time in each round, seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    quiet_seconds: u64,
    /// Number of instruments
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    symbols: u32,
    /// Number of shards; each checkpoint covers one
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    shards: u16,
    /// What an answer survives: `os` the death of processes, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = durability)]
    durability: DurabilitySetting,
    /// The directory for the system's files [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the benchmark gave. Times in microseconds are latencies from the scheduled send time.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// The newest checkpoints of all shards, as stored.
    pub state_mib: f64,
    /// Resting orders entered first.
    pub orders: u64,
    /// How long that took, seconds.
    pub fill_s: f64,
    /// Nothing going on: median over the rounds.
    pub quiet_p50_us: f64,
    /// The same, 99th percentile.
    pub quiet_p99_us: f64,
    /// While a venue took a checkpoint.
    pub checkpoint_p50_us: f64,
    /// The same, 99th percentile.
    pub checkpoint_p99_us: f64,
    /// From the kill of a venue until it had caught up.
    pub join_p50_us: f64,
    /// The same, 99th percentile.
    pub join_p99_us: f64,
    /// How long a checkpoint was under way: median.
    pub checkpoint_ms: f64,
    /// From the kill until it had caught up: median.
    pub join_ms: f64,
    /// Of that, processor time that the host of a virtual machine did not give it, of all processors together: median.
    pub join_stolen_ms: f64,
    /// Checkpoints seen under way.
    pub checkpoints: u64,
    /// MiB the venues handed out as checkpoints meanwhile.
    pub checkpoint_mib: f64,
    /// Checkpoints the recorders could not store.
    pub checkpoint_failures: u64,
    /// Requests sent and never answered.
    pub lost: u64,
    /// The 99th percentile of each round: quiet, checkpoint, join.
    pub rounds_p99_us: Vec<[f64; 3]>,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If the system does not come up, a checkpoint or a join does not come to its end, or something was lost.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    print_figures(args.json, &figures);
    none_of([(figures.lost, "requests lost")])
}

impl Args {
    fn orders(&self) -> u64 {
        (self.state_mib << 20) / ORDER_BYTES
    }

    fn config(&self) -> SystemConfig {
        let orders_each = u32::try_from(self.orders() / u64::from(self.symbols)).unwrap_or(u32::MAX / 4);
        let instrument = |id: u32| InstrumentConfig {
            shard: Some((id % u32::from(self.shards)) as u16),
            orders_max: orders_each.saturating_mul(2).max(20_000),
            ..InstrumentConfig::new(id, &format!("SYM{id}"))
        };
        SystemConfig {
            durability: self.durability,
            // A gateway remembers every name, and must not run out of them before the end.
            names_max: SystemConfig::default().names_max + self.orders() as usize,
            gateways: vec![([127, 0, 0, 1], 0).into()],
            instruments: (1..=self.symbols).map(instrument).collect(),
            ..SystemConfig::default()
        }
    }
}

fn measure(args: &Args) -> Result<Figures, LabError> {
    let mut system = ScratchSystem::start(&args.config(), args.dir.clone())?;
    let begun = Instant::now();
    let orders = fill(args, &mut system)?;
    let mut figures = Figures { orders, fill_s: begun.elapsed().as_secs_f64(), ..Figures::default() };
    let mut plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::PerSecond(args.rate));
    plan.first_client_order_id = orders + 1;
    plan.resting_orders = 50;
    let mut watch = Watch::new(system, Load::start(plan)?)?;
    watch.settle()?;
    watch.take_percentiles()?;
    watch.bytes_handed_out = 0;
    watch.checkpoints.clear();
    let bar = progress::steps("rounds", args.rounds);
    let (mut rounds, mut joins, mut stolen) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..args.rounds {
        watch.see_checkpoints(Duration::from_secs(args.quiet_seconds))?;
        let kept = Stolen::begin();
        joins.push(watch.see_join(VenueId((round % 2) as u16))?);
        stolen.push(kept.ms());
        rounds.push(watch.take_percentiles()?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let of = |phase: usize, which: usize| median(rounds.iter().map(|round| round[phase][which]));
    [figures.quiet_p50_us, figures.checkpoint_p50_us, figures.join_p50_us] = [0, 1, 2].map(|at| of(at, 0));
    [figures.quiet_p99_us, figures.checkpoint_p99_us, figures.join_p99_us] = [0, 1, 2].map(|at| of(at, 1));
    figures.rounds_p99_us = rounds.iter().map(|round| round.map(|[_, p99]| p99)).collect();
    figures.join_ms = median(joins.iter().map(|took| took.as_secs_f64() * 1e3));
    figures.join_stolen_ms = median(stolen);
    watch.conclude(&mut figures)?;
    Ok(figures)
}

/// A system under load, watched.
struct Watch {
    system: ScratchSystem,
    world: HostWorld,
    load: Load,
    venues: Venues,
    /// Each venue's counters, and the bytes it had handed out when last looked at.
    counters: Vec<(VenueId, Option<CountersReader>, u64)>,
    bytes_handed_out: u64,
    /// Since when a checkpoint is under way.
    under_way: Option<Instant>,
    /// Until when the last one is not over.
    aftermath: Instant,
    /// How long each took that was seen to its end.
    checkpoints: Vec<Duration>,
    ticked: Instant,
}

impl Watch {
    fn new(system: ScratchSystem, load: Load) -> Result<Self, LabError> {
        let (layout, config) = (system.supervisor.layout(), system.supervisor.config());
        let (venues, now) = (Venues::new(layout, config), Instant::now());
        Ok(Self {
            counters: config.venue_ids().map(|id| (id, None, 0)).collect(),
            world: HostWorld::new(layout)?,
            system,
            load,
            venues,
            bytes_handed_out: 0,
            under_way: None,
            aftermath: now,
            checkpoints: Vec::new(),
            ticked: now,
        })
    }

    /// A look at everything, and a short sleep. Whether a checkpoint is under way.
    fn look(&mut self) -> Result<bool, LabError> {
        std::thread::sleep(Duration::from_millis(1));
        let now = Instant::now();
        if now - self.ticked > Duration::from_millis(10) {
            self.ticked = now;
            self.system.supervisor.tick();
        }
        if self.load.is_finished() {
            return Err(LabError::Failed("the load ended early: a connection was lost".into()));
        }
        let taking = self.read_counters();
        match (taking, self.under_way) {
            (true, None) => self.under_way = Some(now),
            (false, Some(since)) => {
                self.under_way = None;
                self.aftermath = now + AFTERMATH;
                self.checkpoints.push(now - since);
            }
            _ => {}
        }
        Ok(taking || now < self.aftermath)
    }

    /// Whether a venue says that it takes a checkpoint.
    fn read_counters(&mut self) -> bool {
        let layout = self.system.supervisor.layout();
        let mut taking = false;
        for (id, counters, bytes) in &mut self.counters {
            let path = layout.counters(&NodeId::Venue(*id).to_string());
            if counters.is_none() {
                *counters = CountersReader::open(&path).ok();
            }
            let Some(counters) = counters else { continue };
            let now = counters.get("checkpoint_bytes").unwrap_or_default();
            self.bytes_handed_out += now.saturating_sub(std::mem::replace(bytes, now));
            taking |= counters.get("checkpointing").is_some_and(|taking| taking > 0);
        }
        taking
    }

    /// Until every shard has a checkpoint of after now: the state grew faster than it usually does, and what would have to be
    /// replayed shows that.
    fn settle(&mut self) -> LabResult {
        let shards: Vec<ShardId> = self.system.supervisor.config().shards()?.into_keys().collect();
        let layout = self.system.supervisor.layout();
        let counters = CountersReader::open(&layout.counters(&NodeId::Venue(VenueId(0)).to_string()));
        let counters = counters.map_err(failed("reading the counters of a venue"))?;
        let now = |shard: &ShardId| counters.get(&format!("position-{shard}")).unwrap_or_default();
        let targets: Vec<Position> = shards.iter().map(|shard| Position(now(shard))).collect();
        let bar = progress::steps("settling", shards.len() as u64);
        let begun = Instant::now();
        loop {
            let covered = |&(shard, target): &(&ShardId, &Position)| {
                self.newest(*shard).is_some_and(|newest| newest.position() >= *target)
            };
            let done = shards.iter().zip(&targets).filter(covered).count();
            bar.set_position(done as u64);
            if done == shards.len() {
                bar.finish_and_clear();
                return Ok(());
            }
            (0..100).try_for_each(|_| self.look().map(|_| ()))?;
            check_patience(begun, PATIENCE, "not every shard had a new checkpoint")?;
        }
    }

    /// The newest checkpoint of a shard at any recorder.
    fn newest(&self, shard: ShardId) -> Option<StoredCheckpoint> {
        let config = self.system.supervisor.config();
        let of = |id| checkpoints::checkpoints(&self.world, &Layout::new("").checkpoints(id), shard);
        config.recorder_ids().filter_map(|id| of(id).ok()).flatten().max_by_key(StoredCheckpoint::position)
    }

    /// Until so much time was quiet and a checkpoint was seen from its beginning to its end.
    fn see_checkpoints(&mut self, quiet: Duration) -> LabResult {
        let (begun, before) = (Instant::now(), self.checkpoints.len());
        let (mut seen, mut last) = (Duration::ZERO, begun);
        while seen < quiet || self.checkpoints.len() == before {
            let disturbed = self.look()?;
            self.load.observed().enter(if disturbed { Stretch::Disturbed } else { Stretch::Quiet });
            let now = Instant::now();
            seen += if disturbed { Duration::ZERO } else { now - last };
            last = now;
            check_patience(begun, PATIENCE, "no checkpoint was seen to its end between quiet times")?;
        }
        Ok(())
    }

    /// Kills the venue and waits until it has caught up: how long that took.
    fn see_join(&mut self, victim: VenueId) -> Result<Duration, LabError> {
        self.load.observed().enter(Stretch::Resync);
        let begun = Instant::now();
        let mut killer = Killer::new(PATIENCE);
        killer.kill(&mut self.system.supervisor, victim)?;
        while killer.awaits_death_of(victim) {
            for death in self.system.supervisor.tick() {
                killer.on_death(&death);
            }
            std::thread::yield_now();
            check_patience(begun, PATIENCE, "a venue that was killed is not dead")?;
        }
        let took = loop {
            match killer.returns(&self.system.supervisor, &self.venues)?.first() {
                Some(back) => break back.away,
                None => _ = self.look()?,
            }
        };
        let counters =
            self.counters.iter_mut().find(|(id, ..)| *id == victim).expect("a venue of the system");
        (counters.1, counters.2) = (None, 0);
        let over = Instant::now();
        while over.elapsed() < AFTERMATH {
            self.look()?;
        }
        Ok(took)
    }

    /// Median and 99th percentile, microseconds, of what was quiet, under a checkpoint, at a join; forgets them.
    fn take_percentiles(&mut self) -> Result<[[f64; 2]; 3], LabError> {
        // The generator hands latencies over every 50 ms.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(100) {
            self.look()?;
        }
        let observed = self.load.observed();
        let taken = [Stretch::Quiet, Stretch::Disturbed, Stretch::Resync].map(|phase| {
            let latencies: Histogram<u64> = observed.latencies(phase);
            [0.5, 0.99].map(|quantile| latencies.value_at_quantile(quantile) as f64 / 1e3)
        });
        observed.forget_latencies();
        Ok(taken)
    }

    /// Ends the load and says what was stored, and what was lost.
    fn conclude(self, figures: &mut Figures) -> LabResult {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let shards = self.system.supervisor.config().shards()?;
        let bytes = |shard| self.newest(shard).map_or(0, |newest| newest.bytes());
        figures.state_mib = shards.into_keys().map(|shard| mib(bytes(shard))).sum();
        figures.lost = self.load.finish()?.in_flight();
        figures.checkpoint_mib = mib(self.bytes_handed_out);
        figures.checkpoints = self.checkpoints.len() as u64;
        figures.checkpoint_ms = median(self.checkpoints.iter().map(|took| took.as_secs_f64() * 1e3));
        let (layout, config) = (self.system.supervisor.layout(), self.system.supervisor.config());
        for recorder in config.recorder_ids().map(NodeId::Recorder) {
            let counters = CountersReader::open(&layout.counters(&recorder.to_string()));
            let failures = counters.ok().and_then(|counters| counters.get("checkpoint_failures"));
            figures.checkpoint_failures += failures.unwrap_or_default();
        }
        Ok(())
    }
}
