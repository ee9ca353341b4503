//! A system under load, with its two venues in view.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_config::DurabilitySetting;
use pares_load::{LabError, Load, LoadPlan, Observed, Rate, ScratchSystem, Stretch, setup};
use pares_node::{NodeId, SystemConfig};
use pares_os::CountersReader;
use pares_types::VenueId;

/// How long a load runs before anything is measured.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long a venue may take to be in step.
const PATIENCE: Duration = Duration::from_secs(30);

/// The system of an experiment, in the paper's terms: two venues, and two recorders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Requests per second.
    pub rate: Rate,
    /// Instruments, each a total order of its own.
    pub symbols: u32,
    /// Gateways, each with a member of its own.
    pub gateways: u16,
    /// Whether the venues agree through the window.
    pub sequencer: bool,
    /// What an answer promises.
    pub durability: DurabilitySetting,
    /// Positions between checkpoints; `None`: as the system has by default.
    pub checkpoint_every: Option<u64>,
}

impl Setting {
    /// One gateway, sequencer on, `os`.
    pub fn new(requests_per_second: u64, symbols: u32) -> Self {
        Self {
            rate: Rate::PerSecond(requests_per_second),
            symbols,
            gateways: 1,
            sequencer: true,
            durability: DurabilitySetting::Os,
            checkpoint_every: None,
        }
    }

    fn config(&self) -> SystemConfig {
        let args = setup::Args {
            rate: self.rate,
            seconds: 0,
            gateways: self.gateways,
            venues: 2,
            recorders: 2,
            symbols: self.symbols,
            shards: None,
            sequencer: self.sequencer,
            durability: self.durability,
            in_flight: 2_048,
            seed: 1,
            dir: None,
            json: false,
        };
        let config = args.config();
        SystemConfig { checkpoint_every: self.checkpoint_every.unwrap_or(config.checkpoint_every), ..config }
    }
}

/// Latencies and throughput of one run, microseconds.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Sample {
    /// Answers per second.
    pub throughput: f64,
    /// Mean latency from the scheduled send time.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// The worst.
    pub max_us: f64,
}

/// A system under load.
pub(crate) struct Stage {
    /// The system.
    pub system: ScratchSystem,
    /// What is sent to it.
    pub load: Load,
}

impl Stage {
    /// Starts the system and the load, and lets it run for a moment: what it sees until now counts as
    /// [`Stretch::Disturbed`], from now on as quiet.
    ///
    /// # Errors
    /// If the system does not come up.
    pub fn start(setting: &Setting) -> Result<Self, LabError> {
        let system = ScratchSystem::start(&setting.config(), None)?;
        let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, setting.rate);
        let load = Load::start(plan)?;
        load.observed().enter(Stretch::Disturbed);
        let mut stage = Self { system, load };
        stage.pause(WARM_UP)?;
        stage.load.observed().enter(Stretch::Quiet);
        Ok(stage)
    }

    /// Lets time pass while looking after the system.
    ///
    /// # Errors
    /// If a gateway or the load was lost.
    pub fn pause(&mut self, stretch: Duration) -> Result<(), LabError> {
        self.pause_until(Instant::now() + stretch)
    }

    /// As [`Stage::pause`], until an instant.
    ///
    /// # Errors
    /// As [`Stage::pause`].
    pub fn pause_until(&mut self, until: Instant) -> Result<(), LabError> {
        let Self { system, load } = self;
        system.pass(until.saturating_duration_since(Instant::now()), |_| load.goes_on())
    }

    /// The counters of a venue that runs.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn counters(&self, venue: VenueId) -> Result<CountersReader, LabError> {
        let path = self.system.supervisor.layout().counters(&NodeId::Venue(venue).to_string());
        CountersReader::open(&path)
            .map_err(|error| LabError::Failed(format!("the counters of venue-{venue}: {error}")))
    }

    /// How long a venue that was started took to be in step, by its own clock. It may take a moment to say so.
    ///
    /// # Errors
    /// If it does not.
    pub fn resync_ms(&mut self, venue: VenueId) -> Result<f64, LabError> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.counters(venue).ok().and_then(|counters| counters.get("resync_us")) {
                Some(us) if us > 0 => return Ok(us as f64 / 1e3),
                // A venue that died once more while it joined is started again.
                _ => self.pause(Duration::from_micros(100))?,
            }
        }
        Err(LabError::Failed(format!("venue-{venue} does not say that it has joined")))
    }

    /// Stops the load and waits for the last answers.
    ///
    /// # Errors
    /// If a connection was lost, or a request, or one was answered twice.
    pub fn finish(self) -> Result<Arc<Observed>, LabError> {
        let observed = self.load.finish()?;
        let figures = crate::bench::end_to_end::Figures::of(&observed, 1.0);
        match (figures.lost, figures.duplicated) {
            (0, 0) => Ok(observed),
            (lost, duplicated) => Err(LabError::Failed(format!("{lost} lost, {duplicated} duplicated"))),
        }
    }
}

/// Requests a venue has worked through since it started: executed on its own account or taken from the record.
pub fn processed(venue: &CountersReader) -> u64 {
    venue.get("executed").unwrap_or_default() + venue.get("observed").unwrap_or_default()
}

/// Runs a load on a fresh system for `time` and gives its latencies.
///
/// # Errors
/// If the system does not come up, or loses something.
pub fn latencies(setting: &Setting, time: Duration) -> Result<(Sample, Histogram<u64>), LabError> {
    let mut stage = Stage::start(setting)?;
    let completed =
        |stage: &Stage| stage.load.observed().completed.load(std::sync::atomic::Ordering::Relaxed);
    let (before, begun) = (completed(&stage), Instant::now());
    stage.pause(time)?;
    let throughput = (completed(&stage) - before) as f64 / begun.elapsed().as_secs_f64();
    let latencies = stage.finish()?.latencies(Stretch::Quiet);
    let us = |ns: u64| ns as f64 / 1e3;
    let sample = Sample {
        throughput,
        mean_us: latencies.mean() / 1e3,
        p50_us: us(latencies.value_at_quantile(0.5)),
        p99_us: us(latencies.value_at_quantile(0.99)),
        max_us: us(latencies.max()),
    };
    Ok((sample, latencies))
}

/// The middle of some values; 0 of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

impl Sample {
    /// The median of each figure over several runs.
    pub fn median(of: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> f64| median(of.iter().map(figure));
        Self {
            throughput: middle(|s| s.throughput),
            mean_us: middle(|s| s.mean_us),
            p50_us: middle(|s| s.p50_us),
            p99_us: middle(|s| s.p99_us),
            max_us: middle(|s| s.max_us),
        }
    }
}
