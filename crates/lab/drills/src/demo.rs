//! `pares demo`: a whole exchange on this machine, traded on, with its leading venue killed every few seconds.
//!
//! The point to see is that there is nothing to see: no failover, no pause, no answer lost or given twice. What
//! would show one is on the screen: the longest gap between two completions of each second, with the kills
//! marked, and the order books, rebuilt here from the recorders' logs alone.
//!
//! ```text
//!   Load --requests--> gateway, venues, recorders --answers--> Observed --+
//!                        ^ kill -9      | logs                            v
//!                     Director          +------------> Market -------> Picture --> Screen | Lines | nothing
//! ```
//! One thread does all of it but the load: looks after the processes every few milliseconds, reads the logs and
//! draws a few times a second, so that the exchange keeps the processors.
//!
//! | module | what |
//! |---|---|
//! | `scene` | the system and the load |
//! | `day` | a whole trading day (`--day`) |
//! | `broker` | a broker's customers on it (`--broker`) |
//! | `director` | who is killed when, and when it is back |
//! | `race` | who leads |
//! | `market` | the books, from the record |
//! | `minute` | figures second by second |
//! | `picture` | all that is shown |
//! | `face` | how: `screen` (drawn by `view`), `lines`, or nothing |
//! | `verdict` | what it came to |

mod broker;
mod day;
mod director;
mod face;
mod lines;
mod market;
mod minute;
mod picture;
mod race;
mod scene;
mod screen;
mod stage;
mod verdict;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use pares_load::{LabError, LabResult, figures_text};

use day::plan::{SECONDS_MAX, SECONDS_MIN};
use face::Face;
use stage::Stage;

/// Arguments of `pares demo`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// End after this many seconds [default: at q or Ctrl-C]
    #[arg(long, conflicts_with = "day")]
    seconds: Option<u64>,
    /// Run a whole trading day: calls, auctions, a volatility call, a halt, the close and the next morning. Not with
    /// --seconds, because the day has its own end
    #[arg(long)]
    day: bool,
    /// Add a broker with customers, and kill its sites and routers too; at the end every hold must match an open order, and every cent be accounted for. Ends
    /// after 20 seconds [default]; --rate applies to the other members
    #[arg(long, conflicts_with = "day")]
    broker: bool,
    /// Continue until Ctrl-C, with the pages at the printed address, to trade by hand
    #[arg(long, requires = "broker", conflicts_with = "seconds")]
    stay: bool,
    /// Length of the day, seconds
    #[arg(long, default_value_t = 40, requires = "day", value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(SECONDS_MIN..=SECONDS_MAX))]
    day_seconds: u64,
    /// Drive the day by requests of the exchange instead of a timetable (automatic close to midnight UTC)
    #[arg(long, requires = "day")]
    no_timetable: bool,
    /// Requests offered per second [default: 2000, or 500 with --day]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: Option<u64>,
    /// Mean time between kills of the leading venue, seconds; 0: never
    #[arg(long, default_value = "3", value_parser = parse_seconds)]
    kill_every: Duration,
    /// The same seed gives the same orders
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The system's directory [default: a temporary directory, removed at the end]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Lines instead of a dashboard (the default with --broker, and when the output is not a terminal)
    #[arg(long)]
    plain: bool,
    /// Print only the verdict, as one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    fn rate(&self) -> u64 {
        self.rate.unwrap_or(if self.day { 500 } else { 2_000 })
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected a number of seconds up to a day, such as 3 or 0.5".into())
}

/// Runs the demonstration and says what it came to.
///
/// # Errors
/// If the system fails, or a request was lost, answered twice, or not reproduced by the record.
pub fn run(args: &Args) -> LabResult {
    let stop = pares_os::process::stop_on_signals().map_err(LabError::io("installing a signal handler"))?;
    if args.broker {
        return broker::run(args, &stop);
    }
    let mut stage = Stage::set(args)?;
    let mut face = Face::open(args)?;
    // First the system ends: giving back a terminal that was closed may end this process.
    let verdict = stage.play(&mut face, &stop).and_then(move |()| stage.finish());
    drop(face);
    let verdict = verdict?;
    face::say(&figures_text(args.json, &verdict))?;
    verdict.check()
}
