//! Names that are used again, and orders that are changed too late.

use pares_fix::dictionary::FIX44;
use pares_port::SessionMark;
use pares_types::{
    Answer, CancelCause, ClientOrderId, ClientRequest, InstrumentId, MemberId, OrderId, OrderKey, Reason,
    Reply, Role, Status,
};
use pares_wire::frame::ClientFrame;

use crate::rig::{ACME, Rig, SHARD, answer, busted, cancelled, changed, mass, request_id, trade};

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
    for fields in ["530=1|55=ACME|", "530=7|"] {
        rig.asks("q", &format!("11=5|{fields}"));
        rig.told(repeat(other));
        rig.sends(&["^r 37=NONE 11=5 .. 531=0 532=99 .. 58=duplicate_request"]);
    }
    rig.asks("q", "11=5|530=1|55=ACME|");
    rig.told(Reply::Answer(Answer { instrument: ACME, ..other }));
    rig.sends(&["531=1 533=3"]);
}

/// The answer to that request.
fn of(request: ClientRequest, answer: Answer) -> Answer {
    Answer { asked: request.asked(), ..answer }
}

#[test]
fn mass_cancel_is_told_of_its_own_side() {
    let mut rig = Rig::logged_on();
    rig.asks("q", "11=5|530=1|55=ACME|54=1|");
    let first = of(rig.request(), mass(5, 1, 3));
    rig.told(Reply::Answer(first));
    rig.sends(&["531=1 533=3 .. 54=1"]);
    for (fields, told) in [("54=2|", USED), ("", USED), ("54=1|", "97=Y .. 531=1 533=3")] {
        rig.says("q", &format!("97=Y|11=5|530=1|55=ACME|60=20260921-12:00:00|{fields}"));
        rig.told(repeat(first));
        rig.sends(&[told]);
    }
    // What was asked elsewhere is known by the answer.
    let mut rig = Rig::logged_on();
    rig.asks("q", "11=5|530=1|55=ACME|54=1|");
    rig.told(repeat(first));
    rig.sends(&["^r .. 97=Y .. 531=1 533=3 .. 54=1"]);
}

const USED: &str = "58=duplicate_request: that name was used for a different request$";

#[test]
fn mass_cancel_of_everything_is_told_again_to_who_asked() {
    let mut rig = Rig::logged_on();
    rig.asks("q", "11=5|530=7|");
    let all = of(rig.request(), Answer { instrument: InstrumentId(0), number: 0, ..mass(5, 0, 3) });
    rig.told(Reply::Answer(all));
    rig.asks("q", "11=5|530=7|");
    rig.told(repeat(all));
    rig.sends(&["531=7 533=3", "97=Y .. 531=7 533=3"]);
    rig.asks("q", "11=5|530=7|54=1|");
    rig.told(repeat(all));
    rig.sends(&[USED]);
}

