//! Lists of a member's orders, and what its session may do.

use pares_register::Permit;
use pares_types::{
    ClientOrderId, InstrumentId, Limits, List, ListRequest, MemberId, OrderState, OrderStatus, OwnLimits,
    Position, Reason, Rights, Side,
};

use super::world::{World, cancel, config, enter};
use crate::{GatewayConfig, Listed, Pace, SessionId};

fn orders(instrument: u32) -> ListRequest {
    let instrument = Some(instrument).filter(|id| *id != 0).map(InstrumentId);
    ListRequest { token: 5, list: List::Orders, instrument }
}

/// A portion from `from` on, and where the next begins.
fn portion(
    world: &World,
    (gate, session): (usize, u64),
    request: &ListRequest,
    from: usize,
) -> (Vec<OrderStatus>, Option<usize>) {
    let mut told = Vec::new();
    let gateway = &world.gates[gate].gateway;
    let next = gateway.tell_list(SessionId(session), request, from, &mut |listed| match listed {
        Listed::Order(status) => told.push(status),
        Listed::Instrument(..) => panic!("orders were asked for"),
    });
    (told, next.expect("it is signed on"))
}

/// A whole list: names and shares left.
fn list(world: &World, who: (usize, u64), instrument: u32) -> Vec<(u64, u64)> {
    let (mut all, mut from) = (Vec::new(), Some(0));
    while let Some(place) = from {
        let (told, next) = portion(world, who, &orders(instrument), place);
        all.extend(told.iter().map(|one| (one.client_order_id.0, one.remaining.0)));
        from = next;
    }
    all.sort_unstable();
    all
}

/// Members 7 and 8 at both gateways: sessions 1 and 2 at the first, 3 and 4 at the other.
fn world() -> World {
    let mut world = World::with(|gate| GatewayConfig {
        session_in_flight_max: 9_000,
        in_flight_max: 20_000,
        names_max: 10_000,
        ..config(gate)
    });
    for (gate, session, member) in [(0, 1, 7), (0, 2, 8), (1, 3, 7), (1, 4, 8)] {
        world.sign_on(gate, session, member);
    }
    world
}

#[test]
fn any_gateway_lists_only_own_open_orders() {
    let mut world = world();
    for (name, instrument) in [(1, 1), (2, 2), (3, 3), (4, 1)] {
        world.ask(0, 1, enter(name, instrument, Side::Sell, 10 + name, 100));
    }
    world.ask(0, 2, enter(1, 1, Side::Sell, 50, 200));
    world.settle();
    world.ask(1, 4, enter(2, 2, Side::Buy, 5, 100));
    world.ask(1, 3, cancel(5, 4));
    world.settle();
    for who in [(0, 1), (1, 3)] {
        assert_eq!(list(&world, who, 0), [(1, 11), (2, 7), (3, 13)]);
        assert_eq!(list(&world, who, 1), [(1, 11)]);
        assert_eq!(list(&world, who, 9), []);
    }
    for who in [(0, 2), (1, 4)] {
        assert_eq!(list(&world, who, 0), [(1, 50)], "its own only");
    }
    let stranger = world.gates[0].gateway.tell_list(SessionId(99), &orders(0), 0, &mut |_| ());
    assert_eq!(stranger, Err(Reason::NotSignedOn));
    world.restart_from(1, config(1), [3, 1]);
    world.sign_on(1, 5, 7);
    assert_eq!(list(&world, (1, 5), 0), [(1, 11), (2, 7), (3, 13)], "from checkpoints");
}

#[test]
fn an_order_in_flight_is_listed_as_that() {
    let mut world = world();
    world.ask(0, 1, enter(1, 1, Side::Sell, 10, 100));
    let (told, next) = portion(&world, (0, 1), &orders(0), 0);
    assert_eq!(
        told.iter().map(|one| (one.state, one.next)).collect::<Vec<_>>(),
        [(OrderState::InFlight, Position(0))]
    );
    assert_eq!((told[0].client_order_id, next), (ClientOrderId(1), None));
}

#[test]
fn long_list_sends_stable_entries_once_in_portions() {
    let mut world = world();
    for name in 1..=3_000 {
        world.ask(0, 1, enter(name, 1, Side::Sell, 10, 100));
        world.ask(0, 2, enter(name, 1, Side::Sell, 20, 100));
    }
    world.settle();
    let (mut told, mut from, mut portions) = (Vec::new(), Some(0), 0);
    while let Some(place) = from {
        let (some, next) = portion(&world, (0, 1), &orders(0), place);
        assert!(some.len() <= 256, "{} at once", some.len());
        told.extend(some.iter().map(|one| one.client_order_id.0));
        from = next;
        portions += 1;
        // Meanwhile orders end and others take their places.
        let number = 10_000 + 10 * portions;
        world.ask(0, 1, cancel(number, 2 * portions));
        world.ask(0, 1, enter(number + 1, 1, Side::Sell, 10, 100));
        world.settle();
    }
    assert!(portions >= 12, "{portions}");
    told.sort_unstable();
    assert!(told.windows(2).all(|two| two[0] < two[1]), "none twice");
    let stayed = (1..=3_000).filter(|name| name % 2 == 1 || *name > 2 * portions);
    let missing: Vec<u64> = stayed.filter(|name| told.binary_search(name).is_err()).collect();
    assert_eq!(missing, [0_u64; 0]);
}

#[test]
fn a_session_is_told_what_it_may_do_and_what_is_used() {
    let mut world = World::with(|gate| GatewayConfig { session_pace: Pace::new(3, 2), ..config(gate) });
    world.sign_on(0, 1, 7);
    let limits = |world: &World| world.gates[0].gateway.own_limits(SessionId(1), 9).expect("it is signed on");
    let Permit { limits: none, .. } = Permit::FREE;
    let expected = OwnLimits {
        token: 9,
        next: Position(0),
        member: MemberId(7),
        session: 0,
        rights: Rights::ALL,
        limits: Limits { rate_max: 3, burst_max: 2, ..none },
        position_max: 0,
        orders: 0,
        in_flight: 0,
        in_flight_max: 100,
    };
    assert_eq!(limits(&world), expected);
    world.ask(0, 1, enter(1, 1, Side::Sell, 10, 100));
    assert_eq!(limits(&world), OwnLimits { orders: 1, in_flight: 1, ..expected });
    world.settle();
    assert_eq!(limits(&world), OwnLimits { orders: 1, next: Position(1), ..expected });
    world.ask(0, 1, cancel(2, 1));
    world.settle();
    assert_eq!(limits(&world), OwnLimits { next: Position(2), ..expected });
    let stranger = world.gates[0].gateway.own_limits(SessionId(2), 9);
    assert_eq!(stranger, Err(Reason::NotSignedOn));
}
