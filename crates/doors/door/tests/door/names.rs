//! Names that are used again, and orders that are changed too late.

use pares_fix::dictionary::FIX44;
use pares_port::SessionMark;
use pares_types::{
    Answer, CancelCause, ClientOrderId, ClientRequest, InstrumentId, MemberId, OrderKey, Reason, Reply, Role,
    Status,
};
use pares_wire::frame::ClientFrame;

use crate::rig::{ACME, Rig, SHARD, answer, busted, cancelled, changed, mass, trade};

const TERMS: &str = "55=ACME|54=1|38=100|40=2|44=223.82|";

/// Orders of 100 that rest, under names 1 and 2.
fn two_orders() -> Rig {
    let mut rig = Rig::logged_on();
    for name in 1..=2 {
        rig.asks("D", &format!("11={name}|{TERMS}"));
        rig.told(Reply::Answer(answer(name, name, Status::Resting, 0, 100)));
    }
    rig.sent();
    rig
}

/// The first answer to a name, given once more.
fn repeat(answer: Answer) -> Reply {
    Reply::Answer(Answer { repeat: true, number: 0, ..answer })
}

#[test]
fn change_under_an_order_s_name_is_a_duplicate() {
    let mut rig = two_orders();
    let first = answer(1, 1, Status::Resting, 0, 100);
    for target in [1, 2] {
        for (kind, fields) in [("F", ""), ("G", "38=50|40=2|44=2.50|")] {
            rig.asks(kind, &format!("11=1|41={target}|55=ACME|54=1|{fields}"));
            rig.told(repeat(first));
            rig.sends(&[&format!("^9 37=1:{target} 11=1 41={target} 39=0 .. 102=6 58=duplicate_request")]);
        }
    }
    rig.told(Reply::Trade(trade(1, 3, Role::Resting, 100, 0)));
    rig.sends(&["11=1 .. 150=F 39=2 .. 151=0 14=100"]);
}

#[test]
fn new_order_under_a_change_s_name_is_a_duplicate() {
    let replaced = changed(5, 1, 3, Status::Resting, 0, 50);
    let ended = Answer { reason: Reason::Requested, ..changed(5, 1, 3, Status::Cancelled, 0, 0) };
    let late = Answer { reason: Reason::UnknownOrder, ..changed(5, 1, 3, Status::Refused, 0, 0) };
    for first in [replaced, ended, late] {
        let mut rig = two_orders();
        rig.asks("D", &format!("11=5|{TERMS}"));
        rig.told(repeat(first));
        rig.sends(&["^8 37=NONE 11=5 .. 150=8 39=8 103=6 .. 151=0 .. 58=duplicate_request"]);
        rig.asks("D", &format!("11=5|{TERMS}"));
        rig.told(repeat(first));
        rig.sends(&["103=6"]);
    }
}

#[test]
fn order_keeps_a_name_that_another_was_asked_under() {
    let mut rig = two_orders();
    rig.asks("G", "41=1|11=3|55=ACME|54=1|38=200|40=2|44=224|");
    let replaced = changed(3, 1, 3, Status::Resting, 0, 200);
    rig.told(Reply::Answer(replaced));
    rig.asks("D", &format!("11=3|{TERMS}"));
    rig.told(repeat(replaced));
    rig.sends(&["150=5", "^8 37=NONE 11=3 .. 103=6"]);
    rig.asked.clear();
    rig.asks("F", "41=3|11=5|55=ACME|54=1|");
    let (client_order_id, target) = (ClientOrderId(5), ClientOrderId(1));
    assert_eq!(rig.request(), ClientRequest::Cancel { client_order_id, target });
}

