//! Some hundred seeds of each scenario, the seeds that once failed, and the same seed twice.

use pares_sim::{Engines, FaultMix, Ills, Scenario, run, run_twice};

/// Runs seeds; a failure shows its trace and the command that replays it.
fn hold(name: &str, seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        let scenario = Scenario::named(name, seed).expect("a known name");
        run(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"));
    }
}

#[test]
fn venues_that_come_and_go_disturb_nobody() {
    hold("quick", 0..60);
}

#[test]
fn crashes_of_everything_lose_nothing() {
    hold("crashes", 0..60);
}

#[test]
fn power_failures_take_back_no_answer() {
    hold("power", 0..60);
}

#[test]
fn cut_links_heal_without_a_trace() {
    hold("partition", 0..60);
}

#[test]
fn overload_is_refused_and_passes() {
    hold("overload", 0..60);
}

#[test]
fn disks_that_fail_lose_nothing() {
    hold("disks", 0..60);
}

#[test]
fn clocks_that_jump_change_nothing_that_was_answered() {
    hold("clocks", 0..60);
}

#[test]
fn engines_that_fail_leave_one_history() {
    hold("poison", 0..60);
}

#[test]
fn lost_disks_take_no_answer_with_them() {
    hold("wipes", 0..60);
}

#[test]
fn damaged_logs_are_repaired_from_the_others() {
    hold("rot", 0..60);
}

/// One venue has other rules: where its results or a state hash show it, all recorders halt, and take nothing more.
#[test]
fn a_build_with_other_rules_is_found_and_goes_on_nowhere() {
    let ills: Vec<Ills> = (0..40)
        .map(|seed| run(&Scenario::versions(seed)).unwrap_or_else(|failure| panic!("\n{failure}")).ills)
        .collect();
    let found = ills.iter().filter(|ills| ills.divergences > 0).count();
    assert!(found >= 20, "{found}");
}

/// Where poison brings down one shard of every venue, the others' answers are held to their bound (invariants I4 and I7).
#[test]
fn poison_in_one_shard_delays_nobody_in_another() {
    let (mut engines, mut held) = (0, 0);
    for seed in 0..40 {
        let faults = FaultMix { poison_permille: 30, poison_shards: 1, ..FaultMix::default() };
        let scenario = Scenario { faults, ..Scenario::quick(seed) };
        let summary = run(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"));
        held += u64::from(summary.completion_max_ns > 0);
        engines += summary.engines.failed;
    }
    assert!(engines > 100 && held > 30, "{engines} failures, requests held to a bound in {held} seeds");
}

/// With a quorum left, nothing that befalls a recorder is an excuse for a late answer (invariants I4 and I8).
#[test]
fn a_recorder_in_trouble_delays_nobody() {
    const MS: u64 = 1_000_000;
    let mut held = 0;
    for seed in 0..100 {
        let scenario = Scenario {
            recorders: 3,
            quorum: 1 + (seed % 2) as usize,
            faults: FaultMix {
                recorder_crash_ns: 20 * MS,
                recorder_pause_ns: 20 * MS,
                recorder_full_ns: 20 * MS,
                wipe_ns: 20 * MS,
                ..FaultMix::default()
            },
            ..Scenario::quick(seed)
        };
        let summary = run(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"));
        held += u64::from(summary.completion_max_ns > 0);
    }
    assert!(held > 80, "requests held to a bound in {held} seeds");
}

/// Clients that sign on twice, speak in another's name, send rubbish or half a frame, or say nothing, harm nobody else.
#[test]
fn what_no_client_should_do_harms_nobody_else() {
    let mut hostile = 0;
    for seed in 0..60 {
        let faults = FaultMix { hostile_permille: 200, ..FaultMix::default() };
        let scenario = Scenario { faults, ..Scenario::quick(seed) };
        let summary = run(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"));
        hostile += summary.hostile;
    }
    assert!(hostile > 1_000, "{hostile}");
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
    assert!(sum("quick", |summary| summary.too_far_behind) > 10);
    assert!(sum("quick", |summary| summary.trades) > 1_000);
    assert!(sum("quick", |summary| summary.duplicates_refused) > 10);
    assert!(sum("quick", |summary| summary.checkpoints) > 100);
    assert!(sum("overload", |summary| summary.window_full) > 100);
    assert!(sum("overload", |summary| summary.rejected) > 1_000);
    assert!(sum("overload", |summary| summary.ills.refused_unrecorded) > 10);
    assert!(sum("crashes", |summary| summary.repeats) > 100);
    assert!(sum("power", |summary| summary.epochs) > 80);
}

/// The same of engines.
#[test]
fn the_rare_failures_of_engines_occur() {
    let all: Vec<_> = (0..120).map(|seed| run(&Scenario::poison(seed)).unwrap().engines).collect();
    let sum = |count: fn(&Engines) -> u64| -> u64 { all.iter().map(count).sum() };
    for (what, seen, least) in [
        ("by themselves", sum(|engines| engines.by_themselves), 300),
        ("deaths", sum(|engines| engines.deaths), 50),
        ("restored", sum(|engines| engines.restored), 500),
        ("voids", sum(|engines| engines.voids), 100),
        ("quarantined", sum(|engines| engines.quarantined), 1_000),
    ] {
        assert!(seen >= least, "{what}: {seen}");
    }
}

/// The same of disks and clocks.
#[test]
fn the_rare_faults_occur() {
    let all: Vec<Ills> = ["disks", "clocks", "wipes", "rot"]
        .into_iter()
        .flat_map(|name| (0..60).map(move |seed| Scenario::named(name, seed).unwrap()))
        .map(|scenario| run(&scenario).unwrap().ills)
        .collect();
    let sum = |count: fn(&Ills) -> u64| -> u64 { all.iter().map(count).sum() };
    for (what, seen, least) in [
        ("full", sum(|ills| ills.full), 300),
        ("refused for room", sum(|ills| ills.refused_for_room), 300),
        ("slow", sum(|ills| ills.slow), 100),
        ("failed syncs", sum(|ills| ills.syncs_failed), 20),
        ("wiped", sum(|ills| ills.wiped), 50),
        ("venues wiped", sum(|ills| ills.venues_wiped), 100),
        ("gateways wiped", sum(|ills| ills.gateways_wiped), 50),
        ("damaged", sum(|ills| ills.damaged), 200),
        ("exhausted", sum(|ills| ills.exhausted), 50),
        ("torn", sum(|ills| ills.torn), 50),
        ("clock jumps", sum(|ills| ills.clock_jumps), 300),
    ] {
        assert!(seen >= least, "{what}: {seen}");
    }
}
