//! One rule, one test.

use pares_types::{
    Answer, ClientOrderId, Command, GatewayId, MemberId, OrderId, Phase, Quantity, Reason, RecorderId, Reply,
    RequestId, Side, Status, Symbol, Timestamp,
};

use super::exchange::Record;
use super::world::{RECORD, World, amend, cancel, config, enter, exchange, mass_cancel};
use crate::{GatewayConfig, Place, SessionId};

/// A world in which session 1 of the first gateway speaks for member 7.
pub(super) fn signed_on() -> World {
    with(|config| config)
}

pub(super) fn with(change: impl Fn(GatewayConfig) -> GatewayConfig) -> World {
    let mut world = World::with(|gate| change(config(gate)));
    world.sign_on(0, 1, 7);
    world
}

pub(super) fn buy(name: u64) -> pares_types::ClientRequest {
    enter(name, 1, Side::Buy, 10, 100)
}

/// Who got which answer from the first gateway: session, name, whether it is a repeat.
fn answers(world: &mut World) -> Vec<(u64, u64, bool)> {
    let answer = |(session, reply)| match reply {
        Reply::Answer(Answer { client_order_id, repeat, .. }) => Some((session, client_order_id.0, repeat)),
        _ => None,
    };
    world.replies(0).into_iter().filter_map(answer).collect()
}

pub(super) fn rejection(world: &mut World) -> Reason {
    match world.replies(0)[..] {
        [(_, Reply::Rejected { reason, .. })] => reason,
        ref other => panic!("expected one rejection, got {other:?}"),
    }
}

/// Tells the first gateway that all records lie in the log of one recorder now, from that offset on.
fn move_all(world: &mut World, recorder: RecorderId, offset: u64) {
    let records: Vec<Record> = world.shards.iter().flat_map(|shard| shard.committed.clone()).collect();
    for (at, Record { position, request, outcome, events }) in (offset..).zip(&records) {
        let place = Place { recorder, offset: at };
        world.gates[0].gateway.on_moved(*position, request, outcome, events.len(), place);
    }
}

#[test]
fn first_answers_are_read_where_their_records_lie_now() {
    let mut world = signed_on();
    world.ask(0, 1, buy(1));
    world.ask(0, 1, mass_cancel(2, 0));
    world.settle();
    for name in [1, 2] {
        let place = |world: &World| {
            let first = world.gates[0].gateway.first_answer(SessionId(1), ClientOrderId(name));
            first.expect("it was answered").1
        };
        let before = place(&world);
        move_all(&mut world, RecorderId(9), 500);
        assert_eq!(place(&world), before, "another recorder's");
        move_all(&mut world, before.recorder, 700);
        let after = place(&world);
        assert!(after.recorder == before.recorder && (700..710).contains(&after.offset), "{after:?}");
        move_all(&mut world, before.recorder, 800);
        assert_eq!(place(&world).offset, after.offset + 100, "and once more");
    }
}

#[test]
fn requests_numbered_gapless_stamped_increasing() {
    let mut world = signed_on();
    for (name, now) in [(1, 50), (2, 50), (3, 40), (4, 90)] {
        world.now = now;
        world.ask(0, 1, buy(name));
    }
    let numbered = world.gates[0].sink.log.iter().map(|request| (request.id.sequence(), request.stamp.0));
    assert_eq!(numbered.collect::<Vec<_>>(), [(1, 50), (2, 51), (3, 52), (4, 90)]);
}

