//! A checkpoint written in pieces while requests are executed is the one that would have been written at once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pares_book::{Book, FastBook, Instrument, KEPT_ORDERS_MAX, NaiveBook};
use pares_sequencer::Sequencer;
use pares_types::{
    Amendment, Command, Epoch, Event, GatewayId, InstrumentId, MemberId, NewOrder, OrderId, Outcome, Phase,
    Position, Price, Quantity, Reason, Request, RequestId, Rule, ShardId, Side, Symbol,
};
use pares_venue::{Piece, Recorded, ResultAt, Shard, VenueSink};
use proptest::prelude::*;

use crate::rig::{SHARD, Venue, enter, instruments, request, window};

/// A member (0 is the exchange), an instrument (0 is all of them), what is asked, and the bytes of the checkpoint wanted
/// afterwards.
type Step = (u32, u32, Command, Option<usize>);

fn command() -> impl Strategy<Value = (bool, Command)> {
    let order = (any::<bool>(), 95_i64..106, 1_u64..9, 0_u64..4).prop_map(|(buys, price, quantity, kind)| {
        let side = if buys { Side::Buy } else { Side::Sell };
        let plain = NewOrder::limit(side, Price(price), Quantity(quantity));
        Command::Enter(match kind {
            0 => NewOrder { trigger: Some(Price(price)), ..plain },
            1 => NewOrder { quantity: Quantity(8), display: Quantity(2), ..plain },
            _ => plain,
        })
    });
    let target = (1_u64..40).prop_map(|sequence| OrderId(RequestId::new(GatewayId(1), sequence)));
    prop_oneof![
        12 => order.prop_map(|command| (false, command)),
        2 => target.clone().prop_map(|target| (false, Command::Cancel { target })),
        2 => target.prop_map(|of| (false, Command::Amend(Amendment::new(of, Price(101), Quantity(3))))),
        1 => Just((false, Command::MassCancel { side: None })),
        2 => Just((true, Command::TIME)),
        2 => prop::sample::select(Phase::ALL.to_vec()).prop_map(|phase| (true, Command::SetPhase(phase))),
        1 => Just((true, Command::SetRule(Rule::Schedule { at_ns: 9, phase: Some(Phase::OpeningCall) }))),
        2 => Just((true, Command::AddInstrument(Symbol::new("NEW").unwrap()))),
        2 => Just((true, Command::RemoveInstrument)),
        1 => (1_u32..4).prop_map(|member| (true, Command::Block { member: MemberId(member) })),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (1_u32..4, 0_u32..6, command(), prop::option::of(0_usize..2_000));
    let step = step.prop_map(|(member, instrument, (exchange, command), piece)| {
        (if exchange { 0 } else { member }, instrument, command, piece)
    });
    prop::collection::vec(step, 0..40)
}

fn execute<B: Book>(venue: &mut Venue<B>, sequence: u64, (member, instrument, command, _): Step) {
    let instrument = InstrumentId(instrument);
    let asked = Request { instrument, member: MemberId(member), ..request(1, sequence, command) };
    venue.receive([&asked]);
    venue.step();
    venue.window.raise_recorded(venue.shard.position());
}

fn pieces_are_the_whole<B: Book>(before: &[Step], during: &[Step]) -> Result<(), TestCaseError> {
    let mut venue = Venue::<B>::new(&window(64));
    let mut sequence = 1..;
    let mut execute = |venue: &mut Venue<B>, step| execute(venue, sequence.next().unwrap(), step);
    before.iter().for_each(|step| execute(&mut venue, *step));
    let (expected, hash) = (venue.checkpoint(), venue.shard.state_hash());
    let mut bytes = vec![7];
    let position = venue.shard.begin_checkpoint(&mut bytes);
    prop_assert_eq!(position, venue.shard.position());
    for step in during {
        execute(&mut venue, *step);
        if let Some(wanted) = step.3 {
            venue.shard.checkpoint_piece(&mut bytes, wanted, &mut || ());
        }
    }
    while venue.shard.checkpoint_piece(&mut bytes, 100, &mut || ()) == Piece::Part {}
    prop_assert!(bytes == expected, "{} bytes and {}", bytes.len(), expected.len());
    let restored = Shard::<B>::restore(SHARD, &bytes).unwrap();
    prop_assert_eq!((restored.position(), restored.state_hash()), (position, hash));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn pieces_between_requests_make_the_checkpoint_of_the_moment(before in steps(), during in steps()) {
        pieces_are_the_whole::<NaiveBook>(&before, &during)?;
        pieces_are_the_whole::<FastBook>(&before, &during)?;
    }
}

#[test]
fn a_piece_ends_with_the_book_that_reaches_what_is_wanted() {
    let mut venue = Venue::<FastBook>::new(&window(64));
    let mut bytes = Vec::new();
    venue.shard.begin_checkpoint(&mut bytes);
    let head = bytes.len();
    assert_eq!(venue.shard.checkpoint_piece(&mut bytes, 1, &mut || ()), Piece::Part);
    let first = bytes.len() - head;
    assert_eq!(venue.shard.checkpoint_piece(&mut bytes, 1, &mut || ()), Piece::Part);
    assert!(first > 0 && bytes.len() == head + 2 * first, "two empty books, one by one");
    assert_eq!(venue.shard.checkpoint_piece(&mut bytes, 1, &mut || ()), Piece::Last, "only the tail is left");
    assert_eq!(venue.shard.checkpoint_piece(&mut bytes, 1, &mut || ()), Piece::NoCheckpoint);
    assert_eq!(bytes, venue.checkpoint());
}

#[test]
fn an_abandoned_checkpoint_leaves_nothing_behind() {
    let mut venue = Venue::<FastBook>::new(&window(64));
    let mut bytes = Vec::new();
    venue.shard.begin_checkpoint(&mut bytes);
    venue.shard.abandon_checkpoint();
    venue.receive([&enter(1, 1, Side::Buy, 100, 10)]);
    venue.step();
    let begun = bytes.len();
    assert_eq!(venue.shard.checkpoint_piece(&mut bytes, 1, &mut || ()), Piece::NoCheckpoint);
    assert_eq!(bytes.len(), begun, "nothing is written");
    assert!(Shard::<FastBook>::restore(SHARD, &venue.checkpoint()).is_ok());
}

/// The matching engine fails at the first request for all instruments.
struct Fails;

impl VenueSink for Fails {
    fn has_room(&mut self) -> bool {
        true
    }

    fn executing(&mut self, _: ShardId, _: Position, request: &Request) {
        assert!(request.instrument.0 > 0, "the matching engine fails");
    }

    fn result(&mut self, _: ResultAt, _: &Request, _: &Outcome, _: &[Event]) {}
}

/// The watcher of the matching engine must not take a large book that is kept for a loop. That it is not kept in the engine's time shows where
/// the keeping ends the checkpoint.
#[test]
fn books_are_kept_before_the_matching_engine_begins() {
    let large = |one| Instrument { orders_max: KEPT_ORDERS_MAX as u32, ..one };
    let mut shard = Shard::<FastBook>::new(SHARD, &instruments().into_iter().map(large).collect::<Vec<_>>());
    let execute = |shard: &mut Shard<FastBook>, request: &Request| {
        let record = Recorded { position: shard.position(), request, reason: Reason::None };
        shard.on_committed(record, Epoch(1), &mut Fails).unwrap();
    };
    for sequence in 1..=KEPT_ORDERS_MAX as u64 + 1 {
        let instrument = InstrumentId(1 + sequence as u32 % 2);
        execute(&mut shard, &Request { instrument, ..enter(1, sequence, Side::Buy, 100, 1) });
    }
    let mut bytes = Vec::new();
    shard.begin_checkpoint(&mut bytes);
    let everywhere = request(1, KEPT_ORDERS_MAX as u64 + 2, Command::MassCancel { side: None });
    let everywhere = Request { instrument: InstrumentId(0), ..everywhere };
    catch_unwind(AssertUnwindSafe(|| execute(&mut shard, &everywhere))).unwrap_err();
    assert_eq!(shard.checkpoint_piece(&mut bytes, 1, &mut || ()), Piece::NoCheckpoint);
}
