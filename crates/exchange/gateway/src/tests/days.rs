//! Business days by the timetable of two gateways.

use pares_register::Register;
use pares_types::{
    BusinessDay, ClientOrderId, Command, DAY_NS, DayStage, GatewayId, InstrumentId, MemberId, Outcome,
    Position, Reason, RecorderId, Reply, Request, RequestId, ShardId, ShardView, Status, Timestamp,
};

use super::exchange::refused;
use super::world::{World, config, exchange};
use crate::days::Days;
use crate::fan_out::{FanOut, Whole};
use crate::{DayTimes, Place};

const HOUR_NS: u64 = 3_600_000_000_000;
const MONDAY: u32 = 20_780;
const TIMES: DayTimes = DayTimes { begin_ns: 8 * HOUR_NS, end_ns: 18 * HOUR_NS, weekends: false };

fn at(day: u32, hour: u64) -> u64 {
    u64::from(day) * DAY_NS + hour * HOUR_NS
}

fn timed() -> World {
    let mut world = World::new();
    (0..2).for_each(|gate| world.start_days(gate, TIMES));
    world
}

/// What a gateway asks at that time.
fn asks(world: &mut World, gate: usize, now: u64) -> Vec<Request> {
    let before = world.gates[gate].sink.log.len();
    world.on_time(gate, now);
    world.gates[gate].sink.log[before..].to_vec()
}

fn begin(day: u32) -> Command {
    Command::BeginDay { day: BusinessDay(day) }
}

fn end(day: u32) -> Command {
    Command::EndDay { day: BusinessDay(day) }
}

/// To each shard, that.
fn is_asked(asked: &[Request], command: Command) {
    assert_eq!(asked.iter().map(|one| one.shard.0).collect::<Vec<_>>(), [0, 1], "{asked:?}");
    assert!(asked.iter().all(|one| one.command == command && one.member == MemberId(0)), "{asked:?}");
}

#[test]
fn a_day_begins_and_ends_by_the_timetable_once_whoever_asks() {
    let mut world = timed();
    assert_eq!(asks(&mut world, 0, at(MONDAY, 7)), []);
    is_asked(&asks(&mut world, 0, at(MONDAY, 8)), begin(MONDAY));
    // The other one has read of it, and of the shards nothing yet.
    world.read_peer(1);
    world.read_peer(1);
    assert_eq!(asks(&mut world, 1, at(MONDAY, 9)), []);
    world.settle();
    assert_eq!(asks(&mut world, 1, at(MONDAY, 17)), []);
    is_asked(&asks(&mut world, 1, at(MONDAY, 18)), end(MONDAY));
    // At the same instant, under the same name: the shards refuse the second.
    is_asked(&asks(&mut world, 0, at(MONDAY, 18)), end(MONDAY));
    world.settle();
    assert_eq!(asks(&mut world, 0, at(MONDAY, 23)), []);
    is_asked(&asks(&mut world, 0, at(MONDAY + 1, 8)), begin(MONDAY + 1));
}

#[test]
fn a_day_far_ahead_is_not_begun_by_hand() {
    let mut world = World::new();
    world.now = at(MONDAY, 9);
    world.sign_on(0, 1, 0);
    world.ask(0, 1, exchange(1, 0, begin(MONDAY + 32)));
    let refused = Reply::Rejected { client_order_id: ClientOrderId(1), reason: Reason::WrongDay };
    assert_eq!(world.replies(0), [(1, refused)]);
    world.ask(0, 1, exchange(2, 0, begin(MONDAY + 31)));
    assert_eq!(world.gates[0].sink.log.len(), 2, "to each shard");
}

/// One shard has a step left of the day's end when the next day is due, as at a midnight that ends one and begins the other.
#[test]
fn no_day_begins_before_every_shard_has_ended_the_one_before() {
    let midnight = DayTimes { begin_ns: 0, end_ns: 0, weekends: true };
    let due = |stages: [(u32, DayStage); 2], now| {
        let mut days = Days::new(2);
        days.start(midnight);
        for (shard, (day, stage)) in stages.into_iter().enumerate() {
            days.restore(shard, BusinessDay(day), stage);
        }
        days.due_now(Timestamp(now))
    };
    let now = at(MONDAY + 1, 0);
    assert_eq!(due([(MONDAY, DayStage::Over), (MONDAY, DayStage::Ending)], now), None);
    assert_eq!(due([(MONDAY, DayStage::Over), (MONDAY, DayStage::On)], now), Some(end(MONDAY)));
    assert_eq!(due([(MONDAY, DayStage::On), (MONDAY, DayStage::Beginning)], now), None);
    assert_eq!(due([(MONDAY, DayStage::Over); 2], now), Some(begin(MONDAY + 1)));
    assert_eq!(due([(MONDAY, DayStage::Over), (MONDAY + 1, DayStage::On)], now), Some(begin(MONDAY + 1)));
}

