//! The session layer beyond the acceptance files: take-over, floods, memory, the daily reset.

mod gaps;

use super::*;
use crate::dictionary::{FIX42, FIX44};
use crate::framing::{Cut, cut};
use crate::writer;

const NOON_NS: u64 = 1_790_000_000 * S;

/// A session, and the peer that calls it.
struct Rig {
    session: FixSession,
    parser: FixParser,
    now_ns: u64,
    /// The peer's next number.
    number: u64,
    done: Vec<String>,
}

impl Rig {
    fn new(numbers: FixNumbers) -> Self {
        let settings =
            FixSettings { application_types: &["D"], ..FixSettings::new(&FIX44, "EXCHANGE", "MEMBER") };
        let session = FixSession::new(settings, numbers);
        Self {
            session,
            parser: FixParser::default(),
            now_ns: NOON_NS,
            number: numbers.next_in,
            done: Vec::new(),
        }
    }

    fn logged_on() -> Self {
        let mut rig = Self::new(FixNumbers::default());
        rig.says("A", "98=0|108=30|");
        assert_eq!(rig.done(), ["34=1 35=A 98=0 108=30", "logged on"]);
        rig
    }

    /// The peer sends a message with its next number.
    fn says(&mut self, msg_type: &str, fields: &str) {
        self.number += 1;
        self.says_as(self.number - 1, msg_type, fields);
    }