/// Else a shard would refuse what is asked at a gateway whose clock is behind: another's went past it.
#[test]
fn operator_stamps_follow_all_operator_requests() {
    const OPERATOR: u64 = 9;
    let mut world = signed_on();
    (0..2).for_each(|gate| world.sign_on(gate, OPERATOR, 0));
    let block = |name| exchange(name, 0, Command::Block { member: MemberId(5) });
    let stamps = |world: &World| -> Vec<u64> {
        world.gates[1].sink.log.iter().map(|request| request.stamp.0).collect()
    };
    world.now = 1_000;
    world.ask(0, OPERATOR, block(1));
    world.now = 10;
    world.sign_on(1, 3, 7);
    world.ask(1, 3, buy(1));
    world.ask(1, OPERATOR, block(2));
    assert_eq!(stamps(&world), [10, 11, 12], "it has not read the other's");
    world.settle();
    world.ask(1, 3, buy(2));
    world.ask(1, OPERATOR, block(3));
    world.ask(1, 3, buy(3));
    assert_eq!(stamps(&world)[3..], [13, 1_002, 1_003, 1_004]);
}

#[test]
fn restarted_gateway_stamps_after_operator_requests() {
    const OPERATOR: u64 = 9;
    let block = |name| exchange(name, 0, Command::Block { member: MemberId(5) });
    // From the records, and from checkpoints alone.
    for taken in [[0; 2], [2, 1]] {
        let mut world = World::new();
        world.sign_on(0, OPERATOR, 0);
        world.now = 1_000;
        world.ask(0, OPERATOR, block(1));
        world.sign_on(0, 3, 7);
        world.ask(0, 3, buy(1));
        world.settle();
        world.restart_from(1, config(1), taken);
        world.now = 10;
        world.sign_on(1, OPERATOR, 0);
        world.ask(1, OPERATOR, block(2));
        let stamps: Vec<_> = world.gates[1].sink.log.iter().map(|request| request.stamp.0).collect();
        assert_eq!(stamps, [1_002, 1_003], "{taken:?}");
    }
}

#[test]
fn a_cancel_follows_its_order_while_that_is_in_flight() {
    let mut world = signed_on();
    world.ask(0, 1, buy(1));
    world.ask(0, 1, cancel(2, 1));
    let target = OrderId(RequestId::new(GatewayId(1), 1));
    assert_eq!(world.gates[0].sink.log[1].command, Command::Cancel { target });
}

#[test]
fn nobody_is_served_before_signing_on() {
    let mut world = World::new();
    world.ask(0, 1, buy(1));
    assert_eq!(rejection(&mut world), Reason::NotSignedOn);
}

#[test]
fn no_instrument_has_the_id_0_and_the_name_stays_free() {
    let mut world = signed_on();
    world.ask(0, 1, enter(1, 0, Side::Buy, 10, 100));
    assert_eq!(rejection(&mut world), Reason::UnknownInstrument);
    world.ask(0, 1, buy(1));
    assert_eq!(world.gates[0].gateway.in_flight(), 1);
}

#[test]
fn unconfigured_instrument_maps_to_shard_by_id() {
    let mut world = signed_on();
    world.sign_on(0, 2, 0);
    let symbol = Symbol::new("NEW").unwrap();
    world.ask(0, 2, exchange(1, 99, Command::AddInstrument(symbol)));
    world.ask(0, 1, enter(2, 99, Side::Buy, 10, 100));
    world.ask(0, 1, enter(3, 98, Side::Buy, 10, 100));
    let shards = world.gates[0].sink.log.iter().map(|request| request.shard.0);
    assert_eq!(shards.collect::<Vec<_>>(), [1, 1, 0]);
}

#[test]
fn only_the_exchange_may_ask_for_what_concerns_all() {
    let mut world = signed_on();
    let others = exchange(1, 0, Command::Block { member: MemberId(8) });
    for request in [exchange(1, 1, Command::SetPhase(Phase::Halted)), exchange(1, 0, Command::TIME), others] {
        world.ask(0, 1, request);
        assert_eq!(rejection(&mut world), Reason::NotPermitted);
    }
    world.ask(0, 1, exchange(1, 0, Command::Block { member: MemberId(7) }));
    assert!(world.replies(0).is_empty(), "a member may block itself");
}

