//! Names without end: whatever was asked before, a gateway has room for what matters now.

use pares_types::{
    Answer, ClientOrderId, ClientRequest, Command, GatewayId, MemberId, Phase, Reason, Reply, Side, Timestamp,
};

use super::rules::{rejection, with};
use super::world::{SHARDS, World, amend, cancel, enter, exchange, mass_cancel};
use crate::{GatewayConfig, LookUp, SessionId};

const NAMES_MAX: usize = 16;

fn small() -> World {
    of(NAMES_MAX)
}

fn of(names_max: usize) -> World {
    let mut world = with(|config| GatewayConfig { names_max, ..config });
    world.sign_on(0, 9, 0);
    world
}

fn buy(name: u64) -> ClientRequest {
    enter(name, 1, Side::Buy, 10, 100)
}

fn sell(name: u64) -> ClientRequest {
    enter(name, 1, Side::Sell, 10, 100)
}

fn is_refused(world: &mut World) -> bool {
    world.replies(0).iter().any(|(_, reply)| matches!(reply, Reply::Rejected { .. }))
}

/// Two names are used each time, and no order is left.
fn trade(world: &mut World, names: std::ops::Range<u64>) {
    for name in names {
        world.ask(0, 1, buy(2 * name));
        world.ask(0, 1, sell(2 * name + 1));
        world.settle();
        assert!(!is_refused(world), "{name}");
    }
}

#[test]
fn names_that_are_finished_make_room_for_ever() {
    let mut world = small();
    trade(&mut world, 1..200);
    let gateway = &world.gates[0].gateway;
    assert_eq!((gateway.names(), gateway.names_needed()), (NAMES_MAX, 0));
    let journalled = world.gates[0].sink.log.len();
    for repeat in [buy(2), sell(399)] {
        world.ask(0, 1, repeat);
        let name = repeat.client_order_id();
        let is_first = |answer: &Answer| answer.repeat && answer.client_order_id == name;
        assert!(matches!(&world.replies(0)[..], [(1, Reply::Answer(answer))] if is_first(answer)));
    }
    assert_eq!(world.gates[0].sink.log.len(), journalled);
    world.ask(0, 1, buy(1));
    assert_eq!(world.gates[0].sink.log.len(), journalled + 1, "it is late, and new");
}

#[test]
fn open_order_is_amendable_by_name_at_any_age() {
    let mut world = small();
    world.ask(0, 1, enter(1, 2, Side::Buy, 10, 50));
    trade(&mut world, 1..200);
    world.ask(0, 1, amend(1_000, 1, 20, 50));
    world.settle();
    trade(&mut world, 600..700);
    world.ask(0, 1, cancel(2_000, 1));
    world.settle();
    assert!(!is_refused(&mut world));
    trade(&mut world, 2_100..2_200);
    world.ask(0, 1, cancel(5_000, 1));
    assert_eq!(rejection(&mut world), Reason::UnknownOrder, "it is gone");
}

#[test]
fn a_gateway_that_starts_again_knows_the_same() {
    let mut world = small();
    world.ask(0, 1, enter(1, 2, Side::Buy, 10, 50));
    trade(&mut world, 1..200);
    world.restart(0, GatewayConfig { names_max: NAMES_MAX, ..super::world::config(0) });
    while world.read_peer(0) {}
    assert_eq!((world.gates[0].gateway.names(), world.gates[0].gateway.names_needed()), (NAMES_MAX, 1));
    world.sign_on(0, 1, 7);
    world.ask(0, 1, cancel(1_000, 1));
    world.settle();
    assert_eq!(world.gates[0].gateway.names_needed(), 0);
}

/// The requests of a log that were committed long ago come again when another gateway's log is read from its beginning.
#[test]
fn forgotten_name_does_not_return_via_other_gateway() {
    let mut world = small();
    world.sign_on(1, 2, 8);
    for name in 1..100 {
        world.ask(1, 2, enter(2 * name, 1, Side::Buy, 10, 100));
        world.ask(1, 2, enter(2 * name + 1, 1, Side::Sell, 10, 100));
        world.settle();
    }
    world.restart(0, GatewayConfig { names_max: NAMES_MAX, ..super::world::config(0) });
    while world.read_peer(0) {}
    assert_eq!((world.gates[0].gateway.names(), world.gates[0].gateway.names_needed()), (NAMES_MAX, 0));
}

#[test]
fn everything_is_full_and_cancels_halts_and_blocks_pass() {
    let mut world = of(64);
    for name in 1..=60 {
        world.ask(0, 1, enter(name, 1 + (name % 2) as u32, Side::Buy, 10, 100));
        world.settle();
    }
    assert!(!is_refused(&mut world));
    world.ask(0, 1, buy(100));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
    let relief = [
        (1, cancel(101, 1)),
        (1, mass_cancel(102, 1)),
        (9, exchange(103, 1, Command::SetPhase(Phase::Halted))),
        (9, exchange(104, 0, Command::Block { member: MemberId(7) })),
    ];
    for (session, request) in relief {
        world.ask(0, session, request);
        assert!(!is_refused(&mut world), "{request:?}");
    }
    world.settle();
    assert_eq!(world.gates[0].gateway.names_needed(), 0, "the block has cancelled all");
    world.ask(0, 1, cancel(105, 2));
    assert!(!is_refused(&mut world), "a name that was used lately");
    assert!(world.gates[0].gateway.first_answer(crate::SessionId(1), ClientOrderId(101)).is_some());
}

