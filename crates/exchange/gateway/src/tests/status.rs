//! How an order is, for its member and nobody else.

use pares_types::{ClientOrderId, OrderKey, OrderState, OrderStatus, Position, Reason, ShardId, Side};

use super::world::{World, cancel, config, enter, mass_cancel};
use crate::SessionId;

fn status(world: &World, gate: usize, session: u64, key: OrderKey) -> Option<OrderStatus> {
    world.gates[gate].gateway.order_status(SessionId(session), key).expect("it is signed on")
}

fn named(name: u64) -> OrderKey {
    OrderKey::Name(ClientOrderId(name))
}

/// State, shares left and the position to come.
fn brief(status: OrderStatus) -> (OrderState, u64, Position) {
    (status.state, status.remaining.0, status.next)
}

/// Members 7 and 8 at both gateways: sessions 1 and 2 at the first, 3 and 4 at the other.
fn world() -> World {
    let mut world = World::new();
    for (gate, session, member) in [(0, 1, 7), (0, 2, 8), (1, 3, 7), (1, 4, 8)] {
        world.sign_on(gate, session, member);
    }
    world
}

#[test]
fn an_order_is_in_flight_works_and_ends_at_any_gateway() {
    let mut world = world();
    world.ask(0, 1, enter(10, 1, Side::Sell, 5, 100));
    let in_flight = (OrderState::InFlight, 5, Position(0));
    assert_eq!(status(&world, 0, 1, named(10)).map(brief), Some(in_flight));
    assert_eq!(status(&world, 1, 3, named(10)), None, "the other has not read of it");
    assert!(world.read_peer(1));
    assert_eq!(status(&world, 1, 3, named(10)).map(brief), Some(in_flight));
    world.settle();
    let first = status(&world, 0, 1, named(10)).expect("it works");
    assert_eq!(brief(first), (OrderState::Working, 5, Position(1)));
    world.ask(1, 4, enter(1, 1, Side::Buy, 2, 100));
    world.settle();
    for (gate, session) in [(0, 1), (1, 3)] {
        let by_name = status(&world, gate, session, named(10)).expect("it works");
        assert_eq!((by_name.side, by_name.executed.0), (Some(Side::Sell), 2));
        assert_eq!((brief(by_name), by_name.shard), ((OrderState::Working, 3, Position(2)), ShardId(0)));
        assert_eq!(status(&world, gate, session, OrderKey::Id(first.order)), Some(by_name));
    }
    world.ask(0, 1, cancel(11, 10));
    world.settle();
    let ended = (OrderState::Ended, 0, Position(3));
    assert_eq!(status(&world, 1, 3, named(10)).map(brief), Some(ended));
    // A cancel is no order, and position and state outlive the gateway.
    assert_eq!(status(&world, 1, 3, named(11)), None);
    world.ask(0, 1, mass_cancel(12, 0));
    assert_eq!(status(&world, 0, 1, named(12)), None);
    world.restart(0, config(0));
    world.sign_on(0, 1, 7);
    assert_eq!(status(&world, 0, 1, named(10)).map(brief), Some(ended));
}

#[test]
fn another_member_s_order_is_unknown_by_either_id() {
    let mut world = world();
    world.ask(0, 1, enter(10, 1, Side::Sell, 5, 100));
    world.settle();
    let order = status(&world, 0, 1, named(10)).expect("it works").order;
    for (gate, session) in [(0, 2), (1, 4)] {
        for key in [named(10), OrderKey::Id(order)] {
            assert_eq!(status(&world, gate, session, key), None, "{key:?}");
        }
    }
    let stranger = world.gates[0].gateway.order_status(SessionId(99), named(10));
    assert_eq!(stranger, Err(Reason::NotSignedOn));
}

#[test]
fn an_order_that_lives_is_known_from_a_checkpoint() {
    let mut world = world();
    world.ask(0, 1, enter(10, 1, Side::Sell, 5, 100));
    world.settle();
    let before = status(&world, 0, 1, named(10));
    assert!(before.is_some());
    world.restart_from(0, config(0), [1, 0]);
    world.sign_on(0, 1, 7);
    assert_eq!(status(&world, 0, 1, named(10)), before);
}
