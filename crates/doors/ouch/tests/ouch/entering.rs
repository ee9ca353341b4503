//! Messages of the client become requests.

use pares_types::{
    Answer, ClientOrderId, ClientRequest, InstrumentId, NewOrder, NewTerms, OrderKind, Peg, Price, Quantity,
    Reason, Reply, RequestDigest, SelfTrade, ShardId, Side, Status, TimeInForce, Timestamp,
};

use crate::rig::{ACME, NOON_NS, Rig, answer, cancel, enter, named, order, replace};

fn limit() -> NewOrder {
    NewOrder::limit(Side::Buy, Price(15_000), Quantity(100))
}

fn entered(rig: &mut Rig, message: &[u8]) -> NewOrder {
    rig.says(message);
    let request = rig.request();
    let ClientRequest::Enter { order, instrument, .. } = request else { panic!("{request:?}") };
    assert_eq!(instrument, ACME);
    order
}

/// An O with some bytes of it other ones.
fn with(user_ref_num: u32, at: usize, bytes: &[u8], appendage: &[u8]) -> Vec<u8> {
    let mut message = enter(user_ref_num, "ACME", appendage);
    message[at..at + bytes.len()].copy_from_slice(bytes);
    message
}

#[test]
fn an_order_is_entered_under_the_session_s_name() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.says(&enter(3, "ACME", &[]));
    let expected = ClientRequest::Enter { client_order_id: named(3), instrument: ACME, order: limit() };
    assert_eq!(rig.request(), expected);
    let mut rig = Rig::logged_on("1G0", 1);
    rig.says(&enter(3, "#17", &[]));
    assert_eq!(rig.request().client_order_id(), ClientOrderId::guarded(1, 3));
}

