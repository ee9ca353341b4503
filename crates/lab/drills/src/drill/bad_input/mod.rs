//! Guests that nobody wants, at every port. The promise: nobody is let in, nothing of the others is lost, and their latency stays about what it was.
//!
//! ```text
//!  members:  trade over the binary protocol ..........................................
//!  guests:          | wrong keys |         | garbage |         | lengths |         | ...
//!              quiet              quiet              quiet              quiet
//! ```
//! Quiet and attacked stretches take turns, so all have seen the same machine in the same minutes; each has a 99th percentile of its own,
//! and their medians are compared. Guests are at the ports for the binary protocol, FIX, OUCH and HTTP at once.

mod bytes;
mod guests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use pares_load::{LabError, LabResult, Load, LoadPlan, Rate, ScratchSystem, WebProcess, setup};
use pares_node::SystemConfig;
use pares_node::config::SignOnSetting;
use pares_text::grouped;
use serde::Serialize;

use guests::{Guests, Tally};

/// Members that trade; there are twice as many names that guests may try.
const MEMBERS: u32 = 10;
/// How long the load runs before anything counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long those who hold connections take to open them: what counts is that they are there.
const FILLING: Duration = Duration::from_secs(5);
/// The load's latencies are handed over about that often: what is older belongs to the stretch before.
const SETTLED: Duration = Duration::from_millis(150);

/// What guests do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ill {
    /// Sign on with keys that are wrong
    WrongKeys,
    /// Send bytes that mean nothing
    Garbage,
    /// Announce messages of gigabytes, and send some of them
    HugeLengths,
    /// Send good beginnings, a byte at a time
    SlowLoris,
    /// Open as many connections as there may be, and say nothing
    Connections,
}

/// A port of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// How often: for each ill a quiet stretch, then one with guests
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// How long each stretch lasts, milliseconds
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    stretch_ms: u64,
    /// Connections that guests open a second, over all ports; those who hold many open them faster
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    attempts: u32,
    /// Connections that guests hold at once who do nothing else, over all ports
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(4..=20_000))]
    connections: u32,
    /// Only this; may be given several times
    #[arg(long)]
    ill: Vec<Ill>,
    /// The load and the system; see `pares bench end-to-end --help`
    #[command(flatten)]
    load: setup::Args,
}

/// What one ill did.
#[derive(Clone, Copy, Debug, Serialize)]
struct Harm {
    /// The others' 99th percentile meanwhile, microseconds: the median of the stretches.
    p99_us: f64,
    /// By that of the quiet stretches.
    ratio: f64,
    /// Connections that guests opened.
    opened: u64,
    /// Connections that guests held at once, at most.
    held: u64,
}

/// What the drill gave.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    /// The others' 99th percentile in a quiet stretch, microseconds: the median of the stretches.
    p99_us_quiet: f64,
    /// The highest of the ills.
    others_p99_ratio: f64,
    ills: BTreeMap<Ill, Harm>,
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
/// If the system fails, somebody was let in, or something was lost. How long anything took is for the reader to judge.
pub(super) fn run(args: &Args) -> LabResult {
    if args.load.rate == Rate::Max {
        return Err(LabError::Usage(
            "this drill needs a fixed --rate, so that a latency means something".into(),
        ));
    }
    let outcome = measure(args)?;
    if args.load.json {
        pares_text::say!("{}", serde_json::to_string(&outcome).expect("plain numbers"));
    } else {
        outcome.print();
    }
    match (outcome.lost, outcome.duplicated, outcome.rejected) {
        (0, 0, 0) => Ok(()),
        _ => Err(LabError::Failed("requests were lost, answered twice or rejected while guests came".into())),
    }
}

impl Outcome {
    fn print(&self) {
        pares_text::say!("the others' p99, quiet  {:>10.1} us", self.p99_us_quiet);
        for (ill, Harm { p99_us, ratio, opened, held }) in &self.ills {
            let name = ill.to_possible_value().expect("none is hidden").get_name().to_owned();
            let (opened, held) = (grouped(*opened), grouped(*held));
            pares_text::say!(
                "  {name:<22}{p99_us:>10.1} us ({ratio:.2}); {opened} connections, {held} at once"
            );
        }
        let Self { lost, duplicated, rejected, .. } = self;
        pares_text::say!("lost, twice, rejected   {lost}, {duplicated}, {rejected}");
    }
}

