//! Gateways die under members that speak a standard protocol, and servers under those that speak HTTP. The promise: each continues elsewhere, receives everything once or marked as coming
//! again, and those who trade elsewhere notice nothing.
//!
//! ```text
//!  members over FIX, OUCH: trade at gateway 0 | gateway 1 ............ | gateway 0 ............
//!  gateways 0 and 1:              0 killed ... is back      1 killed ... is back
//!  others, binary:       trade at gateway 2, which lives ....................................
//!                        quiet     | disturbed        | quiet | disturbed  | quiet
//! ```
//! Over HTTP they trade at two servers, and a server and a gateway are killed by turns. In the end the record says what members must have received, and that is compared
//! with what they received.
//!
//! | module | what |
//! |---|---|
//! | `stage` | the system, and what is offered to whom |
//! | `kills` | the drill under way |
//! | `expected_reports` | what members must have been told |

mod expected_reports;
mod kills;
mod stage;

use std::path::PathBuf;

use clap::ValueEnum;
use pares_config::DurabilitySetting;
use pares_load::{LabError, LabResult, Rate, none_of, print_figures, setup};
use serde::Serialize;

use self::kills::KillFront;
use super::figures::Gaps;

/// Gateways, and servers, that are killed by turns; one more gateway lives.
const VICTIMS: u16 = 2;
/// Members on either side.
const MEMBERS: u32 = 4;

/// What the members speak whose gateways or servers are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FrontProtocol {
    /// FIX 4.4
    Fix,
    /// OUCH 5.0; without authentication, and with all instruments in one shard
    Ouch,
    /// HTTP; servers are killed too; without authentication
    Http,
    /// HTTP, with each member's streams over WebSocket
    Ws,
}

impl FrontProtocol {
    fn is_web(self) -> bool {
        matches!(self, Self::Http | Self::Ws)
    }
}

/// Arguments of `pares drill kill-front`.
#[derive(clap::Args, Clone, Debug)]
#[group(id = "kill_front")]
pub struct Args {
    /// Protocol of the members whose gateways or servers are killed
    #[arg(long)]
    protocol: FrontProtocol,
    /// Number of kills
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// Quiet time before each fault, milliseconds
    #[arg(long, default_value_t = 1_000)]
    quiet_ms: u64,
    /// Requests per second, half of them over that protocol
    #[arg(long, default_value = "10000", value_parser = per_second)]
    rate: u64,
    /// Number of racing venues
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    venues: u16,
    /// Number of recorders
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    recorders: u16,
    /// Number of instruments
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    symbols: u32,
    /// Number of shards [default: one per instrument]; not over OUCH
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    shards: Option<u16>,
    /// What an answer survives: `os` the death of any process, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = setup::durability)]
    durability: DurabilitySetting,
    /// Random seed of the flow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The directory for the system's files [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn per_second(text: &str) -> Result<u64, String> {
    match text.parse()? {
        Rate::PerSecond(rate @ 2..) => Ok(rate),
        _ => Err("expected a fixed rate of at least two requests a second, or gaps mean nothing".into()),
    }
}

/// What the drill gave.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    protocol: String,
    /// Gateways, or servers and gateways, killed.
    count: usize,
    #[serde(flatten)]
    gaps: Gaps,
    #[serde(flatten)]
    tally: Tally,
    /// 99th percentile of the others, microseconds: in quiet, and from a kill until what was killed is back.
    others_p99_us_quiet: f64,
    others_p99_us_disturbed: f64,
    /// The second by the first.
    others_p99_ratio: f64,
    /// Requests that no gateway took in.
    rejected: u64,
    /// Requests that members over the protocol sent again.
    client_retries: u64,
    /// Requests answered, over the protocol and to the others.
    completed: u64,
    others_completed: u64,
}

/// What the record says of what members received.
#[derive(Clone, Debug, Serialize)]
struct Tally {
    /// Requests without a final answer, answered and not recorded, and what is missing.
    lost: u64,
    /// What came twice and did not say so, numbers that came again likewise, and requests executed twice.
    duplicated: u64,
    /// What the record says of a member that it was not told, though it has gone on and asked; over WebSocket also numbers that did not follow each other.
    resend_missing: u64,
    /// Different places of the record that they received; of those, received again and marked so.
    executions: u64,
    told_again: u64,
    /// Gaps in the numbers: over FIX each was asked for.
    gaps: u64,
    records: u64,
    records_differing: u64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or the promise was broken. How long anything took is for the reader to judge.
pub(super) fn run(args: &Args) -> LabResult {
    if args.protocol == FrontProtocol::Ouch && args.shards.is_some() {
        return Err(LabError::Usage("over OUCH all instruments are in one shard: leave --shards out".into()));
    }
    let mut drill = KillFront::start(args)?;
    if let Err(error) = drill.rounds(args) {
        return Err(drill.why(error));
    }
    let outcome = drill.finish()?;
    print_figures(args.json, &outcome);
    none_of([
        (outcome.tally.lost, "lost"),
        (outcome.tally.duplicated, "told or executed twice"),
        (outcome.tally.records_differing, "positions recorded differently"),
    ])
}