#[test]
fn what_has_a_request_of_its_own_is_not_for_the_exchange() {
    let mut world = signed_on();
    world.ask(0, 1, exchange(1, 1, Command::MassCancel { side: None }));
    assert_eq!(rejection(&mut world), Reason::MalformedRequest);
}

#[test]
fn a_block_reaches_every_shard_and_is_answered_once() {
    let mut world = signed_on();
    world.sign_on(0, 2, 0);
    for (name, instrument) in [(1, 1), (2, 2)] {
        world.ask(0, 1, enter(name, instrument, Side::Buy, 1, 1));
    }
    world.settle();
    world.replies(0);
    world.ask(0, 2, exchange(1, 0, Command::Block { member: MemberId(7) }));
    world.settle();
    let replies = world.replies(0);
    assert!(matches!(replies[0], (1, Reply::Cancelled(_))), "its owner is told");
    let Some((2, Reply::Answer(answer))) = replies.last() else { panic!("answer comes last") };
    assert_eq!((answer.executed, answer.status), (Quantity(2), Status::MassCancelled));
}

#[test]
fn only_the_name_of_an_order_can_be_cancelled_or_amended() {
    let mut world = signed_on();
    world.ask(0, 1, mass_cancel(1, 1));
    for request in [cancel(2, 1), cancel(3, 99), amend(4, 1, 5, 5)] {
        world.ask(0, 1, request);
        assert_eq!(rejection(&mut world), Reason::UnknownClientOrderId);
    }
}

#[test]
fn another_member_s_order_cannot_be_named() {
    let mut world = signed_on();
    world.sign_on(0, 2, 8);
    world.ask(0, 1, buy(1));
    world.ask(0, 2, cancel(2, 1));
    assert_eq!(rejection(&mut world), Reason::UnknownClientOrderId);
}

#[test]
fn in_flight_repeat_is_logged_once_answered_to_newest() {
    let mut world = signed_on();
    world.sign_on(0, 2, 7);
    world.ask(0, 1, buy(1));
    world.ask(0, 2, buy(1));
    world.settle();
    assert_eq!(world.gates[0].sink.log.len(), 1);
    assert_eq!(answers(&mut world), [(2, 1, false)]);
}

#[test]
fn a_repeat_once_answered_gets_the_first_answer_again() {
    let mut world = signed_on();
    world.ask(0, 1, buy(1));
    world.settle();
    let [(_, Reply::Answer(first))] = world.replies(0)[..] else { panic!("one answer") };
    // Even a different request under that name.
    world.ask(0, 1, cancel(1, 1));
    assert_eq!(world.replies(0), [(1, Reply::Answer(Answer { repeat: true, ..first.content() }))]);
}

#[test]
fn a_repeat_through_another_gateway_gets_the_same_answer() {
    let mut world = signed_on();
    world.sign_on(1, 1, 7);
    world.ask(0, 1, buy(1));
    world.read_peer(1);
    world.ask(1, 1, buy(1));
    world.settle();
    assert!(world.gates[1].sink.log.is_empty());
    assert_eq!(world.replies(0), world.replies(1));
}

#[test]
fn a_cancel_after_the_race_names_the_order_that_won() {
    let mut world = signed_on();
    world.sign_on(1, 1, 7);
    world.ask(0, 1, buy(1));
    world.ask(1, 1, buy(1));
    world.commit(1, 0);
    world.settle();
    world.ask(0, 1, cancel(2, 1));
    let target = OrderId(RequestId::new(GatewayId(2), 1));
    assert_eq!(world.gates[0].sink.log[1].command, Command::Cancel { target });
}

