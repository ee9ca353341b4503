//! Some hundred seeds of each scenario, the seeds that once failed, and the same seed twice.

use pares_sim::{Scenario, run, run_twice};

/// Runs seeds; a failure shows its trace and the command that replays it.
fn hold(name: &str, seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        let scenario = Scenario::named(name, seed).expect("a known name");
        run(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"));
    }
}

#[test]
fn venues_that_come_and_go_disturb_nobody() {
    hold("quick", 0..300);
}

#[test]
fn crashes_of_everything_lose_nothing() {
    hold("crashes", 0..300);
}

#[test]
fn power_failures_take_back_no_answer() {
    hold("power", 0..300);
}

#[test]
fn cut_links_heal_without_a_trace() {
    hold("partition", 0..200);
}

#[test]
fn overload_is_refused_and_passes() {
    hold("overload", 0..200);
}

/// Seeds that once showed a defect, each with what it was.
#[test]
fn seeds_that_once_failed_hold() {
    // A gateway used a sequence again that one recorder, too few for a quorum, held across a power failure.
    hold("power", [9, 20]);
    // A checkpoint outlived the records below it, and was restored once the new history had grown past it.
    hold("power", [26, 146]);
    // A recorder lacked what only its peer had, no venue could go on without it, and so nobody made it look.
    hold("power", [2]);
    hold("crashes", [4]);
    // The new epoch began before records that were kept though they had never been published.
    hold("power", [0]);
    // A venue that woke up read on in the gateways' logs, however much was pending.
    hold("overload", [17]);
}

#[test]
fn the_same_seed_is_the_same_history() {
    for name in Scenario::NAMES {
        for seed in [7, 8] {
            let scenario = Scenario::named(name, seed).unwrap();
            run_twice(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"));
        }
    }
}

#[test]
fn different_seeds_are_different_histories() {
    let hash = |seed| run(&Scenario::quick(seed)).unwrap().trace_hash;
    assert_ne!(hash(1), hash(2));
}

/// A checker that never sees the rare cases proves nothing: they must occur.
#[test]
fn the_rare_cases_occur() {
    let sum = |name: &str, count: fn(&pares_sim::Summary) -> u64| -> u64 {
        (0..40).map(|seed| count(&run(&Scenario::named(name, seed).unwrap()).unwrap())).sum()
    };
    for (what, seen) in [
        ("triggered", sum("quick", |summary| summary.seen.triggered)),
        ("repriced", sum("quick", |summary| summary.seen.repriced)),
        ("auctioned", sum("quick", |summary| summary.seen.auctioned)),
        ("refilled", sum("quick", |summary| summary.seen.refilled)),
        ("self-trades", sum("quick", |summary| summary.seen.self_trades)),
        ("expired", sum("quick", |summary| summary.seen.expired)),
        ("blocked", sum("quick", |summary| summary.seen.blocked)),
        ("volatility calls", sum("quick", |summary| summary.seen.volatility_calls)),
        ("unfinished", sum("quick", |summary| summary.seen.unfinished)),
    ] {
        assert!(seen >= 20, "{what}: {seen}");
    }
    assert!(sum("quick", |summary| summary.too_far_behind) > 100);
    assert!(sum("quick", |summary| summary.trades) > 1_000);
    assert!(sum("quick", |summary| summary.duplicates_refused) > 10);
    assert!(sum("quick", |summary| summary.checkpoints) > 100);
    assert!(sum("overload", |summary| summary.window_full) > 1_000);
    assert!(sum("overload", |summary| summary.rejected) > 1_000);
    assert!(sum("crashes", |summary| summary.repeats) > 100);
    assert!(sum("power", |summary| summary.epochs) > 80);
}
