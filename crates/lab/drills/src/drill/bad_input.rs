//! Hostile clients, at every port. The promise: none is let in, nothing of the others is lost, and their latency stays about what it was.
//!
//! ```text
//!  members:  trade over the binary protocol ..........................................
//!  guests:          | wrong keys |         | garbage |         | lengths |         | ...
//!              quiet              quiet              quiet              quiet
//! ```
//! Quiet and attacked stretches take turns, so all have seen the same machine in the same minutes; each has a 99th percentile of its own,
//! and their medians are compared. A guest that was turned away unread proves nothing, so each attack has an answer that only one who looked at it gives, and the drill
//! counts those. Guests are at the ports for the binary protocol, FIX, OUCH and HTTP at once.

mod bytes;
mod guests;
mod stage;
mod wrong_keys;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::ValueEnum;
use pares_load::{LabError, LabResult, Observed, Rate, print_figures, setup};
use serde::Serialize;

use guests::{Guests, Tally};
use stage::Stage;

/// Members that trade; there are twice as many names that guests may try.
const MEMBERS: u32 = 10;
/// How long those who hold connections take to open them: what counts is that they are there.
const FILLING: Duration = Duration::from_secs(5);
/// As many as a [`Port`] may be.
const PORTS: u64 = 4;

/// The attacks of hostile clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Attack {
    /// Sign on with wrong keys
    WrongKeys,
    /// Send garbage
    Garbage,
    /// Announce messages of gigabytes, and send some of them
    HugeLengths,
    /// Send valid requests one byte at a time
    SlowLoris,
    /// Open as many connections as allowed, and stay silent
    Connections,
}

/// A port of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Port {
    Binary,
    Fix,
    Ouch,
    Http,
}

/// Arguments of `pares drill bad-input`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    /// Number of rounds: for each attack a quiet stretch, then one with the attack
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// Length of each stretch, milliseconds
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    stretch_ms: u64,
    /// Hostile connections opened per second, over all ports; the attack that holds many opens them faster
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    attempts: u32,
    /// Silent connections held at once, over all ports
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(4..=20_000))]
    connections: u32,
    /// Only this attack; repeatable
    #[arg(long)]
    attack: Vec<Attack>,
    /// The load and the system; see `pares bench end-to-end --help`
    #[command(flatten)]
    load: setup::Args,
}

/// What one attack did.
#[derive(Clone, Debug, Serialize)]
struct Harm {
    /// The others' 99th percentile meanwhile, microseconds: the median of the stretches.
    p99_us: f64,
    /// By that of the quiet stretches.
    ratio: f64,
    /// Connections that guests opened.
    opened: u64,
    /// Connections that guests held at once, at most.
    held: u64,
    /// How often an answer to a guest showed that the server looked at the fault, by port.
    answered: BTreeMap<Port, u64>,
}

/// What the drill gave.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    /// The others' 99th percentile in a quiet stretch, microseconds: the median of the stretches.
    p99_us_quiet: f64,
    /// The highest of all faults.
    others_p99_ratio: f64,
    faults: BTreeMap<Attack, Harm>,
    /// Requests of the others sent and never answered.
    lost: u64,
    /// Answers beyond the first.
    duplicated: u64,
    /// Requests of the others that a gateway did not take in.
    rejected: u64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, a guest was let in, something was lost, or a server never looked at a fault. How long anything took is for the reader to judge.
pub(super) fn run(args: &Args) -> LabResult {
    if args.load.rate == Rate::Max {
        return Err(LabError::Usage("this drill needs a fixed --rate, or latencies mean nothing".into()));
    }
    let outcome = measure(args)?;
    print_figures(args.load.json, &outcome);
    outcome.verdict()
}

impl Outcome {
    fn verdict(&self) -> LabResult {
        if (self.lost, self.duplicated, self.rejected) != (0, 0, 0) {
            let why = "requests were lost, answered twice or rejected during the attacks";
            return Err(LabError::Failed(why.into()));
        }
        let all =
            self.faults.iter().flat_map(|(attack, harm)| harm.answered.iter().map(move |one| (attack, one)));
        match all.into_iter().find(|(_, (_, count))| **count == 0) {
            Some((attack, (port, _))) => {
                let why = format!(
                    "{} at the {port:?} port: no answer shows that the server read it",
                    attack.name()
                );
                Err(LabError::Failed(why))
            }
            None => Ok(()),
        }
    }
}

impl Attack {
    fn name(self) -> String {
        self.to_possible_value().expect("none is hidden").get_name().to_owned()
    }
}

/// What the stretches of an attack gave.
#[derive(Default)]
struct Seen {
    p99s_ns: Vec<u64>,
    tally: Tally,
}

fn measure(args: &Args) -> Result<Outcome, LabError> {
    let mut stage = Stage::start(args)?;
    let (mut quiet_ns, mut seen) = (Vec::new(), BTreeMap::<Attack, Seen>::new());
    let ills = if args.attack.is_empty() { Attack::value_variants() } else { &args.attack };
    let bar = pares_text::progress::steps("drilling", args.count * ills.len() as u64);
    let stretch = Duration::from_millis(args.stretch_ms);
    for _ in 0..args.count {
        for attack in ills {
            quiet_ns.push(stage.p99_ns(stretch)?);
            let guests = Guests::send(args, *attack, &stage.ports()?)?;
            stage.pass(if *attack == Attack::Connections { FILLING } else { Duration::ZERO })?;
            let seen = seen.entry(*attack).or_default();
            seen.p99s_ns.push(stage.p99_ns(stretch)?);
            seen.tally.add(guests.end()?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let others = stage.end()?;
    Ok(Outcome::of(median(quiet_ns) / 1e3, seen, &others))
}

impl Outcome {
    fn of(p99_us_quiet: f64, seen: BTreeMap<Attack, Seen>, others: &Observed) -> Self {
        let faults: BTreeMap<_, _> =
            seen.into_iter().map(|(attack, seen)| (attack, seen.harm(p99_us_quiet))).collect();
        Self {
            drill: "bad-input",
            p99_us_quiet,
            others_p99_ratio: faults.values().map(|harm| harm.ratio).fold(0.0, f64::max),
            faults,
            lost: others.in_flight(),
            duplicated: others.duplicated.load(Ordering::Relaxed),
            rejected: others.rejected.load(Ordering::Relaxed),
        }
    }
}

impl Seen {
    fn harm(self, p99_us_quiet: f64) -> Harm {
        let p99_us = median(self.p99s_ns) / 1e3;
        let Tally { opened, held, answered } = self.tally;
        Harm { p99_us, ratio: p99_us / p99_us_quiet, opened, held, answered }
    }
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}
