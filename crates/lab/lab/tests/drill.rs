//! Every drill, briefly: nothing is lost, answered or executed twice, and the recorders agree. How long
//! anything took is what drills are for, and is not judged here.
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::print_stderr)] // a test that skips says why

use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// One drill at a time: what one asks of the machine, a flood above all, would count as the other's fault.
static MACHINE: Mutex<()> = Mutex::new(());

/// The load that most drills run under.
const LOAD: &str = "--rate 1000 --symbols 3";

/// The figures of a drill that succeeds; `None` (said aloud) where this machine lacks what it needs.
fn try_figures(arguments: &str) -> Option<Value> {
    let output = run(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        eprintln!("{said}");
        return None;
    }
    assert!(output.status.success(), "{arguments}: {said}{}", String::from_utf8_lossy(&output.stdout));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn figures(arguments: &str) -> Value {
    try_figures(arguments).expect("this machine has what it needs")
}

/// Counts nothing of what would be wrong, and has these figures.
fn check(figures: &Value, wrong: &[&str], found: &[&str]) {
    for name in wrong {
        assert_eq!(figures[name], 0, "{name}: {figures}");
    }
    for name in found {
        assert!(figures[name].as_f64() > Some(0.0), "{name}: {figures}");
    }
}

fn run(arguments: &str) -> Output {
    let _machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(env!("CARGO_BIN_EXE_pares-lab"))
        .arg("drill")
        .args(arguments.split_whitespace())
        .arg("--json")
        .output()
        .unwrap()
}

/// Runs a drill and checks what every drill promises.
fn drill(arguments: &str) -> Value {
    let figures = figures(&format!("{arguments} {LOAD}"));
    let broken = ["lost", "duplicated", "acknowledged_lost", "executed_twice", "records_differing"];
    check(&figures, &broken, &["completed"]);
    assert!(figures["records"].as_u64() >= figures["completed"].as_u64(), "{arguments}: {figures}");
    figures
}

/// A drill of which the clients notice nothing: they keep their connections and repeat nothing.
fn unnoticed(arguments: &str) -> Value {
    // A stalled machine rejects the requests that it is late with: such a run says nothing about the fault.
    for _ in 0..5 {
        let figures = drill(arguments);
        assert_eq!(figures["client_retries"], 0, "{arguments}: {figures}");
        if figures["rejected"] == 0 {
            return figures;
        }
    }
    panic!("{arguments}: requests were rejected in each of five runs");
}

#[test]
fn a_killed_stopped_or_slow_venue_costs_nobody_anything() {
    for fault in ["kill-venue", "stop-venue", "slow-venue"] {
        let figures = unnoticed(&format!("{fault} --count 2"));
        assert_eq!((&figures["drill"], &figures["count"]), (&fault.into(), &2.into()));
        check(&figures, &[], &["resync_ms"]);
    }
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn a_killed_recorder_costs_nobody_anything() {
    check(&unnoticed("kill-recorder --count 3"), &[], &["resync_ms"]);
    unnoticed("kill-recorder --count 3 --recorders 3 --quorum 2");
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn a_recorder_whose_disk_is_wiped_is_filled_by_its_peers() {
    unnoticed("wipe-recorder --count 2");
    unnoticed("wipe-recorder --count 2 --recorders 3 --quorum 2");
}

#[test]
fn members_of_other_hosts_go_on_when_the_leading_host_dies() {
    let figures = figures(&format!("kill-host --count 2 {LOAD}"));
    let broken = ["lost", "acknowledged_lost", "executed_twice", "records_differing"];
    check(&figures, &broken, &["completed", "moved_p50_gap_ms", "back_ms"]);
}

#[test]
fn a_slow_disk_under_one_recorder_costs_nobody_anything() {
    check(&unnoticed("slow-disk --count 2 --stop-ms 100"), &[], &["disturbed_p99_us"]);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn a_full_disk_under_one_recorder_costs_nobody_anything() {
    let arguments = "fill-disk --count 2 --stop-ms 100";
    if try_figures(&format!("{arguments} {LOAD}")).is_some() {
        check(&unnoticed(arguments), &[], &["resync_ms"]);
    }
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn killed_gateway_members_learn_outcomes_elsewhere() {
    check(&drill("kill-gateway --count 3"), &["rejected"], &["moved_max_gap_ms"]);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn fix_members_continue_by_number_at_next_gateway() {
    let figures = figures(&format!("kill-front --protocol fix --count 3 --quiet-ms 200 {LOAD}"));
    let broken = ["lost", "duplicated", "resend_missing", "rejected", "records_differing"];
    // Sessions were cut off with something in flight, and asked for what they lacked.
    let found = ["gaps", "told_again", "completed", "others_completed", "executions", "others_p99_ratio"];
    check(&figures, &broken, &found);
    assert_eq!(figures["count"], 3);
}

/// Needs the program that ships beside this one: a server over HTTP is a process of it.
#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn websocket_members_continue_at_next_server_gapless() {
    let arguments = format!("kill-front --protocol ws --count 4 --quiet-ms 200 {LOAD}");
    let Some(figures) = try_figures(&arguments) else { return };
    let broken = ["lost", "duplicated", "resend_missing", "gaps", "rejected", "records_differing"];
    check(&figures, &broken, &["client_retries", "completed", "others_completed", "executions"]);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn total_kill_recovers_all_acknowledged_orders() {
    check(&drill("kill-everything --count 2 --gateways 2"), &[], &["restart_ms"]);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn a_flooding_session_takes_nothing_from_the_others() {
    check(&drill("flood --count 1 --flood-ms 300"), &["rejected", "client_retries"], &["flood_sent"]);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn a_wrong_venue_is_found_shut_out_and_readmitted() {
    let figures = unnoticed("diverge --count 2");
    assert!(figures["found_after_positions"].as_u64() < Some(1_024), "{figures}");
    assert!(figures["found_after_positions"].is_u64() && figures["disputed"].is_u64(), "{figures}");
    check(&figures, &[], &["resync_ms"]);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn a_drill_that_could_prove_nothing_is_refused() {
    for arguments in ["kill-venue --venues 1", "kill-recorder --quorum 2", "kill-venue --rate max"] {
        assert!(!run(arguments).status.success(), "{arguments}");
    }
}

#[test]
#[ignore = "all: a drill under load; the simulator and the tests of sites prove each of its faults"]
fn sites_clusters_and_link_die_under_load_losing_nothing() {
    let figures = figures("wice --rtt-ms 20 --seconds-per-part 0.3 --rate 20");
    let lost = ["lost", "acknowledged_lost", "executed_twice", "denied_and_done"];
    check(&figures, &lost, &["hot_row_commits_per_s"]);
    check(&figures, &["money_off", "sites_differing", "forged_accepted"], &[]);
    assert!(figures["completed"].as_u64() > Some(100), "{figures}");
    let backup = &figures["backup"];
    assert_eq!(backup["restored_differing"], 0, "{figures}");
    assert!(backup["items"].as_u64() > Some(100) && backup["versions"].as_u64() > Some(9), "{figures}");
    assert_eq!(figures["faults"].as_array().unwrap().len(), 12, "{figures}");
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn site_client_history_is_snapshot_isolated_despite_kills() {
    let figures = figures("history --seconds-per-part 0.6 --sessions 2");
    let cycles = ["g0", "g1a", "g1b", "g1c", "g_single", "lost_updates", "lost_appends", "total_off"];
    // The faults had effects: some outcomes are unknown.
    check(&figures, &cycles, &["unknown"]);
    check(&figures, &["read_your_writes", "monotonic_reads"], &[]);
    let scenarios = figures["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 6, "{figures}");
    // A history in which nothing happens proves nothing.
    for scenario in scenarios {
        assert!(scenario["ok"].as_u64() > Some(20) && scenario["snapshots"].as_u64() > Some(0), "{scenario}");
    }
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn broker_parts_die_and_no_command_is_lost_or_doubled() {
    let figures = broker_drill();
    check(&figures, &["acknowledged_lost", "done_twice", "money_off"], &[]);
    assert_eq!(figures["audit_verified"], true, "{figures}");
    assert!(figures["killed"].as_u64().unwrap() >= 6, "one of each, and one of each at once: {figures}");
}

/// As many commands as it takes to kill one of each kind, and one of each at once: how fast this machine is, is not known.
fn broker_drill() -> Value {
    let mut commands = 40_000;
    loop {
        let figures = figures(&format!("broker --kill-every-ms 500 --commands {commands}"));
        if figures["killed"].as_u64().unwrap() >= 6 || commands > 1_000_000 {
            return figures;
        }
        commands *= 2;
    }
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn a_member_that_was_away_is_told_every_fill_once() {
    let figures = figures("away --fills 2000");
    check(&figures, &["missed", "duplicated"], &[]);
    assert_eq!(figures["fills"], 2_000);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn two_killed_days_lose_nothing_and_archive_is_complete() {
    let figures = figures("days --days 2 --requests 4000");
    let counts =
        ["days", "requests", "kills", "lost", "duplicated"].map(|name| figures[name].as_u64().unwrap());
    assert_eq!(counts, [2, 8_000, 6, 0, 0], "{figures}");
    check(&figures, &[], &["start_seconds", "archive_mib"]);
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn backup_of_running_system_has_all_answers_and_runs() {
    let figures = figures("backup --requests 4000");
    let counts = ["requests", "differing", "lost", "duplicated"].map(|name| figures[name].as_u64().unwrap());
    assert_eq!(counts[1..], [0, 0, 0], "{figures}");
    assert!(figures["positions"].as_u64() >= Some(counts[0]) && counts[0] >= 3_500, "{figures}");
}

#[test]
#[ignore = "all: repeats under load what one test with real processes and the simulator prove"]
fn receivers_and_traders_get_everything_despite_kills() {
    let figures = figures("feed --rate 1000 --symbols 3 --loss 20 --seconds 3 --every-ms 300 --member-mib 2");
    let wrong = ["wrong_while_current", "books_differing", "messages_missing", "messages_differing"];
    check(&figures, &wrong, &["transfer_p99_ratio"]);
    check(&figures, &["member_items_missing", "member_items_differing"], &[]);
    // What the stream was filled with, and what traders said.
    assert!(figures["member_items"].as_u64() > Some(256 + 100), "{figures}");
    let times = ["before_p99_us", "during_p99_us", "transfer_ms"];
    check(&figures["runs"][0], &[], &[&times[..], &["packets_lost", "received", "transfer_items"]].concat());
}
