//! How an order is, asked over a connection.

use pares_types::{ClientOrderId, OrderKey, OrderState, Reason};
use pares_wire::frame::{self, GatewayFrame};

use super::rig::{Rig, buy, rejected};

fn ask(rig: &mut Rig, client: usize, name: u64) {
    let mut bytes = Vec::new();
    frame::write_order_status_request(&mut bytes, OrderKey::Name(ClientOrderId(name)));
    rig.net.send(client, &bytes);
    rig.settle();
}

/// The one thing that the client is told: an order's state, `None` if it is unknown.
fn told(rig: &Rig, client: usize) -> Option<OrderState> {
    match rig.told(client)[..] {
        [GatewayFrame::OrderStatus(_, status)] => status.map(|status| status.state),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_member_is_told_of_its_own_orders_and_a_stranger_of_none() {
    let mut rig = Rig::new();
    let (client, other, stranger) = (rig.sign_on(7), rig.sign_on(8), rig.net.connect());
    rig.ask(client, &buy(1, 1));
    ask(&mut rig, client, 1);
    assert_eq!(told(&rig, client), Some(OrderState::InFlight));
    ask(&mut rig, other, 1);
    assert_eq!(told(&rig, other), None);
    ask(&mut rig, stranger, 1);
    assert_eq!(rejected(&rig.told(stranger)), Some(Reason::NotSignedOn));
}