#[test]
fn one_change_is_not_told_as_another() {
    let mut rig = two_orders();
    let replaced = changed(5, 1, 3, Status::Resting, 0, 50);
    let ended = Answer { reason: Reason::Requested, ..changed(6, 1, 4, Status::Cancelled, 0, 0) };
    let cases = [
        ("F", "11=5|41=1|", replaced, "a cancel under a replacement's name"),
        ("G", "11=5|41=2|38=50|40=2|44=2.50|", replaced, "another order is replaced"),
        ("F", "11=6|41=2|", ended, "another order is cancelled"),
        ("G", "11=6|41=2|38=50|40=2|44=2.50|", ended, "another order is cancelled"),
    ];
    for (kind, fields, first, why) in cases {
        rig.asks(kind, &format!("{fields}55=ACME|54=1|"));
        rig.told(repeat(first));
        let told = rig.sent();
        assert!(told[0].starts_with("9 37=1:") && told[0].contains("39=0 434="), "{why}: {told:?}");
        assert!(told.len() == 1 && told[0].contains("102=6 "), "{why}: {told:?}");
    }
}

/// After a take-over: the gateway before knew that an order has another name by now, this one does not.
#[test]
fn cancel_by_an_unheard_name_is_not_told_as_another() {
    let mut rig = two_orders();
    let ended = Answer { reason: Reason::Requested, ..changed(5, 2, 3, Status::Cancelled, 0, 0) };
    rig.told(Reply::Cancelled(cancelled(2, 3, CancelCause::Requested, 100)));
    rig.told(Reply::Answer(Answer { number: 4, ..ended }));
    rig.sent();
    rig.asks("F", "11=5|41=3|55=ACME|54=1|");
    rig.told(repeat(ended));
    rig.sends(&["^9 37=NONE 11=5 41=3 .. 102=6"]);
}

#[test]
fn mass_cancel_is_told_of_its_own_instrument() {
    let mut rig = Rig::logged_on();
    let other = Answer { instrument: InstrumentId(18), ..mass(5, 1, 3) };
    for (fields, first) in [("530=1|55=ACME|", other), ("530=7|", other)] {
        rig.asks("q", &format!("11=5|{fields}"));
        rig.told(repeat(first));
        rig.sends(&["^r 37=NONE 11=5 .. 531=0 532=99 .. 58=duplicate_request"]);
    }
    rig.asks("q", "11=5|530=1|55=ACME|");
    rig.told(Reply::Answer(Answer { instrument: ACME, ..other }));
    rig.sends(&["531=1 533=3"]);
}

const MASS_USED: &str = "58=duplicate_request: name used before, perhaps for another request$";

#[test]
fn mass_cancel_is_told_of_its_own_side() {
    let mut rig = Rig::logged_on();
    let first = mass(5, 1, 3);
    rig.asks("q", "11=5|530=1|55=ACME|54=1|");
    rig.told(Reply::Answer(first));
    rig.sends(&["531=1 533=3 .. 54=1"]);
    for (fields, told) in [("54=2|", MASS_USED), ("", MASS_USED), ("54=1|", "531=1 533=3")] {
        rig.says("q", &format!("97=Y|11=5|530=1|55=ACME|60=20260921-12:00:00|{fields}"));
        rig.told(repeat(first));
        rig.sends(&[told]);
    }
    // Another connection does not know what was asked, and one that is refused for its name has not asked.
    let mut rig = Rig::logged_on();
    let refused = Answer { status: Status::Refused, reason: Reason::DuplicateRequest, number: 0, ..first };
    for refusal in [repeat(first), Reply::Answer(refused), repeat(first)] {
        rig.asks("q", "11=5|530=1|55=ACME|54=1|");
        rig.told(refusal);
        rig.sends(&["^r 37= .. 531=0 532=99 .. 58=duplicate_request"]);
    }
}

#[test]
fn mass_cancel_of_everything_is_told_again_to_who_asked() {
    let all = Answer { instrument: InstrumentId(0), ..mass(5, 0, 3) };
    let mut rig = Rig::logged_on();
    rig.asks("q", "11=5|530=7|");
    rig.told(Reply::Answer(all));
    rig.asks("q", "11=5|530=7|");
    rig.told(repeat(all));
    rig.sends(&["531=7 533=3", "97=Y .. 531=7 533=3"]);
    rig.asks("q", "11=5|530=7|54=1|");
    rig.told(repeat(all));
    rig.sends(&[MASS_USED]);
}

