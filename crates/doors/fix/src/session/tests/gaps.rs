//! Gaps of both sides at once, as after a take-over.

use super::*;

/// What a message has that was sent before.
const AGAIN: &str = "43=Y|122=20260921-12:00:00|";

fn asked(done: &[String]) -> usize {
    done.iter().filter(|done| done.contains("35=2 ")).count()
}

#[test]
fn gap_behind_an_early_request_is_asked_for_at_once() {
    let mut rig = Rig::logged_on();
    rig.says_as(4, "2", "7=1|16=0|");
    assert_eq!(rig.done(), ["resend 1 to 1"], "first the peer's own gap");
    resend_all(&mut rig, &[]);
    assert_eq!(rig.done(), ["34=1 35=4 43=Y 36=2 123=Y", "34=2 35=2 7=2 16=0"]);
    rig.says_as(2, "D", &order("a"));
    rig.says_as(3, "D", &order("b"));
    rig.says_as(5, "D", &order("c"));
    assert_eq!(rig.done(), ["order a", "order b", "order c"], "the request has had its turn");
    rig.says_as(8, "2", "7=99|16=0|");
    assert_eq!(rig.done()[1..], ["34=4 35=2 7=6 16=0"], "behind one that is refused, too");
}

/// The engine enters an order before it has read our request, and fills its own Logon and request behind it.
#[test]
fn an_order_behind_a_takeover_waits_for_no_heartbeat() {
    let mut rig = Rig::new(FixNumbers { next_in: 2, next_out: 20 });
    rig.says_as(3, "A", "98=0|108=30|");
    assert_eq!(rig.done()[2..], ["34=21 35=2 7=2 16=0"]);
    rig.says_as(4, "2", "7=5|16=0|");
    rig.says_as(5, "D", &order("b"));
    resend_all(&mut rig, &[]);
    rig.done();
    rig.says_as(2, "D", &(String::from(AGAIN) + &order("a")));
    assert_eq!(rig.done(), ["order a", "order b"]);
    rig.says_as(3, "4", &format!("{AGAIN}36=5|123=Y|"));
    rig.says_as(5, "D", &(String::from(AGAIN) + &order("b")));
    assert!(rig.done().is_empty());
    assert_eq!(rig.session.numbers().next_in, 6);
}

#[test]
fn late_gap_fill_closes_all_that_it_covers() {
    let mut rig = Rig::logged_on();
    [3, 7].into_iter().for_each(|number| rig.says_as(number, "D", &order("b")));
    rig.says_as(2, "D", &order("a"));
    rig.done();
    rig.says_as(3, "4", &format!("{AGAIN}36=6|123=Y|"));
    rig.says_as(3, "4", &format!("{AGAIN}36=4|123=Y|"));
    rig.says_as(6, "D", &order("c"));
    assert_eq!(rig.done(), ["order c", "order b"]);
    rig.says_as(3, "4", &format!("{AGAIN}36=20|123=Y|"));
    assert_eq!(rig.session.numbers().next_in, 8, "nothing is missing");
    rig.says_as(6, "4", "36=9|123=Y|");
    let text = "58=MsgSeqNum too low, expecting 8 but received 6";
    assert_eq!(
        rig.done(),
        [format!("34=4 35=5 {text}"), "disconnect".into()],
        "it does not say that it comes again"
    );
}

/// The engine fills what it was asked for without end, or resets its numbers, and so skips an order that has arrived.
#[test]
fn order_that_a_sequence_reset_skips_is_refused() {
    for reset in [&format!("{AGAIN}36=6|123=Y|"), "36=6|"] {
        let mut rig = Rig::logged_on();
        rig.says_as(4, "D", &order("c"));
        rig.says_as(5, "0", "");
        rig.says_as(6, "D", &order("d"));
        assert_eq!(rig.done(), ["34=2 35=2 7=2 16=0"]);
        rig.says_as(2, "4", reset);
        let text = "Skipped by a SequenceReset: not executed";
        assert_eq!(rig.done(), [&format!("34=3 35=j 45=4 58={text} 372=D 380=0"), "order d"]);
        assert_eq!(rig.session.numbers().next_in, 7);
    }
}

