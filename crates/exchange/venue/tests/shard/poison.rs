//! A request that no venue survives: void by agreement, its instrument in quarantine, everything else as if it had not come.

use pares_book::{FastBook, NaiveBook};
use pares_types::{Command, InstrumentId, MemberId, Phase, Position, Reason, Request, Side, Status};
use pares_venue::Stall;

use crate::rig::{Venue, enter, named, window};

/// Four orders in two instruments; the third is the poison.
fn flow() -> Vec<Request> {
    let mut orders: Vec<_> = (1..=4).map(|sequence| enter(1, sequence, Side::Buy, 90, 1)).collect();
    orders[3].instrument = InstrumentId(1);
    orders[2].instrument = InstrumentId(2);
    orders
}

const POISON: Position = Position(2);

/// A venue that failed at the poison and was restored from the beginning.
fn failed<B: pares_book::Book>(on: &pares_sequencer::LocalWindow) -> Venue<B> {
    let mut venue = Venue::new(on);
    venue.shard.suspect(POISON);
    venue.receive(&flow());
    venue
}

#[test]
fn what_all_venues_fail_at_is_void_and_the_rest_goes_on() {
    let window = window(64);
    let (mut a, mut b) = (failed::<FastBook>(&window), failed::<NaiveBook>(&window));
    assert_eq!((a.step().stall, b.step().stall), (None, None));
    for venue in [&a.out.all, &b.out.all] {
        let outcomes: Vec<_> =
            venue.iter().map(|result| (result.outcome.status, result.outcome.reason)).collect();
        let rests = (Status::Resting, Reason::None);
        assert_eq!(outcomes, [rests, rests, (Status::Refused, Reason::Void), rests]);
    }
    assert_eq!(a.shard.quarantined(), [InstrumentId(2)]);
    assert_eq!(a.shard.state_hash(), b.shard.state_hash());
}

#[test]
fn repeat_of_void_request_is_duplicate() {
    let window = window(64);
    let mut venue = failed::<FastBook>(&window);
    venue.step();
    venue.shard.suspect(Position(4));
    let poison = flow()[2];
    let again = Request {
        instrument: poison.instrument,
        ..named(poison.member.0, poison.client_order_id.0, enter(2, 1, Side::Buy, 90, 1))
    };
    venue.receive(&[again]);
    assert_eq!(venue.step().stall, None);
    let reasons: Vec<_> = venue.out.all.iter().skip(2).map(|result| result.outcome.reason).collect();
    assert_eq!(reasons, [Reason::Void, Reason::None, Reason::DuplicateRequest]);
    let mut joining = Venue::<NaiveBook>::new(&window);
    venue.out.all.iter().for_each(|result| _ = joining.follow(result).unwrap());
    assert_eq!(joining.shard.state_hash(), venue.shard.state_hash());
}

#[test]
fn sleeping_venue_learns_void_from_window_or_record() {
    let window = window(64);
    let mut a = failed::<FastBook>(&window);
    a.step();
    let mut late = Venue::<FastBook>::new(&window);
    late.receive(&flow());
    assert_eq!(late.step().executed, 4);
    let mut joining = Venue::<NaiveBook>::new(&window);
    for result in &a.out.all {
        joining.follow(result).unwrap();
    }
    assert_eq!(
        (late.shard.state_hash(), joining.shard.state_hash()),
        (a.shard.state_hash(), a.shard.state_hash())
    );
}

#[test]
fn executed_elsewhere_stands_failed_venue_needs_state() {
    let window = window(64);
    let mut healthy = Venue::<FastBook>::new(&window);
    healthy.receive(&flow());
    assert_eq!(healthy.step().executed, 4);
    let mut sick = failed::<FastBook>(&window);
    let progress = sick.step();
    assert_eq!((progress.executed, progress.stall), (2, Some(Stall::Stuck(POISON))));
    assert_eq!(sick.step().stall, Some(Stall::Stuck(POISON)));
    let mut restored = Venue::<FastBook>::restore(&window, &healthy.checkpoint());
    restored.shard.suspect(POISON);
    assert_eq!((restored.step().stall, restored.shard.position()), (None, Position(4)));
}