/// What the stretches of an ill gave.
#[derive(Default)]
struct Seen {
    p99s_ns: Vec<u64>,
    tally: Tally,
}

fn measure(args: &Args) -> Result<Outcome, LabError> {
    pares_os::descriptors::raise_limit();
    let mut system = ScratchSystem::start(&config(args), args.load.dir.clone())?;
    let server = WebProcess::start(system.supervisor.layout(), ([127, 0, 0, 1], 0).into())?;
    let ports = ports(&system, &server)?;
    let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, args.load.rate);
    let credentials = system.let_in(MEMBERS)?;
    let load = Load::start(LoadPlan { members: MEMBERS, credentials, seed: args.load.seed, ..plan })?;
    pass(&mut system, &load, WARM_UP)?;
    let (mut quiet_ns, mut seen) = (Vec::new(), BTreeMap::<Ill, Seen>::new());
    let ills = if args.ill.is_empty() { Ill::value_variants() } else { &args.ill };
    let bar = pares_text::progress::steps("drilling", args.count * ills.len() as u64);
    let stretch = Duration::from_millis(args.stretch_ms);
    for _ in 0..args.count {
        for ill in ills {
            quiet_ns.push(p99_ns(&mut system, &load, stretch)?);
            let guests = Guests::send(args, *ill, &ports)?;
            let filling = if *ill == Ill::Connections { FILLING } else { Duration::ZERO };
            pass(&mut system, &load, filling)?;
            let seen = seen.entry(*ill).or_default();
            seen.p99s_ns.push(p99_ns(&mut system, &load, stretch)?);
            seen.tally.add(guests.end()?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let observed = load.finish()?;
    let p99_us_quiet = median(quiet_ns) / 1e3;
    let ills: BTreeMap<_, _> = seen.into_iter().map(|(ill, seen)| (ill, seen.harm(p99_us_quiet))).collect();
    Ok(Outcome {
        drill: "bad-input",
        p99_us_quiet,
        others_p99_ratio: ills.values().map(|harm| harm.ratio).fold(0.0, f64::max),
        ills,
        lost: observed.in_flight(),
        duplicated: observed.duplicated.load(Ordering::Relaxed),
        rejected: observed.rejected.load(Ordering::Relaxed),
    })
}

impl Seen {
    fn harm(self, p99_us_quiet: f64) -> Harm {
        let p99_us = median(self.p99s_ns) / 1e3;
        let Tally { opened, held } = self.tally;
        Harm { p99_us, ratio: p99_us / p99_us_quiet, opened, held }
    }
}

fn config(args: &Args) -> SystemConfig {
    let config = args.load.config();
    let any = config.gateways.clone();
    SystemConfig { sign_on: SignOnSetting::Required, fix: any.clone(), ouch: any, ..config }
}

/// Where guests go: to the first gateway's ports and to a server's.
fn ports(system: &ScratchSystem, server: &WebProcess) -> Result<[(Port, SocketAddr); 4], LabError> {
    Ok([
        (Port::Binary, system.addresses()?[0]),
        (Port::Fix, system.fix_addresses()?[0]),
        (Port::Ouch, system.ouch_addresses()?[0]),
        (Port::Http, server.address()),
    ])
}

/// The 99th percentile of what is answered in the next stretch.
fn p99_ns(system: &mut ScratchSystem, load: &Load, stretch: Duration) -> Result<u64, LabError> {
    pass(system, load, SETTLED)?;
    drop(load.observed().take_recent());
    pass(system, load, stretch)?;
    Ok(load.observed().take_recent().value_at_quantile(0.99))
}

/// Lets time pass while looking after the system.
fn pass(system: &mut ScratchSystem, load: &Load, stretch: Duration) -> LabResult {
    let begun = Instant::now();
    while begun.elapsed() < stretch {
        if let Some(death) = system.supervisor.tick().first() {
            return Err(LabError::Failed(format!("{} died while guests came", death.node)));
        }
        if load.is_finished() {
            return Err(LabError::Failed("the load generator ended: a gateway was lost".into()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}
