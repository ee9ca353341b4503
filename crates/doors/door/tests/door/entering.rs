//! Orders in, reports out.

use pares_exercise::replies::{self, order_id};
use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, ClientRequest, NewOrder, OrderChange, OrderKind,
    OrderNews, Position, Price, Quantity, Reason, Reply, RequestDigest, Role, Side, Status, TimeInForce,
    Trade,
};

use crate::rig::{ACME, Rig, answer, busted, cancelled, changed, request_id, trade};

const LIMIT: &str = "11=1|55=ACME|54=1|38=100|40=2|44=223.82|59=0|";

/// An order of 100 that rests, under name 1.
fn resting() -> Rig {
    let mut rig = Rig::logged_on();
    rests(&mut rig);
    rig
}

fn rests(rig: &mut Rig) {
    rig.asks("D", LIMIT);
    rig.told(Reply::Answer(answer(1, 1, Status::Resting, 0, 100)));
    rig.sent();
    rig.request();
}

#[test]
fn an_order_is_entered_and_told_that_it_is() {
    let mut rig = Rig::logged_on();
    rig.asks("D", LIMIT);
    let order = NewOrder::limit(Side::Buy, Price(2_238_200), Quantity(100));
    let client_order_id = ClientOrderId(1);
    assert_eq!(rig.request(), ClientRequest::Enter { client_order_id, instrument: ACME, order });
    assert!(rig.sent().is_empty(), "nothing is said before it is recorded");
    rig.told(Reply::Answer(answer(1, 1, Status::Resting, 0, 100)));
    let terms = "55=ACME 54=1 38=100 40=2 44=223.82 59=0";
    assert_eq!(rig.sent(), [format!("8 37=1:1 11=1 17=0-101-A 150=0 39=0 {terms} 151=100 14=0")]);
}

#[test]
fn fix_4_2_says_it_in_its_own_way() {
    let mut rig = Rig::logged_on_with_42();
    rests(&mut rig);
    rig.told(Reply::Trade(trade(1, 2, Role::Resting, 40, 60)));
    let terms = "55=ACME 54=1 38=100 40=2 44=223.82 59=0";
    let trade_id = "17=0-102-0-1";
    assert_eq!(
        rig.sent(),
        [format!("8 37=1:1 11=1 {trade_id} 20=0 150=1 39=1 {terms} 32=40 31=223.82 151=60 14=40")]
    );
    rig.told(Reply::Busted(busted(1, 3, 102, 40)));
    let busted = "17=0-N3 19=0-102-0-1 20=1 150=1 39=1";
    assert_eq!(rig.sent(), [format!("8 37=1:1 11=1 {busted} {terms} 32=40 31=223.82 151=60 14=40")]);
    rig.asks("G", "41=1|11=2|55=ACME|54=1|38=200|40=2|44=223.82|");
    rig.told(Reply::Answer(changed(2, 1, 4, Status::Resting, 40, 160)));
    assert!(rig.sent()[0].contains("20=0 150=5 39=1 "), "filled in part is more than replaced");
}

#[test]
fn an_order_that_trades_at_once_is_new_first() {
    let mut rig = Rig::logged_on();
    rig.asks("D", LIMIT);
    let at = Position(107);
    rig.told(Reply::Trade(Trade { position: at, ..trade(1, 5, Role::Incoming, 30, 70) }));
    rig.told(Reply::Trade(Trade { position: at, ..trade(1, 6, Role::Incoming, 70, 0) }));
    assert!(rig.sent().is_empty(), "the answer is a frame away");
    rig.told(Reply::Answer(answer(1, 7, Status::Filled, 100, 0)));
    let told = rig.sent();
    let in_short = |told: &String| {
        let of = |tag: &str| told.split(' ').find_map(|field| field.strip_prefix(tag)).unwrap().to_owned();
        [of("150="), of("39="), of("151="), of("14=")].join(" ")
    };
    assert_eq!(told.iter().map(in_short).collect::<Vec<_>>(), ["0 0 100 0", "F 1 70 30", "F 2 0 100"]);
}

