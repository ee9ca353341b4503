//! The checkers checked: a defect put under the roles must be found within some seeds, as the one failure that it causes.

use pares_sim::{Bug, Failure, FaultMix, Scenario, run, run_traced};

const DURABILITY: &str = "I2 durability";
const AGREEMENT: &str = "I1 agreement";
const ONCE: &str = "I3 exactly once";
const REVOKED: &str = "R4 revoked is out";
const VOID: &str = "W6 executed or void";
const STREAMS: &str = "members' streams";
const ANSWERED: &str = "everything is answered";
const FEED: &str = "F1 the feed is the record's";
const COMMITTED: &str = "F2 nothing is told before it is committed";
const AGAIN: &str = "F3 what is told again is what was told";
const CURRENT: &str = "F4 what is shown as current is";
const ASSERTION: &str = "an assertion of the rules";

/// The first failure among some seeds of a scenario with that defect.
fn first_failure(name: &str, bug: Bug, seeds: u64) -> Box<Failure> {
    let with_bug = |seed| Scenario { bug: Some(bug), ..Scenario::named(name, seed).expect("a known name") };
    let failure = (0..seeds).find_map(|seed| run(&with_bug(seed)).err());
    failure.unwrap_or_else(|| panic!("{bug:?} went unnoticed in {seeds} seeds of {name}"))
}

/// The defect is found, as that and nothing else.
fn found_as(invariant: &str, name: &str, bug: Bug, seeds: u64) {
    let failure = first_failure(name, bug, seeds);
    assert_eq!(failure.invariant, invariant, "{failure}");
}

/// Two venues part ways: the checkers see it, or a venue does, whose own assertion is about just that.
fn found_as_disagreement(name: &str, bug: Bug, seeds: u64) {
    let failure = first_failure(name, bug, seeds);
    let disagrees = ["disagree about position", "at two positions", "was ordered twice", "undecided"];
    let asserted = failure.invariant == ASSERTION && disagrees.iter().any(|text| failure.what.contains(text));
    assert!(failure.invariant == AGREEMENT || asserted, "{failure}");
}

#[test]
fn a_number_of_a_fix_session_that_no_mark_covers_is_found() {
    found_as("X1 no number twice", "fix", Bug::ShortMarks, 20);
}

/// What was under way as the gateway died is told by nobody.
#[test]
fn a_mark_that_calls_read_what_was_only_sent_is_found() {
    let failure = first_failure("fix", Bug::BelieveAllRead, 20);
    assert!(failure.invariant == ANSWERED && failure.what.contains("was not told"), "{failure}");
}

/// A copy of another member goes on behind what it missed.
#[test]
fn a_mark_that_forgets_whose_streams_its_places_are_in_is_found() {
    let failure = first_failure("fix", Bug::ForgetCopied, 20);
    assert!(failure.invariant == ANSWERED && failure.what.contains("was not told"), "{failure}");
}

#[test]
fn a_trade_that_is_left_out_where_it_was_asked_for_is_found() {
    found_as("X2 all is told", "fix", Bug::LeaveTradesOut, 20);
}

#[test]
fn a_last_trade_that_does_not_say_so_is_found() {
    found_as(ANSWERED, "fix", Bug::NeverLast, 20);
}

#[test]
fn a_time_in_force_that_is_misread_by_fix_is_found() {
    found_as("X2 all is told", "fix", Bug::MisreadTimeInForce, 5);
}

#[test]
fn a_cancel_reject_by_fix_that_is_told_twice_and_does_not_say_so_is_found() {
    found_as("X2 all is told", "fix", Bug::UnmarkRejects, 30);
}

#[test]
fn a_refusal_at_once_by_fix_that_is_told_as_an_order_is_found() {
    found_as("X2 all is told", "fix", Bug::AcceptRefused, 20);
}

#[test]
fn a_stranger_who_is_told_by_fix_that_he_is_logged_on_is_found() {
    found_as("X2 all is told", "fix", Bug::GreetStrangers, 20);
}

/// All that follows has another number.
#[test]
fn a_packet_that_an_ouch_session_is_not_told_is_found() {
    found_as("Y1 a packet is the same everywhere", "ouch", Bug::LeavePacketOut, 5);
}

/// What was not answered is sent again at another gateway, and is another order.
#[test]
fn an_ouch_order_that_is_named_by_the_clock_is_found() {
    found_as("Y3 an order once", "ouch", Bug::NameByClock, 5);
}