    fn says_as(&mut self, number: u64, msg_type: &str, fields: &str) {
        let bytes = self.message(number, msg_type, fields);
        let (Cut::Whole(frame), _) = cut(&bytes) else { panic!("a message") };
        let Self { session, parser, done, now_ns, .. } = self;
        session.on_frame(parser, *now_ns, &frame, &mut |action: FixAction<'_>| done.push(told(action)));
    }

    fn message(&self, number: u64, msg_type: &str, fields: &str) -> Vec<u8> {
        writer::message(
            "FIX.4.4",
            msg_type.as_bytes(),
            (number, "MEMBER", self.now_ns, "EXCHANGE"),
            fields.as_bytes(),
        )
    }

    fn act(&mut self, act: impl FnOnce(&mut FixSession, u64, &mut dyn FnMut(FixAction<'_>))) {
        let Self { session, done, now_ns, .. } = self;
        act(session, *now_ns, &mut |action| done.push(told(action)));
    }

    /// Lets time pass up to the next deadline.
    fn waits(&mut self) {
        self.now_ns = self.session.next_deadline().expect("a deadline");
        self.act(|session, now_ns, sink| session.tick(now_ns, &mut { sink }));
    }

    fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.done)
    }
}

/// An order, by its name.
fn order(name: &str) -> String {
    format!("11={name}|55=X|54=1|60=20260921-12:00:00|40=1|38=1|")
}

/// An action in short: of a message what the session layer decides.
fn told(action: FixAction<'_>) -> String {
    match action {
        FixAction::Send(bytes) => sent(bytes),
        FixAction::LoggedOn { anew: false } => "logged on".into(),
        FixAction::LoggedOn { anew: true } => "logged on anew".into(),
        FixAction::Deliver(message) => {
            format!("order {}", String::from_utf8_lossy(message.text(tag::CL_ORD_ID).unwrap()))
        }
        FixAction::Resend { from, to } => format!("resend {from} to {to}"),
        FixAction::Disconnect => "disconnect".into(),
    }
}

fn sent(bytes: &[u8]) -> String {
    let (Cut::Whole(frame), _) = cut(bytes) else { panic!("a message") };
    let text = String::from_utf8_lossy(frame.body);
    let fields = text.trim_end_matches('\x01').split('\x01');
    let mut fields: Vec<&str> =
        fields.filter(|field| !["49=", "52=", "56=", "122"].contains(&&field[..3])).collect();
    fields.swap(0, 1);
    fields.join(" ")
}

fn resend_all(rig: &mut Rig, numbers: &[u64]) {
    rig.act(|session, now_ns, mut sink| {
        for &number in numbers {
            session.resend(now_ns, number, now_ns - S, b"8", &mut sink, |writer| {
                writer.text(tag::ORDER_ID, b"o")
            });
        }
        session.resend_done(now_ns, &mut sink);
    });
}

#[test]
fn takeover_jumps_numbers_and_fills_the_gap() {
    let mut rig = Rig::new(FixNumbers { next_in: 7, next_out: 1_000 });
    rig.says("A", "98=0|108=30|");
    assert_eq!(rig.done(), ["34=1000 35=A 98=0 108=30", "logged on"]);
    rig.says("2", "7=480|16=0|");
    assert_eq!(rig.done(), ["resend 480 to 1000"]);
    resend_all(&mut rig, &[482, 500]);
    let filled = ["34=480 35=4 43=Y 36=482 123=Y", "34=482 35=8 43=Y 37=o", "34=483 35=4 43=Y 36=500 123=Y"];
    assert_eq!(rig.done()[..3], filled);
    assert_eq!(rig.session.numbers(), FixNumbers { next_in: 9, next_out: 1_001 });
}

#[test]
fn peer_expectation_triggers_unrequested_resend() {
    let mut rig = Rig::new(FixNumbers { next_in: 7, next_out: 20 });
    rig.says_as(9, "A", "98=0|108=30|789=18|");
    assert_eq!(rig.done(), ["34=20 35=A 98=0 108=30 789=7", "logged on", "resend 18 to 20"]);
    rig.says_as(7, "D", &(String::from("43=Y|122=20260921-12:00:00|") + &order("a")));
    rig.says_as(8, "4", "43=Y|36=9|123=Y|");
    rig.says_as(10, "D", &order("b"));
    assert_eq!(rig.done(), ["order a", "order b"], "the Logon's place is not missed");
    let mut rig = Rig::new(FixNumbers { next_in: 7, next_out: 20 });
    rig.says("A", "98=0|108=30|789=21|");
    assert_eq!(rig.done()[1], "disconnect", "it expects what was never sent");
}

#[test]
fn requests_to_resend_while_one_is_served_become_one() {
    let mut rig = Rig::new(FixNumbers { next_in: 1, next_out: 50 });
    rig.says("A", "98=0|108=30|");
    rig.done();
    (0..1_000).for_each(|_| rig.says("2", "7=10|16=20|"));
    rig.says("2", "7=5|16=12|");
    assert_eq!(rig.done(), ["resend 10 to 20"]);
    resend_all(&mut rig, &[]);
    assert_eq!(rig.done(), ["34=10 35=4 43=Y 36=21 123=Y", "resend 5 to 20"]);
    resend_all(&mut rig, &[]);
    assert_eq!(rig.done(), ["34=5 35=4 43=Y 36=21 123=Y"]);
}

#[test]
fn what_was_never_sent_cannot_be_asked_for() {
    let mut rig = Rig::logged_on();
    rig.says("2", "7=5|16=0|");
    rig.says("2", "7=0|16=0|");
    rig.says("2", "7=2|16=1|");
    let text = "58=Value is incorrect (out of range) for this tag";
    let refused =
        |number: u8, of: u8, tag: u8| format!("34={number} 35=3 45={of} {text} 371={tag} 372=2 373=5");
    assert_eq!(rig.done(), [refused(2, 2, 7), refused(3, 3, 7), refused(4, 4, 16)]);
}

#[test]
fn early_messages_wait_in_bounds_then_resend() {
    let mut rig = Rig::logged_on();
    (3..5_000).for_each(|number| rig.says_as(number, "D", &order("x")));
    assert_eq!(rig.done(), ["34=2 35=2 7=2 16=0"], "asked once");
    assert!(rig.session.early.len() <= 1_024 && rig.session.early_bytes <= 256 << 10);
    rig.says_as(2, "D", &order("x"));
    let kept = rig.session.numbers.next_in;
    assert_eq!(rig.done().len() as u64, kept - 2, "what waited is delivered");
    rig.says_as(5_000, "D", &order("x"));
    assert_eq!(rig.done(), [format!("34=3 35=2 7={kept} 16=0")]);
    assert_eq!(rig.session.early_bytes, rig.session.early.values().map(Early::length).sum::<usize>());
}

#[test]
fn a_gap_in_which_nothing_moves_is_asked_for_again() {
    let mut rig = Rig::logged_on();
    rig.says_as(3, "D", &order("b"));
    rig.done();
    rig.waits();
    assert_eq!(rig.done(), ["34=3 35=2 7=2 16=0"]);
    rig.says_as(2, "D", &order("a"));
    assert_eq!(rig.done(), ["order a", "order b"]);
    rig.waits();
    assert_eq!(rig.done(), ["34=4 35=0"], "now there is no gap");
}

#[test]
fn a_gap_that_moves_is_not_asked_for_again() {
    let mut rig = Rig::logged_on();
    rig.says_as(9, "D", &order("z"));
    rig.done();
    for number in 2..8 {
        rig.now_ns += 9 * S;
        rig.says_as(number, "D", &order("x"));
        rig.act(|session, now_ns, mut sink| session.tick(now_ns, &mut sink));
    }
    let asked = |done: &[String]| done.iter().filter(|done| done.contains("35=2")).count();
    assert_eq!(asked(&rig.done()), 0);
    rig.now_ns += 10 * S;
    rig.act(|session, now_ns, mut sink| session.tick(now_ns, &mut sink));
    assert_eq!(asked(&rig.done()), 1, "nothing moves any more");
}

#[test]
fn an_early_message_is_judged_by_when_it_came() {
    let mut rig = Rig::logged_on();
    rig.says_as(3, "D", &order("b"));
    rig.now_ns += 20 * S;
    rig.session.settings.time_tolerance_ns = 10 * S;
    rig.says_as(2, "D", &order("a"));
    assert_eq!(rig.done()[1..], ["order a", "order b"]);
}

#[test]
fn what_is_not_looked_at_while_logging_out_is_not_counted() {
    let mut rig = Rig::logged_on();
    rig.act(|session, now_ns, mut sink| session.log_out(now_ns, "closing", &mut sink));
    rig.says("D", &order("a"));
    rig.says("2", "7=1|16=0|");
    assert_eq!(rig.done(), ["34=2 35=5 58=closing", "resend 1 to 2"]);
    rig.waits();
    assert_eq!(rig.done(), ["disconnect"]);
    assert_eq!(rig.session.numbers(), FixNumbers { next_in: 2, next_out: 3 });
}

#[test]
fn message_sent_while_away_keeps_number_for_resend() {
    let mut rig = Rig::logged_on();
    rig.session.on_disconnected();
    rig.act(|session, now_ns, mut sink| {
        assert_eq!(session.send(now_ns, b"8", &mut sink, |_| {}), 2);
    });
    assert!(rig.done().is_empty());
    rig.says("A", "98=0|108=30|");
    assert_eq!(rig.done(), ["34=3 35=A 98=0 108=30", "logged on"]);
}

#[test]
fn a_resend_ends_with_its_connection() {
    let mut rig = Rig::logged_on();
    rig.says("2", "7=1|16=0|");
    rig.session.on_disconnected();
    rig.done();
    resend_all(&mut rig, &[1]);
    assert!(rig.done().is_empty());
}

#[test]
fn numbers_begin_anew_with_the_day_and_by_the_peer_s_wish() {
    let mut rig = Rig::logged_on();
    rig.act(|session, now_ns, mut sink| session.reset(now_ns, "end of day", &mut sink));
    assert_eq!(rig.done(), ["34=2 35=5 58=end of day", "disconnect"]);
    assert_eq!(rig.session.numbers(), FixNumbers::default());
    let mut rig = Rig::new(FixNumbers { next_in: 70, next_out: 80 });
    rig.says_as(2, "A", "98=0|108=30|141=Y|");
    assert_eq!(rig.done()[1], "disconnect", "a reset begins with number 1");
    assert_eq!(rig.session.numbers(), FixNumbers { next_in: 70, next_out: 81 }, "it was refused");
    rig.says_as(1, "A", "98=1|108=30|141=Y|");
    assert_eq!(rig.session.numbers(), FixNumbers { next_in: 70, next_out: 82 }, "so was this one");
    let mut rig = Rig::new(FixNumbers { next_in: 70, next_out: 80 });
    rig.says_as(1, "A", "98=0|108=30|141=Y|");
    assert_eq!(rig.done(), ["34=1 35=A 98=0 108=30 141=Y", "logged on anew"]);
}

#[test]
fn a_logon_that_cannot_be_kept_is_told_why() {
    let tried = |fields: &str, number: u64| {
        let mut rig = Rig::new(FixNumbers { next_in: 5, next_out: 1 });
        rig.says_as(number, "A", fields);
        let done = rig.done();
        assert_eq!(done[1], "disconnect");
        done[0].split("58=").nth(1).unwrap().to_owned()
    };
    assert_eq!(tried("98=0|108=30|", 4), "MsgSeqNum too low, expecting 5 but received 4");
    assert_eq!(tried("98=1|108=30|", 5), "EncryptMethod must be 0");
    assert_eq!(tried("98=0|108=9999|", 5), "HeartBtInt must be 0 to 3600");
    assert_eq!(tried("98=0|108=-3|", 5), "HeartBtInt must be 0 to 3600");
}

#[test]
fn rejections_are_not_answered_by_rejections() {
    let mut rig = Rig::logged_on();
    rig.says("3", "45=x|");
    rig.says("j", "45=1|372=D|380=1|");
    assert!(rig.done().is_empty());
    assert_eq!(rig.session.numbers().next_in, 4, "they count");
}

#[test]
fn a_session_without_heartbeats_has_no_deadline() {
    let mut rig = Rig::new(FixNumbers::default());
    rig.says("A", "98=0|108=0|");
    assert_eq!(rig.session.next_deadline(), None);
}

#[test]
fn message_with_unserved_data_is_rejected_and_counts() {
    let mut rig = Rig::logged_on();
    rig.says("D", &(order("a") + "350=3|351=a|b|"));
    rig.says("D", &(order("b") + "no field|"));
    rig.says("B", "148=x|358=3|359=a|b|");
    let rejected = [
        "34=2 35=3 45=2 58=Tag not defined for this message type 371=350 372=D 373=2",
        "34=3 35=3 45=3 58=Invalid tag number 372=D 373=0",
        "34=4 35=j 45=4 58=Unsupported Message Type 372=B 380=3",
    ];
    assert_eq!(rig.done(), rejected);
    rig.says("D", &order("c"));
    assert_eq!(rig.done(), ["order c"], "nothing is missing");
}

#[test]
fn fix_4_2_has_no_numbers_for_late_reasons() {
    assert!(
        FIX42.allows(tag::SESSION_REJECT_REASON, b"11") && !FIX42.allows(tag::SESSION_REJECT_REASON, b"13")
    );
    assert!(FIX44.allows(tag::SESSION_REJECT_REASON, b"13"));
}
