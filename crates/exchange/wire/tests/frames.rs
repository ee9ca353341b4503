//! What a gateway must refuse, and what it must put up with.

use pares_types::{ClientOrderId, ClientRequest};
use pares_wire::WireError;
use pares_wire::frame::{
    self, AmendOrderExtended, CancelOrder, ClientFrame, EnterOrder, EnterOrderExtended, FRAME_MAX,
    MassCancel, Message, Ping, SetRule, SignOn, TellTime, decode_client, split, write,
};
use zerocopy::IntoBytes;

fn legal() -> EnterOrder {
    let quantity = 10.into();
    EnterOrder { quantity, side: 1, order_kind: 1, time_in_force: 1, ..EnterOrder::default() }
}

fn refused<M: Message>(message: M) -> &'static str {
    match decode_client(M::KIND, message.as_bytes()) {
        Err(WireError::InvalidField(field)) => field,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn extended() -> EnterOrderExtended {
    let quantity = 10.into();
    EnterOrderExtended { quantity, side: 1, order_kind: 1, time_in_force: 1, ..EnterOrderExtended::default() }
}

/// What is outside its range, what no flag or code announces and is not zero, operands that a rule cannot have.
#[test]
fn fields_outside_their_range_are_named() {
    assert!(decode_client(EnterOrder::KIND, legal().as_bytes()).is_ok());
    assert!(decode_client(EnterOrderExtended::KIND, extended().as_bytes()).is_ok());
    let rule = |rule, first: i64, second: i64| {
        refused(SetRule { rule, first: first.into(), second: second.into(), ..SetRule::default() })
    };
    let amend = AmendOrderExtended::default();
    for (found, expected) in [
        (refused(EnterOrder { side: 3, ..legal() }), "side"),
        (refused(EnterOrder { order_kind: 0, ..legal() }), "order_kind"),
        (refused(EnterOrder { order_kind: 2, price: 1.into(), ..legal() }), "price"),
        (refused(EnterOrder { time_in_force: 8, ..legal() }), "time_in_force"),
        // A date needs the frame that has one.
        (refused(EnterOrder { time_in_force: 5, ..legal() }), "time_in_force"),
        (refused(EnterOrder { self_trade: 5, ..legal() }), "self_trade"),
        (refused(EnterOrderExtended { trigger: 1.into(), ..extended() }), "trigger"),
        (refused(EnterOrderExtended { until_ns: 1.into(), ..extended() }), "until_ns"),
        (refused(EnterOrderExtended { flags: 2, ..extended() }), "flags"),
        (refused(EnterOrderExtended { reserved: [1; 7], ..extended() }), "reserved"),
        (refused(AmendOrderExtended { display: 1.into(), ..amend }), "display"),
        (refused(AmendOrderExtended { flags: 8, ..amend }), "flags"),
        (refused(MassCancel { reserved: [0, 1, 0], ..MassCancel::default() }), "reserved"),
        (refused(TellTime { reserved: 1.into(), ..TellTime::default() }), "reserved"),
        (refused(SignOn { flags: 4.into(), ..SignOn::default() }), "flags"),
        (rule(0, 0, 0), "rule"),
        (rule(3, 5, 1), "second"),
        (rule(6, 1 << 32, 0), "first"),
        (rule(11, 0, 8), "phase"),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn a_client_may_not_speak_as_a_gateway() {
    let answer = decode_client(frame::Answer::KIND, &[0; 64]);
    assert!(matches!(answer, Err(WireError::UnknownSchema { schema: 131, .. })));
}

#[test]
fn a_frame_of_another_version_is_refused_before_it_is_whole() {
    let version = split(&[200, 0, 2, 99]);
    assert_eq!(version, Err(WireError::UnknownSchema { schema: 2, version: 99 }));
}

#[test]
fn a_frame_too_long_or_too_short_is_refused_by_its_head() {
    for length in [0, 3, FRAME_MAX as u8 + 1, 255] {
        assert_eq!(split(&[length, 0, 2, frame::VERSION]), Err(WireError::InvalidField("length")));
    }
}

#[test]
fn frames_follow_each_other() {
    let mut bytes = Vec::new();
    (1..=3).for_each(|token| write(&mut bytes, &Ping { token: token.into() }));
    let (_, first, rest) = split(&bytes).unwrap().unwrap();
    assert_eq!((first[0], rest.len()), (1, 24));
}

#[test]
fn a_longer_body_is_a_newer_message_whose_known_fields_count() {
    let cancel = CancelOrder { client_order_id: 1.into(), target_client_order_id: 2.into() };
    let newer = [cancel.as_bytes(), &[9; 8]].concat();
    let (client_order_id, target) = (ClientOrderId(1), ClientOrderId(2));
    let expected = ClientFrame::Request(ClientRequest::Cancel { client_order_id, target });
    assert_eq!(decode_client(CancelOrder::KIND, &newer), Ok(expected));
}

#[test]
fn the_name_of_an_unreadable_request_is_found_if_it_is_there() {
    let order = EnterOrder { client_order_id: 77.into(), side: 9, ..legal() };
    assert_eq!(frame::request_name(EnterOrder::KIND, order.as_bytes()), ClientOrderId(77));
    assert_eq!(frame::request_name(EnterOrder::KIND, &[1; 7]), ClientOrderId(0));
    let rule = SetRule { client_order_id: 78.into(), ..SetRule::default() };
    assert_eq!(frame::request_name(SetRule::KIND, rule.as_bytes()), ClientOrderId(78));
    assert_eq!(frame::request_name(Ping::KIND, &[1; 8]), ClientOrderId(0));
}
