//! Logging on, going on at another gateway, sending again.

use pares_fix::dictionary::FIX44;
use pares_port::{LogonProof, ProtocolDoor, SessionMark};
use pares_types::{Answer, MemberId, Reason, Reply, Role, Status};
use pares_wire::frame::{ClientFrame, GatewayFrame};

use crate::rig::{NOON_NS, Rig, SHARD, answer, changed, trade};

const LIMIT: &str = "55=ACME|54=1|38=100|40=2|44=223.82|59=0|";
const WITH_NUMBERS: [&str; 8] = ["8", "9", "10", "35", "49", "52", "56", "60"];

fn mark(next_in: u64, out_max: u64, told: u64) -> SessionMark {
    SessionMark { member: MemberId(7), session: 1, next_in, out_max, copied: None, told: vec![(SHARD, told)] }
}

/// Enters so many orders and has them answered.
fn enter(rig: &mut Rig, names: std::ops::RangeInclusive<u64>) {
    for name in names {
        rig.asks("D", &format!("11={name}|{LIMIT}"));
        rig.told(Reply::Answer(answer(name, name, Status::Resting, 0, 100)));
    }
    rig.asked.clear();
}

#[test]
fn the_logon_is_answered_last() {
    let mut rig = Rig::new(&FIX44);
    rig.says("A", "98=0|108=30|");
    rig.asks("D", &format!("11=1|{LIMIT}"));
    let Some((sign_on, None)) = rig.logon else { panic!("{:?}", rig.logon) };
    assert_eq!((sign_on.member.get(), sign_on.session.get(), sign_on.flags.get()), (7, 1, 2));
    rig.signs_on(None);
    rig.ends_list();
    assert_eq!(rig.asked.last(), Some(&ClientFrame::Resume { shard: Some(SHARD), next: 0 }));
    assert!(rig.sent().is_empty());
    rig.resumed(6);
    assert_eq!(rig.sent(), ["A 98=0 108=30"]);
    assert!(matches!(rig.asked.last(), Some(ClientFrame::Request(_))), "what came with the Logon is taken");
    assert_eq!(rig.marks[0], mark(2, 1_025, 6), "before the answer, whose number is 1");
    assert_eq!(rig.door.next_deadline_ns(), Some(5 + 30_000_000_000));
}

#[test]
fn unknown_peers_get_no_answer_failed_logon_a_reason() {
    let mut rig = Rig::new(&FIX44);
    rig.says("0", "");
    assert!(rig.is_closed && rig.sent.is_empty() && rig.asked.is_empty());
    let mut rig = Rig::new(&FIX44);
    rig.says("A", "98=0|108=30|");
    rig.hears(rejected(Reason::WrongKey));
    let sent = rig.sent_with(&WITH_NUMBERS);
    assert!(sent[0].starts_with("5 34=1 58=wrong_key: ") && rig.is_closed, "{sent:?}");
    assert!(rig.marks.is_empty(), "it has not had the session");
}

#[test]
fn logon_proof_binds_all_fields_but_its_own() {
    let digits = "0f".repeat(64);
    for (fields, digits, is_proof) in [
        ("57=3|98=0|108=30|141=Y|", digits.clone(), true),
        ("57=2|98=0|108=30|141=Y|", digits.clone(), false),
        ("98=0|108=30|141=Y|", digits.clone(), false),
        ("57=3|98=0|108=30|141=Y|", digits[1..].into(), false),
        ("57=3|98=0|108=30|141=Y|", digits[2..].into(), false),
        ("57=3|98=0|108=30|141=Y|", digits.replace('f', "g"), false),
    ] {
        let mut rig = Rig::new(&FIX44);
        rig.says("A", &format!("{fields}95={}|96={digits}|553=x|", digits.len()));
        let Some((_, proof)) = rig.logon else { panic!("it asks to be signed on") };
        let head = "8=FIX.4.4|35=A|34=1|49=M7-1|52=20260921-14:13:20.000|56=PARES|";
        let message = pares_fix::writer::soh(format!("{head}57=3|98=0|108=30|141=Y|553=x|").as_bytes());
        let expected = LogonProof::Signed { message, proof: [15; 64], time_ns: NOON_NS };
        assert_eq!(proof, is_proof.then_some(expected), "{fields} {digits}");
    }
}