#[test]
fn every_kind_of_order_can_be_said() {
    let mut rig = Rig::logged_on("1-0", 1);
    let until = TimeInForce::Gtd { until: Timestamp(NOON_NS + 60_000_000_000) };
    let date = TimeInForce::Gtd { until: Timestamp(9) };
    let cases: [(usize, &[u8], &[u8], NewOrder); 18] = [
        (5, b"S", &[], NewOrder { side: Side::Sell, ..limit() }),
        (18, &0x7fff_ffff_u64.to_be_bytes(), &[], NewOrder { kind: OrderKind::Market, ..limit() }),
        (18, &2_000_000_000_u64.to_be_bytes(), &[], NewOrder { kind: OrderKind::Market, ..limit() }),
        (26, b"3", &[], NewOrder { time_in_force: TimeInForce::Ioc, ..limit() }),
        (26, b"4", &[], NewOrder { time_in_force: TimeInForce::Fok, ..limit() }),
        (26, b"1", &[], NewOrder { time_in_force: TimeInForce::Gtc, ..limit() }),
        (26, b"6", &[5, 15, 0, 0, 0, 60], NewOrder { time_in_force: until, ..limit() }),
        (26, b"6", &[9, 202, 0, 0, 0, 0, 0, 0, 0, 9], NewOrder { time_in_force: date, ..limit() }),
        (30, b"O", &[], NewOrder { time_in_force: TimeInForce::AtOpen, ..limit() }),
        (30, b"C", &[], NewOrder { time_in_force: TimeInForce::AtClose, ..limit() }),
        (5, b"B", &[5, 5, 0, 0, 0, 10], NewOrder { display: Quantity(10), ..limit() }),
        (5, b"B", &[5, 3, 0, 0, 0, 10], NewOrder { minimum: Quantity(10), ..limit() }),
        (5, b"B", &[2, 12, b'P', 2, 29, b'B'], {
            NewOrder { post_only: true, self_trade: SelfTrade::CancelBoth, ..limit() }
        }),
        (5, b"B", &[2, 29, b'O'], NewOrder { self_trade: SelfTrade::CancelResting, ..limit() }),
        (5, b"B", &[2, 29, b'W'], NewOrder { self_trade: SelfTrade::CancelIncoming, ..limit() }),
        (5, b"B", &[2, 29, b'D'], NewOrder { self_trade: SelfTrade::Decrement, ..limit() }),
        (5, b"B", &[2, 6, b'M'], {
            NewOrder { kind: OrderKind::Pegged { to: Peg::Mid, limit: Price(15_000) }, ..limit() }
        }),
        (5, b"B", &[9, 200, 0, 0, 0, 0, 0, 0, 0, 7], NewOrder { trigger: Some(Price(7)), ..limit() }),
    ];
    for (number, (at, bytes, appendage, expected)) in (1..).zip(cases) {
        assert_eq!(entered(&mut rig, &with(number, at, bytes, appendage)), expected, "{number}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_at_once() {
    let mut rig = Rig::logged_on("1-0", 1);
    let cases: [(Vec<u8>, &str); 12] = [
        (with(1, 5, b"T", &[]), "unsupported"),
        (with(2, 26, b"5", &[]), "unsupported"),
        (with(3, 27, b"N", &[]), "unsupported"),
        (with(4, 5, b"B", &[2, 99, 0]), "unsupported"),
        (with(5, 5, b"B", &[2, 6, b'P']), "unsupported"),
        (with(6, 5, b"B", &[3, 5, 0, 0]), "malformed_request"),
        (with(7, 5, b"B", &[9, 5]), "malformed_request"),
        (with(8, 26, b"6", &[]), "invalid_combination"),
        (with(9, 26, b"0", &[5, 15, 0, 0, 0, 60]), "invalid_combination"),
        (enter(10, "ACME", &[])[..20].to_vec(), "malformed_request"),
        (with(11, 30, b"H", &[]), "unsupported"),
        (with(12, 5, b"B", &[2, 29, b'y']), "unsupported"),
    ];
    for (number, (message, word)) in (1..).zip(cases) {
        rig.says(&message);
        assert_eq!(rig.texts(), [format!("+ J {number} {word}")]);
    }
    rig.says(b"?");
    rig.says(b"");
    assert_eq!(rig.texts(), ["+ ? 0 unsupported", "+ ? 0 malformed_request"]);
    assert_eq!(rig.asked, []);
}

/// Some client libraries hand on Sequenced Data alone: there the program would wait for ever.
#[test]
fn a_symbol_of_no_instrument_here_is_refused_in_the_record() {
    let mut rig = Rig::logged_on("1-0", 1);
    for (number, symbol) in (1..).zip(["FAR", "NONE", "#18", "#999"]) {
        rig.says(&enter(number, symbol, &[]));
        let ClientRequest::Enter { client_order_id, instrument, order } = rig.request() else { panic!() };
        assert_eq!((client_order_id, order.quantity), (named(number.into()), Quantity::ZERO), "{symbol}");
        // Of two shards the lower one has the even numbers that no instrument has.
        assert_eq!(instrument, InstrumentId(u32::MAX - 1), "{symbol}");
    }
    rig.says(b"C\0\0\0\x05    FAR     \0\0");
    assert!(
        matches!(rig.request(), ClientRequest::MassCancel { instrument, .. } if instrument.0 == u32::MAX - 1)
    );
    let reason = Reason::UnknownInstrument;
    rig.told(Reply::Answer(Answer { reason, ..answer(1, 1, Status::Refused, 0, 0) }));
    let packets = rig.packets();
    let [('S', message)] = &packets[..] else { panic!("{packets:?}") };
    assert_eq!((message[0], &message[9..15]), (b'J', &b"\0\0\0\x01\0\x17"[..]));
}

#[test]
fn a_user_ref_num_that_was_used_is_ignored() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.enters(5);
    for number in [5, 4, 0] {
        rig.says(&enter(number, "ACME", &[]));
    }
    assert_eq!((rig.asked.len(), rig.packets()), (0, vec![]));
}

/// A client that comes again sends what was not answered, though what it had sent later was: the exchange knows whether it has it.
#[test]
fn what_was_not_answered_on_the_last_connection_is_sent_again() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.told(Reply::Answer(answer(8, 1, Status::Resting, 0, 100)));
    rig.packets();
    rig.says(b"Q");
    assert_eq!(rig.texts(), ["+ Q 9"]);
    for number in [5, 8] {
        assert_eq!(rig.enters(number).client_order_id(), named(number.into()));
    }
}

