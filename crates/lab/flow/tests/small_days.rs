//! Days of a few events, made up by hand, each showing one rule of the translation. Every day runs through
//! the naive and the fast book.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests too

mod support;

use pares_book::{FastBook, NaiveBook};
use pares_flow::{
    Action, BookChange, Depth, DepthLevel, Expectation, FlowAction, LobsterSource, OrderRef, RecordedEvent,
    RecordedEvents, RecordedId, Replay, ReplayReport, SourceError, Translator,
};
use pares_types::{ClientOrderId, Event, InstrumentId, Price, Quantity, Side};
use support::{Exchange, config, replay, show};

/// Lines of `message | row`.
fn day(lines: &[&str]) -> LobsterSource<std::io::Cursor<String>> {
    let (mut messages, mut rows) = (String::new(), String::new());
    for line in lines {
        let (message, row) = line.split_once('|').unwrap();
        messages += &format!("{}\n", message.trim());
        rows += &format!("{}\n", row.trim());
    }
    let cursor = std::io::Cursor::new;
    LobsterSource::new(cursor(messages), cursor(rows), InstrumentId(1)).unwrap()
}

/// The report of a day, the same from both books and whatever is in flight.
fn report(lines: &[&str]) -> ReplayReport {
    let levels = day(lines).published_levels().unwrap();
    let fast = show("fast", &replay::<FastBook, _>(day(lines), levels, 1));
    assert_eq!(fast, replay::<NaiveBook, _>(day(lines), levels, 100).report());
    assert_eq!((fast.lost, fast.duplicated, fast.unasked, fast.surprises), (0, 0, 0, 0));
    assert_eq!(fast.rows_checked, fast.events);
    fast
}

/// The actions the commands of a day ask for.
fn actions(lines: &[&str]) -> Vec<FlowAction> {
    let mut source = day(lines);
    let mut translator = Translator::new(config(source.published_levels().unwrap()));
    let mut out = std::collections::VecDeque::new();
    while let Some(event) = source.next_event().unwrap() {
        translator.translate(&event, &mut out);
    }
    out.into_iter()
        .filter_map(|action| match action {
            Action::Send(step) => Some(step.command.action),
            Action::Check(_) => None,
        })
        .collect()
}

// Unless said otherwise: offers start at 110, bids at 100, and rows are `ask,size,bid,size`.

#[test]
fn an_execution_is_an_ioc_that_fills_the_order_named() {
    let report = report(&[
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,1,72,20,100,1  | 110,5,100,30",
        "3,4,71,10,100,1  | 110,5,100,20",
        "4,4,72,5,100,1   | 110,5,100,15",
    ]);
    assert_eq!((report.mismatched_rows, report.executions_of_known_orders), (0, 2));
    assert_eq!(report.executions_at_head_of_queue, 2);
}

#[test]
fn an_execution_out_of_turn_takes_the_shares_without_trading() {
    let report = report(&[
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,1,72,20,100,1  | 110,5,100,30",
        "3,4,72,5,100,1   | 110,5,100,25",
        "4,4,71,10,100,1  | 110,5,100,15",
    ]);
    assert_eq!((report.mismatched_rows, report.tally.repaired_levels), (0, 0));
    assert_eq!((report.executions_of_known_orders, report.executions_at_head_of_queue), (2, 1));
}

#[test]
fn a_reduction_keeps_the_place_in_the_queue() {
    let report = report(&[
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,1,72,20,100,1  | 110,5,100,30",
        "3,2,71,4,100,1   | 110,5,100,26",
        "4,4,71,6,100,1   | 110,5,100,20",
    ]);
    assert_eq!((report.mismatched_rows, report.executions_at_head_of_queue), (0, 1));
}

#[test]
fn reduction_after_execution_names_full_total() {
    let actions = actions(&[
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,4,71,3,100,1   | 110,5,100,7",
        "3,2,71,2,100,1   | 110,5,100,5",
    ]);
    let (original, price, quantity) = (ClientOrderId(1), Price(100), Quantity(8));
    assert_eq!(actions.last(), Some(&FlowAction::Amend { original, price, quantity }));
}