#[test]
fn answered_mass_cancels_are_remembered_within_bounds() {
    let mut rig = Rig::logged_on();
    let first = |name| mass(name, name, 0);
    for name in 1..=1_025 {
        rig.asks("q", &format!("11={name}|530=1|55=ACME|"));
        rig.told(Reply::Answer(first(name)));
    }
    rig.sent();
    for (name, told) in [(1, MASS_USED), (2, "531=1 533=0")] {
        rig.asks("q", &format!("11={name}|530=1|55=ACME|"));
        rig.told(repeat(first(name)));
        rig.sends(&[told]);
    }
}

/// After a take-over: the stream comes again, from its first number on.
fn told_again() -> Rig {
    let mut rig = Rig::new(&FIX44);
    let told = vec![(SHARD, 1)];
    let mark = SessionMark { member: MemberId(7), session: 1, next_in: 1, out_max: 9, copied: None, told };
    rig.logs_on(Some(&mark), None);
    rig.sends(&["^A "]);
    rig
}

/// The stream has the answers to names that are used again meanwhile.
#[test]
fn replayed_answer_is_no_answer_to_new_question() {
    let mut rig = told_again();
    rig.asks("q", "11=5|530=1|55=ACME|54=2|");
    rig.asks("G", "11=6|41=1|55=ACME|54=1|38=50|40=2|44=9.99|");
    let first = answer(5, 1, Status::MassCancelled, 3, 0);
    rig.told(Reply::Answer(first));
    rig.told(Reply::Answer(changed(6, 1, 2, Status::Resting, 0, 50)));
    // It comes if the gateway knows the answer as it is asked; if not, that was the one.
    rig.told(repeat(first));
    rig.sends(&[MASS_USED, "^r 97=Y .. 533=3 .. !54=", "^8 .. 150=5 .. 38=50 .. !44="]);
    rig.asks("q", "11=5|530=7|");
    rig.sends(&[]);
}

/// Its answer comes by the stream, which is not live yet.
#[test]
fn new_mass_cancel_is_answered_while_stream_comes_again() {
    let mut rig = told_again();
    rig.asks("q", "11=5|530=1|55=ACME|54=2|");
    let gone = mass(5, 2, 3);
    rig.told(Reply::Answer(answer(4, 1, Status::Resting, 0, 100)));
    rig.told(Reply::Answer(gone));
    rig.resumed(3);
    rig.sends(&["^8 .. 11=4 .. 97=Y", "^r 37=3:105 11=5 530=1 531=1 533=3 .. 54=2 .. !97=Y"]);
    rig.says("q", "97=Y|11=5|530=1|55=ACME|54=2|60=20260921-12:00:00|");
    rig.told(repeat(gone));
    rig.sends(&["^r .. 97=Y .. 531=1 533=3 .. 54=2"]);
}

/// The engine asks for what is not kept any more: the gateway sends the stream again.
#[test]
fn mass_cancel_repeated_while_stream_comes_again_has_its_answer() {
    let mut rig = Rig::logged_on();
    rig.asks("q", "11=5|530=1|55=ACME|54=2|");
    let gone = mass(5, 1, 3);
    rig.told(Reply::Answer(gone));
    (2..=8_000).for_each(|number| rig.told(Reply::Answer(answer(number, number, Status::Resting, 0, 100))));
    rig.asked.clear();
    rig.says("2", "7=2|16=2|");
    assert_eq!(rig.asked, [ClientFrame::Resume { shard: Some(SHARD), next: 1 }]);
    rig.sent();
    rig.asks("q", "11=5|530=1|55=ACME|54=2|");
    rig.told(Reply::Answer(gone));
    rig.told(repeat(gone));
    rig.sends(&["97=Y .. 533=3 .. !54=", "97=Y .. 533=3 .. 54=2"]);
}

