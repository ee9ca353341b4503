//! Logons within a session: the gateway uses up each one before anything is made of it.

use pares_fix::writer;
use pares_port::LogonProof;
use pares_types::{ClientOrderId, MemberId, Reason, Reply, Status};
use pares_wire::frame::{ClientFrame, GatewayFrame};

use crate::rig::{NOON_NS, Rig, answer};

const ORDER: &str = "11=1|55=ACME|54=1|38=100|40=2|44=223.82|";
const RIGHT: &str = "57=3|98=0|108=30|";
const RESET: &str = "57=3|98=0|108=30|141=Y|";
const MINUTE_NS: u64 = 60_000_000_000;

/// Number, sender and time.
type Head<'a> = (u64, &'a str, u64);

fn logon(version: &str, (number, sender, time_ns): Head<'_>, fields: &str) -> Vec<u8> {
    let fields = format!("{fields}95=128|96={}|", "0f".repeat(64));
    writer::message(version, b"A", (number, sender, time_ns, "PARES"), fields.as_bytes())
}

fn refused(reason: Reason) -> GatewayFrame {
    GatewayFrame::Reply(Reply::Rejected { client_order_id: ClientOrderId(0), reason })
}

impl Rig {
    /// The gateway is to use up a Logon of that session, sent then, before there is any answer.
    fn has_passed_on(&mut self, session: u16, time_ns: u64) {
        let Some((sign_on, Some(LogonProof::Signed { time_ns: sent_ns, .. }))) = self.logon.take() else {
            panic!("nothing is to be used up")
        };
        assert_eq!((sign_on.member.get(), sign_on.session.get(), sent_ns), (7, session, time_ns));
        assert!(self.sent.is_empty() && !self.is_closed);
    }
}

#[test]
fn logon_within_session_is_used_up_whatever_becomes_of_it() {
    let (now_ns, ahead_ns) = (NOON_NS, NOON_NS + 3 * MINUTE_NS);
    let rows: [(_, Head<'_>, _, &[&str]); 9] = [
        ("FIX.4.4", (2, "M7-1", now_ns), RIGHT, &["^5 .. 58=Already logged on"]),
        ("FIX.4.4", (5, "M7-1", now_ns), RIGHT, &["^2 7=2"]),
        ("FIX.4.4", (1, "M7-1", now_ns), RIGHT, &["^5 58=MsgSeqNum too low"]),
        ("FIX.4.4", (1, "M7-1", now_ns), RESET, &["^A .. 141=Y"]),
        ("FIX.4.4", (2, "M7-1", now_ns), RESET, &["^5 58=MsgSeqNum must be 1"]),
        ("FIX.4.4", (2, "M7-1", ahead_ns), RIGHT, &["^3 .. 373=10", "^5"]),
        ("FIX.4.4", (1, "M7-1", ahead_ns), RESET, &[]),
        ("FIX.4.4", (2, "M7-2", now_ns), RIGHT, &["^3 .. 373=9", "^5"]),
        ("FIX.4.2", (2, "M7-1", now_ns), RIGHT, &["^5 58=Incorrect BeginString"]),
    ];
    for (version, head, fields, answers) in rows {
        let mut rig = Rig::logged_on();
        rig.gives(&logon(version, head, fields));
        rig.has_passed_on(if head.1 == "M7-2" { 2 } else { 1 }, head.2);
        rig.proves();
        rig.sends(answers);
    }
}

#[test]
fn logon_behind_logout_of_either_side_is_used_up_if_it_is_read() {
    let mut rig = Rig::logged_on();
    rig.gives(&logon("FIX.4.4", (2, "M7-1", NOON_NS), RIGHT));
    rig.has_passed_on(1, NOON_NS);
    rig.proves();
    rig.sends(&["^5"]);
    rig.gives(&logon("FIX.4.4", (3, "M7-1", NOON_NS + 1_000_000), RIGHT));
    rig.has_passed_on(1, NOON_NS + 1_000_000);
    rig.proves();
    assert!(rig.sent().is_empty() && !rig.is_closed, "the Logout waits for its answer");
}

#[test]
fn what_follows_a_logon_waits_until_that_is_used_up() {
    let mut rig = Rig::logged_on();
    rig.number = 2;
    let order = rig.message("D", &format!("{ORDER}60=20260921-12:00:00|"));
    let later = logon("FIX.4.4", (2, "M7-1", NOON_NS + 1_000_000), RESET);
    rig.gives(&[logon("FIX.4.4", (1, "M7-1", NOON_NS), RESET), order[..20].to_vec()].concat());
    rig.gives(&[&order[20..], &later].concat());
    rig.has_passed_on(1, NOON_NS);
    rig.told(Reply::Answer(answer(9, 1, Status::Resting, 0, 100)));
    rig.sends(&["^8 .. 11=9"]);
    assert!(rig.asked.is_empty() && rig.logon.is_none());
    rig.proves();
    rig.sends(&["^A .. 141=Y", "^1 112=TOLD-1"]);
    rig.sent.clear();
    assert!(matches!(rig.asked[..], [ClientFrame::Request(_)]), "{:?}", rig.asked);
    rig.has_passed_on(1, NOON_NS + 1_000_000);
}

#[test]
fn logon_that_gateway_refuses_ends_its_session_with_reason() {
    for (reason, words) in [
        (Reason::WrongKey, "58=wrong_key: .. TargetSubID (57) must be 3,"),
        (Reason::WrongClock, "58=wrong_clock: .. SendingTime (52) is 20260921-14:13:20.000,"),
        (Reason::TooManyAttempts, "58=too_many_attempts: "),
    ] {
        let mut rig = Rig::logged_on();
        let order = rig.message("D", &format!("{ORDER}60=20260921-12:00:00|"));
        rig.gives(&[order.clone(), logon("FIX.4.4", (1, "M7-1", NOON_NS), RESET), order].concat());
        assert_eq!(rig.asked.len(), 1, "what came before it is asked for before");
        rig.hears(refused(reason));
        rig.sends(&[&format!("^5 .. {words}")]);
        assert!(rig.is_closed && rig.asked.len() == 1);
        let last = rig.marks.last().expect("its numbers stay");
        assert_eq!((last.member, last.next_in, last.out_max), (MemberId(7), 3, 2));
    }
}

/// Without a proof: the gateway says whether the session needs one. Of what no gateway would take as a Logon there is nothing to use up.
#[test]
fn every_logon_that_a_gateway_would_take_is_passed_on() {
    let mut rig = Rig::logged_on();
    rig.says("A", "98=0|108=30|");
    assert!(matches!(rig.logon.take(), Some((_, None))) && rig.sent.is_empty());
    let mut rig = Rig::logged_on();
    rig.logon = None;
    rig.says("A", "98=0|");
    assert!(rig.logon.is_none());
    rig.sends(&["^3 .. 371=108"]);
}
