//! How much a gateway takes on, one rule, one test.

use pares_types::{ClientOrderId, Command, MemberId, Reason, Reply, ShardId, Side, Timestamp};

use super::rules::{buy, rejection, signed_on, with};
use super::world::{World, amend, cancel, config, enter, reduce};
use crate::{GatewayConfig, Pace, SessionId};

#[test]
fn a_session_may_have_so_many_in_flight() {
    let mut world = with(|config| GatewayConfig { session_in_flight_max: 2, ..config });
    (1..=3).for_each(|name| world.ask(0, 1, buy(name)));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
    world.ask(0, 1, buy(2));
    assert!(world.replies(0).is_empty(), "a repeat of its own takes no room");
    world.settle();
    world.replies(0);
    world.ask(0, 1, buy(3));
    assert_eq!(world.gates[0].gateway.in_flight(), 1);
}

#[test]
fn taken_over_request_frees_older_session_room() {
    let mut world = with(|config| GatewayConfig { session_in_flight_max: 1, ..config });
    world.sign_on(0, 2, 7);
    world.ask(0, 1, buy(1));
    world.ask(0, 2, buy(1));
    world.ask(0, 1, buy(2));
    assert!(world.replies(0).is_empty());
    world.ask(0, 2, buy(2));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
}

#[test]
fn orders_beyond_pace_are_throttled_cancels_pass() {
    let mut world = with(|config| GatewayConfig { session_pace: Pace::new(1, 2), ..config });
    world.sign_on(0, 2, 7);
    (1..=2).for_each(|name| world.ask(0, 1, buy(name)));
    assert!(world.replies(0).is_empty());
    for request in [buy(3), amend(4, 1, 10, 100), reduce(5, 1, 5)] {
        world.ask(0, 1, request);
        assert_eq!(rejection(&mut world), Reason::Throttled);
    }
    world.ask(0, 1, buy(2));
    world.ask(0, 1, cancel(6, 1));
    world.ask(0, 2, buy(7));
    assert!(world.replies(0).is_empty(), "a repeat, a cancel and another session");
    assert_eq!(world.gates[0].gateway.in_flight(), 4);
}

/// Which sessions the first gateway wants read later after so many refusals of session 1 in the same instant.
fn read_later(world: &mut World, refusals: u64, ask: impl Fn(u64) -> pares_types::ClientRequest) -> Vec<u64> {
    (1_000..1_000 + refusals).for_each(|name| world.ask(0, 1, ask(name)));
    let replies = world.replies(0);
    let refused = replies.iter().filter(|(_, reply)| matches!(reply, Reply::Rejected { .. })).count();
    assert_eq!(refused as u64, refusals, "each is answered");
    let mut sessions: Vec<_> = world.gates[0].sink.later.drain(..).map(|(session, _)| session.0).collect();
    sessions.dedup();
    sessions
}

#[test]
fn a_session_that_floods_beyond_its_pace_is_read_later() {
    let mut world = with(|config| GatewayConfig { session_pace: Pace::new(1, 1), ..config });
    world.ask(0, 1, buy(1));
    assert!(read_later(&mut world, 900, buy).is_empty(), "a mistake now and then is nobody's flood");
    assert_eq!(read_later(&mut world, 900, buy), [1]);
    world.ask(0, 1, cancel(2, 1));
    assert!(world.replies(0).is_empty(), "what is read of it counts: a cancel passes");
}

#[test]
fn session_filling_its_share_is_read_later() {
    let mut world = with(|config| GatewayConfig { session_in_flight_max: 1, ..config });
    world.ask(0, 1, buy(1));
    assert_eq!(read_later(&mut world, 2_000, buy), [1]);
}

#[test]
fn a_full_exchange_reads_those_later_who_ask_on_and_nobody_else() {
    let mut world = with(|config| GatewayConfig { in_flight_max: 4, ..config });
    world.sign_on(0, 2, 8);
    (1..=2).for_each(|name| world.ask(0, 1, buy(name)));
    assert_eq!(read_later(&mut world, 50_000, buy), [1]);
    (1..=100).for_each(|name| world.ask(0, 2, buy(name)));
    assert_eq!(world.replies(0).len(), 100, "refused, as there is no room");
    assert!(world.gates[0].sink.later.is_empty(), "a few refusals, while others have all there are");
}

#[test]
fn nonsense_is_answered_and_read_later() {
    let mut world = signed_on();
    for name in 0..2_000 {
        let gate = &mut world.gates[0];
        let (now, session) = (Timestamp(world.now), SessionId(1));
        gate.gateway.on_unreadable(now, session, ClientOrderId(name), &mut gate.sink);
    }
    assert_eq!(world.replies(0).len(), 2_000);
    assert!(!world.gates[0].sink.later.is_empty());
}

#[test]
fn the_last_names_are_kept_for_cancels() {
    let mut world = with(|config| GatewayConfig { names_max: 16, ..config });
    (1..=16).for_each(|name| world.ask(0, 1, buy(name)));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
    world.ask(0, 1, cancel(17, 1));
    assert!(world.replies(0).is_empty());
    world.ask(0, 1, cancel(18, 2));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
}

