//! Trades for a session that asks: AD, AQ, AE.

use pares_types::{MemberId, Reason, Reply, Role, Status};
use pares_wire::frame::{ClientFrame, GatewayFrame};

use crate::rig::{Rig, SHARD, answer, busted, trade};

const ACCEPTED: &str = "AQ 568=t1 569=0 749=0 750=0";

/// The trade of that number, of an order of another session.
fn traded(number: u64) -> Reply {
    Reply::Trade(trade(5, number, Role::Resting, 10, 9_000 - number))
}

/// As it is sent in answer to the question.
fn report(number: u64, last: &str) -> String {
    let id = format!("0-{}-0-5", 100 + number);
    format!(
        "AE 571={id} 487=0 568=t1 17={id} 570=N 55=ACME 32=10 31=223.82 75=20260921 {last}552=1 54=1 37=1:5 11=5 453=1 448=7 447=D 452=1"
    )
}

fn resumes(next: u64) -> ClientFrame {
    ClientFrame::Resume { shard: Some(SHARD), next }
}

impl Rig {
    /// What is kept is sent again, a little at a time.
    fn is_sent_again(&mut self) {
        (0..200).for_each(|_| self.waits(0));
    }
}

/// A session that received four trades on this connection.
fn rig() -> Rig {
    let mut rig = Rig::logged_on();
    (1..=4).for_each(|number| rig.told(traded(number)));
    assert_eq!(rig.sent().len(), 4);
    rig
}

#[test]
fn replayed_reports_become_trades_new_ones_reports_too() {
    let mut rig = rig();
    rig.says("AD", "568=t1|569=0|");
    assert_eq!((rig.sent(), &rig.asked[..]), (vec![ACCEPTED.to_owned()], &[resumes(1)][..]));
    rig.told(Reply::Answer(answer(5, 1, Status::Resting, 0, 100)));
    (2..=5).for_each(|number| rig.told(traded(number)));
    let told = rig.sent();
    assert_eq!(told[..3], [report(2, ""), report(3, ""), report(4, "")]);
    assert!(told[3].starts_with("8 ") && told[3].contains("150=F") && !told[3].contains("97=Y"), "{told:?}");
    rig.resumed(6);
    assert_eq!(rig.sent(), [report(5, "912=Y ")], "the last of those that were");
    rig.told(traded(6));
    let told = rig.sent();
    assert!(told.len() == 1 && told[0].starts_with("8 "), "those that come were not asked for: {told:?}");
}

/// A gateway may have told the door something before it hears of the question.
#[test]
fn what_crosses_the_question_hides_no_trade() {
    let mut rig = rig();
    rig.says("AD", "568=t1|569=0|263=1|");
    rig.told(traded(5));
    let told = rig.sent();
    assert!(told.len() == 2 && told[1].starts_with("8 "), "it comes again as a trade: {told:?}");
    (1..=5).for_each(|number| rig.told(traded(number)));
    rig.resumed(6);
    let [all @ .., last] = &rig.sent()[..] else { panic!("nothing is told") };
    assert_eq!((all, last), (&[1, 2, 3, 4].map(|number| report(number, ""))[..], &report(5, "912=Y ")));
}

#[test]
fn trade_subscriber_gets_each_once_until_it_ends() {
    let mut rig = rig();
    rig.says("AD", "568=t1|569=0|263=1|");
    rig.told(traded(1));
    rig.resumed(5);
    assert_eq!(rig.sent(), [ACCEPTED.to_owned(), report(1, "912=Y ")]);
    rig.told(traded(5));
    assert!(rig.sent().contains(&report(5, "")));
    // Told again for another reason.
    rig.told(traded(5));
    assert!(rig.sent().iter().all(|told| told.starts_with("8 ")));
    rig.says("AD", "568=t2|569=0|263=1|");
    assert!(rig.sent()[0].starts_with("AQ 568=t2 569=0 749=99 750=2 58="), "one at a time");
    rig.says("AD", "568=t2|569=0|263=2|");
    assert!(rig.sent()[0].starts_with("AQ 568=t2 569=0 749=99 750=2 58="));
    rig.says("AD", "568=t1|569=0|263=2|");
    assert_eq!(rig.sent(), ["AQ 568=t1 569=0 749=0 750=1"]);
    rig.told(traded(6));
    assert!(rig.sent()[0].starts_with("8 "));
    rig.says("AD", "568=t1|569=0|");
    assert_eq!(rig.sent(), [ACCEPTED]);
}

