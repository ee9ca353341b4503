//! Somebody tries keys, on many connections. The promise: nobody is let in, nothing is lost, and the others' latency stays about
//! what it was.
//!
//! ```text
//!  members:   trade ........................................................
//!  guessers:          | try keys |         | try keys |         | try keys |
//!               quiet   attacked     quiet   attacked     quiet   attacked
//! ```
//! Quiet and attacked stretches take turns, so both have seen the same machine in the same minutes; each has a 99th percentile of its own,
//! and their medians are compared.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, Credential, Options, Secret};
use pares_load::{LabError, LabResult, Load, LoadPlan, Rate, ScratchSystem, setup};
use pares_node::SystemConfig;
use pares_node::config::SignOnSetting;
use pares_text::grouped;
use pares_types::{MemberId, Reason};
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use serde::Serialize;

/// Members that trade.
const MEMBERS: u32 = 10;
/// How long the load runs before anything counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// The load's latencies are handed over about that often: what is older belongs to the stretch before.
const SETTLED: Duration = Duration::from_millis(150);

/// The nice value of those who try keys.
const LOWEST: i32 = 19;

/// Arguments of `pares drill wrong-keys`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    /// How often: a quiet stretch, then one in which keys are tried
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// How long each stretch lasts, milliseconds
    #[arg(long, default_value_t = 2_000)]
    stretch_ms: u64,
    /// Wrong keys a second, of all that try them together
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    attempts: u64,
    /// How many try them at once, each on a connection of its own
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// The load and the system; see `pares bench end-to-end --help`
    #[command(flatten)]
    load: setup::Args,
}

/// What the drill gave.
#[derive(Clone, Copy, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    /// The others' 99th percentile in a quiet stretch, microseconds: the median of the stretches.
    p99_us_quiet: f64,
    /// The same while keys were tried.
    p99_us_under_attack: f64,
    /// The second by the first.
    ratio: f64,
    /// Wrong keys that a gateway refused.
    attempts: u64,
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
        let Outcome {
            p99_us_quiet, p99_us_under_attack, ratio, attempts, lost, duplicated, rejected, ..
        } = outcome;
        pares_text::say!("wrong keys refused        {}", grouped(attempts));
        pares_text::say!("the others' p99, quiet    {p99_us_quiet:.1} us");
        pares_text::say!("the others' p99, attacked {p99_us_under_attack:.1} us ({ratio:.2})");
        pares_text::say!("lost, twice, rejected     {lost}, {duplicated}, {rejected}");
    }
    match (outcome.lost, outcome.duplicated, outcome.rejected) {
        (0, 0, 0) => Ok(()),
        _ => Err(LabError::Failed(
            "requests were lost, answered twice or rejected while keys were tried".into(),
        )),
    }
}

fn measure(args: &Args) -> Result<Outcome, LabError> {
    let config = SystemConfig { sign_on: SignOnSetting::Required, ..args.load.config() };
    let mut system = ScratchSystem::start(&config, args.load.dir.clone())?;
    let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, args.load.rate);
    let credentials = system.let_in(MEMBERS)?;
    let addresses = plan.addresses.clone();
    let load = Load::start(LoadPlan { members: MEMBERS, credentials, seed: args.load.seed, ..plan })?;
    let stretch = Duration::from_millis(args.stretch_ms);
    pass(&mut system, &load, WARM_UP)?;
    let (mut quiet, mut attacked, mut attempts) = (Vec::new(), Vec::new(), 0);
    let bar = pares_text::progress::steps("drilling", args.count);
    for _ in 0..args.count {
        quiet.push(p99_ns(&mut system, &load, stretch)?);
        let attack = Attack::start(args, &addresses)?;
        attacked.push(p99_ns(&mut system, &load, stretch)?);
        attempts += attack.end()?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let observed = load.finish()?;
    let [p99_us_quiet, p99_us_under_attack] = [quiet, attacked].map(|p99s| median(p99s) / 1e3);
    Ok(Outcome {
        drill: "wrong-keys",
        p99_us_quiet,
        p99_us_under_attack,
        ratio: p99_us_under_attack / p99_us_quiet,
        attempts,
        lost: observed.in_flight(),
        duplicated: observed.duplicated.load(Ordering::Relaxed),
        rejected: observed.rejected.load(Ordering::Relaxed),
    })
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
            return Err(LabError::Failed(format!("{} died while keys were tried", death.node)));
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

/// Those who try keys.
struct Attack {
    stop: Arc<AtomicBool>,
    guessers: Vec<JoinHandle<Result<u64, LabError>>>,
}

impl Attack {
    fn start(args: &Args, addresses: &[SocketAddr]) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let every =
            Duration::from_secs(1) * args.connections / u32::try_from(args.attempts).expect("checked");
        let guesser = |number: u32| {
            let address = addresses[number as usize % addresses.len()];
            let (first, told) = (every * number / args.connections, Arc::clone(&stop));
            std::thread::Builder::new()
                .name("guesser".into())
                .spawn(move || guess(address, number, (first, every), &told))
                .map_err(LabError::io("starting one who tries keys"))
        };
        let guessers = (0..args.connections).map(guesser).collect::<Result<_, _>>()?;
        Ok(Self { stop, guessers })
    }

    /// How many keys were refused.
    fn end(self) -> Result<u64, LabError> {
        self.stop.store(true, Ordering::Relaxed);
        let join =
            |guesser: JoinHandle<_>| guesser.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.guessers.into_iter().map(join).sum()
    }
}

/// Tries a wrong key every so often, for members that there are and members that there are not. Says how many were refused.
fn guess(
    address: SocketAddr,
    number: u32,
    (first, every): (Duration, Duration),
    stop: &AtomicBool,
) -> Result<u64, LabError> {
    // On other machines they would take no processor time from the exchange.
    let _best_effort = setpriority_process(Some(gettid()), LOWEST);
    let credential = Some(Credential { session: 1, secret: Secret::generate() });
    let options = Options { credential, ..Options::default() };
    let (mut refused, mut due) = (0, Instant::now() + first);
    for turn in 0.. {
        while Instant::now() < due {
            if stop.load(Ordering::Relaxed) {
                return Ok(refused);
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()).min(Duration::from_millis(20)));
        }
        // Who cannot keep pace tries less often.
        due = (due + every).max(Instant::now());
        let member = MemberId(1 + (number + turn) % (2 * MEMBERS));
        match Client::connect_with(address, member, options.clone()) {
            Err(ClientError::Rejected(Reason::WrongKey | Reason::TooManyAttempts)) => refused += 1,
            // No room among those who have not signed on yet.
            Err(ClientError::Rejected(Reason::Overloaded) | ClientError::Closed) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Err(LabError::Failed(format!("member {member} was let in with a wrong key"))),
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(refused)
}
