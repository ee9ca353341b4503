//! What is cancelled when a session ends, and what is not.

use pares_types::{
    ClientOrderId, Command, GatewayId, Guarded, MemberId, OrderId, Reason, Reply, RequestId, Side,
};

use super::world::{World, config, enter};
use crate::SessionId;

/// Member 7 is session 1 at both gateways, by the number 0.
fn world() -> World {
    let mut world = World::new();
    (0..2).for_each(|gate| world.sign_on(gate, 1, 7));
    world
}

fn guarded(number: u64) -> u64 {
    ClientOrderId::guarded(0, number).0
}

/// What a gateway has asked the shards to cancel since the last call: shard, and through which of its requests.
fn asked(world: &mut World, gate: usize) -> Vec<(u16, u64)> {
    let before = world.gates[gate].sink.log.len();
    let now = world.now;
    world.on_time(gate, now);
    let log = &world.gates[gate].sink.log[before..];
    let what = |command| match command {
        Command::CancelGuarded(Guarded { member: MemberId(7), session: 0, last }) => {
            assert_eq!(last.gateway(), GatewayId(gate as u16 + 1));
            last.sequence()
        }
        other => panic!("{other:?}"),
    };
    log.iter().map(|request| (request.shard.0, what(request.command))).collect()
}

/// The numbers of the orders that a gateway reports to member 7 as cancelled, since the last call.
fn cancelled(world: &mut World, gate: usize) -> Vec<u64> {
    let told = |(_, reply)| match reply {
        Reply::Cancelled(cancelled) => Some(cancelled.client_order_id.number()),
        _ => None,
    };
    world.replies(gate).into_iter().filter_map(told).collect()
}

#[test]
fn guarded_orders_cancel_in_every_shard_at_end() {
    let mut world = world();
    for (number, instrument) in [(1, 1), (2, 2)] {
        world.ask(0, 1, enter(guarded(number), instrument, Side::Buy, 1, 1));
    }
    world.ask(0, 1, enter(3, 1, Side::Buy, 1, 1));
    world.settle();
    assert_eq!(asked(&mut world, 0), [], "it lives");
    world.gates[0].gateway.on_disconnect(SessionId(1));
    assert!(world.gates[0].gateway.time_due().is_some());
    assert_eq!(asked(&mut world, 0), [(0, 3), (1, 3)]);
    world.settle();
    assert_eq!(cancelled(&mut world, 1), [1, 2], "its other session is told");
    assert_eq!((asked(&mut world, 0), world.gates[0].gateway.time_due()), (vec![], None), "once");
}

#[test]
fn a_session_that_guards_nothing_ends_unnoticed() {
    let mut world = world();
    world.ask(0, 1, enter(1, 1, Side::Buy, 1, 1));
    world.gates[0].gateway.on_disconnect(SessionId(1));
    assert_eq!(asked(&mut world, 0), []);
}

#[test]
fn what_it_enters_after_it_has_come_back_lives() {
    let mut world = world();
    world.ask(0, 1, enter(guarded(1), 1, Side::Buy, 1, 1));
    world.gates[0].gateway.on_disconnect(SessionId(1));
    // The log is full just now.
    world.gates[0].sink.room = 0;
    assert_eq!(asked(&mut world, 0), []);
    world.gates[0].sink.room = usize::MAX;
    world.sign_on(0, 2, 7);
    world.ask(0, 2, enter(guarded(2), 1, Side::Buy, 1, 1));
    world.ask(1, 1, enter(guarded(3), 1, Side::Buy, 1, 1));
    assert_eq!(asked(&mut world, 0), [(0, 1), (1, 1)]);
    world.settle();
    assert_eq!(cancelled(&mut world, 1), [1]);
}

#[test]
fn a_session_of_two_connections_ends_with_the_last_of_them() {
    let mut world = world();
    world.sign_on(0, 2, 7);
    world.ask(0, 1, enter(guarded(1), 1, Side::Buy, 1, 1));
    world.gates[0].gateway.on_disconnect(SessionId(1));
    assert_eq!(asked(&mut world, 0), []);
    world.gates[0].gateway.on_disconnect(SessionId(2));
    assert_eq!(asked(&mut world, 0), [(0, 1), (1, 1)]);
}

#[test]
fn killed_gateway_cancels_guarded_from_checkpoint() {
    for taken in [[0, 0], [2, 1]] {
        let mut world = world();
        for (number, instrument) in [(1, 1), (2, 2), (3, 1)] {
            world.ask(0, 1, enter(guarded(number), instrument, Side::Buy, 1, 1));
        }
        world.ask(1, 1, enter(guarded(4), 1, Side::Buy, 1, 1));
        world.settle();
        // One more is in its log, and no venue has read it.
        world.ask(0, 1, enter(guarded(5), 2, Side::Buy, 1, 1));
        world.restart_from(0, config(0), taken);
        world.gates[0].gateway.recover_guards();
        assert_eq!(asked(&mut world, 0), [(0, 4), (1, 4)]);
        world.settle();
        assert_eq!(cancelled(&mut world, 1), [1, 3, 2, 5], "and what the other gateway took in lives");
        world.restart(0, config(0));
        world.gates[0].gateway.recover_guards();
        assert_eq!(asked(&mut world, 0), [], "nothing is left");
    }
}

#[test]
fn unfinished_and_unread_cancels_are_reissued() {
    let mut world = world();
    world.ask(0, 1, enter(guarded(1), 1, Side::Buy, 1, 1));
    world.settle();
    world.gates[0].gateway.on_disconnect(SessionId(1));
    world.shards[0].unfinished = 1;
    assert_eq!(asked(&mut world, 0), [(0, 1), (1, 1)]);
    world.lose(0, 1);
    world.settle();
    assert_eq!(asked(&mut world, 0), [(0, 1)]);
    world.sign_on(0, 2, 7);
    world.ask(0, 2, enter(2, 2, Side::Buy, 1, 1));
    world.settle();
    assert_eq!(asked(&mut world, 0), [(1, 1)], "it was passed over");
}

#[test]
fn a_session_guards_under_its_own_number_only() {
    let mut world = world();
    world.ask(0, 1, enter(ClientOrderId::guarded(2, 1).0, 1, Side::Buy, 1, 1));
    let refused =
        Reply::Rejected { client_order_id: ClientOrderId::guarded(2, 1), reason: Reason::OtherSeries };
    assert_eq!(world.replies(0), [(1, refused)]);
}

#[test]
fn guarded_orders_are_of_session_and_gateway_so_far() {
    let last = RequestId::new(GatewayId(2), 10);
    let guarded = Guarded { member: MemberId(7), session: 3, last };
    let has =
        |gateway, sequence, name| guarded.has(OrderId(RequestId::new(GatewayId(gateway), sequence)), name);
    let name = ClientOrderId::guarded(3, 1);
    assert!(has(2, 10, name) && has(2, 1, name));
    assert!(!has(2, 11, name) && !has(1, 10, name) && !has(2, 10, ClientOrderId::guarded(4, 1)));
    assert!(!has(2, 10, ClientOrderId(3 << 48 | 1)), "of the series, and not guarded");
}