#[test]
fn logon_by_wrong_clock_is_refused_with_both_times() {
    for (late_ns, is_right) in [(120_000_000_000, true), (120_000_000_001, false)] {
        let mut rig = Rig::new(&FIX44);
        let logon = rig.message("A", "98=0|108=30|");
        rig.at.utc_ns += late_ns;
        rig.gives(&logon);
        assert_eq!((rig.logon.is_some(), rig.is_closed), (is_right, !is_right));
        if !is_right {
            let times =
                "SendingTime (52) is 20260921-14:13:20.000, this gateway's clock says 20260921-14:15:20.000";
            rig.sends(&[&format!("^5 58=wrong_clock: .. {times}$")]);
        }
    }
}

/// The gateway refuses it, since it notes each proven Logon as used.
#[test]
fn gateway_judges_clock_of_proven_logon() {
    let mut rig = Rig::new(&FIX44);
    let logon = rig.message("A", &format!("57=3|98=0|108=30|95=128|96={}|", "0f".repeat(64)));
    rig.at.utc_ns -= 180_000_000_000;
    rig.gives(&logon);
    let proof = rig.logon.take().and_then(|(_, proof)| proof);
    assert!(matches!(proof, Some(LogonProof::Signed { time_ns: NOON_NS, .. })) && !rig.is_closed);
    rig.hears(rejected(Reason::WrongClock));
    let times = "SendingTime (52) is 20260921-14:13:20.000, this gateway's clock says 20260921-14:10:20.000";
    rig.sends(&[&format!("^5 58=wrong_clock: .. {times}$")]);
    assert!(rig.is_closed);
}

/// The session continues where it is: a mark would end the connection that it has.
#[test]
fn a_logon_that_is_refused_leaves_no_mark() {
    for (number, fields) in [(1, "98=0|108=9999|"), (2, "98=0|108=30|"), (9, "98=0|108=9999|")] {
        let mut rig = Rig::new(&FIX44);
        rig.number = number;
        rig.says("A", fields);
        rig.signs_on(Some(&mark(5, 40, 1)));
        rig.ends_list();
        rig.resumed(1);
        let sent = rig.sent_with(&WITH_NUMBERS);
        assert!(sent.len() == 1 && sent[0].starts_with("5 34=1 58=") && rig.is_closed, "{sent:?}");
        assert!(rig.marks.is_empty(), "{:?}", rig.marks);
    }
}

/// The gateway takes long to sign it on.
#[test]
fn logon_whose_time_becomes_wrong_is_refused_for_it() {
    let mut rig = Rig::new(&FIX44);
    rig.says("A", "98=0|108=30|");
    rig.at.utc_ns += 3_600_000_000_000;
    rig.signs_on(Some(&mark(1, 40, 1)));
    rig.ends_list();
    rig.resumed(1);
    rig.sends(&["^5 58=wrong_clock: "]);
    assert!(rig.is_closed);
}

#[test]
fn quiet_session_is_probed_for_unread_reports() {
    let mut rig = Rig::logged_on();
    enter(&mut rig, 1..=3);
    rig.sent();
    rig.waits(30_000_000_000);
    assert_eq!(rig.sent().last().unwrap(), "1 112=TOLD-1");
    rig.says("0", "112=TOLD-1|");
    rig.waits(30_000_000_000);
    assert!(!rig.sent().iter().any(|sent| sent.contains("TOLD")), "nothing was told since");
    assert_eq!(rig.door.on_disconnected().unwrap().told, [(SHARD, 4)]);
}

fn rejected(reason: Reason) -> GatewayFrame {
    GatewayFrame::Reply(Reply::Rejected { client_order_id: pares_types::ClientOrderId(0), reason })
}

#[test]
fn a_connection_that_the_gateway_ends_is_told_why() {
    let mut rig = Rig::logged_on();
    rig.hears(rejected(Reason::TakenOver));
    assert!(rig.sent()[0].starts_with("5 58=taken_over: ") && rig.is_closed);
}

