//! The checkers checked: a defect put under the roles must be found within some seeds, as the one failure that it causes.
#![allow(clippy::print_stderr)] // a test that found another seed prints it

use pares_sim::{Bug, Failure, FaultMix, Scenario, run, run_traced};

const DURABILITY: &str = "I2 durability";
const AGREEMENT: &str = "I1 agreement";
const ONCE: &str = "I3 exactly once";
const VOID: &str = "W6 executed or void";
const ANSWERED: &str = "everything is answered";
const TOLD_BY_FIX: &str = "X2 all is told";
const FEED: &str = "F1 the feed is the record's";
const AGAIN: &str = "F3 what is told again is what was told";
const CURRENT: &str = "F4 what is shown as current is";
const REPLAY: &str = "sequential replay";
const ASSERTION: &str = "an assertion of the rules";

/// Seeds that find a defect: scenario, defect, seed. A search over many that do not is left out where one is known; a change of the
/// roles moves them, then the search finds another and its test prints the new line.
const KNOWN: &str = include_str!("known_seeds.txt");

/// The scenario of that name.
fn standard(name: &str, seed: u64) -> Scenario {
    Scenario::named(name, seed).expect("a known name")
}

/// A failure of a scenario with that defect: of the known seed, or the first among some.
fn first_failure(name: &str, bug: Bug, seeds: u64) -> Box<Failure> {
    let with_bug = |seed| Scenario { bug: Some(bug), ..standard(name, seed) };
    let beginning = format!("{name} {bug:?} ");
    let known = KNOWN.lines().find_map(|line| line.strip_prefix(&beginning)?.parse().ok());
    if let Some(failure) = known.and_then(|seed| run(&with_bug(seed)).err()) {
        return failure;
    }
    let found = (0..seeds).find_map(|seed| Some((seed, run(&with_bug(seed)).err()?)));
    let (seed, failure) =
        found.unwrap_or_else(|| panic!("{bug:?} went unnoticed in {seeds} seeds of {name}"));
    eprintln!("known_seeds.txt: {beginning}{seed}");
    failure
}

/// A defect, as which of some invariants it is found, what that says among other things, and within how many seeds.
type Case = (Bug, &'static [&'static str], &'static str, u64);

