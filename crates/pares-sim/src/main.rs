//! Runs seeds of the simulator: `pares-sim --seeds 0..1000 --scenario crashes`.

use std::ops::Range;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pares_sim::{Failure, Scenario, Summary, run, run_traced};

const USAGE: &str = "\
Simulates the whole exchange in virtual time and checks its invariants.

Usage: pares-sim [--seed N | --seeds A..B] [--scenario NAME] [--trace]

  --seed N         run one seed and print what it did (default 1)
  --seeds A..B     run the seeds A to B, B excluded; stop at the first that fails
  --scenario NAME  quick, crashes, power, partition, overload, or all (default quick)
  --trace          print one line per event";

struct Arguments {
    seeds: Range<u64>,
    scenario: String,
    trace: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { seeds: 1..2, scenario: "quick".into(), trace: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is not a number"));
        match word.as_str() {
            "--seed" => {
                let seed = number(&value()?)?;
                arguments.seeds = seed..seed.saturating_add(1);
            }
            "--seeds" => {
                let text = value()?;
                let (from, to) = text.split_once("..").ok_or("--seeds wants A..B")?;
                arguments.seeds = number(from)?..number(to)?;
            }
            "--scenario" => arguments.scenario = value()?,
            "--trace" => arguments.trace = true,
            _ => return Err(format!("unknown option {word}")),
        }
    }
    let known = arguments.scenario == "all" || Scenario::NAMES.contains(&arguments.scenario.as_str());
    if known { Ok(arguments) } else { Err(format!("no scenario is called {}", arguments.scenario)) }
}

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line")]
fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let names = match arguments.scenario.as_str() {
        "all" => Scenario::NAMES.to_vec(),
        name => vec![name],
    };
    for name in names {
        if let Err(failure) = run_seeds(name, &arguments) {
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line")]
fn run_seeds(name: &str, arguments: &Arguments) -> Result<(), Box<Failure>> {
    let started = Instant::now();
    let mut told = started;
    let (mut done, mut positions, mut faults) = (0_u64, 0, 0);
    let mut last = Summary::default();
    for seed in arguments.seeds.clone() {
        let scenario = Scenario::named(name, seed).expect("the name was checked");
        last = match arguments.trace {
            true => run_traced(&scenario, &mut |line| println!("{line}"))?,
            false => run(&scenario)?,
        };
        (done, positions, faults) = (done + 1, positions + last.positions, faults + last.faults);
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            eprintln!("{name}: {done} of {} seeds", arguments.seeds.end - arguments.seeds.start);
        }
    }
    if done == 1 {
        println!("{last:#?}");
    }
    let millis = started.elapsed().as_millis().max(1);
    let rate = u128::from(done) * 1_000 / millis;
    println!("{name}: {done} seeds held, {positions} positions, {faults} faults, {rate} seeds/s");
    Ok(())
}
