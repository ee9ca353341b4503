//! `pares drill`: does anybody notice when the leading venue dies, or stops and wakes again?
//!
//! ```text
//!  | quiet: 40 ms | kill at a random instant, 40 ms without it | replacement starts ... is back | quiet | kill ...
//!    longest gap    longest gap                                  latencies "resync"
//!    = baseline     = the figure                                 and longest gap, into the figure too
//! ```
//! Quiet stretches of the same length lie between the kills of the same run, so the baseline has seen the same
//! machine in the same minutes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use pares_node::Role;
use pares_types::VenueId;
use rustix::process::Signal;
use serde::Serialize;

use crate::commands::bench::end_to_end;
use crate::error::{CommandError, CommandResult};
use crate::load::{Load, LoadPlan, Phase, Rate};
use crate::progress;
use crate::system::ScratchSystem;
use crate::venues::Venues;

/// The stretch after a kill, or after nothing, in which the longest gap is sought.
const WINDOW: Duration = Duration::from_millis(40);
/// How long a venue may take to be back.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is done to the leading venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Blow {
    /// Kill it with SIGKILL
    KillVenue,
    /// Stop it with SIGSTOP, let it sleep, and wake it
    StopVenue,
}

/// Arguments of `pares drill`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// What to do to the leading venue
    blow: Blow,
    /// How often
    #[arg(long, default_value_t = 100)]
    count: u64,
    /// How long a stopped venue sleeps, milliseconds
    #[arg(long, default_value_t = 200)]
    stop_ms: u64,
    /// The load and the system; see `pares bench end-to-end --help`
    #[command(flatten)]
    load: end_to_end::Args,
}

/// What a drill gave.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Blows dealt.
    pub count: usize,
    /// Longest time between two answers around a blow, over all blows.
    pub max_gap_ms: f64,
    /// The median of the blows' longest gaps.
    pub median_gap_ms: f64,
    /// Longest gap in the quiet stretches.
    pub baseline_max_gap_ms: f64,
    /// The median of the quiet stretches' longest gaps.
    pub baseline_median_gap_ms: f64,
    /// Requests sent and never answered.
    pub lost: u64,
    /// Answers beyond the first.
    pub duplicated: u64,
    /// Requests the client had to send again.
    pub client_retries: u64,
    /// Requests a gateway did not take in.
    pub rejected: u64,
    /// Median time for a venue to resynchronise: from the start of its process, milliseconds.
    pub resync_ms: f64,
    /// The longest.
    pub resync_max_ms: f64,
    /// Median latency in the quiet stretches, microseconds.
    pub quiet_p50_us: f64,
    /// 99th percentile in the quiet stretches.
    pub quiet_p99_us: f64,
    /// Median latency while a venue is dead or stopped.
    pub disturbed_p50_us: f64,
    /// 99th percentile then.
    pub disturbed_p99_us: f64,
    /// Median latency while a venue comes back and resynchronises.
    pub resync_p50_us: f64,
    /// 99th percentile then.
    pub resync_p99_us: f64,
    /// Requests answered in all.
    pub completed: u64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or something was lost or answered twice.
pub fn run(args: &Args) -> CommandResult {
    let figures = measure(args)?;
    if args.load.json {
        println!("{}", serde_json::to_string(&figures).expect("figures are plain numbers"));
    } else {
        print(args, &figures);
    }
    match (figures.lost, figures.duplicated) {
        (0, 0) => Ok(()),
        (lost, duplicated) => Err(CommandError::Failed(format!("{lost} lost, {duplicated} duplicated"))),
    }
}

/// Runs the drill.
///
/// # Errors
/// If the system does not come up, or a venue does not come back.
pub fn measure(args: &Args) -> Result<Figures, CommandError> {
    if args.load.venues < 2 {
        return Err(CommandError::Usage("a drill needs at least two venues: one must be left".into()));
    }
    if !matches!(args.load.rate, Rate::PerSecond(_)) {
        return Err(CommandError::Usage(
            "a drill needs a fixed --rate, so that a gap means something".into(),
        ));
    }
    let system = ScratchSystem::start(&args.load.config(), args.load.dir.clone())?;
    let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, args.load.rate);
    let venues = Venues::new(system.supervisor.layout(), system.supervisor.config());
    let load = Load::start(LoadPlan { seed: args.load.seed, ..plan })?;
    let mut drill =
        Drill { system, venues, load, gaps: Vec::new(), baseline: Vec::new(), resyncs: Vec::new() };
    drill.pause(Duration::from_millis(500))?;
    let bar = progress::steps("drilling", args.count);
    for round in 0..args.count {
        drill.round(args, round)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    drill.finish()
}

struct Drill {
    system: ScratchSystem,
    venues: Venues,
    load: Load,
    gaps: Vec<u64>,
    baseline: Vec<u64>,
    resyncs: Vec<u64>,
}

impl Drill {
    fn round(&mut self, args: &Args, round: u64) -> Result<(), CommandError> {
        // Not in step with anything in the system: a multiplicative hash of the round number.
        let jitter_us = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50;
        self.pause(Duration::from_micros(jitter_us))?;
        self.venues.leading();
        let quiet = self.longest_gap(WINDOW)?;
        self.baseline.push(quiet);
        let victim = self.venues.leading();
        self.load.observed().enter(Phase::Disturbed);
        let gap = match args.blow {
            Blow::KillVenue => self.kill(victim)?,
            Blow::StopVenue => self.stop(victim, Duration::from_millis(args.stop_ms))?,
        };
        self.gaps.push(gap);
        self.load.observed().enter(Phase::Quiet);
        Ok(())
    }