#[test]
fn unrecorded_stall_refuses_new_accepts_repeats() {
    let mut world = with(|config| GatewayConfig { patience_ns: 500, ..config });
    let watch = |world: &mut World, times: std::ops::Range<u64>| {
        times.step_by(50).for_each(|now| world.gates[0].gateway.on_turn(now));
    };
    world.ask(0, 1, buy(1));
    watch(&mut world, 1_000..1_400);
    world.ask(0, 1, buy(2));
    assert!(world.replies(0).is_empty());
    watch(&mut world, 1_400..1_600);
    for request in [buy(3), amend(4, 1, 10, 100), cancel(5, 1), mass_cancel(6, 1)] {
        world.ask(0, 1, request);
        assert_eq!(rejection(&mut world), Reason::NotRecorded);
    }
    assert_eq!(world.gates[0].gateway.standing_still(), 1);
    world.ask(0, 1, buy(1));
    world.ask(0, 1, enter(7, 2, Side::Buy, 10, 100));
    world.ask(0, 1, mass_cancel(8, 0));
    assert!(world.replies(0).is_empty(), "a repeat; another shard; what another shard may do");
    world.commit(0, 0);
    world.follow(0, 0);
    world.replies(0);
    world.ask(0, 1, buy(3));
    assert!(world.replies(0).is_empty(), "the first record lifts it, and the name was free");
    world.settle();
    assert_eq!(world.gates[0].gateway.standing_still() + world.gates[0].gateway.in_flight(), 0);
}

#[test]
fn a_full_disk_is_a_rejection_that_changes_nothing() {
    let mut world = signed_on();
    world.gates[0].sink.room = 0;
    world.ask(0, 1, buy(1));
    assert_eq!(rejection(&mut world), Reason::StorageUnavailable);
    world.gates[0].sink.room = 1;
    world.ask(0, 1, buy(1));
    assert_eq!(world.gates[0].sink.log[0].id.sequence(), 1);
}

#[test]
fn durable_mark_releases_journalled_notices() {
    let mut world = signed_on();
    world.try_sign_on(0, 2, 7, true).unwrap();
    for (session, name) in [(2, 1), (1, 2), (2, 3)] {
        world.ask(0, session, buy(name));
    }
    let gate = &mut world.gates[0];
    gate.gateway.on_journalled(2 * RECORD, &mut gate.sink);
    let (client_order_id, request) = (ClientOrderId(1), RequestId::new(GatewayId(1), 1));
    assert_eq!(world.replies(0), [(2, Reply::Journalled { client_order_id, request })]);
}

#[test]
fn the_answered_offset_is_that_of_the_oldest_request_in_flight() {
    let mut world = signed_on();
    world.ask(0, 1, enter(1, 2, Side::Buy, 10, 100));
    world.ask(0, 1, buy(2));
    world.ask(0, 1, buy(3));
    world.commit(0, 1);
    world.commit(0, 0);
    world.follow(0, 0);
    assert_eq!(world.gates[0].gateway.answered_offset(3 * RECORD), 0);
    world.follow(0, 1);
    assert_eq!(world.gates[0].gateway.answered_offset(3 * RECORD), 2 * RECORD);
    world.settle();
    assert_eq!(world.gates[0].gateway.answered_offset(3 * RECORD), 3 * RECORD);
}

#[test]
fn a_restarted_gateway_goes_on_numbering_where_it_stopped() {
    let mut world = signed_on();
    world.ask(0, 1, buy(1));
    world.ask(0, 1, buy(2));
    world.commit(0, 0);
    world.restart(0, config(0));
    world.now = 1;
    world.sign_on(0, 2, 7);
    world.ask(0, 2, buy(3));
    let last = world.gates[0].sink.log.last().unwrap();
    assert_eq!((last.id.sequence(), last.stamp), (3, Timestamp(1_002)));
}

#[test]
fn a_gateway_that_lost_its_log_does_not_reuse_committed_ids() {
    let mut world = signed_on();
    world.ask(0, 1, buy(1));
    world.settle();
    world.gates[0].sink.log.clear();
    world.restart(0, config(0));
    assert_eq!(world.gates[0].gateway.last_request(), RequestId::new(GatewayId(1), 1));
}

