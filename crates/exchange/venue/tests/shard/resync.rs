//! Falling behind, joining, and what is not said twice (paper 1 sections 3 and 4).

use pares_book::{Book, FastBook, NaiveBook};
use pares_sequencer::{LocalWindow, Sequencer};
use pares_types::{
    Command, Epoch, HASH_EVERY, InstrumentId, Outcome, Phase, Position, Reason, Request, Side, Status,
};
use pares_venue::{Gap, ResultAt, Stall};

use crate::rig::{Result, Venue, cancel, enter, named, request, window};

/// Orders that rest, trade and are cancelled.
fn flow(count: u64) -> Vec<Request> {
    let one = |n: u64| match n % 4 {
        0 => enter(1, n, Side::Buy, 100 - (n % 7) as i64, 3 + n % 5),
        1 => enter(1, n, Side::Sell, 98 + (n % 7) as i64, 2 + n % 5),
        2 => enter(1, n, Side::Sell, 101, 1),
        _ => cancel(1, n, enter(1, n.saturating_sub(3).max(1), Side::Buy, 1, 1).id),
    };
    (1..=count).map(one).collect()
}

/// Executes everything; the record follows at once.
fn run<B: Book>(venue: &mut Venue<B>, requests: &[Request]) {
    for request in requests {
        venue.receive([request]);
        venue.step();
        venue.window.raise_recorded(venue.shard.position());
    }
}

fn observe<B: Book>(venue: &mut Venue<B>, records: &[Result]) {
    for record in records {
        venue.follow(record).unwrap();
    }
}

#[test]
fn a_joining_venue_equals_one_that_never_died() {
    let window = window(64);
    let requests = flow(200);
    let mut live = Venue::<FastBook>::new(&window);
    run(&mut live, &requests[..120]);
    let checkpoint = live.checkpoint();
    run(&mut live, &requests[120..150]);

    let mut joined = Venue::<NaiveBook>::restore(&window, &checkpoint);
    joined.receive(&requests[100..170]); // listening since before it asked for the records
    observe(&mut joined, &live.out.all[110..130]); // records it has, and records it has not
    live.receive(&requests[150..]);
    joined.step(); // proposes; most of it is decided
    joined.receive(&requests[170..]);
    live.step();
    while joined.step().executed > 0 {}
    live.step();
    assert_eq!(joined.shard.position(), Position(200));
    assert_eq!(joined.shard.state_hash(), live.shard.state_hash());
}

#[test]
fn record_past_next_position_is_gap_without_change() {
    let window = window(64);
    let mut venue = Venue::<FastBook>::new(&window);
    let before = venue.shard.state_hash();
    let mut other = Venue::<FastBook>::new(&window);
    run(&mut other, &flow(2));
    let gap = venue.follow(&other.out.all[1]);
    assert_eq!(gap, Err(Gap { next: Position(0), met: Position(1) }));
    assert_eq!(venue.shard.state_hash(), before);
}

#[test]
fn a_record_seen_before_is_skipped() {
    let window = window(64);
    let mut venue = Venue::<FastBook>::new(&window);
    run(&mut venue, &flow(3));
    let before = venue.shard.state_hash();
    let third = venue.out.all[2].clone();
    assert_eq!(venue.follow(&third), Ok(false));
    assert_eq!(venue.shard.state_hash(), before);
}

/// Member 2 has used all series that a shard knows.
fn full(window: &LocalWindow) -> Venue<FastBook> {
    let mut venue = Venue::new(window);
    let missing = request(2, 1, Command::TIME).id;
    let used: Vec<_> = (0..=u64::from(u16::MAX))
        .map(|series| named(2, series << 48 | 1, cancel(2, series + 1, missing)))
        .collect();
    run(&mut venue, &used);
    venue
}

/// Members make room for a series now. A build before refused it, and its log leads to the same state as then.
#[test]
fn series_that_an_earlier_build_refused_stays_refused() {
    let window = window(64);
    let mut joined = full(&window);
    let position = joined.shard.position();
    let at = ResultAt { position, epoch: Epoch(1), ..joined.out.all[0].at };
    let (entered, outcome) =
        (flow(1)[0], Outcome { reason: Reason::TooManySeries, ..joined.out.all[0].outcome });
    let record = Result { at, request: entered, outcome, events: Vec::new() };
    assert_eq!(joined.follow(&record), Ok(true));
    assert_eq!(joined.shard.position(), Position(position.0 + 1));
    assert_eq!(joined.shard.book(InstrumentId(1)).unwrap().orders_len(), 0);
    joined.window = LocalWindow::new(64, Epoch(1), joined.shard.position());
    run(&mut joined, &[Request { id: request(1, 2, Command::TIME).id, ..entered }]);
    assert_eq!(joined.shard.book(InstrumentId(1)).unwrap().orders_len(), 1, "its name is free");
}

