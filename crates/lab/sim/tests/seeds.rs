//! Some seeds of each scenario, held to every invariant and to the rare cases they are there for. `cargo xtask test`
//! adds a minute of seeds that nobody has seen. A checker that never sees a rare case proves nothing about it.

use pares_sim::{Fault, FaultMix, Scenario, Summary, run, run_twice};

/// Out of ten seeds the gate runs so many; `cargo xtask test --all` runs all (`PARES_SEEDS=all`).
const OF_TEN: u64 = 3;

fn runs_all() -> bool {
    std::env::var("PARES_SEEDS").is_ok_and(|which| which == "all")
}

/// How often a case must come up in the seeds that run, if it does so often in all of them. The few of a rare one may all lie in the
/// others.
fn at_least(in_all: u64) -> u64 {
    match (runs_all(), in_all) {
        (true, _) => in_all,
        (false, ..30) => 0,
        (false, _) => in_all * OF_TEN / 10,
    }
}

/// The first seeds of so many.
fn some(count: u64) -> std::ops::Range<u64> {
    0..if runs_all() { count } else { (count * OF_TEN).div_ceil(10) }
}

/// The scenario of that name.
fn standard(name: &str, seed: u64) -> Scenario {
    Scenario::named(name, seed).expect("a known name")
}

/// What runs of some seeds did.
struct Runs(Vec<Summary>);

/// Runs seeds of a scenario.
fn hold(name: &str, seeds: impl IntoIterator<Item = u64>) -> Runs {
    hold_each(seeds.into_iter().map(|seed| standard(name, seed)))
}