#[test]
fn a_cancel_has_a_name_of_its_own_each_time() {
    let mut rig = Rig::logged_on("1-0", 1);
    let first = rig.cancels(5, 0);
    let second = rig.cancels(5, 0);
    let ClientRequest::Cancel { client_order_id, target } = first else { panic!("{first:?}") };
    assert_eq!((client_order_id.series(), target), (0x4001, named(5)));
    assert_eq!(second.client_order_id().0, client_order_id.0 + 1);
    // Another cancel has the name already: this one was not done, so it is asked for again, far from there.
    let used = Answer { client_order_id, repeat: true, ..answer(9, 0, Status::Cancelled, 0, 0) };
    rig.told(Reply::Answer(used));
    let again = rig.request().client_order_id();
    assert!(again.0 > client_order_id.0 + 1_000_000);
    // The clock of the gateway before was ahead.
    let old = Answer {
        client_order_id: second.client_order_id(),
        reason: Reason::TooOld,
        ..answer(9, 0, Status::Refused, 0, 0)
    };
    rig.told(Reply::Answer(old));
    assert!(rig.request().client_order_id().0 > again.0 + 1_000_000);
    assert_eq!(rig.packets(), []);
}

/// A burst of them runs ahead of the clock, and the next login begins there once more.
#[test]
fn a_cancel_is_not_taken_for_another_one_of_its_name() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.is_live(1);
    for number in [5, 6] {
        rig.enters(number);
        let n = u64::from(number);
        rig.told(Reply::Answer(answer(n, n - 4, Status::Resting, 0, 100)));
    }
    rig.packets();
    let client_order_id = rig.cancels(5, 0).client_order_id();
    // The other one was on its way when this one was asked for. Of the same order it has another digest.
    let (target, terms) = (named(5), NewTerms::reduction(Quantity(30)));
    let asked = ClientRequest::Amend { client_order_id, target, terms }.asked();
    let mut last = client_order_id;
    for (of, number, asked) in [(6, 3, RequestDigest::UNKNOWN), (5, 4, asked)] {
        let gone = answer(9, number, Status::Cancelled, 0, 0);
        rig.told(Reply::Answer(Answer { client_order_id: last, order: order(of), asked, ..gone }));
        rig.told(Reply::Rejected { client_order_id: last, reason: Reason::DuplicateRequest });
        rig.packets();
        let request = rig.request();
        last = request.client_order_id();
        assert_eq!(request, ClientRequest::Cancel { client_order_id: last, target });
    }
    // The reason of a repeat is the other's.
    for tries in 4..=9 {
        let client_order_id = last;
        rig.told(Reply::Answer(Answer {
            client_order_id,
            repeat: true,
            reason: Reason::UnknownOrder,
            ..answer(9, 0, Status::Refused, 0, 0)
        }));
        if tries < 9 {
            last = rig.request().client_order_id();
        }
    }
    assert_eq!(rig.texts(), ["+ I 5 overloaded"]);
}

/// Its seconds count from its arrival, so the gateway takes what is sent again for another request while the first is in flight.
#[test]
fn a_resent_order_with_expire_time_is_in_flight() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.is_live(1);
    rig.says(&with(5, 26, b"6", &[5, 15, 0, 0, 0, 60]));
    rig.told(Reply::Rejected { client_order_id: named(5), reason: Reason::DuplicateRequest });
    rig.asked.clear();
    rig.says(&enter(5, "ACME", &[]));
    assert_eq!((rig.packets(), &rig.asked[..]), (vec![], &[][..]), "the number is used");
    rig.told(Reply::Answer(answer(5, 1, Status::Resting, 0, 100)));
    assert!(matches!(&rig.packets()[..], [('S', message)] if message[0] == b'A'));
}

#[test]
fn a_number_that_was_refused_at_once_is_free() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.enters(5);
    rig.says(&with(6, 26, b"5", &[]));
    rig.told(Reply::Rejected { client_order_id: named(5), reason: Reason::Throttled });
    assert_eq!(rig.texts(), ["+ J 6 unsupported", "+ J 5 throttled"]);
    for number in [5, 6] {
        assert_eq!(rig.enters(number).client_order_id(), named(number.into()));
        rig.says(&enter(number, "ACME", &[]));
        assert_eq!(rig.asked, [], "once");
    }
}

