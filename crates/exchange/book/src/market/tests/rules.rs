//! One test a rule.

use pares_types::{Amendment, CancelCause, DAY_NS, Phase, Rule, TimeInForce};

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

#[test]
fn a_request_finds_its_book_and_no_other() {
    let mut rig = Rig::new(&[7, 3, 2_000_000_000]);
    rig.rests(1, 2_000_000_000, Side::Buy, 500);
    rig.rests(1, 3, Side::Buy, 500);
    rig.rests(1, 3, Side::Sell, 600);
    assert_eq!(rig.orders(), [2, 0, 1]);
    assert!(rig.market.book(InstrumentId(4)).is_none());
    for unknown in [0, 1, 4, 8, 1_999_999_999] {
        assert_eq!(why(rig.ask(1, unknown, enter(500))), refused(Reason::UnknownInstrument));
    }
}

#[test]
fn a_mass_cancel_of_everything_says_whose_orders_went() {
    let mut rig = Rig::new(&[1, 2, 3]);
    for id in [1, 3, 3] {
        rig.rests(1, id, Side::Buy, 500);
    }
    rig.rests(2, 2, Side::Buy, 500);
    rig.rests(1, 3, Side::Sell, 600);
    let bids = rig.ask(1, 0, Command::MassCancel { side: Some(Side::Buy) });
    assert_eq!((why(bids), bids.executed, bids.remaining), (MASS_CANCELLED, Quantity(3), Quantity(0)));
    assert_eq!(rig.announced(), [(1, 1), (3, 2)]);
    assert_eq!(rig.orders(), [0, 1, 1]);
    let none = rig.ask(4, 0, MASS_CANCEL);
    assert_eq!((why(none), none.executed, rig.events.len()), (MASS_CANCELLED, Quantity(0), 0));
}