#[test]
fn what_an_ioc_order_could_not_trade_is_cancelled() {
    let mut rig = Rig::logged_on();
    rig.asks("D", "11=1|55=ACME|54=1|38=100|40=1|59=3|");
    let ClientRequest::Enter { order, .. } = rig.request() else { panic!("an order") };
    assert_eq!(order, NewOrder::market(Side::Buy, Quantity(100)));
    let position = Position(102);
    rig.told(Reply::Cancelled(Cancelled { position, ..cancelled(1, 1, CancelCause::Remainder, 100) }));
    let of = Answer { reason: Reason::NothingToTrade, ..answer(1, 2, Status::Cancelled, 0, 0) };
    rig.told(Reply::Answer(of));
    let terms = "55=ACME 54=1 38=100 40=1 59=3";
    assert_eq!(
        rig.sent(),
        [
            format!("8 37=1:1 11=1 17=0-102-A 150=0 39=0 {terms} 151=100 14=0"),
            format!("8 37=1:1 11=1 17=0-N1 150=4 39=4 {terms} 151=0 14=0 58=remainder"),
        ]
    );
}

#[test]
fn a_cancel_is_told_once_with_both_names() {
    let mut rig = resting();
    rig.asks("F", "41=1|11=2|55=ACME|54=1|");
    let (client_order_id, target) = (ClientOrderId(2), ClientOrderId(1));
    assert_eq!(rig.request(), ClientRequest::Cancel { client_order_id, target });
    let position = Position(103);
    rig.told(Reply::Cancelled(Cancelled { position, ..cancelled(1, 2, CancelCause::Requested, 100) }));
    let reason = Reason::Requested;
    rig.told(Reply::Answer(Answer { reason, ..changed(2, 1, 3, Status::Cancelled, 0, 0) }));
    let terms = "55=ACME 54=1 38=100 40=2 44=223.82 59=0";
    assert_eq!(rig.sent(), [format!("8 37=1:1 11=2 41=1 17=0-103-A 150=4 39=4 {terms} 151=0 14=0")]);
    rig.asks("F", "41=1|11=3|55=ACME|54=1|");
    rig.request();
    let reason = Reason::UnknownOrder;
    rig.told(Reply::Answer(Answer { reason, ..changed(3, 1, 4, Status::Refused, 0, 0) }));
    let text = "58=unknown_order";
    assert_eq!(rig.sent(), [format!("9 37=1:1 11=3 41=1 39=4 434=1 102=0 {text}")]);
}

#[test]
fn a_replaced_order_answers_to_its_names() {
    let mut rig = resting();
    rig.asks("G", "41=1|11=2|55=ACME|54=1|38=200|40=2|44=224|111=20|");
    let ClientRequest::Amend { target, terms, .. } = rig.request() else { panic!("an amend") };
    assert_eq!((target, terms.price, terms.quantity), (ClientOrderId(1), Price(2_240_000), Quantity(200)));
    assert_eq!((terms.display, terms.time_in_force), (Some(Quantity(20)), None));
    let position = Position(103);
    rig.told(Reply::Trade(Trade { position, ..trade(1, 2, Role::Incoming, 50, 150) }));
    rig.told(Reply::Answer(changed(2, 1, 3, Status::Resting, 50, 150)));
    let terms = "55=ACME 54=1 38=200 40=2 44=224 59=0";
    assert_eq!(
        rig.sent(),
        [
            format!("8 37=1:1 11=2 41=1 17=0-103-A 150=5 39=0 {terms} 151=200 14=0"),
            format!("8 37=1:1 11=2 17=0-103-0-1 150=F 39=1 {terms} 32=50 31=223.82 151=150 14=50"),
        ]
    );
    for (fields, original) in [("41=2|11=3|", 2), ("41=1|11=4|", 1), ("37=1:1|41=x|11=5|", 2)] {
        rig.asks("F", &format!("{fields}55=ACME|54=1|"));
        let request = rig.request();
        let ClientRequest::Cancel { target, client_order_id } = request else { panic!("{request:?}") };
        assert_eq!(target, ClientOrderId(1), "{fields}");
        rig.told(Reply::Rejected { client_order_id, reason: Reason::Throttled });
        assert!(rig.sent()[0].contains(&format!("41={original} 39=1 434=1 102=99")), "{fields}");
    }
}