#[test]
fn next_gateway_misses_nothing_and_marks_duplicates() {
    let mut first = Rig::logged_on();
    enter(&mut first, 1..=3);
    let before = first.sent();
    let mark = first.marks.last().unwrap().clone();
    assert_eq!(mark, self::mark(2, 1_025, 1), "nothing is known to be read yet");

    let mut second = Rig::new(&FIX44);
    second.number = first.number;
    second.logs_on(Some(&mark), None);
    let logon = second.sent_with(&WITH_NUMBERS);
    assert_eq!(logon, ["A 34=1026 98=0 108=30", "2 34=1027 7=2 16=0"], "what it lacks it asks for");
    for name in 1..=3 {
        second.told(Reply::Answer(answer(name, name, Status::Resting, 0, 100)));
    }
    second.told(Reply::Trade(trade(3, 4, Role::Resting, 60, 40)));
    second.resumed(5);
    second.told(Reply::Trade(trade(3, 5, Role::Resting, 40, 0)));
    let told = second.sent();
    let ids = |told: &[String]| -> Vec<String> {
        told.iter()
            .map(|told| told.split(' ').find(|field| field.starts_with("17=")).unwrap().into())
            .collect()
    };
    assert_eq!(ids(&told)[..3], ids(&before), "the same reports have the same ids");
    assert!(told[..4].iter().all(|told| told.contains(" 97=Y ")), "{told:?}");
    assert!(told[3].contains("39=1") && told[3].contains("38=100") && told[3].contains("151=40 14=60"));
    assert!(!told[4].contains("97=Y") && told[4].contains("39=2") && told[4].contains("151=0 14=100"));

    second.gives(&first.message("2", "7=2|16=0|"));
    let resent = second.sent_with(&WITH_NUMBERS);
    assert!(resent[0].starts_with("4 34=2 43=Y ") && resent[0].contains("36=1028 123=Y"), "{resent:?}");
    assert!(resent[1].starts_with("8 34=1028 43=Y "), "{resent:?}");
    assert_eq!(
        resent[6..],
        ["2 34=1033 7=2 16=0"],
        "an engine that reads in order has passed over the first one"
    );
}

#[test]
fn what_was_told_before_an_answered_test_has_been_read() {
    let mut rig = Rig::logged_on();
    enter(&mut rig, 1..=1_025);
    let sent = rig.sent_with(&WITH_NUMBERS);
    assert_eq!(sent.last().unwrap(), "1 34=1027 112=TOLD-1");
    assert_eq!(rig.marks.last().unwrap().told, [(SHARD, 1)]);
    rig.says("0", "112=TOLD-1|");
    enter(&mut rig, 1_026..=2_100);
    assert_eq!(rig.marks.last().unwrap().told, [(SHARD, 1_026)], "up to when the test was sent");
    rig.says("5", "");
    let last = rig.marks.last().unwrap().clone();
    assert_eq!(last.told, [(SHARD, 1_026)], "who says goodbye may not have read what is still on its way");
    assert!(rig.is_closed);
    let sent = rig.sent_with(&WITH_NUMBERS);
    assert_eq!(sent.last().unwrap(), &format!("5 34={}", last.out_max));
}

#[test]
fn a_connection_that_is_lost_leaves_a_mark_without_a_jump() {
    let mut rig = Rig::logged_on();
    enter(&mut rig, 1..=2);
    assert_eq!(rig.door.on_disconnected(), Some(mark(4, 3, 1)));
    assert_eq!(rig.door.on_disconnected(), None);
}

#[test]
fn peer_sequence_reset_loses_no_stream_messages() {
    let mut rig = Rig::new(&FIX44);
    rig.says("A", "98=0|108=30|141=Y|");
    rig.signs_on(Some(&mark(50, 60, 7)));
    rig.ends_list();
    assert_eq!(rig.asked.last(), Some(&ClientFrame::Resume { shard: Some(SHARD), next: 7 }));
    assert_eq!(rig.sent_with(&WITH_NUMBERS), ["A 34=1 98=0 108=30 141=Y"]);
    assert_eq!(rig.marks[0], mark(2, 1_025, 7));
    rig.resumed(7);
    enter(&mut rig, 8..=9);
    rig.number = 1;
    rig.sent();
    rig.says("A", "98=0|108=30|141=Y|");
    rig.proves();
    assert_eq!(rig.sent_with(&WITH_NUMBERS)[0], "A 34=1 98=0 108=30 141=Y");
    assert_eq!(rig.marks.last(), Some(&mark(2, 1_025, 7)), "also while logged on");
}