#[test]
fn repeated_replacement_has_terms_of_first() {
    let mut rig = two_orders();
    let replace = |rig: &mut Rig, name: u64, terms: &str| {
        rig.says("G", &format!("97=Y|11={name}|41=1|55=ACME|54=1|60=20260921-12:00:00|{terms}"));
    };
    let first = changed(5, 1, 3, Status::Resting, 0, 50);
    replace(&mut rig, 5, "38=50|40=2|44=2.50|");
    rig.told(Reply::Answer(first));
    rig.sends(&["11=5 41=1 .. 150=5 .. 38=50 40=2 44=2.5 59=0 151=50"]);
    // While the order is as that left it, its terms are known.
    replace(&mut rig, 5, "38=70|40=2|44=9.99|59=1|");
    rig.told(repeat(first));
    rig.sends(&["11=5 41=1 .. 150=5 .. 38=50 40=2 44=2.5 59=0 151=50"]);
    replace(&mut rig, 6, "38=60|40=2|44=2.60|");
    rig.told(Reply::Answer(changed(6, 1, 4, Status::Resting, 0, 60)));
    replace(&mut rig, 5, "38=70|40=2|44=9.99|59=1|");
    rig.told(repeat(first));
    rig.sends(&["44=2.6 ", "11=5 .. 150=5 .. 38=50 .. !44= .. !40= .. !59= .. 151=50"]);
    rig.told(Reply::Trade(trade(1, 5, Role::Resting, 60, 0)));
    rig.sends(&["38=60 40=2 44=2.6 "]);
}

/// Another session of the member has asked for something under that name, which is on its way.
#[test]
fn name_in_flight_elsewhere_has_both_reports() {
    let mut rig = two_orders();
    rig.asks("F", "11=5|41=1|55=ACME|54=1|");
    rig.told(Reply::Answer(answer(5, 3, Status::Resting, 0, 100)));
    rig.sends(&["^9 37=1:1 11=5 41=1 39=0 .. 102=6", "^8 37=1:5 11=5 .. 150=0 39=0"]);
    rig.asks("F", "11=7|41=5|55=ACME|54=1|");
    rig.told(Reply::Cancelled(cancelled(5, 4, CancelCause::Requested, 100)));
    let ended = Answer { reason: Reason::Requested, ..changed(7, 5, 4, Status::Cancelled, 0, 0) };
    rig.told(Reply::Answer(Answer { number: 5, ..ended }));
    rig.sends(&["^8 37=1:5 11=7 41=5 .. 150=4 39=4"]);
}

#[test]
fn different_request_under_an_unanswered_name_is_refused() {
    let mut rig = two_orders();
    rig.asks("F", "11=5|41=1|55=ACME|54=1|");
    rig.asked.clear();
    rig.asks("F", "11=5|41=2|55=ACME|54=1|");
    rig.asks("G", "11=5|41=1|55=ACME|54=1|38=50|40=2|44=2.50|");
    rig.asks("D", &format!("11=5|{TERMS}"));
    rig.asks("q", "11=5|530=7|");
    let unanswered = "58=another request with that name is unanswered";
    rig.sends(&["102=6", "102=6", "103=6", unanswered]);
    assert!(rig.asked.is_empty());
    rig.asks("F", "11=5|41=1|55=ACME|54=1|");
    assert_eq!(rig.asked.len(), 1, "the same again is");
    rig.asks("D", &format!("11=6|{TERMS}"));
    rig.asked.clear();
    rig.asks("D", "11=6|55=ACME|54=1|38=200|40=2|44=223.82|");
    rig.sends(&["11=6 .. 150=8 39=8 103=6"]);
    assert!(rig.asked.is_empty());
    rig.asks("D", &format!("11=6|{TERMS}"));
    assert_eq!(rig.asked.len(), 1);
}

