//! Which shards receive the time, and when.

use pares_types::{
    Band, ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, NewOrder, Phase, Price, Quantity,
    Reason, Reply, Request, Rule, ShardId, Side, TimeInForce, Timestamp,
};

use super::world::{World, config, enter, exchange};

const EVERY_NS: u64 = 100;

/// A world whose first gateway tells the time; member 7 is session 1, the exchange session 2.
fn clocked() -> World {
    let mut world = World::new();
    world.start_clock(0, EVERY_NS, &[]);
    world.sign_on(0, 1, 7);
    world.sign_on(0, 2, 0);
    world
}

/// The shards told at `now`.
fn told(world: &mut World, now: u64) -> Vec<u16> {
    let before = world.gates[0].sink.log.len();
    world.on_time(0, now);
    let told = &world.gates[0].sink.log[before..];
    assert!(
        told.iter()
            .all(|request| matches!(request.command, Command::Time { .. }) && request.member == MemberId(0))
    );
    assert!(told.iter().all(|request| request.instrument == InstrumentId(0)));
    told.iter().map(|request| request.shard.0).collect()
}

fn dated(name: u64) -> ClientRequest {
    let until = Timestamp(9_999);
    let time_in_force = TimeInForce::Gtd { until };
    let order = NewOrder { time_in_force, ..NewOrder::limit(Side::Buy, Price(1), Quantity(1)) };
    ClientRequest::Enter { client_order_id: ClientOrderId(name), instrument: InstrumentId(2), order }
}

#[test]
fn the_gateway_draws_and_no_operator() {
    let mut world = clocked();
    world.ask(0, 2, exchange(1, 1, Command::TIME));
    world.ask(0, 2, exchange(2, 1, Command::TIME));
    let drawn = world.gates[0].sink.log.iter().filter_map(|request| match request.command {
        Command::Time { draw } => Some(draw),
        _ => None,
    });
    assert_eq!(drawn.collect::<Vec<u64>>(), [0, 1]);
}

#[test]
fn where_nothing_can_become_due_nobody_is_told() {
    let mut world = clocked();
    world.ask(0, 1, enter(1, 1, Side::Buy, 1, 1));
    world.settle();
    assert_eq!(told(&mut world, 5_000), []);
    assert_eq!(world.gates[0].gateway.time_due(), None);
}

#[test]
fn a_shard_with_a_timetable_is_told_every_period() {
    let mut world = World::new();
    world.start_clock(0, EVERY_NS, &[ShardId(1)]);
    assert_eq!(told(&mut world, 1_000), [1]);
    world.settle();
    assert_eq!(told(&mut world, 1_099), []);
    assert_eq!(world.gates[0].gateway.time_due(), Some(Timestamp(1_100)));
    assert_eq!(told(&mut world, 1_100), [1]);
}

#[test]
fn dated_orders_calls_and_timed_rules_make_shard_timed() {
    let call = Command::SetRule(Rule::Call { ns: 1 });
    let by_exchange = [Command::SetPhase(Phase::OpeningCall), call].map(|asked| exchange(1, 2, asked));
    for request in [dated(1)].into_iter().chain(by_exchange) {
        let mut world = clocked();
        world.ask(0, if request == dated(1) { 1 } else { 2 }, request);
        assert_eq!(told(&mut world, 1_000), [], "not before it is committed");
        world.settle();
        assert_eq!(told(&mut world, 1_001), [1]);
    }
}

#[test]
fn untimed_phase_rules_and_exchange_time_leave_idle_shard_idle() {
    let band = Command::SetRule(Rule::StaticBand(Band::of(5)));
    for (instrument, asked) in [(2, Command::SetPhase(Phase::Halted)), (2, band), (0, Command::TIME)] {
        let mut world = clocked();
        world.ask(0, 2, exchange(1, instrument, asked));
        world.settle();
        assert_eq!(told(&mut world, 5_000), []);
        world.restart(0, config(0));
        world.start_clock(0, EVERY_NS, &[]);
        assert_eq!(told(&mut world, 9_000), []);
    }
}

