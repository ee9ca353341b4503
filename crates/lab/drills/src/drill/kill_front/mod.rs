//! Gateways die under members that speak a standard protocol. The promise: each session goes on at another gateway by its numbers, is told
//! everything once or says so, and those who trade elsewhere notice nothing.
//!
//! ```text
//!  members over FIX, OUCH: trade at gateway 0 | gateway 1 ............ | gateway 0 ............
//!  gateways 0 and 1:              0 killed ... is back      1 killed ... is back
//!  others, binary:       trade at gateway 2, which lives ....................................
//!                        quiet     | disturbed        | quiet | disturbed  | quiet
//! ```
//! In the end the record says what members must have been told, and it is held against what they were told.

mod told;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hdrhistogram::Histogram;
use pares_load::{
    FixPlan, FrontTold, LabError, LabResult, Load, LoadPlan, LoadProtocol, Observed, OuchPlan, Rate, Records,
    ScratchSystem, Stretch, setup,
};
use pares_node::config::SignOnSetting;
use pares_node::{NodeId, SystemConfig};
use pares_text::{grouped, progress};
use pares_types::GatewayId;
use rustix::process::Signal;
use serde::Serialize;

use self::told::FrontNotes;
use super::figures::Spread;

/// Gateways that are killed by turns; one more lives.
const VICTIMS: u16 = 2;
/// Members on either side.
const MEMBERS: u32 = 4;
/// How long the load runs before anything counts, and goes on behind the last blow.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long a session may take to go on, and a gateway to be back.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the members speak whose gateways are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FrontProtocol {
    /// FIX 4.4
    Fix,
    /// OUCH 5.0; nobody proves who he is, and all instruments are of one shard
    Ouch,
}

/// Arguments of `pares drill kill-front`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    /// What the members speak whose gateways are killed
    #[arg(long)]
    protocol: FrontProtocol,
    /// How often a gateway is killed
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// The quiet before each blow, milliseconds
    #[arg(long, default_value_t = 1_000)]
    quiet_ms: u64,
    /// The load, half of it over either protocol, and the system; see `pares bench end-to-end --help`
    #[command(flatten)]
    load: setup::Args,
}

/// What the drill gave.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    protocol: String,
    /// Gateways killed.
    count: usize,
    /// Longest time between two answers to the others around a blow.
    max_gap_ms: f64,
    median_gap_ms: f64,
    /// The same in the quiet stretches.
    baseline_max_gap_ms: f64,
    baseline_median_gap_ms: f64,
    /// Longest time between two answers to the members whose gateway was killed.
    moved_max_gap_ms: f64,
    moved_median_gap_ms: f64,
    /// Requests without a final answer, answered and not recorded, and what is missing.
    lost: u64,
    /// Executions told twice that did not say so, and requests executed twice.
    duplicated: u64,
    /// Events of the record that a member was not told, though its session has gone on and asked.
    resend_missing: u64,
    /// 99th percentile of the others, microseconds: in quiet, and from a kill until that gateway is back.
    others_p99_us_quiet: f64,
    others_p99_us_disturbed: f64,
    /// The second by the first.
    others_p99_ratio: f64,
    /// Requests that no gateway took in.
    rejected: u64,
    /// Requests that members over FIX or OUCH sent again.
    client_retries: u64,
    /// Different executions that they were told; of those, told again and marked so.
    executions: u64,
    told_again: u64,
    /// Gaps in the gateways' numbers that they asked for, over FIX.
    gaps: u64,
    /// Requests answered, over FIX or OUCH and to the others.
    completed: u64,
    others_completed: u64,
    records: u64,
    records_differing: u64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or the promise was broken. How long anything took is for the reader to judge.
pub(super) fn run(args: &Args) -> LabResult {
    let Rate::PerSecond(rate @ 2..) = args.load.rate else {
        return Err(LabError::Usage("this drill needs a fixed --rate, so that a gap means something".into()));
    };
    let mut drill = KillFront::start(args, rate / 2)?;
    if let Err(error) = drill.rounds(args) {
        return Err(drill.why(error));
    }
    let outcome = drill.finish()?;
    if args.load.json {
        pares_text::say!("{}", serde_json::to_string(&outcome).expect("plain numbers"));
    } else {
        print(&outcome);
    }
    match (outcome.lost, outcome.duplicated, outcome.records_differing) {
        (0, 0, 0) => Ok(()),
        (lost, twice, differing) => Err(LabError::Failed(format!(
            "{lost} lost, {twice} told or executed twice, {differing} positions recorded differently"
        ))),
    }
}