#[test]
fn what_was_there_before_a_submission_is_seeded_ahead_of_it() {
    let report = report(&[
        "1,1,71,10,100,1  | 110,5,100,40", // 30 shares nobody submitted
        "2,4,9,30,100,1   | 110,5,100,10", // of an order never named
        "3,4,71,10,100,1  | 110,5,99,7",
    ]);
    assert_eq!(report.mismatched_rows, 0);
    assert_eq!((report.executions, report.executions_of_known_orders), (3 - 1, 1));
    assert_eq!(report.executions_at_head_of_queue, 1);
}

#[test]
fn level_leaving_window_is_dropped_and_reseeded() {
    let report = report(&[
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,1,72,20,101,1  | 110,5,101,20", // 100 leaves
        "3,3,72,20,101,1  | 110,5,100,60", // and returns with 50 more
        "4,3,71,10,100,1  | 110,5,100,50", // whose order is not told apart any more
    ]);
    assert_eq!((report.mismatched_rows, report.tally.repaired_levels), (0, 0));
    assert_eq!(report.tally.dropped_levels, 1);
    assert_eq!(report.tally.seeded_levels, 2); // 110 and 100
}

#[test]
fn differing_level_is_one_mismatch_then_repaired() {
    let report = report(&[
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,1,72,20,100,1  | 110,5,100,31", // one share too many
        "3,1,73,20,100,1  | 110,5,100,51",
        "4,1,74,20,100,1  | 110,5,100,50", // 21 too few
        "5,5,0,1,105,1    | 110,5,100,50",
    ]);
    assert_eq!((report.mismatched_rows, report.tally.repaired_levels), (2, 2));
}

#[test]
fn hidden_executions_and_halts_leave_the_book_alone() {
    let report = report(&[
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,5,0,500,105,1  | 110,5,100,10",
        "3,7,0,0,-1,-1    | 110,5,100,10",
    ]);
    assert_eq!((report.mismatched_rows, report.executions, report.tally.hidden_executions), (0, 0, 1));
    assert_eq!(report.commands, 2); // the submission and the seed at 110
}

/// Whatever a broken file publishes, it is mismatches and never a panic.
#[test]
fn rows_that_cannot_be_are_mismatches() {
    let lines = [
        "1,1,71,10,100,1  | 110,5,100,10,111,5,99,10",
        "2,4,71,99,100,1  | 90,5,100,10,95,4294967295,101,7", // crossed, and more than may be ordered
        "3,3,71,10,100,-1 | 110,5,100,10,110,3,100,4",        // one price twice
    ];
    let report = replay::<FastBook, _>(day(&lines), 2, 1).report();
    assert_eq!((report.events, report.mismatched_rows), (3, 2));
}

#[test]
fn levels_nobody_occupies_are_no_levels() {
    let report = report(&[
        "1,1,71,10,100,1  | 9999999999,0,100,10,9999999999,0,-9999999999,0",
        "2,1,72,10,99,1   | 9999999999,0,100,10,9999999999,0,99,10",
        "3,3,71,10,100,1  | 9999999999,0,99,10,9999999999,0,-9999999999,0",
    ]);
    assert_eq!((report.mismatched_rows, report.tally.seeded_levels), (0, 0));
}

/// An exchange that answers twice, late and in the wrong order: the checker puts it right.
#[test]
fn answers_may_come_late_twice_and_out_of_order() {
    let lines = ["1,1,71,10,100,1 | 110,5,100,10", "2,4,71,4,100,1 | 110,5,100,6"];
    let mut replay = Replay::new(day(&lines), config(1));
    let mut exchange = Exchange::<FastBook>::new();
    let mut answers = Vec::new();
    while let Some(command) = replay.next_command().unwrap() {
        answers.push((command.client_order_id, exchange.apply(&command)));
    }
    assert_eq!(replay.report().lost, 3);
    for (name, (outcome, events)) in answers.iter().rev().chain(&answers[..1]) {
        replay.on_answer(*name, outcome, events);
    }
    let report = replay.report();
    assert_eq!((report.lost, report.duplicated, report.rows_checked, report.mismatched_rows), (0, 1, 2, 0));
}

