//! Rules that the model (`model`) does not reach, or that are worth an example. All others are held against it.

use pares_types::{CancelCause, DAY_NS, Phase, Rule, TimeInForce};

use super::*;
use crate::MarketError;
use crate::market::{Beside, Day};

const MASS_CANCEL: Command = Command::MassCancel { side: None };

fn block(member: u32) -> Command {
    Command::Block { member: MemberId(member) }
}

fn unblock(member: u32) -> Command {
    Command::Unblock { member: MemberId(member) }
}

fn enter(price: i64) -> Command {
    Command::Enter(NewOrder::limit(Side::Buy, Price(price), Quantity(10)))
}

/// Enters so many orders without the rig's checks, which take their time.
fn fill(rig: &mut Rig, instrument: u32, orders: u64, time_in_force: TimeInForce) {
    for _ in 0..orders {
        let order = NewOrder { time_in_force, ..NewOrder::limit(Side::Buy, Price(500), Quantity(1)) };
        let request = rig.request(1, instrument, Command::Enter(order));
        rig.market.apply(&request, &mut rig.events);
    }
}

#[test]
fn a_mass_cancel_has_one_count_of_events_over_all_books() {
    let mut rig = Rig::new(&[1, 2, 3]);
    for id in 1..=3 {
        fill(&mut rig, id, 2_100, TimeInForce::Day);
    }
    let first = rig.ask(1, 0, MASS_CANCEL);
    assert_eq!(why(first), (Status::MassCancelled, Reason::Unfinished));
    assert_eq!((first.executed, first.remaining), (Quantity(4_200), Quantity(2_100)));
    assert!(rig.events.len() <= Instrument::EVENTS_MAX);
    let second = rig.ask(1, 0, MASS_CANCEL);
    assert_eq!((why(second), second.executed, rig.orders()), (MASS_CANCELLED, Quantity(2_100), vec![0; 3]));
}

#[test]
fn time_step_counts_events_and_resumes() {
    let mut rig = Rig::new(&[1, 2, 3]);
    let until = TimeInForce::Gtd { until: Timestamp(1_000_000) };
    for id in 1..=3 {
        fill(&mut rig, id, 2_100, until);
    }
    assert_eq!(why(rig.time(1_000_000)), (Status::Accepted, Reason::Unfinished));
    assert_eq!((rig.announced(), rig.orders()), (vec![(1, 2_100), (2, 2_100)], vec![0, 0, 2_100]));
    assert_eq!(why(rig.time(1_000_000)), ACCEPTED);
    assert_eq!(rig.orders(), [0, 0, 0]);
}

#[test]
fn the_kill_switch_cancels_everywhere_and_keeps_the_member_out() {
    let mut rig = Rig::new(&[1, 2]);
    rig.rests(7, 1, Side::Buy, 500);
    let survivor = rig.rests(8, 1, Side::Buy, 500);
    rig.rests(7, 2, Side::Sell, 600);
    let outcome = rig.ask(0, 0, block(7));
    assert_eq!((why(outcome), outcome.executed), (MASS_CANCELLED, Quantity(2)));
    assert_eq!(rig.announced(), [(1, 1), (2, 1)]);
    let by_the_switch =
        |event: &&Event| matches!(event, Event::Cancelled { cause: CancelCause::Blocked, .. });
    assert_eq!(rig.events.iter().filter(by_the_switch).count(), 2);
    assert!(rig.market.book(InstrumentId(1)).unwrap().order(survivor).is_some());
    assert_eq!(why(rig.ask(7, 1, enter(500))), refused(Reason::Blocked));
    assert_eq!(why(rig.ask(7, 0, MASS_CANCEL)), MASS_CANCELLED);
    assert_eq!(why(rig.ask(0, 0, block(7))), MASS_CANCELLED);
    assert_eq!(why(rig.ask(8, 1, enter(500))).0, Status::Resting);
    assert_eq!(why(rig.ask(0, 0, unblock(7))), ACCEPTED);
    assert_eq!(why(rig.ask(7, 1, enter(500))).0, Status::Resting);
    assert_eq!(why(rig.ask(0, 0, unblock(7))), refused(Reason::NotBlocked));
}

