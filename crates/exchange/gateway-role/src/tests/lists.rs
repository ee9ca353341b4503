//! Lists, limits and how an order is, asked over connections.

use pares_types::{ClientOrderId, List, ListEnd, ListRequest, OrderKey, OrderState, Reason};
use pares_wire::frame::{self, GatewayFrame};

use super::resuming::recorded;
use super::rig::{Rig, rejected};

fn request(list: List) -> ListRequest {
    ListRequest { token: 3, list, instrument: None }
}

fn ask(rig: &Rig, client: usize, list: List) {
    rig.net.write(client, |out| frame::write_list_request(out, &request(list)));
}

/// Names of orders, in their order, and the ends of lists.
fn told(rig: &Rig, client: usize) -> (Vec<u64>, Vec<ListEnd>) {
    let (mut names, mut ends) = (Vec::new(), Vec::new());
    for frame in rig.told(client) {
        match frame {
            GatewayFrame::OrderStatus(_, Some(status)) => names.push(status.client_order_id.0),
            GatewayFrame::ListEnd(end) => ends.push(end),
            other => panic!("{other:?}"),
        }
    }
    names.sort_unstable();
    (names, ends)
}

fn end(count: u32, reason: Reason) -> ListEnd {
    ListEnd { request: request(List::Orders), count, reason }
}

/// The names that member 1 has of so many orders.
fn own(records: u64) -> Vec<u64> {
    (1..=records).step_by(3).collect()
}

#[test]
fn non_reading_client_delays_only_its_own_list() {
    let mut rig = recorded(9_000);
    let (slow, other) = (rig.sign_on(1), rig.sign_on(1));
    rig.net.set_full(slow, true);
    ask(&rig, slow, List::Orders);
    rig.settle();
    ask(&rig, slow, List::Orders);
    ask(&rig, other, List::Orders);
    rig.settle();
    assert_eq!(told(&rig, other), (own(9_000), vec![end(3_000, Reason::None)]));
    rig.net.set_full(slow, false);
    // What waited is sent, then the rest.
    (0..2).for_each(|_| rig.settle());
    let ends = vec![end(0, Reason::AlreadyAsked), end(3_000, Reason::None)];
    assert_eq!(told(&rig, slow), (own(9_000), ends), "the second was asked while the first was told");
    ask(&rig, slow, List::Orders);
    rig.settle();
    assert_eq!(told(&rig, slow), (own(9_000), vec![end(3_000, Reason::None)]));
}

#[test]
fn a_client_that_goes_in_the_middle_of_its_list_leaves_nothing() {
    let mut rig = recorded(9_000);
    let (gone, other) = (rig.sign_on(1), rig.sign_on(2));
    rig.net.set_full(gone, true);
    ask(&rig, gone, List::Orders);
    rig.settle();
    rig.net.close(gone);
    rig.settle();
    assert!(!rig.net.is_open(gone));
    ask(&rig, other, List::Orders);
    rig.settle();
    assert_eq!(told(&rig, other).1, [end(3_000, Reason::None)]);
}

#[test]
fn instruments_are_told_with_their_ticks_and_limits_at_once() {
    let mut rig = Rig::new();
    let client = rig.sign_on(7);
    ask(&rig, client, List::Instruments);
    rig.settle();
    let told = rig.told(client);
    let [
        GatewayFrame::InstrumentStatus(first),
        GatewayFrame::TickRow { instrument, .. },
        GatewayFrame::InstrumentStatus(second),
        GatewayFrame::TickRow { .. },
        GatewayFrame::ListEnd(end),
    ] = told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((first.instrument.0, first.tick_rows, instrument), (1, 1, first.instrument));
    assert_eq!((second.instrument.0, end.count, end.reason), (2, 2, Reason::None));
    let told = rig.send(client, |out| frame::write_limits_request(out, 8));
    let [GatewayFrame::OwnLimits(own)] = told[..] else { panic!("no limits") };
    assert_eq!((own.token, own.member.0, own.orders), (8, 7, 0));
}

#[test]
fn a_stranger_is_told_nothing() {
    let mut rig = Rig::new();
    let client = rig.net.connect();
    for list in List::ALL {
        ask(&rig, client, list);
        rig.settle();
        assert_eq!(rejected(&rig.told(client)), Some(Reason::NotSignedOn));
    }
    let told = rig.send(client, |out| frame::write_limits_request(out, 8));
    assert_eq!(rejected(&told), Some(Reason::NotSignedOn));
}

fn ask_of_order(rig: &mut Rig, client: usize) -> Vec<GatewayFrame> {
    rig.send(client, |out| frame::write_order_status_request(out, OrderKey::Name(ClientOrderId(1))))
}

/// The one thing that the client receives: an order's state, `None` if it is unknown.
fn state(told: &[GatewayFrame]) -> Option<OrderState> {
    match told[..] {
        [GatewayFrame::OrderStatus(_, status)] => status.map(|status| status.state),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_member_is_told_of_its_own_orders_and_a_stranger_of_none() {
    let (mut rig, client) = Rig::of([1]);
    let (other, stranger) = (rig.sign_on(8), rig.net.connect());
    assert_eq!(state(&ask_of_order(&mut rig, client)), Some(OrderState::InFlight));
    assert_eq!(state(&ask_of_order(&mut rig, other)), None);
    assert_eq!(rejected(&ask_of_order(&mut rig, stranger)), Some(Reason::NotSignedOn));
}
