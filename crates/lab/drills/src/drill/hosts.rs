//! A whole host dies: its orderer, venue, recorder, gateway and mirrors at the same instant. The promise: the others decide on after the patience of
//! an orderer, nothing acknowledged is lost, nothing is executed twice, and the host's members continue elsewhere.
//!
//! Hosts are directories and addresses of their own (127.0.0.1, .2, ...) on this machine. What kills them leaves connections that end at once; a cable that
//! is cut does not, which is another drill.

mod rig;

use std::path::PathBuf;
use std::time::Duration;

use pares_config::DurabilitySetting;
use pares_load::{LabError, LabResult, Rate, none_of, print_figures, setup};
use pares_text::progress;
use serde::Serialize;

use self::rig::HostRig;

/// Arguments of `pares drill kill-host`.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "kill_host")]
pub struct Args {
    /// Number of hosts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=5))]
    hosts: u8,
    /// Number of kills of the host whose orderer leads
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    count: u64,
    /// Requests per second
    #[arg(long, default_value = "5000", value_parser = per_second)]
    rate: u64,
    /// Number of instruments, each a shard
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    symbols: u32,
    /// What an answer survives: `os` the death of any process, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = setup::durability)]
    durability: DurabilitySetting,
    /// Random seed of the flow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The directory for the hosts' files [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn per_second(text: &str) -> Result<u64, String> {
    match text.parse()? {
        Rate::PerSecond(rate) => Ok(rate),
        Rate::Max => Err("expected a fixed rate, or gaps mean nothing".into()),
    }
}

/// The stretch after a kill in which the longest gap is sought, and before it.
const WINDOW: Duration = Duration::from_millis(100);

/// What the drill gave.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    hosts: usize,
    /// Hosts killed.
    count: usize,
    /// Requests never answered.
    lost: u64,
    /// Answers beyond the first: a gateway that is back sends once more what its member had repeated elsewhere, if its host's mirrors bring the record
    /// of it only then.
    duplicated: u64,
    /// Requests executed at two positions.
    executed_twice: u64,
    /// Requests that members sent again.
    sent_again: u64,
    /// Requests that a gateway did not take in.
    rejected: u64,
    /// Requests answered that are missing in a recorder's log at the end.
    acknowledged_lost: u64,
    /// Positions that are not the same in every recorder's log at the end.
    records_differing: u64,
    records: u64,
    /// Longest time without an answer around a kill, of the other hosts' members.
    p50_gap_ms: f64,
    p99_gap_ms: f64,
    max_gap_ms: f64,
    /// The same in the quiet stretches before.
    quiet_p50_gap_ms: f64,
    quiet_max_gap_ms: f64,
    /// Of the killed hosts' members, who find another gateway.
    moved_p50_gap_ms: f64,
    moved_max_gap_ms: f64,
    /// Times an orderer stood for the lead, and those of them that nobody's death called for.
    elections: u64,
    needless_elections: u64,
    /// Latencies, microseconds: in quiet, and while a host is dead or comes back.
    quiet_p50_us: f64,
    quiet_p99_us: f64,
    disturbed_p99_us: f64,
    others_p99_ratio: f64,
    /// From its start until a killed host was in step again, median.
    back_ms: f64,
    completed: u64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or the promise was broken. How long anything took is for the reader to judge.
pub(super) fn run(args: &Args) -> LabResult {
    let mut rig = HostRig::start(args)?;
    for round in progress::over("killing hosts", 0..args.count) {
        rig.round(round)?;
    }
    let outcome = rig.finish()?;
    print_figures(args.json, &outcome);
    outcome.verdict()
}

impl Outcome {
    fn verdict(&self) -> LabResult {
        none_of([
            (self.lost, "lost"),
            (self.executed_twice, "executed twice"),
            (self.acknowledged_lost, "answered and not recorded"),
            (self.records_differing, "positions recorded differently"),
        ])
    }
}

/// The value that so many of a hundred are at most, milliseconds.
fn percentile_ms(values: &mut [u64], percent: usize) -> f64 {
    values.sort_unstable();
    let place = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(place).map_or(0.0, |&ns| ns as f64 / 1e6)
}

/// Something that is to be so did not become so.
fn not_in_time(what: &str) -> LabError {
    LabError::Failed(format!("{what}: not within a minute"))
}