#[test]
fn a_mass_cancel_of_one_instrument_announces_nothing() {
    let mut rig = Rig::new(&[1, 2]);
    rig.rests(1, 1, Side::Buy, 500);
    rig.rests(1, 2, Side::Buy, 500);
    rig.ask(1, 2, MASS_CANCEL);
    assert!(matches!(rig.events[..], [Event::Cancelled { cause: CancelCause::MassCancel, .. }]));
    assert_eq!(rig.orders(), [1, 0]);
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
fn a_book_that_stops_by_itself_leaves_the_rest_unfinished_not_undone() {
    let mut rig = Rig::of(&[Instrument { step_max: 1, ..instrument(1) }, instrument(2)]);
    for id in [1, 1, 2] {
        rig.rests(1, id, Side::Buy, 500);
    }
    let outcome = rig.ask(1, 0, MASS_CANCEL);
    assert_eq!(why(outcome), (Status::MassCancelled, Reason::Unfinished));
    assert_eq!((outcome.executed, outcome.remaining, rig.orders()), (Quantity(2), Quantity(1), vec![1, 0]));
}

#[test]
fn the_time_wakes_only_books_that_have_something_to_do() {
    let mut rig = Rig::new(&[1, 2]);
    let until = TimeInForce::Gtd { until: Timestamp(1_000) };
    let dated = NewOrder { time_in_force: until, ..NewOrder::limit(Side::Buy, Price(500), Quantity(1)) };
    rig.rests(1, 1, Side::Buy, 500);
    rig.ask(1, 2, Command::Enter(dated));
    assert_eq!(rig.market.deadlines(), [Timestamp::NEVER, Timestamp(1_000)]);
    assert_eq!((why(rig.time(999)), rig.events.len()), (ACCEPTED, 0));
    assert_eq!(why(rig.time(1_000)), ACCEPTED);
    assert_eq!(rig.announced(), [(2, 1)]);
    let times: Vec<_> = rig.market.books().iter().map(|book| book.trading().time).collect();
    assert_eq!(times, [Timestamp(0), Timestamp(1_000)]);
}

#[test]
fn the_time_has_one_count_of_events_and_goes_on_where_it_stopped() {
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
fn a_book_that_needs_more_steps_keeps_the_time_unfinished() {
    let mut rig = Rig::of(&[Instrument { step_max: 1, ..instrument(1) }]);
    fill(&mut rig, 1, 2, TimeInForce::Gtd { until: Timestamp(9) });
    assert_eq!(why(rig.time(9)), (Status::Accepted, Reason::Unfinished));
    assert_eq!((why(rig.time(9)), rig.orders()), (ACCEPTED, vec![0]));
}

#[test]
fn in_a_call_the_time_tells_what_has_changed_and_only_that() {
    let mut rig = Rig::new(&[1]);
    rig.ask(0, 1, Command::SetPhase(Phase::OpeningCall));
    rig.rests(1, 1, Side::Buy, 500);
    rig.rests(2, 1, Side::Sell, 500);
    rig.time(100);
    assert!(matches!(rig.events[..], [Event::Instrument(_), Event::Auction { firm: false, .. }]));
    rig.time(101);
    assert_eq!((rig.events.len(), rig.market.books()[0].trading().time), (0, Timestamp(100)));
    rig.rests(1, 1, Side::Buy, 500);
    rig.time(102);
    assert_eq!((rig.events.len(), rig.market.books()[0].trading().time), (0, Timestamp(102)));
}

#[test]
fn only_the_exchange_tells_the_time_and_only_of_what_there_is() {
    let mut rig = Rig::new(&[1]);
    assert_eq!(why(rig.ask(5, 0, Command::TIME)), refused(Reason::NotPermitted));
    assert_eq!(why(rig.ask(5, 1, Command::TIME)), refused(Reason::NotPermitted));
    assert_eq!(why(rig.ask(0, 2, Command::TIME)), refused(Reason::UnknownInstrument));
    assert_eq!(why(rig.ask(0, 1, Command::TIME)), ACCEPTED);
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
fn blocked_comes_before_all_other_reasons() {
    let mut rig = Rig::of(&[Instrument { step_max: 1, ..instrument(1) }]);
    let mut orders: Vec<_> = (0..2).map(|_| rig.rests(7, 1, Side::Buy, 500)).collect();
    assert_eq!(why(rig.ask(0, 0, block(7))), (Status::MassCancelled, Reason::Unfinished));
    assert_eq!(why(rig.ask(7, 9, enter(500))), refused(Reason::Blocked));
    let amend = |target| Command::Amend(Amendment::new(target, Price(0), Quantity(0)));
    let (left, gone) = (orders.pop().unwrap(), orders.pop().unwrap());
    let outcome = rig.ask(7, 1, amend(left));
    assert_eq!(
        (why(outcome), outcome.order, outcome.remaining),
        (refused(Reason::Blocked), left, Quantity(10))
    );
    let outcome = rig.ask(7, 1, amend(gone));
    assert_eq!(
        (why(outcome), outcome.order, outcome.remaining),
        (refused(Reason::Blocked), gone, Quantity(0))
    );
    assert_eq!(why(rig.ask(7, 1, Command::Cancel { target: left })).0, Status::Cancelled);
}

#[test]
fn a_member_blocks_itself_and_nobody_else() {
    let mut rig = Rig::new(&[1]);
    assert_eq!(why(rig.ask(7, 0, block(8))), refused(Reason::NotPermitted));
    assert_eq!(why(rig.ask(7, 0, block(7))), MASS_CANCELLED);
    assert_eq!(why(rig.ask(7, 0, unblock(7))), refused(Reason::NotPermitted));
    assert_eq!(rig.market.blocked(), [MemberId(7)]);
}

#[test]
fn the_kill_switch_is_not_of_one_instrument() {
    let mut rig = Rig::new(&[1]);
    for command in [block(7), unblock(7)] {
        assert_eq!(why(rig.ask(0, 1, command)), refused(Reason::UnknownInstrument));
        assert_eq!(why(rig.ask(0, 2, command)), refused(Reason::UnknownInstrument));
    }
}

#[test]
fn a_new_instrument_starts_closed_with_the_default_rules() {
    let mut rig = Rig::new(&[1, 9]);
    let add = Command::AddInstrument(Symbol::new("NEW").unwrap());
    assert_eq!(why(rig.ask(4, 5, add)), refused(Reason::NotPermitted));
    assert_eq!(why(rig.ask(0, 0, add)), refused(Reason::UnknownInstrument));
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
fn a_symbol_is_one_instrument_s_in_whatever_case_until_it_is_gone() {
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
fn rules_and_phases_are_the_exchanges() {
    let mut rig = Rig::new(&[1]);
    for command in [Command::SetPhase(Phase::Halted), Command::SetRule(Rule::StepMax(9))] {
        assert_eq!(why(rig.ask(3, 1, command)), refused(Reason::NotPermitted));
        assert_eq!(why(rig.ask(0, 0, command)), refused(Reason::UnknownInstrument));
        assert_eq!(why(rig.ask(0, 1, command)), ACCEPTED);
    }
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