/// What a lost connection left open goes out as another order.
#[test]
fn a_server_that_repeats_under_a_new_name_is_found() {
    found_as("Z2 an order once", "http", Bug::RepeatUnderNewName, 5);
}

#[test]
fn an_answer_to_another_question_is_found() {
    found_as("Z1 an answer is its question's", "http", Bug::AnswerAnother, 5);
}

#[test]
fn an_answer_that_turns_from_done_to_refused_is_found() {
    found_as("Z1 an answer is its question's", "http", Bug::RefuseWhatWasDone, 5);
}

#[test]
fn a_question_that_is_left_unanswered_is_found() {
    found_as(ANSWERED, "http", Bug::LeaveQuestions, 5);
}

#[test]
fn a_report_that_is_skipped_when_a_gateway_dies_is_found() {
    found_as("Z3 all is told", "http", Bug::SkipAfterLoss, 5);
}

#[test]
fn a_log_that_promises_before_it_has_synced_is_found() {
    found_as(DURABILITY, "power", Bug::PromiseBeforeSync, 50);
}

#[test]
fn a_gateway_that_answers_before_the_quorum_is_found() {
    found_as(DURABILITY, "crashes", Bug::AnswerBeforeQuorum, 50);
}

/// The venue executes the next decision at the position of the one that was lost.
#[test]
fn a_window_that_forgets_a_decision_is_found() {
    found_as_disagreement("quick", Bug::SwallowDecision, 50);
}

/// After a restart a record may lie with one recorder alone, and no venue sends it again.
#[test]
fn recorders_that_do_not_find_each_other_are_found() {
    found_as(ANSWERED, "power", Bug::HidePeers, 300);
}

#[test]
fn a_slot_without_its_position_is_found() {
    found_as_disagreement("quick", Bug::BareSlots, 50);
}

/// The venue that lags cannot learn any more what was decided, and what the others hand out begins behind what it lacks; or all lag, and
/// nobody ever executes it.
#[test]
fn a_slot_used_again_before_its_decision_is_recorded_is_found() {
    let failure = first_failure("overload", Bug::SlotsBeforeRecorded, 300);
    let is_lost = failure.invariant == AGREEMENT && failure.what.contains("nothing known of position");
    assert!(is_lost || failure.invariant == ANSWERED, "{failure}");
}

#[test]
fn a_gateway_that_bounds_what_waits_by_its_number_alone_is_found() {
    found_as("O1 what is taken in waits little", "flood", Bug::AdmitByNumber, 5);
}

#[test]
fn a_gateway_that_seldom_reads_what_one_member_asks_is_found() {
    found_as("O3 nobody is starved", "flood", Bug::ReadSeldom, 5);
}

#[test]
fn a_gateway_that_accepts_before_it_has_written_is_found() {
    found_as(DURABILITY, "power", Bug::AcceptBeforeWrite, 50);
}

