//! `pares sim`: the whole exchange in virtual time, with faults drawn from a seed.
//!
//! ```text
//!  seeds A..B, or fresh ones from the clock --> each scenario, twice --> all invariants held? both runs alike?
//!                                                                          no: the command that replays it
//! ```
//! Known seeds guard what was once repaired; only fresh ones find what is new. So without seeds named, they count up from
//! the present second, and are printed before anything runs: a failure in the night replays in the morning.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::builder::PossibleValuesParser;
use indicatif::ProgressBar;
use pares_load::{LabError, LabResult, print_figures};
use pares_sim::{Failure, Scenario, Summary, hosts, member, run_traced, run_twice, wice};
use pares_text::progress;
use serde::Serialize;

/// Arguments of `pares sim`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Run one seed
    #[arg(long, value_name = "S", conflicts_with_all = ["seeds", "minutes", "until_failure"])]
    seed: Option<u64>,
    /// Run the seeds from A to B, excluding B
    #[arg(long, value_name = "A..B", value_parser = parse_seeds, conflicts_with_all = ["minutes", "until_failure"])]
    seeds: Option<Seeds>,
    /// Run random seeds for this many minutes of real time [default: 1, unless seeds are named]
    #[arg(long, value_name = "M", conflicts_with = "until_failure")]
    minutes: Option<f64>,
    /// Run random seeds until one fails
    #[arg(long)]
    until_failure: bool,
    /// A scenario, or all. Scenarios `sites...` simulate replicated clusters, with versions in place of positions
    /// and eras in place of epochs
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = scenarios())]
    scenario: String,
    /// Print one line per event; each seed then runs only once
    #[arg(long, conflicts_with = "json")]
    trace: bool,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Seeds from the first up to the second, exclusive.
#[derive(Clone, Copy, Debug)]
struct Seeds(u64, u64);

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let (from, to) = text.split_once("..").ok_or("expected two numbers, as in 0..1000")?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is not a number"));
    match (number(from)?, number(to)?) {
        (from, to) if from < to => Ok(Seeds(from, to)),
        _ => Err("the range of seeds is empty".into()),
    }
}

fn scenarios() -> PossibleValuesParser {
    names("all").into_iter().chain(["sites", "all"]).into()
}

/// What the seeds of one scenario did.
#[derive(Clone, Debug, Default, Serialize)]
struct Totals {
    scenario: &'static str,
    /// Seeds that held.
    seeds: u64,
    /// Virtual time of the first run of each.
    virtual_seconds: f64,
    requests: u64,
    positions: u64,
    trades: u64,
    faults: u64,
    epochs: u64,
}

impl Totals {
    fn add(&mut self, summary: &Summary) {
        self.seeds += 1;
        self.virtual_seconds += summary.took_ns as f64 / 1e9;
        self.requests += summary.requests;
        self.positions += summary.positions;
        self.trades += summary.trades;
        self.faults += summary.faults;
        self.epochs += summary.epochs;
    }
}

/// A seed that broke an invariant.
#[derive(Clone, Debug, Serialize)]
struct Found {
    scenario: &'static str,
    seed: u64,
    invariant: &'static str,
    what: String,
    replay: String,
}

impl Found {
    fn new(failure: &Failure) -> Self {
        let Failure { scenario, seed, invariant, .. } = *failure;
        let replay = failure.replay();
        Self { scenario, seed, invariant, what: failure.what.clone(), replay }
    }
}

/// What all seeds did.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    first_seed: u64,
    scenarios: Vec<Totals>,
    failures: Vec<Found>,
    seconds: f64,
}

/// Runs seeds until there are no more, time is up or one fails.
///
/// # Errors
/// If an invariant was found broken, or two runs of one seed differ.
pub fn run(args: &Args) -> LabResult {
    let started = Instant::now();
    let (seeds, limit) = plan(args)?;
    if !args.json {
        let until = if seeds.1 == u64::MAX { "on".to_owned() } else { format!("to {}", seeds.1 - 1) };
        pares_text::print(&format!("seeds {} {until}, scenario {}", seeds.0, args.scenario));
    }
    let bar = bar(seeds, limit);
    let mut totals: Vec<Totals> =
        names(&args.scenario).into_iter().map(|scenario| Totals { scenario, ..Totals::default() }).collect();
    let mut failures = Vec::new();
    'seeds: for seed in seeds.0..seeds.1 {
        for of_scenario in &mut totals {
            if limit.is_some_and(|limit| started.elapsed() >= limit) {
                break 'seeds;
            }
            match run_one(of_scenario.scenario, seed, args.trace) {
                Ok(summary) => of_scenario.add(&summary),
                Err(failure) => {
                    pares_text::aside!("{failure}");
                    failures.push(Found::new(&failure));
                    break 'seeds;
                }
            }
        }
        show(&bar, limit, started, seed - seeds.0 + 1);
    }
    bar.finish_and_clear();
    tell(
        args,
        Figures {
            first_seed: seeds.0,
            scenarios: totals,
            failures,
            seconds: started.elapsed().as_secs_f64(),
        },
    )
}