/// A venue that executes the poison while another has it declared void.
struct Overtaken<'a>(&'a mut Venue<FastBook>);

impl pares_venue::VenueSink for Overtaken<'_> {
    fn has_room(&mut self) -> bool {
        true
    }

    fn executing(&mut self, _: pares_types::ShardId, position: Position, _: &Request) {
        if position == POISON {
            self.0.step();
        }
    }

    fn result(
        &mut self,
        _: pares_venue::ResultAt,
        _: &Request,
        _: &pares_types::Outcome,
        _: &[pares_types::Event],
    ) {
    }
}

#[test]
fn who_executes_what_becomes_void_meanwhile_is_overruled() {
    let window = window(64);
    let (mut slow, mut failing) = (Venue::<FastBook>::new(&window), failed::<FastBook>(&window));
    slow.receive(&flow());
    let progress = slow.shard.step(&mut slow.window, &mut Overtaken(&mut failing));
    assert_eq!(progress.stall, Some(Stall::Overruled(POISON)));
    assert_eq!(failing.out.all[2].outcome.reason, Reason::Void);
}

fn ask(venue: &mut Venue<FastBook>, request: Request) -> Option<Reason> {
    venue.receive([&request]);
    venue.step();
    venue.out.all.last().map(|result| result.outcome.reason)
}

#[test]
fn quarantined_instrument_waits_for_exchange() {
    let window = window(64);
    let mut venue = failed::<FastBook>(&window);
    venue.step();
    let poisoned = |sequence, command, member| {
        let request = enter(1, sequence, Side::Buy, 90, 1);
        Request { instrument: InstrumentId(2), command, member, ..request }
    };
    let order = enter(1, 9, Side::Buy, 90, 1).command;
    let phase = Command::SetPhase(Phase::Continuous);
    assert_eq!(ask(&mut venue, poisoned(5, order, MemberId(1))), Some(Reason::Quarantined));
    assert_eq!(ask(&mut venue, poisoned(6, phase, MemberId(1))), Some(Reason::Quarantined));
    let restored = Venue::<NaiveBook>::restore(&window, &venue.checkpoint());
    assert_eq!(restored.shard.quarantined(), [InstrumentId(2)]);
    assert_ne!(ask(&mut venue, poisoned(7, phase, MemberId(0))), Some(Reason::Quarantined));
    assert_eq!(ask(&mut venue, poisoned(8, order, MemberId(1))), Some(Reason::None));
    assert!(venue.shard.quarantined().is_empty());
    let release = |sequence| poisoned(sequence, Command::TIME, MemberId(0));
    assert_eq!(ask(&mut venue, release(9)), Some(Reason::NotQuarantined));
    assert_eq!(ask(&mut venue, poisoned(10, order, MemberId(1))), Some(Reason::None));
}

#[test]
fn crashing_time_stops_shard_clock_until_exchange_acts() {
    let window = window(64);
    let mut venue = Venue::<FastBook>::new(&window);
    venue.shard.suspect(Position(0));
    let everywhere = |sequence, command| {
        let request = enter(1, sequence, Side::Buy, 90, 1);
        Request { instrument: InstrumentId(0), command, member: MemberId(0), ..request }
    };
    let unblock = Command::Unblock { member: MemberId(9) };
    assert_eq!(ask(&mut venue, everywhere(1, Command::TIME)), Some(Reason::Void));
    assert_eq!(ask(&mut venue, everywhere(2, Command::TIME)), Some(Reason::Quarantined));
    assert_eq!(ask(&mut venue, enter(1, 3, Side::Buy, 90, 1)), Some(Reason::Quarantined));
    assert_eq!(ask(&mut venue, everywhere(4, unblock)), Some(Reason::NotBlocked), "it lifts nothing");
    assert_eq!(venue.shard.quarantined(), [InstrumentId(0)]);
    let release = Request { instrument: InstrumentId(1), ..everywhere(5, Command::TIME) };
    assert_eq!(ask(&mut venue, release), Some(Reason::None));
    assert_eq!(ask(&mut venue, everywhere(6, Command::TIME)), Some(Reason::None));
}
