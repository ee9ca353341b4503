//! `pares drill history`: what clients saw while sites died, checked for isolation from the outside.
//!
//! ```text
//!   sessions at all sites: appends to lists and reads of them, transfers and snapshots of all accounts
//!        |  who asked what, when, and was told what
//!        v
//!   history of a scenario --> pares-isolation: cycles, lost, doubled, torn --> figures by scenario
//! ```
//! The other drill of sites counts notes: nothing is lost, nothing is there twice. That says nothing of what was read meanwhile. Here every
//! answer is held against all others, and the database is believed nothing.
//!
//! | module | what |
//! |---|---|
//! | [`lists`] | the items of a scenario: which list is in use, questions and answers |
//! | [`sessions`] | clients at work, and what they note |
//! | [`scenarios`] | the blows |
//! | [`figures`] | what was found |

mod figures;
mod lists;
mod scenarios;
mod sessions;

use std::path::PathBuf;
use std::time::Duration;

use pares_load::{DistantSites, LabError, LabResult};
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
    /// What an answer promises: `os` survives the death of processes, `disk` the loss of power
    #[arg(long, default_value = "os", value_parser = promise)]
    durability: Promise,
    /// What counts as a conflict: `snapshot`, or `serialisable`, under which no cycle at all is allowed
    #[arg(long, default_value_t)]
    isolation: Isolation,
    /// How long each step of a scenario lasts, seconds
    #[arg(long, default_value_t = 2.0)]
    seconds_per_part: f64,
    /// Sessions of each site that append and read; one more moves money
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    sessions: u32,
    /// Write each scenario's history here; those in which something is wrong are written anyway, among temporary files
    #[arg(long)]
    histories: Option<PathBuf>,
    /// Keep the sites' directories and what they said here, which must not exist
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
        return Err(LabError::Usage("--seconds-per-part is between 0.2 and 3600".into()));
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
    match args.json {
        true => pares_text::say!("{}", serde_json::to_string(&drill.figures).expect("plain numbers")),
        false => drill.figures.print(),
    }
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