#[test]
fn an_order_that_nobody_can_take_is_rejected_with_a_reason() {
    let cases = [
        ("11=x|55=ACME|54=1|38=1|40=2|44=1|", "99 58=ClOrdID (11) must be 1 to 2^64-1"),
        ("11=01|55=ACME|54=1|38=1|40=2|44=1|", "99 58=ClOrdID (11) must be 1 to 2^64-1"),
        ("11=18446744073709551616|55=ACME|54=1|38=1|40=2|44=1|", "99 58=ClOrdID (11) must be 1 to 2^64-1"),
        ("11=1|55=NONE|54=1|38=1|40=2|44=1|", "1 58=no instrument has that Symbol (55) or SecurityID (48)"),
        (
            "11=1|55=ACME|48=99|22=8|54=1|38=1|40=2|44=1|",
            "1 58=no instrument has that Symbol (55) or SecurityID (48)",
        ),
        ("11=1|55=ACME|54=5|38=1|40=2|44=1|", "11 58=Side (54) must be 1 or 2"),
        ("11=1|55=ACME|54=1|38=1.5|40=2|44=1|", "13 58=38: a quantity must be a whole number"),
        ("11=1|55=ACME|54=1|38=1|40=2|44=1.00001|", "99 58=44: a price may have at most 4 decimals"),
        ("11=1|55=ACME|54=1|38=1|40=2|", "99 58=Price (44) is missing"),
        ("11=1|55=ACME|54=1|40=2|44=1|", "99 58=OrderQty (38) is missing"),
        ("11=1|55=ACME|54=1|38=1|40=1|44=1|", "11 58=Price (44) is not allowed in a market order"),
        ("11=1|55=ACME|54=1|38=1|40=2|44=1|99=1|", "11 58=StopPx (99) needs OrdType (40) 3 or 4"),
        ("11=1|55=ACME|54=1|38=1|40=3|", "99 58=StopPx (99) is missing"),
        ("11=1|55=ACME|54=1|38=1|40=2|44=1|59=6|", "99 58=TimeInForce (59) 6 and ExpireTime"),
        ("11=1|55=ACME|54=1|38=1|40=2|44=1|432=20260101|", "99 58=TimeInForce (59) 6 and ExpireTime"),
        ("11=1|55=ACME|54=1|38=1|40=2|44=1|59=5|", "11 58=that TimeInForce (59) is not supported"),
        ("11=1|55=ACME|54=1|38=1|40=P|44=1|", "11 58=OrdType (40) P needs ExecInst (18) R or M"),
        ("11=1|55=ACME|54=1|38=1|40=2|44=1|18=G|", "11 58=ExecInst (18) must be 6, R or M"),
        (
            "11=1|55=ACME|54=1|38=1|40=2|44=1|168=20260101-00:00:00|",
            "11 58=EffectiveTime (168) is not supported",
        ),
        ("11=1|55=ACME|54=1|38=1|40=P|18=R|44=1|211=0.5|", "11 58=211 must be 0: pegs have no offset"),
    ];
    for (fields, expected) in cases {
        let mut rig = Rig::logged_on();
        rig.asks("D", fields);
        assert!(rig.asked.is_empty(), "{fields}");
        let told = rig.sent();
        let [told] = &told[..] else { panic!("{told:?}") };
        let (code, text) = expected.split_once(' ').unwrap();
        assert!(told.starts_with("8 37=NONE 11=") && told.contains(text), "{told}");
        assert!(told.contains(&format!(" 150=8 39=8 103={code} ")), "{told}");
    }
}