#[test]
fn gap_before_messages_that_wait_is_asked_for_at_once() {
    let mut rig = Rig::logged_on();
    rig.says_as(3, "D", &order("b"));
    rig.says_as(6, "D", &order("e"));
    assert_eq!(rig.done(), ["34=2 35=2 7=2 16=0"]);
    rig.says_as(2, "D", &order("a"));
    assert_eq!(rig.done(), ["order a", "order b", "34=3 35=2 7=4 16=0"]);
    rig.says_as(4, "D", &order("c"));
    rig.says_as(5, "D", &order("d"));
    assert_eq!(rig.done(), ["order c", "order d", "order e"]);
}

/// A peer that goes strictly by numbers has not looked at our request, and what fills its gap passes over that.
#[test]
fn request_that_the_peer_has_passed_over_is_repeated() {
    let mut rig = Rig::new(FixNumbers { next_in: 7, next_out: 1_000 });
    rig.says_as(9, "A", "98=0|108=30|");
    assert_eq!(rig.done()[2..], ["34=1001 35=2 7=7 16=0"]);
    rig.says_as(10, "2", "7=500|16=1000|");
    resend_all(&mut rig, &[]);
    assert_eq!(asked(&rig.done()), 0, "it has our request yet");
    rig.says_as(11, "2", "7=500|16=0|");
    resend_all(&mut rig, &[]);
    assert_eq!(rig.done()[1..], ["34=500 35=4 43=Y 36=1002 123=Y", "34=1002 35=2 7=7 16=0"]);
    for number in 12..30 {
        rig.says_as(number, "2", "7=500|16=0|");
        resend_all(&mut rig, &[]);
    }
    assert_eq!(asked(&rig.done()), 2, "not as often as it asks");
    rig.says_as(7, "D", &(String::from(AGAIN) + &order("a")));
    rig.says_as(30, "2", "7=500|16=0|");
    resend_all(&mut rig, &[]);
    assert_eq!(asked(&rig.done()), 1, "something has moved");
}

#[test]
fn first_of_merged_requests_may_cover_our_own() {
    let mut rig = Rig::new(FixNumbers { next_in: 7, next_out: 1_000 });
    rig.says_as(9, "A", "98=0|108=30|");
    rig.says_as(10, "2", "7=500|16=0|");
    [11, 12].into_iter().for_each(|number| rig.says_as(number, "2", "7=600|16=700|"));
    resend_all(&mut rig, &[]);
    assert_eq!(asked(&rig.done()), 1, "the second is served before");
    resend_all(&mut rig, &[]);
    assert_eq!(rig.done(), ["34=600 35=4 43=Y 36=701 123=Y", "34=1002 35=2 7=7 16=0"]);
}

#[test]
fn flood_of_early_requests_keeps_bounded_places() {
    let mut rig = Rig::logged_on();
    (3..5_000).for_each(|number| rig.says_as(number, "2", "7=1|16=0|"));
    assert!(rig.session.early.len() <= 1_024);
    resend_all(&mut rig, &[]);
    resend_all(&mut rig, &[]);
    assert_eq!(asked(&rig.done()), 1);
}

#[test]
fn unrequested_resend_fills_our_logon_too() {
    let mut rig = Rig::new(FixNumbers { next_in: 7, next_out: 20 });
    rig.says_as(7, "A", "98=0|108=30|789=18|");
    resend_all(&mut rig, &[19]);
    let filled = ["34=18 35=4 43=Y 36=19 123=Y", "34=19 35=8 43=Y 37=o", "34=20 35=4 43=Y 36=21 123=Y"];
    assert_eq!(rig.done()[2..], [&["resend 18 to 20"][..], &filled].concat());
    let mut rig = Rig::new(FixNumbers { next_in: 7, next_out: 20 });
    rig.says_as(7, "A", "98=0|108=30|789=20|");
    assert_eq!(rig.done().len(), 2, "it lacks nothing");
}