    fn kill(&mut self, victim: VenueId) -> Result<u64, CommandError> {
        self.load.observed().take_gap_max_ns();
        self.system.supervisor.hold(Role::Venue(victim), true);
        self.system.supervisor.signal(Role::Venue(victim), Signal::KILL)?;
        let mut gap = self.longest_gap(WINDOW)?;
        self.load.observed().enter(Phase::Resync);
        self.system.supervisor.hold(Role::Venue(victim), false);
        let begun = Instant::now();
        while !self.venues.all_back(&self.system.supervisor) {
            gap = gap.max(self.longest_gap(Duration::from_millis(2))?);
            if begun.elapsed() > PATIENCE {
                return Err(CommandError::Failed(format!("venue-{victim} did not come back")));
            }
        }
        self.resyncs.push(self.venues.state(victim).resync_us);
        Ok(gap)
    }

    fn stop(&mut self, victim: VenueId, asleep: Duration) -> Result<u64, CommandError> {
        self.load.observed().take_gap_max_ns();
        let before = self.venues.state(victim).position;
        self.system.supervisor.signal(Role::Venue(victim), Signal::STOP)?;
        let gap = self.longest_gap(asleep)?;
        self.load.observed().enter(Phase::Resync);
        self.system.supervisor.signal(Role::Venue(victim), Signal::CONT)?;
        let woken = Instant::now();
        let others = self.venues.states().iter().map(|state| state.position).max().unwrap_or(before);
        while self.venues.state(victim).position < others && woken.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(200));
        }
        self.resyncs.push(woken.elapsed().as_micros() as u64);
        Ok(gap.max(self.longest_gap(WINDOW)?))
    }

    /// The longest time between two answers in the next `stretch`.
    fn longest_gap(&mut self, stretch: Duration) -> Result<u64, CommandError> {
        self.pause(stretch)?;
        let observed = self.load.observed();
        Ok(observed.take_gap_max_ns())
    }

    /// Lets time pass while looking after the system.
    fn pause(&mut self, stretch: Duration) -> Result<(), CommandError> {
        let begun = Instant::now();
        loop {
            self.system.supervisor.tick()?;
            if self.load.is_finished() {
                return Err(CommandError::Failed("the load generator ended: a gateway was lost".into()));
            }
            let left = stretch.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
    }

    fn finish(self) -> Result<Figures, CommandError> {
        let Self { load, mut gaps, mut baseline, mut resyncs, .. } = self;
        let observed = load.finish()?;
        let (completed, rejected) =
            (observed.completed.load(Ordering::Relaxed), observed.rejected.load(Ordering::Relaxed));
        let us = |phase, quantile| observed.latencies(phase).value_at_quantile(quantile) as f64 / 1_000.0;
        let ms = |ns: u64| ns as f64 / 1e6;
        Ok(Figures {
            count: gaps.len(),
            median_gap_ms: ms(median(&mut gaps)),
            max_gap_ms: ms(gaps.last().copied().unwrap_or(0)),
            baseline_median_gap_ms: ms(median(&mut baseline)),
            baseline_max_gap_ms: ms(baseline.last().copied().unwrap_or(0)),
            lost: observed.sent.load(Ordering::Relaxed) - completed - rejected,
            duplicated: observed.duplicated.load(Ordering::Relaxed),
            client_retries: observed.retried.load(Ordering::Relaxed),
            rejected,
            resync_ms: median(&mut resyncs) as f64 / 1e3,
            resync_max_ms: resyncs.last().copied().unwrap_or(0) as f64 / 1e3,
            quiet_p50_us: us(Phase::Quiet, 0.5),
            quiet_p99_us: us(Phase::Quiet, 0.99),
            disturbed_p50_us: us(Phase::Disturbed, 0.5),
            disturbed_p99_us: us(Phase::Disturbed, 0.99),
            resync_p50_us: us(Phase::Resync, 0.5),
            resync_p99_us: us(Phase::Resync, 0.99),
            completed,
        })
    }
}

/// Sorts and gives the middle; 0 of nothing.
fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn print(args: &Args, figures: &Figures) {
    let blow = match args.blow {
        Blow::KillVenue => "killed",
        Blow::StopVenue => "stopped and woken",
    };
    println!("the leading venue was {blow} {} times under load", figures.count);
    println!(
        "longest completion gap  {:.2} ms (median {:.2}); without a blow {:.2} ms (median {:.2})",
        figures.max_gap_ms,
        figures.median_gap_ms,
        figures.baseline_max_gap_ms,
        figures.baseline_median_gap_ms
    );
    println!(
        "completed {}, lost {}, duplicated {}, retried by the client {}, rejected {}",
        figures.completed, figures.lost, figures.duplicated, figures.client_retries, figures.rejected
    );
    println!(
        "back in step after {:.1} ms (median), {:.1} ms (longest)",
        figures.resync_ms, figures.resync_max_ms
    );
    println!(
        "latency us  quiet p50 {:.1} p99 {:.1}   without it p50 {:.1} p99 {:.1}   resynchronising p50 {:.1} p99 {:.1}",
        figures.quiet_p50_us,
        figures.quiet_p99_us,
        figures.disturbed_p50_us,
        figures.disturbed_p99_us,
        figures.resync_p50_us,
        figures.resync_p99_us,
    );
}