#[test]
fn a_trade_that_is_void_is_told_so() {
    let mut rig = rig();
    rig.says("AD", "568=t1|569=0|263=1|");
    rig.resumed(5);
    assert_eq!(rig.sent(), [ACCEPTED, "AQ 568=t1 569=0 748=0 749=0 750=1"], "there was none");
    rig.told(Reply::Busted(busted(5, 5, 104, 10)));
    let void = "AE 571=0-N5 487=1 568=t1 572=0-104-0-5 17=0-N5 570=N 55=ACME 32=10 31=223.82 ";
    assert!(rig.sent()[0].starts_with(void));
}

#[test]
fn a_stream_that_is_kept_in_part_tells_those_trades_that_it_has() {
    let mut rig = rig();
    rig.says("AD", "568=t1|569=0|");
    let not_kept = |next| GatewayFrame::Resumed { shard: SHARD, next, reason: Reason::NotKept };
    rig.hears(not_kept(3));
    rig.told(traded(3));
    rig.hears(not_kept(4));
    rig.told(traded(3));
    rig.told(traded(4));
    rig.resumed(5);
    assert_eq!(rig.asked, [resumes(1), resumes(3), resumes(4)]);
    assert_eq!(rig.sent()[1..], [report(3, ""), report(4, "912=Y ")]);
}

#[test]
fn trades_that_cannot_be_told_cost_no_news() {
    let mut rig = rig();
    rig.says("AD", "568=t1|569=0|");
    rig.hears(GatewayFrame::Resumed { shard: SHARD, next: 1, reason: Reason::NotKept });
    assert_eq!(rig.asked, [resumes(1), resumes(5)], "what happens meanwhile is asked for");
    rig.told(traded(5));
    rig.resumed(6);
    let told = rig.sent();
    assert_eq!(told[1], "AQ 568=t1 569=0 748=0 749=0 750=1");
    assert!(told.len() == 3 && told[2].starts_with("8 "), "{told:?}");
}

/// A gateway that tells a shard from one place hears no second question for it.
#[test]
fn trades_and_what_is_sent_again_wait_for_each_other() {
    let mut rig = Rig::logged_on();
    (1..=8_000).for_each(|number| rig.told(traded(number)));
    rig.sent.clear();
    rig.says("2", "7=2|16=0|");
    assert_eq!(rig.asked, [resumes(1)]);
    rig.is_sent_again();
    rig.says("AD", "568=t1|569=0|");
    assert_eq!(rig.asked.len(), 1);
    rig.sent.clear();
    rig.told(traded(1));
    assert!(rig.sent()[0].contains("97=Y"));
    rig.resumed(8_001);
    assert_eq!(rig.asked, [resumes(1), resumes(1)]);
    rig.told(traded(1));
    rig.says("2", "7=2|16=0|");
    rig.is_sent_again();
    assert_eq!(rig.asked.len(), 2);
    rig.sent.clear();
    rig.resumed(8_001);
    assert_eq!((rig.sent(), rig.asked.len()), (vec![report(1, "912=Y ")], 3));
    rig.told(traded(1));
    assert!(rig.sent()[0].starts_with("8 97=Y"));
}

#[test]
fn what_is_not_served_is_refused() {
    let mut rig = Rig::logged_on();
    for (fields, answer) in [
        ("568=t1|569=1|", "AQ 568=t1 569=1 749=8 750=2 58="),
        ("568=t1|569=0|263=2|", "AQ 568=t1 569=0 749=99 750=2 58="),
        (
            &format!("568={}|569=0|", "x".repeat(65)),
            &format!("AQ 568={} 569=0 749=99 750=2 58=", "x".repeat(64)),
        ),
        ("568=t1|569=0|55=ACME|", "3 45=5 58=Tag not defined for this message type 371=55 372=AD 373=2"),
    ] {
        rig.says("AD", fields);
        rig.sends(&[&format!("^{answer}")]);
    }
    assert!(rig.asked.is_empty());
    let mut old = Rig::logged_on_with_42();
    old.says("AD", "568=t1|569=0|");
    assert!(old.sent()[0].contains("372=AD"), "no message of FIX 4.2");
}

#[test]
fn a_copy_s_trades_are_the_other_member_s() {
    let mut rig = Rig::new(&pares_fix::dictionary::FIX44);
    rig.copied = Some(MemberId(9));
    rig.logs_on(None, Some(1));
    rig.says("AD", "568=t1|569=0|263=1|");
    rig.resumed(1);
    rig.told(traded(1));
    let told = rig.sent();
    assert!(told.contains(&report(1, "").replace("448=7", "448=9")), "{told:?}");
}