#[test]
fn every_kind_of_order_can_be_entered() {
    let plain = NewOrder::limit(Side::Sell, Price(10_000), Quantity(100));
    let market = NewOrder { kind: OrderKind::Market, ..plain };
    let in_force = |time_in_force| NewOrder { time_in_force, ..plain };
    let until = |text: &str| TimeInForce::Gtd {
        until: pares_types::Timestamp(pares_fix::time::read_stamp(text.as_bytes()).unwrap()),
    };
    let pegged = |to| NewOrder { kind: OrderKind::Pegged { to, limit: Price(10_000) }, ..plain };
    let cases = [
        ("40=2|44=1|59=1|", in_force(TimeInForce::Gtc)),
        ("40=2|44=1|59=2|", in_force(TimeInForce::AtOpen)),
        ("40=2|44=1|59=3|", in_force(TimeInForce::Ioc)),
        ("40=2|44=1|59=4|", in_force(TimeInForce::Fok)),
        ("40=2|44=1|59=7|", in_force(TimeInForce::AtClose)),
        ("40=2|44=1|59=6|126=20260921-12:00:00|", in_force(until("20260921-12:00:00"))),
        ("40=2|44=1|59=6|432=20260921|", in_force(until("20260922-00:00:00"))),
        ("40=1|", market),
        ("40=3|99=0.5|", NewOrder { trigger: Some(Price(5_000)), ..market }),
        ("40=4|44=1|99=0.5|", NewOrder { trigger: Some(Price(5_000)), ..plain }),
        ("40=2|44=1|18=6|", NewOrder { post_only: true, ..plain }),
        ("40=2|44=1|110=50|", NewOrder { minimum: Quantity(50), ..plain }),
        ("40=2|44=1|111=10|", NewOrder { display: Quantity(10), ..plain }),
        ("40=2|44=1|210=10|", NewOrder { display: Quantity(10), ..plain }),
        ("40=P|44=1|18=R|", pegged(pares_types::Peg::Best)),
        ("40=P|44=1|18=M|", pegged(pares_types::Peg::Mid)),
        ("40=2|44=1|20001=4|", NewOrder { self_trade: pares_types::SelfTrade::Decrement, ..plain }),
    ];
    let mut rig = Rig::logged_on();
    for (name, (fields, order)) in (1..).zip(cases) {
        rig.asks("D", &format!("11={name}|55=ACME|54=2|38=100|{fields}"));
        let (client_order_id, instrument) = (ClientOrderId(name), ACME);
        assert_eq!(rig.request(), ClientRequest::Enter { client_order_id, instrument, order }, "{fields}");
    }
    let mut rig = Rig::logged_on_with_42();
    for (name, fields, order) in [(1, "40=5|", market), (2, "40=B|44=1|", plain)] {
        let order = NewOrder { time_in_force: TimeInForce::AtClose, ..order };
        rig.asks("D", &format!("11={name}|55=ACME|54=2|38=100|{fields}"));
        let (client_order_id, instrument) = (ClientOrderId(name), ACME);
        assert_eq!(rig.request(), ClientRequest::Enter { client_order_id, instrument, order }, "{fields}");
    }
}

#[test]
fn what_nobody_asked_for_is_told_as_restated_or_expired() {
    let mut rig = resting();
    let (price, remaining, shown) = (Price(0), Quantity(100), Quantity(0));
    let news = OrderNews { change: OrderChange::Triggered, price, remaining, shown, ..replies::news(1, 2) };
    rig.told(Reply::News(news));
    rig.told(Reply::News(OrderNews { change: OrderChange::Refilled, number: 3, ..news }));
    let position = Position(121);
    rig.told(Reply::Cancelled(Cancelled { position, ..cancelled(1, 4, CancelCause::SelfTrade, 40) }));
    let position = Position(122);
    rig.told(Reply::Cancelled(Cancelled { position, ..cancelled(1, 5, CancelCause::DayEnd, 60) }));
    rig.sends(&[
        "150=D 39=0 378=8 636=N",
        "150=D 39=0 378=5 55=ACME 54=1 38=60 .. 151=60",
        "150=C 39=C .. 151=0",
    ]);
}

#[test]
fn a_refusal_of_the_exchange_is_told_with_its_reason() {
    let mut rig = Rig::logged_on();
    rig.asks("D", LIMIT);
    rig.told(Reply::Answer(Answer { reason: Reason::OffTick, ..answer(1, 1, Status::Refused, 0, 0) }));
    let text = "58=off_tick: Price is not a multiple of the tick size.";
    let terms = "55=ACME 54=1 38=100 40=2 44=223.82 59=0";
    let told = format!("8 37=1:1 11=1 17=0-101-A 150=8 39=8 103=99 {terms} 151=0 14=0 {text}");
    assert_eq!(rig.sent(), [told]);
    rig.asks("D", LIMIT);
    rig.told(Reply::Rejected { client_order_id: ClientOrderId(1), reason: Reason::Overloaded });
    assert!(rig.sent()[0].contains("150=8 39=8 103=99 55=ACME"));
}

#[test]
fn what_a_replacement_does_not_say_stays_as_it_was() {
    let mut rig = Rig::logged_on();
    rig.asks("D", "11=1|55=ACME|54=1|38=100|40=4|44=8|99=7.5|59=1|");
    rig.told(Reply::Answer(answer(1, 1, Status::Held, 0, 100)));
    for name in 2..=3 {
        rig.sent();
        rig.asks("G", &format!("41={}|11={name}|55=ACME|54=1|38=100|40=2|44=9|", name - 1));
        rig.told(Reply::Answer(changed(name, 1, name, Status::Held, 0, 100)));
        rig.sends(&["150=5 .. 40=4 44=9 99=7.5 59=1"]);
    }
}