#[test]
fn halted_shard_has_half_the_room_others_trade() {
    let mut world = with(|config| GatewayConfig { in_flight_max: 4, ..config });
    (1..=3).for_each(|name| world.ask(0, 1, buy(name)));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
    world.gates[0].gateway.on_disconnect(SessionId(1));
    world.sign_on(0, 2, 8);
    for round in 0..100 {
        world.ask(0, 2, enter(2 * round, 2, Side::Buy, 10, 100));
        world.ask(0, 2, cancel(2 * round + 1, 2 * round));
        while world.commit(0, 1) {}
        while world.follow(0, 1) {}
        let replies = world.replies(0);
        assert!(!replies.iter().any(|(_, reply)| matches!(reply, Reply::Rejected { .. })), "{replies:?}");
    }
}

#[test]
fn full_halted_shard_does_not_withhold_time_from_others() {
    let mut world = World::with(|gate| GatewayConfig { in_flight_max: 2, ..config(gate) });
    world.sign_on(0, 1, 7);
    world.ask(0, 1, buy(1));
    world.ask(0, 1, cancel(2, 1));
    world.start_clock(0, 100, &[ShardId(0), ShardId(1)]);
    world.ask(0, 1, buy(3));
    world.on_time(0, 1_000);
    let told =
        world.gates[0].sink.log.iter().filter(|request| matches!(request.command, Command::Time { .. }));
    assert_eq!(told.map(|request| request.shard.0).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_member_s_sessions_beyond_its_most_are_refused() {
    let mut world = with(|config| GatewayConfig { member_sessions_max: 2, ..config });
    world.sign_on(0, 2, 7);
    assert_eq!(world.try_sign_on(0, 3, 7, false), Err(Reason::TooManySessions));
    world.sign_on(0, 3, 8);
}

#[test]
fn a_session_with_all_its_room_in_use_can_still_cancel() {
    let mut world = with(|config| GatewayConfig { session_in_flight_max: 2, ..config });
    (1..=2).for_each(|name| world.ask(0, 1, buy(name)));
    world.ask(0, 1, cancel(3, 1));
    assert!(world.replies(0).is_empty());
    world.ask(0, 1, cancel(4, 2));
    assert_eq!(rejection(&mut world), Reason::Overloaded);
}

#[test]
fn requests_without_a_sign_on_are_refused_at_a_bounded_rate() {
    let mut world = World::new();
    for name in 0..2_000 {
        world.ask(0, name % 50, buy(name));
    }
    assert_eq!(world.replies(0).len(), 2_000);
    assert!(world.gates[0].sink.later.len() > 900);
}

/// How many of so many orders are refused because the exchange takes no more, from that name on.
fn overloaded(world: &mut World, session: u64, names: std::ops::Range<u64>) -> usize {
    names.for_each(|name| world.ask(0, session, buy(name)));
    let is_overloaded = |reply: &Reply| matches!(reply, Reply::Rejected { reason: Reason::Overloaded, .. });
    world.replies(0).iter().filter(|(_, reply)| is_overloaded(reply)).count()
}

#[test]
fn long_waits_refuse_orders_and_pass_cancels() {
    let mut world = with(|config| GatewayConfig { wait_target_ns: 10, in_flight_max: 32, ..config });
    for (turn, name) in (1..10).zip(1..) {
        world.gates[0].gateway.on_turn(1_000 + 15 * turn);
        world.settle();
        assert_eq!(overloaded(&mut world, 1, name..name + 1), 0, "one waits, and is too long about it");
    }
    world.settle();
    assert_eq!(world.gates[0].gateway.room(), 2, "the least");
    assert_eq!(overloaded(&mut world, 1, 20..30), 8);
    assert_eq!(
        overloaded(&mut world, 1, 20..22),
        0,
        "a repeat takes no room: one order lives, or will, under that name"
    );
    world.ask(0, 1, cancel(40, 1));
    assert!(world.replies(0).is_empty(), "a cancel");
    world.gates[0].gateway.on_turn(2_000);
    assert_eq!(overloaded(&mut world, 1, 50..60), 0, "nothing is answered: a pause");
}

#[test]
fn a_member_that_floods_leaves_some_room_for_another() {
    let mut sessions = crate::sessions::Sessions::default();
    let mut flights = crate::flights::Flights::new(1, 32_768, 10);
    for (session, member) in [(1, 7), (2, 7), (3, 8)] {
        let (member, permit) = (MemberId(member), pares_register::Permit::FREE);
        let asker = crate::permits::Asker { member, number: 0, permit, told_of: member };
        sessions.sign_on(SessionId(session), asker, false, 2).unwrap();
    }
    let mut sequence = 0;
    let mut take = |flights: &mut crate::flights::Flights, most: u64, is_order: bool| {
        (0..most).for_each(|_| {
            sequence += 1;
            flights.take_off(0, (sequence, sequence), is_order);
        });
        sequence
    };
    for turn in 1..10 {
        flights.on_turn(1_000 + 15 * turn);
        let last = take(&mut flights, 1, true);
        flights.on_turn(1_011 + 15 * turn);
        flights.land(0, last);
    }
    assert_eq!(flights.room(), 2_048);
    take(&mut flights, 10_000, false);
    assert_eq!(flights.share_left(), 4 * 1_024, "a flood of cancels takes half");
    let mut admitted = [0; 3];
    for (at, session) in (0..).zip([1, 2, 3].map(SessionId)) {
        while flights.has_room(Some(0), crate::flights::Weight::Order)
            && sessions.check_share(session, flights.share_left()).is_ok()
        {
            sessions.begin(session);
            take(&mut flights, 1, true);
            admitted[at] += 1;
        }
    }
    assert_eq!(
        admitted,
        [820, 0, 91],
        "four fifths of half, and together eight ninths of it: they are for one shard, and a flood of its cancels has half"
    );
}