/// An exchange that fills the youngest order first is found out: by the answer and by the rows after it.
#[test]
fn an_exchange_without_time_priority_is_found_out() {
    let lines = [
        "1,1,71,10,100,1  | 110,5,100,10",
        "2,1,72,20,100,1  | 110,5,100,30",
        "3,4,71,10,100,1  | 110,5,100,20",
        "4,3,72,20,100,1  | 110,5,99,1",
    ];
    let mut replay = Replay::new(day(&lines), config(1));
    let mut exchange = Exchange::<FastBook>::new();
    while let Some(command) = replay.next_command().unwrap() {
        let (outcome, mut events) = exchange.apply(&command);
        for event in &mut events {
            if let Event::Fill { resting_client_order_id, .. } = event {
                *resting_client_order_id = ClientOrderId(3); // order 72
            }
        }
        replay.on_answer(command.client_order_id, &outcome, &events);
    }
    let report = replay.report();
    assert_eq!((report.surprises, report.executions_at_head_of_queue), (1, 0));
    assert_eq!(report.mismatched_rows, 1); // order 71 seems to stay at 100 when the row shows 99
}

/// A feed without rows: what it implies is compared.
struct Feed(std::vec::IntoIter<BookChange>);

impl RecordedEvents for Feed {
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, SourceError> {
        let recorded =
            |change| RecordedEvent { time_ns: 0, instrument: InstrumentId(1), change, published: None };
        Ok(self.0.next().map(recorded))
    }

    fn published_levels(&self) -> Option<usize> {
        None
    }
}

fn submit(id: u64, side: Side, price: i64) -> BookChange {
    BookChange::Submit { id: RecordedId(id), side, price: Price(price), quantity: Quantity(10) }
}

fn order(id: u64) -> OrderRef {
    OrderRef { id: RecordedId(id), at: None }
}

#[test]
fn a_replacement_queues_last() {
    let replaced =
        BookChange::Replace { old: order(1), new: RecordedId(3), price: Price(100), quantity: Quantity(10) };
    let executed = |id| BookChange::Execute { order: order(id), quantity: Quantity(10) };
    let changes = vec![
        submit(1, Side::Buy, 100),
        submit(2, Side::Buy, 100),
        replaced,
        executed(2),
        executed(3),
        executed(1),
    ];
    let report = replay::<FastBook, _>(Feed(changes.into_iter()), 5, 1).report();
    assert_eq!((report.executions_of_known_orders, report.executions_at_head_of_queue), (2, 2));
    assert_eq!((report.tally.events_of_unknown_orders, report.mismatched_rows), (1, 0));
}

#[test]
fn a_submission_that_would_trade_makes_way_and_is_counted() {
    let changes = vec![submit(1, Side::Sell, 101), submit(2, Side::Sell, 103), submit(3, Side::Buy, 102)];
    let replay = replay::<FastBook, _>(Feed(changes.into_iter()), 5, 1);
    assert_eq!(replay.report().tally.crossing_submissions, 1);
    assert_eq!(replay.report().surprises, 0);
    let level = |price| vec![DepthLevel { price: Price(price), quantity: Quantity(10) }];
    let found = replay.checker().mirror().top(InstrumentId(1), 5);
    assert_eq!(found, Depth { bids: level(102), asks: level(103) });
}

#[test]
fn an_expected_fill_names_the_resting_order() {
    let mut translator = Translator::new(config(1));
    let mut out = std::collections::VecDeque::new();
    for change in [submit(1, Side::Sell, 101), BookChange::Execute { order: order(1), quantity: Quantity(4) }]
    {
        let recorded = RecordedEvent { time_ns: 0, instrument: InstrumentId(1), change, published: None };
        translator.translate(&recorded, &mut out);
    }
    let Some(Action::Send(step)) = out.get(2) else { panic!("submission, check, execution: {out:?}") };
    let (resting, quantity) = (ClientOrderId(1), Quantity(4));
    assert_eq!(step.expect, Expectation::Fills { resting, quantity, known: true });
}