#[test]
fn a_repeat_is_answered_if_its_sender_asks() {
    let mut rig = Rig::logged_on();
    enter(&mut rig, 1..=1);
    let first = rig.sent();
    let repeat = Reply::Answer(Answer { repeat: true, number: 0, ..answer(1, 1, Status::Resting, 0, 100) });
    rig.says("D", &format!("43=Y|122=20260921-12:00:00|11=1|60=20260921-12:00:00|{LIMIT}"));
    rig.told(repeat);
    assert!(rig.sent().is_empty(), "what may be a duplicate is no question");
    rig.says("D", &format!("97=Y|11=1|60=20260921-12:00:00|{LIMIT}"));
    rig.told(repeat);
    let terms = "40=2 44=223.82 59=0 ";
    assert_eq!(
        rig.sent(),
        [first[0].replace("8 37", "8 97=Y 37").replace(terms, "")],
        "the first one's facts"
    );
    rig.told(Reply::Trade(trade(1, 2, Role::Resting, 100, 0)));
    assert!(rig.sent()[0].contains("14=100"), "the order is still known");
}

#[test]
fn what_happened_through_other_sessions_is_told_too() {
    let mut rig = Rig::logged_on();
    let mut entering = trade(5, 1, Role::Incoming, 30, 70);
    entering.position = pares_types::Position(102);
    rig.told(Reply::Trade(entering));
    rig.told(Reply::Answer(answer(5, 2, Status::Resting, 30, 70)));
    rig.told(Reply::Answer(changed(6, 5, 3, Status::Resting, 30, 20)));
    rig.sends(&[
        "11=5 17=0-102-A 150=0 39=0 55=ACME 54=7 38=100 151=100 14=0",
        "11=5 17=0-102-0-5 150=F 39=1 55=ACME 54=1 38=100 32=30",
        "11=6 41=5 17=0-103-A 150=5 39=1 55=ACME 54=1 38=50 151=20 14=30",
    ]);
}

#[test]
fn what_is_not_kept_any_more_is_told_again_by_the_stream() {
    let mut rig = Rig::logged_on();
    enter(&mut rig, 1..=8_000);
    rig.sent.clear();
    rig.says("2", "7=2|16=0|");
    let sent = rig.sent_with(&WITH_NUMBERS);
    assert!(sent[0].starts_with("4 34=2 43=Y "), "{:?}", sent[0]);
    assert_eq!(rig.asked, [ClientFrame::Resume { shard: Some(SHARD), next: 1 }]);
    rig.told(Reply::Answer(answer(1, 1, Status::Resting, 0, 100)));
    assert!(rig.sent()[0].contains("97=Y"));
    rig.says("2", "7=2|16=0|");
    assert_eq!(rig.asked.len(), 1, "it is being told again already");
    rig.sent.clear();
    rig.resumed(8_001);
    rig.told(Reply::Trade(trade(1, 8_001, Role::Resting, 100, 0)));
    assert!(!rig.sent()[0].contains("97=Y"));
}

#[test]
fn a_stream_that_is_not_kept_begins_with_the_oldest_there_is() {
    let mut rig = Rig::new(&FIX44);
    rig.logs_on(Some(&mark(1, 9, 5)), None);
    rig.hears(GatewayFrame::Resumed { shard: SHARD, next: 9, reason: Reason::NotKept });
    assert_eq!(rig.asked, [ClientFrame::Resume { shard: Some(SHARD), next: 9 }]);
    rig.hears(GatewayFrame::Resumed { shard: SHARD, next: 9, reason: Reason::NotKept });
    assert_eq!(rig.asked[1..], [ClientFrame::Resume { shard: Some(SHARD), next: 0 }], "but not for ever");
    rig.resumed(12);
    enter(&mut rig, 12..=12);
    assert!(!rig.sent().last().unwrap().contains("97=Y"));
}

#[test]
fn what_was_refused_before_the_session_ended_is_told() {
    let mut rig = Rig::logged_on();
    let order = rig.message("D", "11=1|55=NONE|54=1|60=20260921-12:00:00|40=2|44=1.00|38=1|");
    rig.number = 1;
    let low = rig.message("0", "");
    rig.gives(&[order, low].concat());
    rig.sends(&["^8  .. 39=8", "^5 "]);
    assert!(rig.is_closed);
}