#[test]
fn a_new_instrument_starts_closed_with_the_default_rules() {
    let mut rig = Rig::new(&[1, 9]);
    let add = Command::AddInstrument(Symbol::new("NEW").unwrap());
    assert_eq!(why(rig.ask(4, 5, add)), refused(Reason::NotPermitted));
    for of_none in [0, InstrumentId::LISTED_MAX.0 + 1, u32::MAX] {
        assert_eq!(why(rig.ask(0, of_none, add)), refused(Reason::UnknownInstrument));
    }
    assert_eq!(why(rig.ask(0, 9, add)), refused(Reason::InstrumentExists));
    assert_eq!(why(rig.ask(0, 5, add)), ACCEPTED);
    let book = rig.market.book(InstrumentId(5)).unwrap();
    let listed = Instrument::listed(InstrumentId(5), Symbol::new("NEW").unwrap());
    assert_eq!((book.instrument(), book.trading().phase), (&listed, Phase::Closed));
    assert_eq!(why(rig.ask(1, 5, enter(500))), refused(Reason::NotInThisPhase));
    assert_eq!(why(rig.ask(0, 5, Command::SetPhase(Phase::Continuous))), ACCEPTED);
    rig.rests(1, 5, Side::Buy, 500);
    rig.rests(1, 9, Side::Buy, 500);
    assert_eq!(rig.orders(), [0, 1, 1]);
}

#[test]
fn symbol_is_unique_ignoring_case_until_removed() {
    let mut rig = Rig::new(&[1]);
    let add = |symbol| Command::AddInstrument(Symbol::new(symbol).unwrap());
    assert_eq!(why(rig.ask(0, 5, add("NEW"))), ACCEPTED);
    for symbol in ["NEW", "new"] {
        assert_eq!(why(rig.ask(0, 6, add(symbol))), refused(Reason::SymbolInUse));
    }
    assert_eq!(why(rig.ask(0, 6, add("NEWS"))), ACCEPTED);
    assert_eq!(why(rig.ask(0, 5, Command::RemoveInstrument)), ACCEPTED);
    assert_eq!(why(rig.ask(0, 7, add("NEW"))), ACCEPTED);
}

#[test]
fn a_shard_takes_so_many_instruments_and_no_more() {
    let most = u32::try_from(Instrument::SHARD_MAX).unwrap();
    let instruments: Vec<_> = (1..=most).map(instrument).collect();
    let mut market = Market::<NaiveBook>::new(&instruments);
    let mut rig = Rig::new(&[1]);
    let add = Command::AddInstrument(Symbol::new("NEW").unwrap());
    let request = rig.request(0, most + 1, add);
    assert_eq!(why(market.apply(&request, &mut rig.events)), refused(Reason::TooManyInstruments));
}

#[test]
fn an_instrument_goes_with_its_last_order() {
    let mut rig = Rig::of(&[instrument(1), Instrument { step_max: 2, ..instrument(2) }, instrument(3)]);
    for id in [2, 2, 2, 3] {
        rig.rests(1, id, Side::Buy, 500);
    }
    assert_eq!(why(rig.ask(1, 2, Command::RemoveInstrument)), refused(Reason::NotPermitted));
    assert_eq!(why(rig.ask(0, 2, Command::RemoveInstrument)), refused(Reason::NotCloseable));
    rig.ask(0, 2, Command::SetPhase(Phase::Halted));
    assert_eq!(why(rig.ask(0, 2, Command::RemoveInstrument)), (Status::Accepted, Reason::Unfinished));
    assert_eq!(rig.orders(), [0, 1, 1]);
    assert_eq!(why(rig.ask(0, 2, Command::RemoveInstrument)), ACCEPTED);
    assert!(matches!(rig.events[..], [Event::Cancelled { cause: CancelCause::Removed, .. }]));
    assert_eq!(rig.orders(), [0, 1]);
    assert_eq!(why(rig.ask(0, 2, Command::RemoveInstrument)), refused(Reason::UnknownInstrument));
    rig.rests(1, 3, Side::Buy, 500);
    assert_eq!(rig.orders(), [0, 2]);
}

