//! Day trading while its parts die. The promise: no command that was answered is lost, none is done twice, every cent and share is where the log says, and users
//! of what lives hardly wait.
//!
//! ```text
//!  loaders --lines--> 3 fronts --> 3 sites, on disk        each second, by turns: kill -9 a front, a desk, the site that certifies, another site,
//!                        \--> 2 desks --> quote server    one of each at once; each is started again after 300 ms
//! ```
//! With `--stops` every fifth fault is a silence instead: the site that certifies, a desk, another site is stopped for 3 s, and continues. When all commands have
//! a reply, fronts and desks are ended; then the log is read from the sites, replayed alone, and compared with the accounts and the replies.

use std::time::Duration;

use pares_brokerage::{
    Behaviour, DeathFigures, FaultPlan, HowMany, RunArgs, WorkloadArgs, generate, measure,
};
use pares_load::{LabError, LabResult, ScratchDirectory, none_of, print_figures};
use pares_site::config::Promise;
use serde::Serialize;

/// Stocks of the workload.
const STOCKS: u64 = 200;
/// Commands at a time without a reply, of all loaders.
const WINDOW: u64 = 600;

/// Arguments of `pares drill broker`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    /// Number of commands, all users together
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    commands: u64,
    /// Users
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(3..=100_000))]
    users: u64,
    /// Time between two faults, milliseconds
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(400..=60_000))]
    kill_every_ms: u64,
    /// Also stop parts: every fifth fault is a SIGSTOP of 3 s to the certifying site, a quote desk, or another site, in turn
    #[arg(long)]
    stops: bool,
    /// Seed of the workload and of the quotes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, Serialize)]
struct BrokerDrillFigures {
    commands: u64,
    seconds: f64,
    commands_per_s: f64,
    #[serde(flatten)]
    deaths: DeathFigures,
    /// Questions to the quote server. A desk that dies takes hits along that no front has.
    hits: u64,
    /// Triggers that fired, and what lapsed.
    fired_or_lapsed: u64,
    audit_verified: bool,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the broker does not run, or a promise was broken.
pub fn run(args: &Args) -> LabResult {
    let figures = drill(args)?;
    print_figures(args.json, &figures);
    let deaths = &figures.deaths;
    none_of([
        (deaths.acknowledged_lost, "commands lost"),
        (deaths.done_twice, "commands done twice"),
        (deaths.money_off, "accounts off"),
        (u64::from(!figures.audit_verified), "log that does not add up"),
    ])
}

fn drill(args: &Args) -> Result<BrokerDrillFigures, LabError> {
    let failed = |error: pares_brokerage::BrokerageError| LabError::Failed(error.to_string());
    let scratch = ScratchDirectory::create(None)?;
    let file = scratch.path().join("workload");
    let workload = WorkloadArgs::of(&file, args.commands, args.users, STOCKS);
    generate(&WorkloadArgs { seed: args.seed, ..workload }).map_err(failed)?;
    let behaviour = Behaviour { seed: args.seed, instant: true, bad_per_mille: 0 };
    let run = RunArgs {
        how_many: HowMany { sites: Some((1, 3)), fronts: Some(3), desks: Some(2) },
        window: WINDOW,
        faults: Some(FaultPlan { every: Duration::from_millis(args.kill_every_ms), stops: args.stops }),
        json: args.json,
        ..RunArgs::of(file, Promise::Disk, behaviour)
    };
    let figures = measure(&run).map_err(failed)?;
    let deaths = figures.deaths.ok_or_else(|| LabError::Failed("nothing was killed".into()))?;
    Ok(BrokerDrillFigures {
        commands: figures.commands,
        seconds: figures.seconds,
        commands_per_s: figures.commands_per_s,
        deaths,
        hits: figures.hits,
        fired_or_lapsed: figures.elements.get("systemEvent").copied().unwrap_or_default(),
        audit_verified: figures.audit_verified,
    })
}