fn print(outcome: &Outcome) {
    pares_text::say!(
        "gateways killed under members over {}  {}; sessions went on by their numbers",
        outcome.protocol,
        outcome.count
    );
    pares_text::say!(
        "lost {}, of that missing after the resend {}; twice and not marked so {}",
        outcome.lost,
        outcome.resend_missing,
        outcome.duplicated
    );
    pares_text::say!(
        "told {} executions, {} again and marked so; {} gaps asked for; {} requests sent again",
        grouped(outcome.executions),
        grouped(outcome.told_again),
        outcome.gaps,
        outcome.client_retries
    );
    pares_text::say!(
        "longest time without an answer: those whose gateway was killed {:.1} ms (median {:.1}), the others {:.1} ms ({:.1}); in quiet {:.1} ms ({:.1})",
        outcome.moved_max_gap_ms,
        outcome.moved_median_gap_ms,
        outcome.max_gap_ms,
        outcome.median_gap_ms,
        outcome.baseline_max_gap_ms,
        outcome.baseline_median_gap_ms
    );
    pares_text::say!(
        "the others' p99: quiet {:.1} us, while a gateway is killed and started {:.1} us ({:.2})",
        outcome.others_p99_us_quiet,
        outcome.others_p99_us_disturbed,
        outcome.others_p99_ratio
    );
}

/// The system for it, and where its files are.
fn config(args: &Args) -> (SystemConfig, Option<std::path::PathBuf>) {
    let is_ouch = args.protocol == FrontProtocol::Ouch;
    // A session over OUCH is told one shard's stream, and cannot prove anything.
    let load = setup::Args {
        gateways: VICTIMS + 1,
        symbols: args.load.symbols.max(2),
        shards: if is_ouch { Some(1) } else { args.load.shards },
        ..args.load.clone()
    };
    let config = load.config();
    let sign_on = if is_ouch { SignOnSetting::Open } else { SignOnSetting::Required };
    let (fix, ouch) = match args.protocol {
        FrontProtocol::Fix => (config.gateways.clone(), Vec::new()),
        FrontProtocol::Ouch => (Vec::new(), config.gateways.clone()),
    };
    (SystemConfig { sign_on, fix, ouch, ..config }, load.dir)
}

/// What is offered to the gateways that are killed, and to the one that lives.
fn plans(
    args: &Args,
    rate: u64,
    system: &ScratchSystem,
    told: &Arc<FrontTold>,
) -> Result<[LoadPlan; 2], LabError> {
    let (victims, tally) = (usize::from(VICTIMS), Some(Arc::clone(told)));
    let (addresses, protocol, credentials) = match args.protocol {
        FrontProtocol::Fix => {
            let plan = FixPlan { told: tally, ..FixPlan::default() };
            (system.fix_addresses()?, LoadProtocol::Fix(plan), system.let_in(2 * MEMBERS)?)
        }
        FrontProtocol::Ouch => {
            (system.ouch_addresses()?, LoadProtocol::Ouch(OuchPlan { told: tally }), Vec::new())
        }
    };
    let plan = LoadPlan::new(system.supervisor.config(), Vec::new(), Rate::PerSecond(rate));
    let plan = LoadPlan { members: MEMBERS, seed: args.load.seed, ..plan };
    let (some, rest) = plan.instruments.split_at(plan.instruments.len() / 2);
    let (of_fronts, of_others) = credentials.split_at(credentials.len() / 2);
    let fronts = LoadPlan {
        addresses: addresses[..victims].to_vec(),
        protocol,
        credentials: of_fronts.to_vec(),
        instruments: some.to_vec(),
        resume: true,
        ..plan.clone()
    };
    let others = LoadPlan {
        addresses: system.addresses()?[victims..].to_vec(),
        credentials: of_others.to_vec(),
        first_member: MEMBERS + 1,
        instruments: rest.to_vec(),
        ..plan.clone()
    };
    Ok([fronts, others])
}

/// The drill under way.
struct KillFront {
    protocol: FrontProtocol,
    system: ScratchSystem,
    told: Arc<FrontTold>,
    records: Records<FrontNotes>,
    fronts: Load,
    others: Load,
    gaps: Vec<u64>,
    baseline: Vec<u64>,
    moved: Vec<u64>,
}

impl KillFront {
    fn start(args: &Args, rate: u64) -> Result<Self, LabError> {
        let (config, dir) = config(args);
        let system = ScratchSystem::start(&config, dir)?;
        let told = Arc::<FrontTold>::default();
        let [fronts, others] = plans(args, rate, &system, &told)?;
        let records =
            Records::new(system.supervisor.layout(), system.supervisor.config(), FrontNotes::of(MEMBERS));
        let (fronts, others) = (Load::start(fronts)?, Load::start(others)?);
        let (protocol, gaps) = (args.protocol, Vec::new());
        let (baseline, moved) = (gaps.clone(), gaps.clone());
        Ok(Self { protocol, system, told, records, fronts, others, gaps, baseline, moved })
    }

