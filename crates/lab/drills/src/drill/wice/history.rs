//! `pares drill history`: what clients saw while sites died, checked for isolation from the outside.
//!
//! ```text
//!   sessions at all sites: appends to lists and reads of them, transfers and snapshots of all accounts
//!        |  who asked what, when, and what they received
//!        v
//!   history of a scenario --> pares-isolation: cycles, lost, doubled, torn --> figures by scenario
//! ```
//! The other drill of sites counts notes: nothing is lost, nothing is there twice. That says nothing of what was read meanwhile. Here every
//! answer is held against all others, and the database is believed nothing.
//!
//! | module | what |
//! |---|---|
//! | [`lists`] | the items of a scenario: which list is in use, questions and answers |
//! | [`sessions`] | active clients, and what they note |
//! | [`scenarios`] | the faults |
//! | [`figures`] | what was found |

mod figures;
mod lists;
mod scenarios;
mod sessions;

use std::path::PathBuf;
use std::time::Duration;

use pares_load::{DistantSites, LabError, LabResult, print_figures};
use pares_operator::init::promise;
use pares_site::config::Promise;
use pares_wice::Isolation;

use super::stage;
use figures::Figures;

/// Arguments of `pares drill history`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Round trip between the clusters, milliseconds
    #[arg(long, default_value_t = 20)]
    rtt_ms: u64,
    /// What an answer survives: `os` the death of processes, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = promise)]
    durability: Promise,
    /// Isolation level: `snapshot`, or `serialisable`, which allows no cycle at all
    #[arg(long, default_value_t)]
    isolation: Isolation,
    /// Length of each step of a scenario, seconds
    #[arg(long, default_value_t = 2.0)]
    seconds_per_part: f64,
    /// Appending and reading sessions of each site; one more moves money
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    sessions: u32,
    /// Directory for each scenario's history; wrong histories are always written, to temporary files
    #[arg(long)]
    histories: Option<PathBuf>,
    /// Keep the sites' directories and output in this new directory
    #[arg(long)]
    dir: Option<PathBuf>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the drill and prints what it found.
///
/// # Errors
/// If a history has what its level of isolation forbids; if a session does not read what it wrote or has read, wherever it asks; if money was made; if sites
/// differ at the end; if what was hit does not come back.
pub fn run(args: &Args) -> LabResult {
    if !(0.2..=3_600.0).contains(&args.seconds_per_part) {
        return Err(LabError::Usage("--seconds-per-part must be between 0.2 and 3600".into()));
    }
    let rtt = Duration::from_millis(args.rtt_ms);
    let stage = stage::start(args.durability, args.isolation, rtt, args.dir.as_deref(), None)?;
    let figures =
        Figures { drill: "history", rtt_ms: args.rtt_ms, isolation: args.isolation, ..Figures::default() };
    let mut drill = HistoryDrill {
        stage,
        part: Duration::from_secs_f64(args.seconds_per_part),
        sessions: args.sessions,
        histories: args.histories.clone(),
        clients: 1,
        figures,
    };
    drill.scenarios()?;
    drill.figures.settle();
    print_figures(args.json, &drill.figures);
    drill.figures.verdict()
}

/// A drill under way.
struct HistoryDrill {
    stage: DistantSites,
    part: Duration,
    sessions: u32,
    histories: Option<PathBuf>,
    /// Numbers below it belong to clients.
    clients: u64,
    figures: Figures,
}
