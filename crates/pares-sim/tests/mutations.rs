//! The checkers checked: a defect put into the wiring must be found within some seeds, as what it is.

use pares_sim::{Bug, Failure, FaultMix, Scenario, run};

/// Poison in one shard, and nothing else goes wrong.
fn poison_in_one_shard(seed: u64) -> Scenario {
    let faults = FaultMix { poison_permille: 30, poison_shards: 1, ..FaultMix::default() };
    Scenario { faults, bug: Some(Bug::StandStill), ..Scenario::quick(seed) }
}

/// The first failure among some seeds of a scenario with that defect.
fn found(name: &str, bug: Bug, seeds: u64) -> Box<Failure> {
    let with_bug = |seed| Scenario { bug: Some(bug), ..Scenario::named(name, seed).expect("a known name") };
    let failure = (0..seeds).find_map(|seed| run(&with_bug(seed)).err());
    failure.unwrap_or_else(|| panic!("{bug:?} went unnoticed in {seeds} seeds of {name}"))
}

#[test]
fn a_recorder_that_promises_before_it_has_synced_is_found() {
    assert_eq!(found("power", Bug::PromiseBeforeSync, 50).invariant, "I2 durability");
}

#[test]
fn a_gateway_that_answers_before_the_quorum_is_found() {
    assert_eq!(found("crashes", Bug::AnswerBeforeQuorum, 50).invariant, "I2 durability");
}