/// Another session's request under the name came first, and its answer before this one was read. This one is refused then.
#[test]
fn report_has_no_terms_of_a_question_that_it_is_not_of() {
    for is_of_another_shard in [false, true] {
        let mut rig = Rig::logged_on();
        rig.asks("D", "11=5|55=ACME|54=1|38=100|40=2|44=223.82|");
        let first = of(rig.request(), answer(5, 1, Status::Resting, 0, 100));
        let mut rig = Rig::logged_on();
        rig.asks("D", "11=5|55=ACME|54=2|38=77|40=2|44=9.99|");
        let own = rig.request();
        rig.told(Reply::Answer(first));
        rig.told(Reply::Trade(trade(5, 2, Role::Resting, 40, 60)));
        rig.sends(&[
            "^8 37=1:5 11=5 .. 150=0 .. 54=7 38=100 151=100",
            "150=F .. 54=1 38=100 .. !44= .. 151=60",
        ]);
        if is_of_another_shard {
            let second = Answer {
                order: OrderId(request_id(9)),
                request: request_id(9),
                ..answer(5, 3, Status::Resting, 0, 77)
            };
            rig.told(Reply::Answer(of(own, second)));
            rig.sends(&["^8 37=1:9 11=5 .. 150=0 .. 54=2 38=77 40=2 44=9.99 59=0 151=77"]);
        } else {
            rig.told(repeat(first));
            rig.sends(&[
                "^8 37=NONE 11=5 .. 39=8 103=6 55=ACME 54=2 38=77 40=2 44=9.99 .. 58=duplicate_request",
            ]);
        }
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

/// What was asked under names that are used again, and the answers, which the stream has.
fn first_answers() -> [Answer; 3] {
    let mut rig = Rig::logged_on();
    rig.asks("q", "11=5|530=1|55=ACME|54=1|");
    let gone = of(rig.request(), mass(5, 1, 3));
    rig.asks("G", "11=6|41=1|55=ACME|54=1|38=50|40=2|44=2.50|");
    let replaced = of(rig.request(), changed(6, 1, 2, Status::Resting, 0, 50));
    rig.asks("D", &format!("11=7|{TERMS}"));
    [gone, replaced, of(rig.request(), answer(7, 3, Status::Resting, 0, 100))]
}

#[test]
fn replayed_answer_is_no_answer_to_new_question() {
    let mut rig = told_again();
    rig.asks("q", "11=5|530=1|55=ACME|54=2|");
    rig.asks("G", "11=6|41=1|55=ACME|54=1|38=50|40=2|44=9.99|");
    rig.asks("D", "11=7|55=ACME|54=2|38=77|40=2|44=9.99|");
    let first = first_answers();
    first.iter().for_each(|first| rig.told(Reply::Answer(*first)));
    rig.sends(&[
        "^r 97=Y .. 533=3 .. !54=",
        "^8 .. 97=Y .. 150=5 .. 38=50 .. !44=",
        "^8 .. 97=Y .. 150=0 .. 54=7 38=100 .. !44=",
    ]);
    // These were known to the gateway as it was asked.
    first.iter().for_each(|first| rig.told(repeat(*first)));
    rig.sends(&[USED, "^9 .. 102=6", "^8 .. 103=6 .. 54=2 38=77 .. 44=9.99"]);
}

#[test]
fn replayed_answer_is_of_the_same_question() {
    let mut rig = told_again();
    rig.asks("q", "11=5|530=1|55=ACME|54=1|");
    rig.asks("G", "11=6|41=1|55=ACME|54=1|38=50|40=2|44=2.50|");
    rig.asks("D", &format!("11=7|{TERMS}"));
    first_answers().into_iter().for_each(|first| rig.told(Reply::Answer(first)));
    rig.sends(&[
        "^r 97=Y .. 533=3 .. 54=1",
        "^8 .. 97=Y .. 150=5 .. 38=50 .. !44=",
        "^8 .. 97=Y .. 150=0 .. 54=1 38=100 40=2 44=223.82",
    ]);
}

#[test]
fn repeated_replacement_has_terms_of_first() {
    let mut rig = two_orders();
    let replace = |rig: &mut Rig, name: u64, terms: &str| {
        rig.says("G", &format!("97=Y|11={name}|41=1|55=ACME|54=1|60=20260921-12:00:00|{terms}"));
    };
    rig.asked.clear();
    replace(&mut rig, 5, "38=50|40=2|44=2.50|");
    let first = of(rig.request(), changed(5, 1, 3, Status::Resting, 0, 50));
    rig.told(Reply::Answer(first));
    rig.sends(&["11=5 41=1 .. 150=5 .. 38=50 40=2 44=2.5 59=0 151=50"]);
    // While the order is as that left it, its terms are known.
    replace(&mut rig, 5, "38=50|40=2|44=2.50|");
    rig.told(repeat(first));
    rig.sends(&["11=5 41=1 .. 150=5 .. 38=50 40=2 44=2.5 59=0 151=50"]);
    replace(&mut rig, 5, "38=70|40=2|44=9.99|59=1|");
    rig.told(repeat(first));
    rig.sends(&["^9 37=1:1 11=5 41=1 .. 102=6"]);
    replace(&mut rig, 6, "38=60|40=2|44=2.60|");
    rig.told(Reply::Answer(changed(6, 1, 4, Status::Resting, 0, 60)));
    replace(&mut rig, 5, "38=50|40=2|44=2.50|");
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
    rig.told(Reply::Rejected { client_order_id: ClientOrderId(5), reason: Reason::DuplicateRequest });
    rig.sends(&["^8 37=1:5 11=5 .. 150=0 39=0", "^9 37=1:1 11=5 41=1 39=0 .. 102=6"]);
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