#[test]
fn a_checkpoint_that_lacks_an_order_is_restored_by_nobody() {
    // The state hash in it does not match: nobody restores it, so nothing breaks but the promise that venues join from it.
    let scenario = |seed| Scenario { bug: Some(Bug::CheckpointWithoutAnOrder), ..Scenario::quick(seed) };
    let mut passed_over = 0;
    for seed in 0..20 {
        let mut watch = |line: &str| passed_over += u32::from(line.contains("cannot be restored"));
        run_traced(&scenario(seed), &mut watch).unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert!(passed_over >= 20, "{passed_over}");
}

#[test]
fn a_disk_that_counts_what_it_refused_is_found() {
    // The recorder finds at its next start that its own log lacks what it took, or a venue never gets it.
    let with_bug = |seed| Scenario { bug: Some(Bug::TakeWithoutRoom), ..Scenario::disks(seed) };
    let mut failures = (0..50).filter_map(|seed| run(&with_bug(seed)).err());
    assert!(failures.any(|failure| failure.what.contains("gap in the recorder's own log")));
}

#[test]
fn a_failed_sync_that_is_believed_is_found() {
    found_as(DURABILITY, "disks", Bug::BelieveFailedSync, 200);
}

#[test]
fn results_handed_out_without_being_vouched_for_are_found() {
    found_as(VOID, "poison", Bug::HandOutUnvouched, 100);
}

#[test]
fn a_void_that_nobody_is_told_of_is_found() {
    // It is executed after all, or every venue fails at it for ever.
    let failure = first_failure("poison", Bug::ExecuteVoid, 50);
    assert!([VOID, ANSWERED].contains(&failure.invariant), "{failure}");
}

#[test]
fn a_void_that_only_one_venue_knows_of_is_found() {
    found_as(VOID, "poison", Bug::VoidAlone, 50);
}

#[test]
fn a_log_in_the_place_of_another_that_nobody_notices_is_found() {
    found_as(ANSWERED, "wipes", Bug::ReadOnInNewLog, 200);
}

#[test]
fn recorders_that_take_a_wrong_quantity_are_found() {
    // Nobody compares the venues here but the recorders, by results and by the hash that is due every 1,024 positions.
    let long = |seed| Scenario {
        bug: Some(Bug::ExecuteWrongly),
        shards: 1,
        requests_per_client: 1_000,
        think_ns: 60_000,
        duration_ns: 150_000_000,
        faults: FaultMix::default(),
        ..Scenario::quick(seed)
    };
    let divergences: u64 =
        (0..10).map(|seed| run(&long(seed)).map_or(0, |summary| summary.ills.divergences)).sum();
    assert!(divergences > 0, "a wrong venue goes unnoticed");
}

/// All venues agree and every share is accounted for: only the replay knows better.
#[test]
fn prices_that_all_venues_report_wrongly_are_found() {
    found_as("sequential replay", "quick", Bug::WrongPrices, 10);
}

#[test]
fn a_failure_names_the_command_that_replays_it() {
    let failure = first_failure("power", Bug::PromiseBeforeSync, 50);
    let text = failure.to_string();
    let command = format!("pares sim --seed {} --scenario power --trace", failure.seed);
    assert!(text.ends_with(&command), "{text}");
    assert!(!failure.trace.is_empty());
}

#[test]
fn a_gateway_that_overlooks_a_revocation_is_found() {
    found_as(REVOKED, "revocations", Bug::OverlookRevocation, 50);
}

/// A repeat is executed a second time by the venues that restored such a checkpoint, or by all; which of them shows first is open.
#[test]
fn names_that_are_forgotten_without_a_floor_are_found() {
    let with_bug = |seed| Scenario { bug: Some(Bug::ForgetNames), ..Scenario::crashes(seed) };
    let mut failures = (0..400).filter_map(|seed| run(&with_bug(seed)).err());
    assert!(failures.any(|failure| [ONCE, AGREEMENT].contains(&failure.invariant)));
}

#[test]
fn a_cancel_of_what_a_session_left_that_reaches_what_it_enters_later_is_found() {
    found_as("G2 none that lives is cancelled", "sessions", Bug::CancelWhatComes, 600);
}

#[test]
fn an_order_that_outlives_its_session_is_found() {
    found_as("G1 none is left behind", "sessions", Bug::CancelTooLittle, 50);
}

#[test]
fn a_fill_left_out_of_the_stream_is_found() {
    found_as(STREAMS, "quick", Bug::LeaveFillsOut, 50);
}

#[test]
fn a_day_closed_by_one_recorder_only_is_found() {
    found_as(AGREEMENT, "quick", Bug::CloseDaysAlone, 50);
}

/// All venues and recorders agree that the order lives on: only the replay knows better.
#[test]
fn a_day_order_forgotten_at_the_end_of_the_day_is_found() {
    found_as("sequential replay", "quick", Bug::ForgetDayOrders, 50);
}

#[test]
fn a_publisher_that_numbers_by_what_it_sent_in_this_life_is_found() {
    found_as(FEED, "feed", Bug::NumberByThisLife, 20);
}

#[test]
fn a_publisher_that_sends_what_is_shown_and_not_committed_is_found() {
    found_as(COMMITTED, "feed", Bug::PublishBeforeQuorum, 20);
}

#[test]
fn a_subscriber_that_shows_a_gap_as_current_is_found() {
    found_as(CURRENT, "feed", Bug::ShowGaps, 20);
}

#[test]
fn a_snapshot_that_misses_its_last_message_is_found() {
    found_as(CURRENT, "feed", Bug::SkipAfterSnapshot, 20);
}

#[test]
fn a_replayer_that_answers_with_the_neighbouring_message_is_found() {
    found_as(AGAIN, "feed", Bug::AnswerWithNeighbour, 20);
}

/// Its log is found once it goes on; or a replayer has told the message before.
#[test]
fn a_publisher_that_goes_on_after_a_log_of_another_past_is_found() {
    let failure = first_failure("feed", Bug::KeepAnotherPast, 20);
    assert!([FEED, AGAIN].contains(&failure.invariant), "{failure}");
}