#[test]
fn a_venue_that_drops_a_decided_request_is_found() {
    // Either another request at a position, or the rules' own assertion that an order has no gaps.
    let failure = found("quick", Bug::SwallowDecision, 50);
    assert!(["I1 agreement", "an assertion of the rules"].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_recorder_that_waits_to_be_told_what_it_lacks_is_found() {
    assert_eq!(found("power", Bug::PeersOnlyOnWait, 300).invariant, "everything is answered");
}

#[test]
fn a_checkpoint_beyond_the_record_is_found() {
    found("power", Bug::CheckpointOfTheFuture, 300);
}

#[test]
fn an_epoch_that_starts_before_what_recorders_kept_is_found() {
    found("power", Bug::EpochFromPublished, 300);
}

#[test]
fn a_venue_that_queues_without_bound_is_found() {
    assert_eq!(found("overload", Bug::ReadWithoutBound, 50).invariant, "I6 bounded");
}

#[test]
fn a_sequence_used_again_is_found() {
    found("power", Bug::ReuseSequence, 300);
}

#[test]
fn a_slot_without_its_position_is_found() {
    // Another request at a position, or what follows from it: a contradiction with the record stops the venue.
    let failure = found("quick", Bug::BareSlots, 50);
    assert!(["I1 agreement", "an assertion of the rules"].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_slot_used_again_before_its_decision_is_recorded_is_found() {
    found("overload", Bug::SlotsBeforeRecorded, 300);
}

#[test]
fn a_gateway_that_accepts_before_it_has_written_is_found() {
    assert_eq!(found("power", Bug::AcceptBeforeWrite, 50).invariant, "I2 durability");
}

#[test]
fn a_gateway_that_answers_before_anything_is_decided_is_found() {
    let failure = found("quick", Bug::AnswerBeforeDecision, 50);
    assert!(["I2 durability", "I3 exactly once"].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_gateway_that_answers_twice_is_found() {
    assert_eq!(found("quick", Bug::AnswerTwice, 50).invariant, "I3 exactly once");
}

#[test]
fn a_venue_that_forgets_the_names_at_a_restart_is_found() {
    let failure = found("quick", Bug::ForgetNames, 300);
    assert!(["I1 agreement", "I3 exactly once"].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_checkpoint_that_lacks_an_order_is_found() {
    let failure = found("quick", Bug::CheckpointWithoutAnOrder, 50);
    assert!(failure.what.contains("HashDiffers"), "{failure}");
}

#[test]
fn a_recorder_that_leaves_a_gap_is_found() {
    found("crashes", Bug::RecordAGap, 50);
}

#[test]
fn a_gateway_that_believes_old_places_in_a_new_log_is_found() {
    assert_eq!(found("disks", Bug::BelieveOldPlaces, 300).invariant, "I3 exactly once");
}

#[test]
fn a_recorder_that_counts_what_its_full_disk_refused_is_found() {
    found("disks", Bug::TakeWithoutRoom, 50);
}

#[test]
fn a_recorder_that_believes_a_failed_sync_is_found() {
    assert_eq!(found("disks", Bug::BelieveFailedSync, 100).invariant, "I2 durability");
}

#[test]
fn a_venue_that_hands_out_before_it_has_vouched_is_found() {
    let failure = found("poison", Bug::HandOutUnvouched, 50);
    assert!(["W6 executed or void", "I1 agreement"].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_venue_that_executes_what_is_void_is_found() {
    let failure = found("poison", Bug::ExecuteVoid, 50);
    assert!(["W6 executed or void", "I1 agreement"].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_venue_that_takes_for_void_what_others_execute_is_found() {
    let failure = found("poison", Bug::VoidAlone, 50);
    assert!(["W6 executed or void", "I1 agreement"].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_checkpoint_that_forgets_the_quarantine_is_found() {
    let failure = found("poison", Bug::ForgetQuarantine, 50);
    assert!(failure.what.contains("HashDiffers"), "{failure}");
}

#[test]
fn a_venue_that_executes_again_what_its_engine_failed_at_is_found() {
    assert_eq!(found("poison", Bug::ForgetSuspicion, 50).invariant, "everything is answered");
}

#[test]
fn a_recorder_that_reads_on_in_a_venue_s_new_log_is_found() {
    assert_eq!(found("wipes", Bug::ReadOnInNewLog, 200).invariant, "everything is answered");
}

#[test]
fn a_gateway_that_goes_on_from_nothing_is_found() {
    found("wipes", Bug::GatewayFromNothing, 300);
}

#[test]
fn a_reader_that_believes_a_damaged_record_is_found() {
    found("rot", Bug::BelieveDamaged, 50);
}

#[test]
fn a_recorder_that_cuts_its_log_at_the_damage_is_found() {
    assert_eq!(found("rot", Bug::RepairByCutting, 300).invariant, "I2 durability");
}

#[test]
fn recorders_that_do_not_compare_builds_with_other_rules_are_found() {
    let failure = found("versions", Bug::IgnoreResults, 20);
    assert_eq!(failure.invariant, "a divergence is found within 1,024 positions");
}

/// Poison in one shard only, and nothing else goes wrong: nobody in the other shard may notice.
#[test]
fn a_venue_that_stands_still_while_it_restores_a_shard_is_found() {
    let failure = (0..50).find_map(|seed| run(&poison_in_one_shard(seed)).err());
    assert_eq!(failure.expect("nobody noticed").invariant, "I4 non-disruption");
}

/// All venues agree and every share is accounted for: only the replay knows better.
#[test]
fn prices_that_all_venues_report_wrongly_are_found() {
    assert_eq!(found("quick", Bug::WrongPrices, 10).invariant, "sequential replay");
}

/// Nobody compares the venues here but the recorders, by results and by the hash that is due every 1,024 positions.
#[test]
fn a_venue_that_executes_wrongly_is_found_by_the_recorders() {
    let long = |seed| Scenario {
        bug: Some(Bug::ExecuteWrongly),
        shards: 1,
        requests_per_client: 1_000,
        think_ns: 60_000,
        duration_ns: 150_000_000,
        faults: FaultMix::default(),
        ..Scenario::quick(seed)
    };
    let failure = (0..10).find_map(|seed| run(&long(seed)).err()).expect("a wrong venue goes unnoticed");
    let found = ["State { position: ", "Content { position: "].iter().any(|by| failure.what.contains(by));
    assert!(found, "{failure}");
}

#[test]
fn a_failure_names_the_command_that_replays_it() {
    let failure = found("power", Bug::PromiseBeforeSync, 50);
    let text = failure.to_string();
    let command = format!("pares sim --seed {} --scenario power --trace", failure.seed);
    assert!(text.ends_with(&command), "{text}");
    assert!(!failure.trace.is_empty());
}