/// Which seeds, and for how long at most.
fn plan(args: &Args) -> Result<(Seeds, Option<Duration>), LabError> {
    if let Some(seeds) = args.seed.map(|seed| Seeds(seed, seed.saturating_add(1))).or(args.seeds) {
        return Ok((seeds, None));
    }
    let fresh = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let minutes = args.minutes.unwrap_or(1.0);
    let limit = Duration::try_from_secs_f64(minutes * 60.0)
        .map_err(|_| LabError::Usage(format!("{minutes} is not a number of minutes")))?;
    Ok((Seeds(fresh, u64::MAX), Some(limit).filter(|_| !args.until_failure)))
}

fn names(scenario: &str) -> Vec<&'static str> {
    let sites = wice::Plan::ALL.map(|plan| plan.name);
    let others = [hosts::HostsPlan::NAME, member::MemberPlan::NAME];
    let all = Scenario::names().into_iter().chain(others).chain(sites);
    let wanted = |name: &str| match scenario {
        "all" => true,
        "sites" => sites.contains(&name),
        one => one == name,
    };
    all.filter(|name| wanted(name)).collect()
}

fn run_one(name: &str, seed: u64, trace: bool) -> Result<Summary, Box<Failure>> {
    if let Some(plan) = wice::Plan::ALL.into_iter().find(|plan| plan.name == name) {
        return run_sites(plan, seed, trace);
    }
    if name == member::MemberPlan::NAME {
        return run_member(&member::MemberPlan::of(seed), trace);
    }
    if name == hosts::HostsPlan::NAME {
        return run_hosts(&hosts::HostsPlan::of(seed), trace);
    }
    let scenario = Scenario::named(name, seed).expect("the name was checked");
    match trace {
        true => run_traced(&scenario, &mut |line| pares_text::say!("{line}")),
        false => run_twice(&scenario),
    }
}

/// A member's system, in the terms of the exchange's simulation.
fn run_member(plan: &member::MemberPlan, trace: bool) -> Result<Summary, Box<Failure>> {
    let done = match trace {
        true => member::run_traced(plan, &mut |line| pares_text::say!("{line}"))?,
        false => member::run_twice(plan)?,
    };
    Ok(Summary {
        took_ns: done.took_ns,
        requests: done.submitted,
        positions: done.positions,
        faults: done.faults,
        epochs: done.epochs,
        ..Summary::default()
    })
}

/// Several hosts, in the terms of the simulation of one: starts of hosts in place of epochs.
fn run_hosts(plan: &hosts::HostsPlan, trace: bool) -> Result<Summary, Box<Failure>> {
    let done = match trace {
        true => hosts::run_traced(plan, &mut |line| pares_text::say!("{line}"))?,
        false => hosts::run_twice(plan)?,
    };
    let hosts::HostsSummary { took_ns, requests, faults, .. } = done;
    let epochs = done.restarts + u64::from(plan.hosts);
    Ok(Summary { took_ns, requests, positions: requests, faults, epochs, ..Summary::default() })
}

/// Replication between clusters, in the terms of the exchange's simulation.
fn run_sites(plan: wice::Plan, seed: u64, trace: bool) -> Result<Summary, Box<Failure>> {
    let failure = |invariant, at_us: u64, what: String| {
        let what = format!("at {at_us} us: {what}");
        Failure { scenario: plan.name, seed, invariant, what, trace: Vec::new() }
    };
    let first = if trace {
        let (lines, result) = wice::run_traced(plan, seed);
        lines.iter().for_each(|line| pares_text::say!("{line}"));
        result
    } else {
        wice::run(plan, seed)
    };
    let first = first.map_err(|found| failure("a promise of replication", found.at_us, found.what))?;
    if !trace && wice::run(plan, seed) != Ok(first) {
        return Err(Box::new(failure("a seed is reproducible", first.took_us, "two runs differ".into())));
    }
    Ok(Summary {
        took_ns: first.took_us * 1_000,
        requests: first.committed,
        positions: first.versions,
        faults: first.faults,
        epochs: first.eras,
        ..Summary::default()
    })
}

fn bar(seeds: Seeds, limit: Option<Duration>) -> ProgressBar {
    match limit {
        Some(limit) => progress::seconds("simulating", limit.as_secs()),
        None if seeds.1 == u64::MAX => ProgressBar::new_spinner().with_message("simulating"),
        None => progress::rate("seeds", seeds.1 - seeds.0),
    }
}

fn show(bar: &ProgressBar, limit: Option<Duration>, started: Instant, done: u64) {
    match limit {
        Some(_) => bar.set_position(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
        None => bar.set_position(done),
    }
}

fn tell(args: &Args, figures: Figures) -> LabResult {
    print_figures(args.json, &figures);
    match figures.failures.into_iter().next() {
        None => Ok(()),
        Some(Found { invariant, replay, .. }) => {
            Err(LabError::Failed(format!("broken: {invariant}; replay it: {replay}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_two_numbers_in_order() {
        assert!(matches!(parse_seeds("3..9"), Ok(Seeds(3, 9))));
        for wrong in ["9..3", "3..3", "3", "a..b"] {
            assert!(parse_seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scenario_is_one_that_exists_or_all_of_them() {
        assert!(names("all").starts_with(&Scenario::names()));
        assert_eq!(names("sites").len(), wice::Plan::ALL.len());
        assert_eq!((names("power"), names("hosts")), (vec!["power"], vec!["hosts"]));
    }
}
