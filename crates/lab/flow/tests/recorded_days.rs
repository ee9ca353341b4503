//! Whole recorded days through the book: issue item 8's figures, without the network.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests too

mod support;

use pares_book::FastBook;
use pares_flow::{ItchSelect, ItchSource, LobsterSource, ReplayReport};
use pares_types::InstrumentId;
use support::{replay, sample, show, unzip};

fn lobster_day(zip: &str, levels: usize) -> Option<ReplayReport> {
    let zip = sample(zip)?;
    let (messages, book) = (unzip(&zip, "message"), unzip(&zip, "orderbook"));
    let source = LobsterSource::new(messages, book, InstrumentId(1)).unwrap();
    Some(show("LOBSTER", &replay::<FastBook, _>(source, levels, 256)))
}

fn itch_day(file: &str) -> Option<ReplayReport> {
    let source = ItchSource::open(&sample(file)?, ItchSelect::All, InstrumentId(1)).unwrap();
    Some(show("ITCH", &replay::<FastBook, _>(source, 10, 256)))
}

/// Every row reproduced, nothing lost or repeated, all answers as expected.
fn assert_reproduced(report: &ReplayReport) {
    assert_eq!(report.rows_checked, report.events);
    assert_eq!(report.mismatched_rows, 0);
    assert_eq!((report.lost, report.duplicated, report.unasked, report.surprises), (0, 0, 0, 0));
    assert_eq!((report.tally.repaired_levels, report.tally.crossing_submissions), (0, 0));
}

fn assert_at_head(report: &ReplayReport) {
    let (at_head, known) = (report.executions_at_head_of_queue, report.executions_of_known_orders);
    assert!(at_head * 1000 >= known * 995, "{at_head} of {known} known executions at the head");
}

#[test]
fn amazon_of_2012_level_5_is_reproduced_row_by_row() {
    let Some(report) = lobster_day("lobster/LOBSTER_SampleFile_AMZN_2012-06-21_5.zip", 5) else { return };
    assert_eq!((report.events, report.executions), (155_935, 8_974));
    assert_reproduced(&report);
    assert_at_head(&report);
}

#[test]
fn apple_of_2012_level_1_is_reproduced_row_by_row() {
    let Some(report) = lobster_day("lobster/LOBSTER_SampleFile_AAPL_2012-06-21_1.zip", 1) else { return };
    assert_eq!((report.events, report.executions), (118_497, 23_658));
    assert_reproduced(&report);
    assert_at_head(&report);
}

#[test]
fn apple_of_2019_trades_in_the_order_of_the_feed() {
    let Some(report) = itch_day("itch/AAPL_20191230_50k.itch50") else { return };
    assert_reproduced(&report);
    assert_eq!(report.executions_at_head_of_queue, report.executions_of_known_orders);
}

#[test]
fn a_cut_of_many_instruments_trades_in_the_order_of_the_feed() {
    let Some(report) = itch_day("itch/12302019_SNIPPET.NASDAQ_ITCH50") else { return };
    assert_reproduced(&report);
    assert_eq!(report.executions_at_head_of_queue, report.executions_of_known_orders);
}