/// Runs scenarios; a failure shows its trace and the command that replays it.
fn hold_each(scenarios: impl Iterator<Item = Scenario>) -> Runs {
    Runs(scenarios.map(|scenario| run(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"))).collect())
}

/// A case, where a run counts it, and how often all runs must have met it.
type Rare = (&'static str, fn(&Summary) -> u64, u64);

impl Runs {
    fn met(&self, rare: &[Rare]) {
        for (what, count, least) in rare {
            let seen: u64 = self.0.iter().map(count).sum();
            let least = at_least(*least);
            assert!(seen >= least, "{what}: {seen} in {} runs", self.0.len());
        }
    }
}

#[test]
fn venues_that_come_and_go_disturb_nobody() {
    hold("quick", some(40)).met(&[
        ("trades", |run| run.trades, 1_000),
        ("triggered", |run| run.seen.triggered, 20),
        ("repriced", |run| run.seen.repriced, 20),
        ("auctioned", |run| run.seen.auctioned, 20),
        ("refilled", |run| run.seen.refilled, 20),
        ("continued", |run| run.seen.continued, 20),
        ("extended", |run| run.seen.extended, 5),
        ("self-trades", |run| run.seen.self_trades, 20),
        ("expired", |run| run.seen.expired, 20),
        ("blocked", |run| run.seen.blocked, 20),
        ("volatility calls", |run| run.seen.volatility_calls, 20),
        ("unfinished", |run| run.seen.unfinished, 20),
        ("too far behind", |run| run.too_far_behind, 10),
        ("duplicates refused", |run| run.duplicates_refused, 1),
        ("checkpoints", |run| run.checkpoints, 100),
    ]);
}

#[test]
fn crashes_of_everything_lose_nothing() {
    hold("crashes", some(40))
        .met(&[("repeats", |run| run.repeats, 100), ("connections taped", |run| run.taped, 100)]);
}

#[test]
fn power_failures_take_back_no_answer() {
    // 1795649117: a gateway started from a checkpoint that one recorder of three had reached, and answered what lay below.
    hold("power", some(40).chain([1_795_649_117])).met(&[("epochs", |run| run.epochs, 80)]);
}

#[test]
fn cut_links_heal_without_a_trace() {
    hold("partition", some(40));
}

#[test]
fn overload_is_refused_and_passes() {
    hold("overload", some(40)).met(&[
        ("window full", |run| run.window_full, 100),
        ("rejected", |run| run.rejected, 1_000),
        ("refused and not recorded", |run| run.ills.refused_unrecorded, 10),
        ("names looked for on disk", |run| run.looked_up, 10),
        ("orders told", |run| run.orders_told, 1_000),
    ]);
}

#[test]
fn flood_waits_stay_short_cancels_first_nobody_starved() {
    hold("flood", some(if runs_all() { 20 } else { 6 })).met(&[("rejected", |run| run.rejected, 10_000)]);
}

#[test]
fn disks_that_fail_lose_nothing() {
    hold("disks", some(40)).met(&[
        ("full", |run| run.ills.full, 100),
        ("lost by taps", |run| run.tap_lost, 10),
        ("refused for room", |run| run.ills.refused_for_room, 100),
        ("slow", |run| run.ills.slow, 50),
        ("failed syncs", |run| run.ills.syncs_failed, 10),
        ("exhausted", |run| run.ills.exhausted, 20),
        ("torn", |run| run.ills.torn, 20),
    ]);
}

#[test]
fn clocks_that_jump_change_nothing_that_was_answered() {
    hold("clocks", some(40)).met(&[("clock jumps", |run| run.ills.clock_jumps, 200)]);
}

#[test]
fn engines_that_fail_leave_one_history() {
    hold("poison", some(60)).met(&[
        ("by themselves", |run| run.engines.by_themselves, 150),
        ("deaths", |run| run.engines.deaths, 25),
        ("restored", |run| run.engines.restored, 250),
        ("voids", |run| run.engines.voids, 50),
        ("quarantined", |run| run.engines.quarantined, 500),
    ]);
}

#[test]
fn lost_disks_take_no_answer_with_them() {
    hold("wipes", some(40)).met(&[
        ("recorders wiped", |run| run.ills.wiped, 20),
        ("venues wiped", |run| run.ills.venues_wiped, 20),
        ("gateways wiped", |run| run.ills.gateways_wiped, 20),
    ]);
}

#[test]
fn who_is_revoked_is_out_wherever_the_record_was_read() {
    hold("revocations", some(40)).met(&[
        ("revoked", |run| run.ills.revoked, 40),
        ("not let in", |run| run.ills.wrong_keys, 40),
        ("overtaken", |run| run.ills.overtaken, 20),
    ]);
}

#[test]
fn sessions_that_end_leave_nothing_that_they_guard() {
    // 498: what continues in the step of a refused request was taken for what it was refused with.
    hold("sessions", some(40).chain([498])).met(&[("cancelled", |run| run.seen.session_ended, 200)]);
}

#[test]
fn damaged_logs_are_repaired_from_the_others() {
    hold("rot", some(40)).met(&[("damaged", |run| run.ills.damaged, 100)]);
}

#[test]
fn everybody_has_the_feed_whoever_dies_and_whatever_is_lost() {
    // 12: a note about a log outlived its disk. 43, 49: nobody was left who told the end. 174, 267: a log was replaced while its
    // replayer stood still. 274: a forged session.
    hold("feed", some(16).chain([43, 49, 174, 267, 274])).met(&[
        ("sessions", |run| run.feed.sessions, 40),
        ("packets", |run| run.feed.packets, 2_000),
        ("sent again", |run| run.feed.answers, 100),
        ("handed out", |run| run.feed.handed_out, 3_000),
        ("snapshots", |run| run.feed.resets, 100),
        ("failed calls", |run| run.feed.failed_calls, 20),
        ("refuted", |run| run.feed.refuted, 5),
        ("forged", |run| run.feed.forged, 50),
        ("current", |run| run.feed.current, 1_000),
        ("over", |run| run.feed.over, 5),
        ("gaps", |run| run.feed.gap, 300),
        ("recovering", |run| run.feed.recovering, 1_000),
        ("wiped", |run| run.ills.publishers_wiped, 10),
    ]);
}

#[test]
fn fix_sessions_move_between_gateways_losing_nothing() {
    // 108: a cancel that the record refuses was reported as a rejected order. 237: a trade waited for an answer that was not the
    // member's. Every fourth with gateways' clocks that jump: a Logon whose time is wrong was answered by an empty Text.
    hold("fix", some(60).chain([108, 237])).met(&[
        ("logons", |run| run.fix.logons, 600),
        ("refused", |run| run.fix.refused, 100),
        ("reports", |run| run.fix.reports, 20_000),
        ("reports of another member", |run| run.fix.copied, 2_000),
        ("told again", |run| run.fix.told_again, 10_000),
        ("trades asked for", |run| run.fix.trades, 3_000),
        ("told to the end", |run| run.fix.trades_whole, 60),
        ("cut short", |run| run.fix.trades_cut, 1),
        ("gaps", |run| run.fix.gaps, 300),
        ("sent again", |run| run.fix.sent_again, 1_000),
        ("tests", |run| run.fix.tests, 100),
        ("hostile", |run| run.hostile, 400),
    ]);
}

/// Whatever happens to gateways, their disks, clocks and power: what a session receives is of the record.
#[test]
fn ouch_sessions_get_identical_packets_at_all_gateways() {
    hold("ouch", some(60)).met(&[
        ("logins", |run| run.ouch.logins, 1_500),
        ("packets", |run| run.ouch.packets, 50_000),
        ("told again", |run| run.ouch.told_again, 25_000),
        ("beside the stream", |run| run.ouch.beside, 3_000),
        ("sent again", |run| run.ouch.sent_again, 1_000),
        ("answered", |run| run.ouch.answered, 12_000),
        ("hostile", |run| run.hostile, 1_000),
    ]);
}

/// Whatever befalls gateways and servers: a name is one order, an answer is its question's, and streams have no gap.
#[test]
fn http_repeats_execute_once_and_streams_are_gapless() {
    hold("http", some(60)).met(&[
        ("sign-ons", |run| run.web.sign_ons, 1_000),
        ("deaths", |run| run.web.deaths, 200),
        ("asked again", |run| run.web.asked_again, 1_000),
        ("answered", |run| run.web.answered, 10_000),
        ("repeats", |run| run.web.repeats, 100),
        ("questions", |run| run.web.questions, 1_000),
        ("reports", |run| run.web.reports, 10_000),
        ("ahead", |run| run.web.ahead, 500),
        ("caught up", |run| run.web.caught_up, 100),
        ("hostile", |run| run.hostile, 200),
    ]);
}

/// One venue has other rules: where its results or a state hash show it, all recorders halt, and take nothing more.
#[test]
fn a_build_with_other_rules_is_found_and_goes_on_nowhere() {
    let Runs(runs) = hold("versions", some(40));
    let found = runs.iter().filter(|run| run.ills.divergences > 0).count();
    assert!(2 * found >= runs.len(), "{found} of {}", runs.len());
}

/// A wrong venue of three is shut out: the votes of two in another lane count for nothing here.
#[test]
fn a_wrong_venue_of_three_in_its_lane_is_shut_out() {
    // 37, 81: of three venues two spoke of a position, and none of a difference thereafter.
    let Runs(runs) = hold("lanes-of-versions", some(40).chain([37, 81]));
    let of = |count: fn(&Summary) -> u64| runs.iter().filter(|run| count(run) > 0).count();
    let (found, shut_out) = (of(|run| run.ills.divergences), of(|run| run.ills.shut_out));
    assert!(3 * found >= runs.len(), "{found} of {}", runs.len());
    assert!(2 * shut_out >= found, "{shut_out} of {found}: three of five venues are in that lane");
    assert!(!runs_all() || shut_out < found, "of two nobody knows which one is wrong");
}

/// Where a lane has no venue left, the other's answers are held to their bound (invariant I4), and so are those of a shard that moves.
#[test]
fn a_lane_that_loses_its_venues_delays_no_other() {
    hold("lanes", some(60)).met(&[
        ("checkpoints", |run| run.checkpoints, 100),
        ("too far behind", |run| run.too_far_behind, 10),
        ("engines restored", |run| run.engines.restored, 20),
        ("requests held to a bound", HELD, 30),
        ("moved", |run| run.ills.moved, 40),
    ]);
}

/// Whether a run held requests to a bound.
const HELD: fn(&Summary) -> u64 = |run| u64::from(run.completion_max_ns > 0);

/// Where poison brings down one shard of every venue, the others' answers are held to their bound (invariants I4 and I7).
#[test]
fn poison_in_one_shard_delays_nobody_in_another() {
    let faults = FaultMix { poison_permille: 30, poison_shards: 1, ..FaultMix::default() };
    let scenarios = some(60).map(|seed| Scenario { faults: faults.clone(), ..standard("quick", seed) });
    hold_each(scenarios)
        .met(&[("failures", |run| run.engines.failed, 100), ("requests held to a bound", HELD, 30)]);
}

/// With a quorum left, nothing that befalls a recorder is an excuse for a late answer (invariants I4 and I8).
#[test]
fn a_recorder_in_trouble_delays_nobody() {
    const EVERY_NS: u64 = 20_000_000;
    let faults = [Fault::CrashRecorder, Fault::PauseRecorder, Fault::FillRecorder, Fault::Wipe];
    let scenarios = some(100).map(|seed| Scenario {
        recorders: 3,
        quorum: 1 + (seed % 2) as usize,
        faults: FaultMix::default().with(faults.map(|fault| (fault, EVERY_NS))),
        ..standard("quick", seed)
    });
    hold_each(scenarios).met(&[("requests held to a bound", HELD, 80)]);
}

/// Clients that sign on twice, speak in another's name, send rubbish or half a frame, or say nothing, harm nobody else. Some of it
/// costs them their own connection, and all that was open there is asked again: one in twenty leaves them time to trade.
#[test]
fn what_no_client_should_do_harms_nobody_else() {
    let faults = FaultMix { hostile_permille: 50, ..FaultMix::default() };
    let scenarios = some(60).map(|seed| Scenario { faults: faults.clone(), ..standard("quick", seed) });
    hold_each(scenarios).met(&[("hostile", |run| run.hostile, 600)]);
}

#[test]
fn the_same_seed_is_the_same_history() {
    for name in Scenario::names() {
        let scenario = standard(name, 7);
        run_twice(&scenario).unwrap_or_else(|failure| panic!("\n{failure}"));
    }
}

#[test]
fn different_seeds_are_different_histories() {
    let hash = |seed| run(&standard("quick", seed)).unwrap().trace_hash;
    assert_ne!(hash(1), hash(2));
}