    fn rounds(&mut self, args: &Args) -> LabResult {
        self.pause(WARM_UP)?;
        self.others.observed().forget_latencies();
        let bar = progress::steps("drilling", args.count);
        for round in 0..args.count {
            self.round(round, Duration::from_millis(args.quiet_ms))?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        self.pause(WARM_UP)
    }

    /// A quiet stretch, then a gateway is killed, its sessions go on at the other, and it comes back.
    fn round(&mut self, round: u64, quiet: Duration) -> LabResult {
        // Not in step with anything in the system: a multiplicative hash of the round number.
        self.pause(Duration::from_micros(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50))?;
        self.others.observed().take_gap_max_ns();
        self.pause(quiet)?;
        self.baseline.push(self.others.observed().take_gap_max_ns());
        self.others.observed().enter(Stretch::Disturbed);
        self.kill(GatewayId((round % u64::from(VICTIMS)) as u16))?;
        self.gaps.push(self.others.observed().take_gap_max_ns());
        self.others.observed().enter(Stretch::Quiet);
        Ok(())
    }

    fn kill(&mut self, victim: GatewayId) -> LabResult {
        let node = NodeId::Gateway(victim);
        self.fronts.observed().take_gap_max_ns();
        self.fronts.observed().take_resumed_ns();
        self.system.supervisor.hold(node, true);
        self.system.supervisor.signal(node, Signal::KILL)?;
        let mut has_gone_on = false;
        self.wait_until("a session goes on at the other gateway", |drill| {
            let observed = drill.fronts.observed();
            has_gone_on = has_gone_on || observed.take_resumed_ns().is_some();
            has_gone_on && observed.away.load(Ordering::Relaxed) == 0 && !drill.system.supervisor.is_up(node)
        })?;
        self.moved.push(self.fronts.observed().take_gap_max_ns());
        self.system.supervisor.hold(node, false);
        self.wait_until("the gateway is back", |drill| drill.system.supervisor.is_up(node))
    }

    fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) -> LabResult {
        let begun = Instant::now();
        while !is_so(self) {
            self.pause(Duration::from_millis(1))?;
            if begun.elapsed() > PATIENCE {
                return Err(LabError::Failed(format!("waited in vain until {what}")));
            }
        }
        Ok(())
    }

    /// Lets time pass while looking after the system.
    fn pause(&mut self, stretch: Duration) -> LabResult {
        let begun = Instant::now();
        loop {
            self.system.supervisor.tick();
            if self.fronts.is_finished() || self.others.is_finished() {
                return Err(LabError::Failed("a load ended by itself".into()));
            }
            let left = stretch.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
    }

    /// What a load that ended by itself says of it.
    fn why(self, error: LabError) -> LabError {
        let said = [self.fronts, self.others].map(|load| load.is_finished().then(|| load.finish().err()));
        said.into_iter().flatten().flatten().next().unwrap_or(error)
    }

    /// Ends the load, and holds what members were told against the record.
    fn finish(self) -> Result<Outcome, LabError> {
        let Self { protocol, mut system, told, mut records, fronts, others, gaps, baseline, moved } = self;
        let (fronts, others) = (fronts.finish()?, others.finish()?);
        records.await_level(&mut system.supervisor)?;
        let answered = fronts.answered();
        let not_recorded = records.notes().map(|notes| notes.missing(&answered, &told)).max().unwrap_or(0);
        let resend_missing = records.notes().map(|notes| notes.untold(&told)).max().unwrap_or(0);
        let executed_twice = records.notes().map(|notes| notes.executed_twice).max().unwrap_or(0);
        let (recorded, records_differing) = records.differing(|_, _| false);
        let [gaps, baseline, moved] = [gaps, baseline, moved].map(|gaps| Spread::of(gaps, 1e6));
        let [quiet, disturbed] =
            [Stretch::Quiet, Stretch::Disturbed].map(|one| p99_us(&others.latencies(one)));
        let of = |observed: &Observed| observed.completed.load(Ordering::Relaxed);
        let rejected = [&fronts, &others].map(|load| load.rejected.load(Ordering::Relaxed)).iter().sum();
        Ok(Outcome {
            drill: "kill-front",
            protocol: protocol.to_possible_value().expect("none is hidden").get_name().to_owned(),
            count: gaps.count,
            max_gap_ms: gaps.max.unwrap_or(0.0),
            median_gap_ms: gaps.median.unwrap_or(0.0),
            baseline_max_gap_ms: baseline.max.unwrap_or(0.0),
            baseline_median_gap_ms: baseline.median.unwrap_or(0.0),
            moved_max_gap_ms: moved.max.unwrap_or(0.0),
            moved_median_gap_ms: moved.median.unwrap_or(0.0),
            lost: fronts.in_flight() + others.in_flight() + not_recorded + resend_missing,
            duplicated: told.repeated() + executed_twice + others.duplicated.load(Ordering::Relaxed),
            resend_missing,
            others_p99_us_quiet: quiet,
            others_p99_us_disturbed: disturbed,
            others_p99_ratio: disturbed / quiet,
            rejected,
            client_retries: fronts.retried.load(Ordering::Relaxed),
            executions: told.executions(),
            told_again: told.marked(),
            gaps: told.gaps(),
            completed: of(&fronts),
            others_completed: of(&others),
            records: recorded,
            records_differing,
        })
    }
}

fn p99_us(latencies: &Histogram<u64>) -> f64 {
    latencies.value_at_quantile(0.99) as f64 / 1e3
}
