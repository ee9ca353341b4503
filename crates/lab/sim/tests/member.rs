//! A member's servers and traders under seeded faults: the promises hold, and the checkers see when they do not.

use pares_sim::Bug;
use pares_sim::member::{Plan, Summary, run, run_twice};

fn hold(seeds: impl IntoIterator<Item = u64>) -> Vec<Summary> {
    let run = |seed| run(&Plan::of(seed)).unwrap_or_else(|failure| panic!("\n{failure}"));
    seeds.into_iter().map(run).collect()
}

#[test]
fn what_a_trader_submits_stands_once_whoever_dies_and_whatever_is_lost() {
    let runs = hold(0..64);
    let rare: [(&str, fn(&Summary) -> u64, u64); 1] = [("told", |run| run.told, 10_000)];
    for (what, count, least) in rare {
        let seen: u64 = runs.iter().map(count).sum();
        assert!(seen >= least, "{what}: {seen}");
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in [7, 8] {
        run_twice(&Plan::of(seed)).unwrap_or_else(|failure| panic!("\n{failure}"));
    }
}

#[test]
#[ignore]
fn explore() {
    let from: u64 = std::env::var("FROM").map_or(0, |from| from.parse().unwrap());
    let to: u64 = std::env::var("TO").map_or(50, |to| to.parse().unwrap());
    let bug = match std::env::var("BUG").as_deref() {
        Ok("quorum") => Some(Bug::TellBeforeQuorum),
        Ok("propose") => Some(Bug::ProposeBeforeFilled),
        Ok("life") => Some(Bug::KeepLife),
        Ok("stream") => Some(Bug::KeepStream),
        Ok("once") => Some(Bug::SayOnce),
        Ok("bare") => Some(Bug::BareSlots),
        _ => None,
    };
    let mut sum = Vec::new();
    for seed in from..to {
        let plan = Plan { bug, ..Plan::of(seed) };
        match run(&plan) {
            Ok(summary) => sum.push(summary),
            Err(failure) => println!(
                "{seed}: {} {}",
                failure.invariant,
                failure.what.chars().take(600).collect::<String>()
            ),
        }
    }
    let add = |of: fn(&Summary) -> u64| sum.iter().map(of).sum::<u64>();
    println!(
        "submitted {} refused {} positions {} repeats {} told {} placed {} on {} faults {} wiped {} behind {} slow {} epochs {} streams {} stuck {} s {}",
        add(|s| s.submitted),
        add(|s| s.refused),
        add(|s| s.positions),
        add(|s| s.repeats),
        add(|s| s.told),
        add(|s| s.placed),
        add(|s| s.signed_on),
        add(|s| s.faults),
        add(|s| s.wiped),
        add(|s| s.killed_behind),
        add(|s| s.too_slow),
        add(|s| s.epochs),
        add(|s| s.streams),
        add(|s| s.stuck),
        add(|s| s.took_ns / 1_000_000_000)
    );
}

#[test]
#[ignore]
fn trace_one() {
    let seed: u64 = std::env::var("FROM").unwrap().parse().unwrap();
    let failed = pares_sim::member::run_traced(&Plan::of(seed), &mut |line| println!("{line}"));
    println!("{:?}", failed.map_err(|failure| failure.what));
}