#[test]
fn a_schedule_counts_from_the_last_time_told_to_all() {
    let day = DAY_NS;
    let mut rig = Rig::new(&[1, 2]);
    let dated = NewOrder {
        time_in_force: TimeInForce::Gtd { until: Timestamp(day) },
        ..NewOrder::limit(Side::Buy, Price(500), Quantity(1))
    };
    rig.ask(1, 1, Command::Enter(dated));
    rig.time(day); // the first book hears of it, the second has nothing to do
    rig.time(5 * day + 500); // neither has
    for id in [1, 2] {
        let rule = Rule::Schedule { at_ns: 400, phase: Some(Phase::OpeningCall) };
        assert_eq!(why(rig.ask(0, id, Command::SetRule(rule))), ACCEPTED);
        let none = Rule::Schedule { at_ns: 7, phase: None };
        assert_eq!(why(rig.ask(0, id, Command::SetRule(none))), refused(Reason::InvalidRule));
    }
    assert_eq!(rig.market.deadlines(), [Timestamp(6 * day + 400); 2]);
    assert_eq!((why(rig.time(6 * day + 399)), rig.events.len()), (ACCEPTED, 0));
    rig.time(6 * day + 400);
    assert_eq!(rig.announced(), [(1, 1), (2, 1)]);
}

fn parts(market: &Market<NaiveBook>) -> (Vec<NaiveBook>, Vec<Beside>, Vec<MemberId>) {
    (market.books().to_vec(), market.beside().collect(), market.blocked().to_vec())
}

#[test]
fn a_market_restored_from_its_parts_is_the_same() {
    let mut rig = Rig::new(&[1, 2]);
    rig.ask(0, 0, block(7));
    rig.rests(1, 2, Side::Buy, 500);
    rig.ask(0, 1, Command::SetPhase(Phase::OpeningCall));
    rig.time(7);
    rig.rests(1, 1, Side::Buy, 500);
    let (books, beside, blocked) = parts(&rig.market);
    let day = rig.market.day().clone();
    let restored = Market::restore(books, beside, blocked, rig.market.time(), day).unwrap();
    restored.audit();
    assert_eq!(restored.state_hash(), rig.market.state_hash());
    assert_eq!(restored.deadlines(), [Timestamp(0), Timestamp::NEVER]);
}

#[test]
fn parts_that_no_market_had_are_refused() {
    let rig = Rig::new(&[1, 2]);
    let (books, beside, _) = parts(&rig.market);
    let restore = |books: &[NaiveBook], beside: &[Beside], blocked: &[u32]| {
        let blocked = blocked.iter().map(|&member| MemberId(member)).collect();
        Market::restore(books.to_vec(), beside.to_vec(), blocked, Timestamp(0), Day::default()).err()
    };
    assert_eq!(restore(&books, &beside, &[3, 4]), None);
    assert_eq!(restore(&books, &beside, &[4, 4]), Some(MarketError::Blocked));
    assert_eq!(restore(&books, &beside[1..], &[]), Some(MarketError::Instruments));
    let twice = [books[1].clone(), books[1].clone()];
    assert_eq!(restore(&twice, &beside, &[]), Some(MarketError::Instruments));
    let late = Beside { deadline: Timestamp(5), ..beside[1] };
    let other = restore(&books, &[beside[0], late], &[]);
    assert_eq!(other, Some(MarketError::Deadline(InstrumentId(2))));
}

#[test]
fn who_is_blocked_is_part_of_the_state() {
    let mut rig = Rig::new(&[1]);
    let before = rig.market.state_hash();
    rig.ask(0, 0, block(7));
    assert_ne!(rig.market.state_hash(), before);
    rig.ask(0, 0, unblock(7));
    assert_eq!(rig.market.state_hash(), before);
}