/// Another session or protocol may have given it another price.
#[test]
fn price_changed_by_other_session_is_never_invented() {
    let mut rig = resting();
    rig.asks("G", "41=1|11=2|55=ACME|54=1|38=60|40=2|");
    assert!(rig.sent()[0].contains("58=Price (44) is missing") && rig.asked.is_empty());
    rig.told(Reply::Answer(changed(9, 1, 3, Status::Resting, 0, 100)));
    rig.sends(&["150=5 .. !44="]);
}

/// The exchange answers for its own moment: another's order continues and trades with this one, which is being replaced.
#[test]
fn a_trade_whose_answer_is_not_the_member_s_waits_for_nothing() {
    let mut rig = resting();
    rig.asks("G", "41=1|11=2|55=ACME|54=1|38=200|40=2|44=224|");
    rig.sent();
    rig.told(Reply::Trade(trade(1, 2, Role::Incoming, 50, 50)));
    assert!(rig.sent().is_empty(), "the answer may say more");
    rig.waits(1);
    rig.sends(&["17=0-102-0-1 150=F"]);
}

/// Its instrument is gone, so the exchange did not look for the order.
#[test]
fn cancel_refused_early_is_no_cancel_reject() {
    let mut rig = resting();
    rig.asks("F", "41=1|11=2|55=ACME|54=1|");
    rig.request();
    let reason = Reason::UnknownInstrument;
    rig.told(Reply::Answer(Answer { reason, ..answer(2, 2, Status::Refused, 0, 0) }));
    rig.sends(&["^9 37=1:1 11=2 41=1 39=0 "]);
}

/// Two shards may each have an order of one name, of two sessions.
#[test]
fn orders_of_one_name_are_told_apart() {
    let of = |sequence, answer| {
        let (order, request, asked) = (order_id(sequence), request_id(sequence), RequestDigest::of(&9));
        Reply::Answer(Answer { order, request, asked, ..answer })
    };
    let other_trades = |number, remaining| {
        Reply::Trade(Trade { order: order_id(9), ..trade(5, number, Role::Resting, 30, remaining) })
    };
    for (own_number, other_number) in [(1, 2), (2, 1)] {
        let mut rig = Rig::logged_on();
        rig.asks("D", "11=5|55=ACME|54=2|38=77|40=2|44=9.99|");
        let own = Answer { asked: rig.request().asked(), ..answer(5, own_number, Status::Resting, 0, 77) };
        let other = of(9, answer(5, other_number, Status::Resting, 0, 100));
        let mut answers = [Reply::Answer(own), other];
        answers.rotate_left(usize::from(own_number == 2));
        answers.into_iter().for_each(|answer| rig.told(answer));
        rig.sent();
        rig.told(other_trades(3, 70));
        rig.told(Reply::Trade(trade(5, 4, Role::Resting, 40, 37)));
        rig.told(other_trades(5, 40));
        rig.sends(&[
            "37=1:9 11=5 .. 38=100 32=30 .. 151=70 14=30",
            "37=1:5 11=5 .. 38=77 40=2 44=9.99 59=0 32=40 .. 151=37 14=40",
            "37=1:9 11=5 .. 38=100 32=30 .. 151=40 14=60",
        ]);
        rig.told(of(8, answer(5, 6, Status::Refused, 0, 0)));
        rig.told(Reply::Trade(trade(5, 7, Role::Resting, 37, 0)));
        rig.told(Reply::Busted(busted(5, 8, 104, 40)));
        rig.sends(&["37=1:8 .. 39=8", "37=1:5 .. 39=2 .. 38=77 40=2 .. 14=77", "37=1:5 .. 150=H 39=2"]);
    }
}

/// The stream tells an order's answer before that to its cancel.
#[test]
fn refused_cancel_of_another_order_is_not_told_as_own() {
    let mut rig = Rig::logged_on();
    rig.asks("D", LIMIT);
    rig.asks("F", "11=5|41=1|55=ACME|54=1|");
    let reason = Reason::UnknownOrder;
    rig.told(Reply::Answer(Answer { reason, ..changed(5, 2, 1, Status::Refused, 0, 0) }));
    rig.told(Reply::Answer(answer(1, 2, Status::Resting, 0, 100)));
    rig.told(Reply::Cancelled(cancelled(1, 3, CancelCause::Requested, 100)));
    let (reason, position) = (Reason::Requested, Position(103));
    rig.told(Reply::Answer(Answer { reason, position, ..changed(5, 1, 4, Status::Cancelled, 0, 0) }));
    rig.sends(&["^9 37=1:2 11=5 41=NONE", "150=0", "11=5 41=1 .. 150=4 .. 54=1 38=100 40=2 44=223.82 "]);
}