#[test]
fn late_change_says_how_the_order_has_ended() {
    let late = |name, number| {
        let refused = changed(name, 1, number, Status::Refused, 0, 0);
        Reply::Answer(Answer { reason: Reason::UnknownOrder, ..refused })
    };
    let ends = [
        (Reply::Trade(trade(1, 3, Role::Resting, 100, 0)), "2"),
        (Reply::Cancelled(cancelled(1, 3, CancelCause::SelfTrade, 100)), "4"),
        (Reply::Cancelled(cancelled(1, 3, CancelCause::DayEnd, 100)), "C"),
    ];
    for (end, status) in ends {
        let mut rig = two_orders();
        rig.told(end);
        rig.sent();
        rig.asks("F", "11=5|41=1|55=ACME|54=1|");
        rig.told(late(5, 4));
        rig.asks("G", "11=6|37=1:1|41=77|55=ACME|54=1|38=200|40=2|44=1|");
        rig.told(late(6, 5));
        rig.asks("F", "11=7|41=1|55=ACME|54=1|");
        rig.told(Reply::Rejected { client_order_id: ClientOrderId(7), reason: Reason::UnknownOrder });
        let refused = format!("^9 37=1:1 .. 39={status} 434=");
        rig.sends(&[&refused, &refused, &refused]);
        rig.asks("G", "11=x|41=1|55=ACME|54=1|38=200|40=2|44=1|");
        rig.sends(&[&format!("{refused} .. 102=99")]);
        rig.told(Reply::Busted(busted(1, 6, 90, 40)));
        rig.sends(&[&format!("^8 37=1:1 11=1 .. 150=H 39={status} ")]);
    }
}

#[test]
fn late_change_by_the_newest_name_finds_its_order() {
    let mut rig = two_orders();
    rig.asks("G", "41=1|11=3|55=ACME|54=1|38=200|40=2|44=224|");
    rig.told(Reply::Answer(changed(3, 1, 3, Status::Resting, 0, 200)));
    rig.told(Reply::Trade(trade(1, 4, Role::Resting, 200, 0)));
    rig.sent();
    rig.asked.clear();
    rig.asks("F", "41=3|11=5|55=ACME|54=1|");
    let (client_order_id, target) = (ClientOrderId(5), ClientOrderId(1));
    assert_eq!(rig.request(), ClientRequest::Cancel { client_order_id, target }, "as the gateway knows it");
    let refused = changed(5, 1, 5, Status::Refused, 0, 0);
    rig.told(Reply::Answer(Answer { reason: Reason::UnknownOrder, ..refused }));
    rig.sends(&["^9 37=1:1 11=5 41=3 39=2 434=1 102=0"]);
    rig.says("H", "11=3|55=ACME|54=1|");
    assert_eq!(rig.asked, [ClientFrame::OrderStatusRequest(OrderKey::Name(ClientOrderId(1)))]);
}

#[test]
fn late_change_of_an_order_from_before_is_no_rejection() {
    let mut rig = Rig::logged_on();
    rig.asks("F", "11=5|41=1|55=ACME|54=1|");
    let refused = changed(5, 1, 1, Status::Refused, 0, 0);
    rig.told(Reply::Answer(Answer { reason: Reason::UnknownOrder, ..refused }));
    rig.asks("F", "11=6|41=2|55=ACME|54=1|");
    rig.told(Reply::Rejected { client_order_id: ClientOrderId(6), reason: Reason::UnknownOrder });
    rig.asks("F", "11=7|41=3|55=ACME|54=1|");
    rig.told(Reply::Rejected { client_order_id: ClientOrderId(7), reason: Reason::UnknownClientOrderId });
    rig.sends(&["^9 37=1:1 .. 39=3 .. 102=0", "^9 37=NONE .. 39=3 .. 102=0", "^9 37=NONE .. 39=8 .. 102=1"]);
}

#[test]
fn change_of_a_refused_order_is_told_as_rejected() {
    let mut rig = Rig::logged_on();
    rig.asks("D", &format!("11=1|{TERMS}"));
    rig.told(Reply::Answer(Answer { reason: Reason::OffTick, ..answer(1, 1, Status::Refused, 0, 0) }));
    rig.sent();
    rig.asks("F", "11=5|41=1|55=ACME|54=1|");
    let refused = changed(5, 1, 2, Status::Refused, 0, 0);
    rig.told(Reply::Answer(Answer { reason: Reason::UnknownOrder, ..refused }));
    rig.sends(&["^9 37=1:1 11=5 41=1 39=8 434=1 102=0"]);
}
