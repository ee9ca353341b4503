//! The two books side by side over random requests that nobody has tried: `cargo xtask compare` builds and runs it.
//!
//! ```text
//! compare                        a minute over fresh seeds, on all cores
//! compare --minutes M            so many minutes
//! compare --requests N           so many requests
//! compare --threads T            on so many cores; --from S: over the seeds from S on
//! compare --seed S               that seed once more; if the books differ, the fewest requests that show it
//! ```
//!
//! The requests and the comparison are those of the tests of `pares-book`: about a thousand requests a seed, everything
//! compared after each.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line talks

use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use pares_book::{FastBook, NaiveBook};
use pares_exercise::compare::{ComparePace, CompareTally, compare_books, shortened};
use pares_exercise::requests::Requests;
use pares_random::Random;
use pares_types::Status;

/// Of one seed: about a thousand requests.
const RUN_BYTES: usize = 10_000;
/// With so many seeds that differ there is nothing more to learn.
const DIFFERENCES_MAX: usize = 8;

/// What is asked for.
struct Plan {
    /// Only this seed.
    seed: Option<u64>,
    from: u64,
    requests: u64,
    time: Duration,
    threads: u64,
}

/// What has been done, by all threads.
struct Done {
    begun: Instant,
    next_seed: AtomicU64,
    seeds: AtomicU64,
    total: Mutex<Total>,
}

#[derive(Default)]
struct Total {
    requests: u64,
    events: u64,
    refused: u64,
    /// Seeds, and what was said of the difference.
    differences: Vec<(u64, String)>,
}

fn main() -> ExitCode {
    let result = match plan(std::env::args().skip(1)) {
        Ok(Plan { seed: Some(seed), .. }) => replay(seed),
        Ok(plan) => search(&plan),
        Err(why) => Err(why),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn plan(mut arguments: impl Iterator<Item = String>) -> Result<Plan, String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    // Milliseconds times a thousand: no two runs meet, and a seed is still short enough to type.
    let from = now.as_millis() as u64 % 1_000_000_000 * 1_000;
    let mut plan = Plan { seed: None, from, requests: u64::MAX, time: Duration::MAX, threads };
    while let Some(name) = arguments.next() {
        let value =
            arguments.next().and_then(|value| value.parse::<f64>().ok().map(|number| (value, number)));
        let Some((value, number)) = value.filter(|(_, number)| *number >= 0.0) else {
            return Err(format!("{name}: a number is missing"));
        };
        let whole = value.parse().unwrap_or(number as u64);
        match name.as_str() {
            "--minutes" => plan.time = Duration::from_secs_f64((number * 60.0).min(1e9)),
            "--requests" => plan.requests = whole,
            "--seed" => plan.seed = Some(whole),
            "--from" => plan.from = whole,
            "--threads" => plan.threads = whole.max(1),
            _ => return Err(format!("{name}: --minutes, --requests, --seed, --from or --threads")),
        }
    }
    if plan.requests == u64::MAX && plan.time == Duration::MAX {
        plan.time = Duration::from_secs(60);
    }
    Ok(plan)
}

/// Goes through seeds until the plan is done.
fn search(plan: &Plan) -> Result<(), String> {
    // What a difference says is kept, and told at the end.
    std::panic::set_hook(Box::new(|_| {}));
    let done = Done {
        begun: Instant::now(),
        next_seed: AtomicU64::new(plan.from),
        seeds: AtomicU64::new(0),
        total: Mutex::default(),
    };
    println!("comparing on {} cores, seeds from {}", plan.threads, plan.from);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..plan.threads).map(|_| scope.spawn(|| while go_on(plan, &done) {})).collect();
        let mut told = Duration::ZERO;
        let pause = Duration::from_secs(if std::io::stdout().is_terminal() { 1 } else { 30 });
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(100));
            if done.begun.elapsed() - told >= pause {
                told = done.begun.elapsed();
                tell_progress(&done);
            }
        }
    });
    tell_end(plan, &done)
}

/// One seed, if there is time for it.
fn go_on(plan: &Plan, done: &Done) -> bool {
    let is_over = |total: &Total| {
        total.requests >= plan.requests
            || done.begun.elapsed() >= plan.time
            || total.differences.len() >= DIFFERENCES_MAX
    };
    if is_over(&done.total.lock().unwrap_or_else(PoisonError::into_inner)) {
        return false;
    }
    let seed = done.next_seed.fetch_add(1, Relaxed);
    let mut tally = CompareTally::default();
    let difference = run(seed, &mut tally);
    let mut total = done.total.lock().unwrap_or_else(PoisonError::into_inner);
    total.requests += tally.requests;
    total.events += tally.events.iter().sum::<u64>();
    total.refused += tally.statuses[Status::Refused as usize];
    total.differences.extend(difference.map(|why| (seed, why)));
    done.seeds.fetch_add(1, Relaxed);
    true
}

/// Compares over one seed; what was said if the books differ.
fn run(seed: u64, tally: &mut CompareTally) -> Option<String> {
    let bytes = bytes_of(seed);
    let run = || compare_books::<NaiveBook, FastBook>(&bytes, ComparePace::THOROUGH, tally);
    let why = catch_unwind(AssertUnwindSafe(run)).err()?;
    let said = why.downcast_ref::<String>().cloned();
    Some(said.or_else(|| why.downcast_ref::<&str>().map(|&said| said.into())).unwrap_or_default())
}

fn bytes_of(seed: u64) -> Vec<u8> {
    Random::new(seed).bytes(RUN_BYTES)
}

fn tell_progress(done: &Done) {
    let total = done.total.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = done.begun.elapsed().as_secs();
    let (start, end) = if std::io::stdout().is_terminal() { ("\r", "") } else { ("", "\n") };
    print!(
        "{start}{:>3}:{:02}  {} requests, {} events, {} seeds, {} differ{end}",
        seconds / 60,
        seconds % 60,
        total.requests,
        total.events,
        done.seeds.load(Relaxed),
        total.differences.len(),
    );
    // A progress nobody reads is no reason to stop.
    let _shown = std::io::stdout().flush();
}

fn tell_end(plan: &Plan, done: &Done) -> Result<(), String> {
    let total = done.total.lock().unwrap_or_else(PoisonError::into_inner);
    let (seeds, seconds) = (done.seeds.load(Relaxed), done.begun.elapsed().as_secs_f64());
    println!(
        "\n{} requests compared ({} of them refused), {} events, {seeds} seeds from {} on, {seconds:.0} s",
        total.requests, total.refused, total.events, plan.from
    );
    if total.differences.is_empty() {
        println!("the books are equal");
        return Ok(());
    }
    for (seed, why) in &total.differences {
        println!("\nseed {seed}: {why}\nto see it again: cargo xtask compare --seed {seed}");
    }
    Err(format!("the books differ over {} of the seeds", total.differences.len()))
}

/// One seed once more; if the books differ, the fewest requests that show it.
fn replay(seed: u64) -> Result<(), String> {
    let mut tally = CompareTally::default();
    if run(seed, &mut tally).is_none() {
        println!("seed {seed}: {} requests, the books are equal", tally.requests);
        return Ok(());
    }
    std::panic::set_hook(Box::new(|_| {}));
    let rules = Requests::of_a_book(&bytes_of(seed)).instruments()[0];
    let fewest = shortened::<NaiveBook, FastBook>(rules, &tally.last_run);
    println!("\n{rules:?}");
    for request in fewest.as_ref().unwrap_or(&tally.last_run) {
        println!("{request:?}");
    }
    Err(format!("seed {seed}: the books differ at request {}", tally.requests + 1))
}