/// Its requests in flight take no room from members, nor theirs from it.
#[test]
fn full_flight_room_still_allows_halt_and_block() {
    let mut world = with(|config| GatewayConfig { in_flight_max: 4, session_in_flight_max: 2, ..config });
    for session in 2..=5 {
        world.sign_on(0, session, 7);
        (0..9).for_each(|name| world.ask(0, session, cancel(10 * session + name, 1)));
        (0..9).for_each(|name| world.ask(0, session, mass_cancel(100 * session + name, 1)));
        (0..9).for_each(|name| world.ask(0, session, buy(1_000 * session + name)));
    }
    assert!(is_refused(&mut world), "members have used up theirs");
    world.sign_on(0, 9, 0);
    world.ask(0, 9, exchange(1, 1, Command::SetPhase(Phase::Halted)));
    world.ask(0, 9, exchange(2, 0, Command::Block { member: MemberId(7) }));
    assert!(!is_refused(&mut world));
}

/// Of each checkpoint a gateway may start from, as many records as it leaves to be read.
fn from_checkpoint(world: &mut World, left: [usize; SHARDS]) {
    let taken = [0, 1].map(|shard: usize| world.shards[shard].committed.len() - left[shard]);
    world.restart_from(0, super::world::config(0), taken);
    while world.read_peer(0) {}
    world.sign_on(0, 1, 7);
    world.replies(0);
}

#[test]
fn gateway_from_checkpoints_knows_open_orders() {
    let mut world = small();
    world.ask(0, 1, enter(1, 2, Side::Buy, 10, 50));
    trade(&mut world, 1..20);
    from_checkpoint(&mut world, [0, 0]);
    assert_eq!((world.gates[0].gateway.names(), world.gates[0].gateway.names_needed()), (1, 1));
    let journalled = world.gates[0].sink.log.len();
    for repeat in [enter(1, 2, Side::Buy, 10, 50), buy(2), sell(39)] {
        for _ in 0..2 {
            world.ask(0, 1, repeat);
            assert!(matches!(world.replies(0)[..], [(1, Reply::Answer(answer))] if answer.repeat));
        }
    }
    assert_eq!(world.gates[0].sink.log.len(), journalled);
    world.ask(0, 1, cancel(1_000, 2));
    assert_eq!(rejection(&mut world), Reason::UnknownOrder, "it is gone");
    world.ask(0, 1, cancel(1_000, 1));
    world.settle();
    assert!(!is_refused(&mut world));
    assert_eq!(world.gates[0].gateway.names_needed(), 0);
    assert_eq!(world.gates[0].sink.log.last().unwrap().id.sequence(), journalled as u64 + 1);
}

#[test]
fn all_shard_request_may_straddle_checkpoints() {
    for left in [[0, 0], [0, 1], [1, 0], [1, 1]] {
        let mut world = small();
        (1..=2).for_each(|name| world.ask(0, 1, enter(name, name as u32, Side::Buy, 10, 50)));
        world.ask(0, 1, mass_cancel(3, 0));
        world.settle();
        from_checkpoint(&mut world, left);
        assert_eq!(world.gates[0].gateway.names_needed(), 0, "{left:?}");
        world.ask(0, 1, mass_cancel(3, 0));
        let is_whole = |answer: &Answer| answer.repeat && answer.executed.0 == 2;
        let replies = world.replies(0);
        assert!(matches!(&replies[..], [(1, Reply::Answer(answer))] if is_whole(answer)), "{replies:?}");
    }
}

/// Its first one lies before the checkpoint, so the second's refusal is all that the gateway reads.
#[test]
fn repeat_after_checkpoint_gets_first_answer() {
    [false, true].into_iter().for_each(ask_again_before_a_checkpoint);
}

fn ask_again_before_a_checkpoint(shard_forgets: bool) {
    let mut world = small();
    world.shards[0].forgets = shard_forgets;
    world.sign_on(1, 2, 7);
    world.ask(1, 2, buy(1));
    world.ask(0, 1, buy(1));
    world.commit(1, 0);
    world.ask(1, 2, sell(2));
    world.commit(1, 0);
    from_checkpoint(&mut world, [0, 0]);
    world.ask(0, 1, buy(1));
    world.settle();
    let is_first =
        |answer: &Answer| answer.request.gateway() == GatewayId(2) && answer.reason == Reason::None;
    let replies = world.replies(0);
    assert!(
        replies.iter().all(|(_, reply)| matches!(reply, Reply::Answer(answer) if is_first(answer))),
        "{replies:?}"
    );
    assert!(!replies.is_empty());
}

/// The stream had the answer, under that number.
#[test]
fn substitute_answer_has_no_stream_position() {
    let mut world = small();
    world.ask(0, 1, buy(1));
    world.settle();
    let [(1, Reply::Answer(answer))] = world.replies(0)[..] else { panic!("one answer") };
    assert_eq!(answer.number, 1);
    let look_up = LookUp::instead_of(SessionId(1), &world.shards[0].committed[0].request, answer);
    let gate = &mut world.gates[0];
    gate.gateway.on_looked_up(Timestamp(world.now), &look_up, &[], &mut gate.sink);
    assert!(matches!(world.replies(0)[..], [(1, Reply::Answer(Answer { number: 0, .. }))]));
}