/// Only a wrong venue refuses a series while there is room.
#[test]
fn series_refused_while_there_is_room_is_executed() {
    let window = window(64);
    let mut wrong = Venue::<FastBook>::new(&window);
    run(&mut wrong, &flow(1));
    let mut record = wrong.out.all.remove(0);
    record.outcome.reason = Reason::TooManySeries;
    let mut joined = Venue::<FastBook>::new(&window);
    assert_eq!(joined.follow(&record), Ok(true));
    assert_eq!(joined.shard.book(InstrumentId(1)).unwrap().orders_len(), 1);
}

/// The highest bit of a floor is no part of its number.
#[test]
fn checkpoint_says_in_its_version_that_series_were_given_back() {
    let window = window(64);
    let mut venue = full(&window);
    assert_eq!(venue.checkpoint()[..8], *b"PARESC11");
    run(&mut venue, &flow(1));
    let checkpoint = venue.checkpoint();
    assert_eq!(checkpoint[..8], *b"PARESC12");
    let restored = Venue::<FastBook>::restore(&window, &checkpoint);
    assert_eq!(restored.shard.state_hash(), venue.shard.state_hash());
}

#[test]
fn what_is_recorded_is_not_handed_out_again_except_hashes() {
    let count = HASH_EVERY + 2;
    let window = window(2_048);
    let (mut first, mut second) = (Venue::<FastBook>::new(&window), Venue::<NaiveBook>::new(&window));
    let requests = flow(count);
    run(&mut first, &requests);
    second.receive(&requests);
    while second.step().executed > 0 {}
    assert_eq!(second.shard.position(), Position(count));
    let at: Vec<u64> = second.out.all.iter().map(|result| result.at.position.0).collect();
    assert_eq!(at, [0, HASH_EVERY]);
    assert_eq!(second.out.all[1], first.out.all[HASH_EVERY as usize]);
    assert!(second.out.all[1].at.state_hash.is_some());
}

#[test]
fn without_room_for_results_nothing_is_proposed() {
    let window = window(8);
    let mut venue = Venue::<FastBook>::new(&window);
    venue.out.full = true;
    venue.receive(&flow(1));
    assert_eq!(venue.step().stall, Some(Stall::NoRoom));
    assert_eq!(window.undecided(), Position(0));
}

#[test]
fn a_venue_of_an_earlier_epoch_is_told_to_end() {
    let window = window(8);
    let mut leftover = Venue::<FastBook>::new(&window);
    let _next = window.begin_epoch(pares_types::Epoch(2), Position(0));
    leftover.receive(&flow(1));
    assert_eq!(leftover.step().stall, Some(Stall::EpochOver));
    assert!(leftover.out.all.is_empty());
}

#[test]
fn the_second_use_of_a_name_is_refused_and_does_nothing() {
    let window = window(8);
    let mut venue = Venue::<FastBook>::new(&window);
    let first = named(7, 1, enter(1, 1, Side::Buy, 100, 10));
    let again = named(7, 1, enter(2, 1, Side::Buy, 100, 10)); // the same request through another gateway
    let other = named(8, 1, enter(2, 2, Side::Buy, 100, 10)); // the same name of another member
    venue.receive(&[first, again, other]);
    venue.step();
    let outcomes: Vec<_> = venue.out.all.iter().map(|r| (r.outcome.status, r.outcome.reason)).collect();
    let resting = (Status::Resting, Reason::None);
    assert_eq!(outcomes, [resting, (Status::Refused, Reason::DuplicateRequest), resting]);
    assert_eq!(pares_book::Book::orders_len(&venue.shard.books()[0]), 2);
}

#[test]
fn the_time_is_told_under_any_name_and_leaves_none_behind() {
    let window = window(8);
    let mut venue = Venue::<FastBook>::new(&window);
    let everywhere = |request| Request { instrument: InstrumentId(0), ..request };
    let time = |sequence| named(0, 1, everywhere(request(1, sequence, Command::TIME)));
    let phase = named(0, 1, request(1, 3, Command::SetPhase(Phase::Halted)));
    run(&mut venue, &[time(1), time(2), phase, time(4)]);
    assert!(venue.out.all.iter().all(|result| result.outcome.status == Status::Accepted));
}

#[test]
fn a_joining_venue_knows_the_names_used_before_it() {
    let window = window(8);
    let mut live = Venue::<FastBook>::new(&window);
    run(&mut live, &[named(7, 1, enter(1, 1, Side::Buy, 100, 10))]);
    let mut joined = Venue::<FastBook>::restore(&window, &live.checkpoint());
    run(&mut joined, &[named(7, 1, enter(2, 1, Side::Buy, 100, 10))]);
    assert_eq!(joined.out.all[0].outcome.reason, Reason::DuplicateRequest);
}