#[test]
fn full_mass_cancel_is_one_request_per_shard() {
    let mut world = signed_on();
    for (name, instrument) in [(1, 1), (2, 2), (3, 3)] {
        world.ask(0, 1, enter(name, instrument, Side::Buy, 1, 1));
    }
    world.settle();
    world.replies(0);
    world.ask(0, 1, mass_cancel(4, 0));
    world.commit(0, 1);
    world.follow(0, 1);
    assert!(answers(&mut world).is_empty());
    world.settle();
    let replies = world.replies(0);
    let Some((1, Reply::Answer(answer))) = replies.last() else { panic!("answer comes last") };
    assert_eq!((answer.executed, answer.shard.0, answer.status), (Quantity(3), 0, Status::MassCancelled));
    world.ask(0, 1, mass_cancel(4, 0));
    assert_eq!(world.replies(0), [(1, Reply::Answer(Answer { repeat: true, ..answer.content() }))]);
}

#[test]
fn unread_mass_cancel_part_is_reissued_at_any_gateway() {
    for gate in [0, 1] {
        let mut world = signed_on();
        world.sign_on(1, 9, 7);
        world.ask(0, 1, mass_cancel(1, 0));
        world.lose(0, 1);
        world.ask(0, 1, enter(2, 2, Side::Buy, 1, 1));
        world.settle();
        assert_eq!(answers(&mut world), [(1, 2, false)]);
        world.ask(gate, [1, 9][gate], mass_cancel(1, 0));
        world.settle();
        let replies = world.replies(gate);
        let answered = replies.iter().filter(|(_, reply)| matches!(reply, Reply::Answer(_)));
        assert_eq!(answered.count(), 1, "gateway {gate}: {replies:?}");
        assert_eq!(world.gates[1 - gate].sink.log.len(), [0, 3][gate], "one part is asked once more");
    }
}

#[test]
fn unsynced_device_delays_only_its_waiters() {
    let mut world = World::with(|gate| GatewayConfig { in_flight_max: 4, ..config(gate) });
    world.sign_on(0, 1, 7);
    world.try_sign_on(0, 2, 7, true).unwrap();
    for name in 1..=4 {
        world.ask(0, 2, buy(name));
        world.settle();
    }
    world.replies(0);
    world.ask(0, 2, buy(5));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
    world.ask(0, 1, buy(6));
    world.settle();
    assert_eq!(answers(&mut world), [(1, 6, false)]);
    assert!(world.gates[0].gateway.wants_journalled());
    let gate = &mut world.gates[0];
    gate.gateway.on_disconnect(SessionId(2));
    assert!(!gate.gateway.wants_journalled());
}

#[test]
#[should_panic(expected = "gap in a shard's committed stream")]
fn a_gap_in_the_committed_stream_is_not_papered_over() {
    let mut world = signed_on();
    (1..=3).for_each(|name| world.ask(0, 1, buy(name)));
    while world.commit(0, 0) {}
    world.follow(0, 0);
    world.shards[0].committed.remove(1);
    world.follow(0, 0);
}

#[test]
fn a_sign_on_repeated_with_an_order_in_flight_changes_nothing() {
    let mut world = signed_on();
    world.ask(0, 1, buy(1));
    for member in [7, 8] {
        assert_eq!(world.try_sign_on(0, 1, member, false), Err(Reason::MalformedRequest));
    }
    world.settle();
    assert_eq!(answers(&mut world), [(1, 1, false)]);
}

#[test]
fn a_request_that_the_venues_could_not_read_ends_nobody() {
    let mut world = signed_on();
    (1..=3).for_each(|name| world.ask(0, 1, buy(name)));
    let damaged = world.gates[0].sink.log.remove(1);
    world.settle();
    assert_eq!(answers(&mut world), [(1, 1, false), (1, 3, false)]);
    assert_eq!((damaged.id.sequence(), world.gates[0].gateway.in_flight()), (2, 0));
}