#[test]
fn what_is_refused_leaves_an_idle_shard_idle() {
    let mut world = clocked();
    world.shards[1].refuses = true;
    world.ask(0, 1, dated(1));
    world.ask(0, 2, exchange(1, 2, Command::SetPhase(Phase::OpeningCall)));
    world.settle();
    assert_eq!(told(&mut world, 5_000), []);
}

/// The market's time does not go back: until the clock is where it was there is nothing to tell.
#[test]
fn clock_set_back_sends_no_time_until_caught_up() {
    let mut world = World::new();
    world.start_clock(0, EVERY_NS, &[ShardId(1)]);
    assert_eq!(told(&mut world, 5_000), [1]);
    world.settle();
    for now in [1_000, 4_999, 5_099] {
        assert_eq!(told(&mut world, now), []);
    }
    assert_eq!(told(&mut world, 5_100), [1]);
}

#[test]
fn one_is_in_flight_at_a_time() {
    let mut world = World::new();
    world.start_clock(0, EVERY_NS, &[ShardId(0)]);
    assert_eq!(told(&mut world, 1_000), [0]);
    assert_eq!(told(&mut world, 5_000), []);
    world.settle();
    assert_eq!(told(&mut world, 5_000), [0]);
}

#[test]
fn what_is_unfinished_goes_on_at_once_until_it_is_done() {
    for asked in [Command::SetPhase(Phase::Halted), Command::TIME] {
        let mut world = clocked();
        world.shards[0].unfinished = 2;
        world.ask(0, 2, exchange(1, 1, asked));
        for expected in [vec![0], vec![0], vec![]] {
            world.settle();
            assert_eq!(told(&mut world, 1_000), expected, "{asked:?}");
        }
        // A phase that a step left unfinished makes its shard a timed one; the time does not.
        assert_eq!(told(&mut world, 9_000).is_empty(), asked == Command::TIME, "{asked:?}");
    }
}

#[test]
fn the_time_takes_no_name_and_is_answered_to_nobody() {
    let mut world = World::new();
    world.sign_on(0, 2, 0);
    world.sign_on(1, 3, 0);
    world.start_clock(0, EVERY_NS, &[ShardId(0), ShardId(1)]);
    assert_eq!(told(&mut world, 1_000), [0, 1]);
    world.settle();
    assert_eq!((world.replies(0), world.replies(1)), (vec![], vec![]));
    assert_eq!(world.gates.each_ref().map(|gate| gate.gateway.names()), [0, 0]);
    assert_eq!(world.gates[0].gateway.in_flight(), 0);
}

#[test]
fn a_clock_s_name_cannot_be_taken_by_a_session_of_the_exchange() {
    let mut world = clocked();
    world.ask(0, 2, exchange(1 << 63 | 1, 0, Command::TIME));
    assert!(matches!(world.replies(0)[..], [(2, Reply::Rejected { reason: Reason::MalformedRequest, .. })]));
}

#[test]
fn the_exchange_can_tell_the_time_itself() {
    let mut world = clocked();
    world.ask(0, 2, exchange(1, 0, Command::TIME));
    world.settle();
    let replies = world.replies(0);
    assert!(matches!(replies[..], [(2, Reply::Answer(answer))] if answer.client_order_id.0 == 1));
}

#[test]
fn a_full_log_is_tried_again() {
    let mut world = World::new();
    world.start_clock(0, EVERY_NS, &[ShardId(0), ShardId(1)]);
    world.gates[0].sink.room = 1;
    assert_eq!(told(&mut world, 1_000), [0]);
    world.gates[0].sink.room = 1;
    assert_eq!(told(&mut world, 1_000), [1]);
}

#[test]
fn a_restarted_gateway_knows_what_is_timed_and_in_flight() {
    let mut world = clocked();
    world.ask(0, 1, dated(1));
    world.settle();
    assert_eq!(told(&mut world, 1_001), [1]);
    world.restart(0, config(0));
    world.start_clock(0, EVERY_NS, &[]);
    assert_eq!(told(&mut world, 5_000), []);
    world.settle();
    assert_eq!(told(&mut world, 5_000), [1]);
    let sequences: Vec<u64> = world.gates[0].sink.log.iter().map(sequence).collect();
    assert_eq!(sequences, [1, 2, 3]);
}

fn sequence(request: &Request) -> u64 {
    request.id.sequence()
}
