//! `pares replay`: a recorded day through a real exchange, while its matching engines are being killed.
//!
//! ```text
//!  recording --> Replay --commands--> gateway --> two racing venues --> two recorders
//!                  ^                     |               ^                    |
//!                  +------ answers ------+     kill -9 the leading one        |
//!                  +------ all of it again, from both logs, at the end -------+
//! ```
//! Three witnesses must agree: the published rows (or the book an ITCH feed implies), the answers the
//! client was given, and what both recorders hold. With `--feed` there are more: receivers of the market data.
//!
//! | module | what |
//! |---|---|
//! | `day` | the recording, surveyed before anything starts |
//! | `driver` | commands out, answers in, a window of them in flight |
//! | `schedule` | when the leading venue is killed |
//! | `ledger` | what the client received for each command |
//! | `records` | what the recorders hold, against the ledger |
//! | `market` | the record as market data: a receiver's book against the venue's and the published rows |
//! | `figures` | what it all gave, and the verdict |

mod day;
mod driver;
mod figures;
mod ledger;
mod market;
mod records;
mod schedule;

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ArgGroup;
use pares_load::{LabError, LabResult, ScratchSystem, print_figures};
use pares_node::SystemConfig;

use crate::feed::Reception;

use day::{Recording, Survey};
use figures::Figures;

/// Which packets lines lose.
const SEED: u64 = 1;

const EXAMPLES: &str = "\
Examples:
  pares replay --itch 12302019.NASDAQ_ITCH50 --symbol AAPL
  pares replay --lobster-messages message_5.csv --lobster-book orderbook_5.csv \\
      --kill-venue-every 5000 --feed

Submissions become limit orders, reductions and deletions amends and cancels, and each execution an opposite \
immediate-or-cancel order that must fill the very order the recording names. Fails if a published row differs, \
anything is lost or done twice, or the two recorders do not agree. With --feed it also fails if after any command the \
book made of the market data is not the venue's or does not show the published row, or a receiver missed anything.";

/// Arguments of `pares replay`.
#[derive(clap::Args, Clone, Debug)]
#[command(group(ArgGroup::new("recording").required(true)), after_help = EXAMPLES)]
pub struct Args {
    /// LOBSTER message file of the day (unpacked CSV)
    #[arg(long, value_name = "CSV", group = "recording", requires = "lobster_book")]
    lobster_messages: Option<PathBuf>,
    /// LOBSTER orderbook file of the same day: the published rows to compare with
    #[arg(long, value_name = "CSV", requires = "lobster_messages")]
    lobster_book: Option<PathBuf>,
    /// ITCH 5.0 file (messages with 2-byte length prefixes)
    #[arg(long, value_name = "FILE", group = "recording", conflicts_with = "lobster_book")]
    itch: Option<PathBuf>,
    /// Replay only this symbol of the ITCH file
    #[arg(long, requires = "itch")]
    symbol: Option<String>,
    /// Kill the leading venue (SIGKILL) after this many events, repeatedly; it is restarted each time
    #[arg(long, value_name = "EVENTS")]
    kill_venue_every: Option<NonZeroU64>,
    /// Publish market data, receive them over lossy lines, and compare every book
    #[arg(long)]
    feed: bool,
    /// Packet loss of each of the two lines, percent
    #[arg(long, requires = "feed", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=90))]
    feed_loss: u64,
    /// Speed: `max`, or a multiple of the recorded pace (60 plays an hour in a minute)
    #[arg(long, default_value = "max")]
    speed: Speed,
    /// Most commands in flight
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=16_384))]
    in_flight: u16,
    /// A new directory for the system's files [default: a temporary one]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// How fast a day is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// As fast as the exchange answers.
    Max,
    /// This many times the recorded pace; above zero.
    Times(f64),
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<f64>()) {
            ("max", _) => Ok(Self::Max),
            (_, Ok(times)) if times.is_finite() && times > 0.0 => Ok(Self::Times(times)),
            _ => Err("expected `max`, or a number above zero: 1 is the recorded pace".into()),
        }
    }
}

/// Replays the day and prints what it gave.
///
/// # Errors
/// If the recording cannot be read, the system fails, or the day was not reproduced as it must be.
pub fn run(args: &Args) -> LabResult {
    let recording = Recording::new(args)?;
    let survey = recording.survey()?;
    if let Some(dir) = &args.dir {
        check_new(dir)?;
    }
    let figures = replay(args, &recording, &survey)?;
    print_figures(args.json, &figures);
    figures.verdict(recording.names_every_order())
}

/// Two days in one system would use the same client order ids, and get the first day's answers.
fn check_new(dir: &Path) -> LabResult {
    if dir.join("pares.toml").exists() {
        let what = format!("{} already contains a system: give a new directory with --dir", dir.display());
        return Err(LabError::Usage(what));
    }
    Ok(())
}

fn replay(args: &Args, recording: &Recording, survey: &Survey) -> Result<Figures, LabError> {
    let config = SystemConfig {
        gateways: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        instruments: survey.instruments(),
        ..SystemConfig::default()
    };
    let stop = pares_os::process::stop_on_signals().map_err(LabError::io("installing a signal handler"))?;
    let (config, mut reception) = match args.feed {
        true => Reception::prepare(config, args.feed_loss, SEED).map(|(config, all)| (config, Some(all)))?,
        false => (config, None),
    };
    let mut system = ScratchSystem::start(&config, args.dir.clone())?;
    if let Some(reception) = &mut reception {
        reception.begin(&system)?;
    }
    let driven = driver::drive(args, recording, survey, &mut system, (reception.as_mut(), stop))?;
    let findings = records::compare(&mut system.supervisor, &driven.ledger)?;
    let mut figures = Figures::new(&driven, &findings);
    if let Some(reception) = reception {
        let received = reception.finish(&mut system, None)?;
        let (layout, config) = (system.supervisor.layout(), system.supervisor.config());
        figures.set_feed(received, market::compare(layout, config, (recording, survey))?);
    }
    Ok(figures)
}