#[test]
fn a_weekend_is_passed_over_and_so_are_days_that_nobody_began() {
    let mut world = timed();
    assert_eq!(asks(&mut world, 0, at(MONDAY - 1, 12)), []);
    let over = ShardView { day: BusinessDay(MONDAY), stage: DayStage::Over, ..ShardView::default() };
    for shard in [ShardId(0), ShardId(1)] {
        world.gates[0].gateway.recover_shard(shard, &over, Register::new(None), &[]);
    }
    is_asked(&asks(&mut world, 0, at(MONDAY + 3, 12)), begin(MONDAY + 3));
}

/// A day that was ended since the clock ran ahead stays ended, and the next one begins at its hour.
#[test]
fn a_clock_that_is_set_back_a_day_begins_no_day_twice() {
    let mut world = timed();
    is_asked(&asks(&mut world, 0, at(MONDAY, 8)), begin(MONDAY));
    world.settle();
    is_asked(&asks(&mut world, 0, at(MONDAY, 18)), end(MONDAY));
    world.settle();
    for hour in [0, 8, 18, 23] {
        assert_eq!(asks(&mut world, 0, at(MONDAY - 1, hour)), [], "{hour} h of the day before");
        assert_eq!(asks(&mut world, 1, at(MONDAY, hour)), [], "{hour} h of the same day again");
    }
    is_asked(&asks(&mut world, 0, at(MONDAY + 1, 8)), begin(MONDAY + 1));
}

#[test]
fn what_the_log_did_not_take_is_asked_again() {
    let mut world = timed();
    world.gates[0].sink.room = 1;
    assert_eq!(asks(&mut world, 0, at(MONDAY, 8)).len(), 1, "one shard's part");
    world.gates[0].sink.room = 9;
    assert_eq!(asks(&mut world, 0, at(MONDAY, 8) + 500_000_000), [], "not at once");
    let rest = asks(&mut world, 0, at(MONDAY, 9));
    assert_eq!(rest.iter().map(|one| one.shard.0).collect::<Vec<_>>(), [1]);
}

#[test]
fn day_ended_by_hand_is_not_restarted_answer_is_once() {
    let mut world = timed();
    world.sign_on(0, 2, 0);
    asks(&mut world, 0, at(MONDAY, 8));
    world.settle();
    assert_eq!(world.replies(0), [], "of the timetable's request nobody is told");
    world.ask(0, 2, exchange(1, 0, end(MONDAY)));
    world.settle();
    assert_eq!(world.replies(0).len(), 1);
    assert_eq!(asks(&mut world, 0, at(MONDAY, 12)), []);
    // As after a restart.
    world.restart(0, config(0));
    world.start_days(0, TIMES);
    assert_eq!(asks(&mut world, 0, at(MONDAY, 13)), []);
    is_asked(&asks(&mut world, 0, at(MONDAY + 1, 8)), begin(MONDAY + 1));
}

/// What a request to two shards is answered.
fn answered(parts: [(Status, Reason); 2]) -> (Status, Reason) {
    let mut whole = FanOut::new([false; 2].into_iter(), begin(MONDAY));
    for (shard, (status, reason)) in parts.into_iter().enumerate() {
        let request = Request {
            id: RequestId::new(GatewayId(0), 1),
            stamp: Timestamp(1),
            member: MemberId(0),
            client_order_id: ClientOrderId(1),
            instrument: InstrumentId(0),
            shard: ShardId(shard as u16),
            command: begin(MONDAY),
        };
        let outcome = Outcome { status, ..refused(&request, reason) };
        let answer = pares_stream::answer(Position(0), &request, &outcome, 0);
        whole.on_committed(shard, answer, Place { recorder: RecorderId(0), offset: 0 });
    }
    let Some(Whole::Answer(answer, ..)) = whole.complete() else { panic!("both are committed") };
    (answer.status, answer.reason)
}

/// An operator who asks again because one shard refused receives what came of it in that one.
#[test]
fn shard_already_done_does_not_answer_for_others() {
    let (done, begun) = ((Status::Accepted, Reason::None), (Status::Accepted, Reason::Unfinished));
    let (before, late) = ((Status::Refused, Reason::NothingChanged), (Status::Refused, Reason::DayNotOver));
    for (parts, expected) in [
        ([done, late], late),
        ([before, late], late),
        ([before, done], done),
        ([done, begun], begun),
        ([begun, before], begun),
        ([before, before], before),
    ] {
        assert_eq!(answered(parts), expected, "{parts:?}");
        assert_eq!(answered([parts[1], parts[0]]), expected, "{parts:?}, the other way round");
    }
}