/// Seeds of the scenario of that name.
struct Under(&'static str);

impl Under {
    /// Finds each defect, as that and nothing else.
    fn finds(&self, cases: &[Case]) {
        for (bug, invariants, text, seeds) in cases {
            let failure = first_failure(self.0, *bug, *seeds);
            let is_it = invariants.contains(&failure.invariant) && failure.what.contains(text);
            assert!(is_it, "{bug:?}: {failure}");
        }
    }
}

#[test]
fn defects_of_fix_sessions_are_found() {
    Under("fix").finds(&[
        (Bug::ShortMarks, &["X1 no number twice"], "", 20),
        // No gateway reports what was under way as one died.
        (Bug::BelieveAllRead, &[ANSWERED], "was not told", 20),
        // A copy of another member continues behind what it missed.
        (Bug::ForgetCopied, &[ANSWERED], "was not told", 20),
        (Bug::LeaveTradesOut, &[TOLD_BY_FIX], "", 20),
        // The engine waits for the end of its question; or, while it believes that open, the exchange begins to answer the next.
        (Bug::NeverLast, &[ANSWERED, TOLD_BY_FIX], "", 20),
        (Bug::MisreadTimeInForce, &[TOLD_BY_FIX], "", 5),
        (Bug::UnmarkRejects, &[TOLD_BY_FIX], "", 30),
        (Bug::AcceptRefused, &[TOLD_BY_FIX], "", 20),
        (Bug::GreetStrangers, &[TOLD_BY_FIX], "", 20),
    ]);
}

#[test]
fn defects_of_ouch_sessions_are_found() {
    Under("ouch").finds(&[
        // All that follows has another number.
        (Bug::LeavePacketOut, &["Y1 a packet is the same everywhere"], "", 5),
        // What was not answered is sent again at another gateway, and is another order.
        (Bug::NameByClock, &["Y3 an order once"], "", 5),
    ]);
}

#[test]
fn defects_of_servers_over_http_are_found() {
    const OWN_ANSWER: &str = "Z1 an answer is its question's";
    Under("http").finds(&[
        // What a lost connection left open goes out as another order.
        (Bug::RepeatUnderNewName, &["Z2 an order once"], "", 5),
        (Bug::AnswerAnother, &[OWN_ANSWER], "", 5),
        (Bug::RefuseWhatWasDone, &[OWN_ANSWER], "", 5),
        (Bug::ForgetMassCancels, &[OWN_ANSWER], "DuplicateRequest", 20),
        (Bug::LeaveQuestions, &[ANSWERED], "", 5),
        (Bug::SkipAfterLoss, &["Z3 all is told"], "", 5),
    ]);
}

#[test]
fn promises_that_a_loss_of_power_breaks_are_found() {
    Under("power").finds(&[
        (Bug::PromiseBeforeSync, &[DURABILITY], "", 50),
        (Bug::AcceptBeforeWrite, &[DURABILITY], "", 50),
        // After a restart a record may lie with one recorder alone, and no venue sends it again.
        (Bug::HidePeers, &[ANSWERED], "", 300),
    ]);
    Under("crashes").finds(&[(Bug::AnswerBeforeQuorum, &[DURABILITY], "", 50)]);
    Under("disks").finds(&[(Bug::BelieveFailedSync, &[DURABILITY], "", 200)]);
}

/// Two venues part ways: the checkers see it, or a venue does, whose own assertion is about just that.
#[test]
fn windows_that_forget_are_found_as_disagreement() {
    // The venue executes the next decision at the position of the one that was lost, or what lies where its position once was.
    for bug in [Bug::SwallowDecision, Bug::BareSlots] {
        let failure = first_failure("quick", bug, 50);
        let disagrees = ["disagree about position", "at two positions", "was ordered twice", "undecided"];
        let asserted =
            failure.invariant == ASSERTION && disagrees.iter().any(|text| failure.what.contains(text));
        assert!(failure.invariant == AGREEMENT || asserted, "{failure}");
    }
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
fn floods_that_starve_somebody_are_found() {
    Under("flood").finds(&[
        (Bug::AdmitByNumber, &["O1 what is taken in waits little"], "", 5),
        (Bug::ReadSeldom, &["O3 nobody is starved"], "", 5),
    ]);
}

#[test]
fn a_checkpoint_that_lacks_an_order_is_restored_by_nobody() {
    // The state hash in it does not match: nobody restores it, so nothing breaks but the promise that venues join from it.
    let scenario = |seed| Scenario { bug: Some(Bug::CheckpointWithoutAnOrder), ..standard("quick", seed) };
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
    let with_bug = |seed| Scenario { bug: Some(Bug::TakeWithoutRoom), ..standard("disks", seed) };
    let mut failures = (0..50).filter_map(|seed| run(&with_bug(seed)).err());
    assert!(failures.any(|failure| failure.what.contains("gap in the recorder's own log")));
}

#[test]
fn defects_around_engines_that_fail_are_found() {
    Under("poison").finds(&[
        (Bug::HandOutUnvouched, &[VOID], "", 100),
        // It is executed after all, or every venue fails at it for ever.
        (Bug::ExecuteVoid, &[VOID, ANSWERED], "", 50),
        (Bug::VoidAlone, &[VOID], "", 50),
    ]);
}

#[test]
fn a_log_in_the_place_of_another_that_nobody_notices_is_found() {
    Under("wipes").finds(&[(Bug::ReadOnInNewLog, &[ANSWERED], "", 200)]);
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
        ..standard("quick", seed)
    };
    let divergences: u64 =
        (0..10).map(|seed| run(&long(seed)).map_or(0, |summary| summary.ills.divergences)).sum();
    assert!(divergences > 0, "a wrong venue goes unnoticed");
}

#[test]
fn steps_of_a_move_that_come_too_early_are_found() {
    Under("lanes").finds(&[
        (Bug::VoteBeforeComing, &["L2 who votes has come"], "", 20),
        (Bug::MoveUnfollowed, &["L2 who votes has come", "L3 recorders judge alike"], "", 60),
    ]);
}

#[test]
fn wrong_results_and_streams_are_found() {
    Under("quick").finds(&[
        // All venues agree and every share is accounted for: only the replay knows better.
        (Bug::WrongPrices, &[REPLAY], "", 10),
        (Bug::LeaveFillsOut, &["members' streams"], "", 50),
        (Bug::CloseDaysAlone, &[AGREEMENT], "", 50),
        // All venues and recorders agree that the order lives on: only the replay knows better.
        (Bug::ForgetDayOrders, &[REPLAY], "", 50),
    ]);
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
    Under("revocations").finds(&[(Bug::OverlookRevocation, &["R4 revoked is out"], "", 50)]);
}

/// A repeat is executed a second time by the venues that restored such a checkpoint, or by all; which of them shows first is open.
#[test]
fn names_that_are_forgotten_without_a_floor_are_found() {
    let with_bug = |seed| Scenario { bug: Some(Bug::ForgetNames), ..standard("crashes", seed) };
    let mut failures = (0..400).filter_map(|seed| run(&with_bug(seed)).err());
    assert!(failures.any(|failure| [ONCE, AGREEMENT].contains(&failure.invariant)));
}

#[test]
fn defects_of_guarded_orders_are_found() {
    Under("sessions").finds(&[
        (Bug::CancelWhatComes, &["G2 none that lives is cancelled"], "", 600),
        (Bug::CancelTooLittle, &["G1 none is left behind"], "", 50),
    ]);
}

#[test]
fn defects_of_market_data_are_found() {
    Under("feed").finds(&[
        (Bug::NumberByThisLife, &[FEED], "", 20),
        (Bug::PublishBeforeQuorum, &["F2 nothing is told before it is committed"], "", 20),
        (Bug::ShowGaps, &[CURRENT], "", 20),
        (Bug::SkipAfterSnapshot, &[CURRENT], "", 20),
        (Bug::AnswerWithNeighbour, &[AGAIN], "", 20),
        // The log is found once it continues; or a replayer has sent the message before.
        (Bug::KeepAnotherPast, &[FEED, AGAIN], "", 20),
    ]);
}