/// What is left of an order, and at which price, may have changed on the way: the shard keeps it at its price, and adds nothing.
#[test]
fn an_order_is_made_smaller_by_what_the_shard_knows_of_it() {
    let mut rig = Rig::logged_on("1-0", 1);
    let mut is_smaller = |message: &[u8], target, total| {
        rig.says(message);
        let ClientRequest::Amend { target: of, terms, .. } = rig.request() else { panic!("an amend") };
        assert_eq!((of, terms), (named(target), NewTerms::reduction(Quantity(total))));
    };
    // Of an order of an earlier connection, which may be replaced, be gone, or have fewer shares.
    is_smaller(&cancel(5, 400), 5, 400);
    is_smaller(b"M\0\0\0\x05B\0\0\0\x1e\0\0", 5, 30);
    // It adds nothing, so it passes where nothing may be entered.
    rig.says(b"D\0\0\0\x01FIRM\0\0");
    assert_eq!(rig.texts(), ["+ G 1"]);
    rig.says(&cancel(5, 400));
    assert!(!rig.request().adds_risk());
    let mut rig = Rig::logged_on("1-0", 1);
    rig.says(&replace(5, 6, 80, 16_000));
    rig.asked.clear();
    rig.says(&cancel(6, 20));
    let ClientRequest::Amend { target, .. } = rig.request() else { panic!("an amend") };
    assert_eq!(target, named(5), "the replacement is not answered, and the order is known by it");
}

/// Names are the session's in all shards.
#[test]
fn what_is_answered_in_another_shard_is_said_to_be() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.is_live(1);
    let away = |answer: Answer| Reply::Answer(Answer { shard: ShardId(1), ..answer });
    rig.enters(5);
    rig.told(away(Answer { repeat: true, number: 0, ..answer(5, 0, Status::Resting, 0, 100) }));
    let client_order_id = rig.cancels(5, 0).client_order_id();
    rig.told(away(Answer { client_order_id, ..answer(9, 3, Status::Cancelled, 0, 0) }));
    // Of another connection.
    rig.told(away(answer(6, 4, Status::Resting, 0, 100)));
    assert_eq!(rig.texts(), ["+ S 5 1", "+ S 5 1"]);
}

/// The client named a number that the stream has not reached.
#[test]
fn what_is_told_to_nobody_is_answered_all_the_same() {
    let mut rig = Rig::logged_on("1-0", 1_000_000);
    rig.is_live(9);
    for number in 9..100_000 {
        let client_order_id = rig.cancels(5, 0).client_order_id();
        rig.told(Reply::Answer(Answer { client_order_id, ..answer(5, number, Status::Refused, 0, 0) }));
    }
    assert_eq!(rig.packets(), []);
}

#[test]
fn a_replaced_order_is_reached_by_its_new_number() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.says(&replace(5, 6, 80, 16_000));
    let terms = NewTerms::new(Price(16_000), Quantity(80));
    assert_eq!(rig.request(), ClientRequest::Amend { client_order_id: named(6), target: named(5), terms });
    rig.says(&replace(6, 7, 80, 17_000));
    rig.asked.clear();
    assert!(matches!(rig.cancels(7, 0), ClientRequest::Cancel { target, .. } if target == named(5)));
}

#[test]
fn a_mass_cancel_is_of_all_or_of_an_instrument_or_a_side() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.says(b"C\0\0\0\x01            \0\0");
    let all =
        ClientRequest::MassCancel { client_order_id: named(1), instrument: InstrumentId(0), side: None };
    assert_eq!(rig.request(), all);
    rig.says(b"C\0\0\0\x02FIRMACME    \0\x03\x02\x1bS");
    let sells =
        ClientRequest::MassCancel { client_order_id: named(2), instrument: ACME, side: Some(Side::Sell) };
    assert_eq!(rig.request(), sells);
}

#[test]
fn entry_can_be_switched_off_and_cancels_go_on() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.says(b"D\0\0\0\x01FIRM\0\0");
    rig.says(&enter(2, "ACME", &[]));
    rig.says(&replace(9, 3, 80, 16_000));
    assert_eq!(rig.texts(), ["+ G 1", "+ J 2 disabled", "+ J 3 disabled"]);
    rig.cancels(9, 0);
    rig.says(b"E\0\0\0\x04FIRM\0\0");
    rig.enters(5);
    assert_eq!(rig.texts(), ["+ K 4"]);
}

#[test]
fn what_the_gateway_refuses_is_said_beside_the_stream() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.enters(5);
    rig.told(Reply::Rejected { client_order_id: named(5), reason: Reason::Throttled });
    let client_order_id = rig.cancels(9, 0).client_order_id();
    rig.told(Reply::Rejected { client_order_id, reason: Reason::UnknownClientOrderId });
    assert_eq!(rig.texts(), ["+ J 5 throttled", "+ I 9 unknown_client_order_id"]);
}
