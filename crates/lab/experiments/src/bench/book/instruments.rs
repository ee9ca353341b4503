//! The normal flow spread over many instruments, each with a book of its own.
//!
//! How much is lost to cold books shows in the ratio of few to many; an exchange lists thousands of
//! instruments, so the cost of an unused book is reported too.

use std::hint::black_box;
use std::time::Instant;

use pares_book::FastBook;
use pares_books::{Books, Engine, ReportRing, idle_book_bytes, spread};
use pares_flow::{BookMessage, BookScenario, SCENARIO_SEED};
use serde::Serialize;

/// Books made to learn what one costs.
const IDLE_BOOKS: usize = 10_000;

/// One number of instruments.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SpreadFigures {
    /// Instruments.
    pub instruments: u32,
    /// Those of them that have any orders in the flow.
    pub active: usize,
    /// Million messages per second, the median.
    pub mmsg_per_s: f64,
    /// And the best.
    pub mmsg_per_s_best: f64,
    /// The median over that of the first number of instruments.
    pub ratio: f64,
}

/// All numbers of instruments.
#[derive(Clone, Debug, Serialize)]
pub struct InstrumentFigures {
    /// Resident memory of a book in which nothing ever happened, in bytes; the mean of 10,000.
    pub idle_book_bytes: Option<u64>,
    /// Per number of instruments.
    pub spreads: Vec<SpreadFigures>,
}

/// Measures each number of instruments in each round.
pub(super) fn measure(counts: &[u32], rounds: u32) -> InstrumentFigures {
    // First of all, while no freed memory is there to be used again.
    let idle_book_bytes = idle_book_bytes::<FastBook>(IDLE_BOOKS);
    let normal = BookScenario::named("normal").expect("one of the five").messages();
    let streams: Vec<Vec<BookMessage>> =
        counts.iter().map(|&count| spread(&normal, count as usize, SCENARIO_SEED)).collect();
    let mut ns = vec![Vec::new(); counts.len()];
    for _ in 0..rounds {
        for ((&count, stream), ns) in counts.iter().zip(&streams).zip(&mut ns) {
            ns.push(elapsed_ns(stream, count as usize));
        }
    }
    ns.iter_mut().for_each(|ns| ns.sort_by(f64::total_cmp));
    let median = |ns: &[f64]| ns[ns.len() / 2];
    let timed = |stream: &[BookMessage]| (stream.len() - stream.len() / 2) as f64;
    let first = ns.first().map_or(f64::NAN, |ns| median(ns));
    let figures = |((&instruments, stream), ns): ((&u32, &Vec<BookMessage>), &Vec<f64>)| SpreadFigures {
        instruments,
        active: active(stream),
        mmsg_per_s: timed(stream) / median(ns) * 1e3,
        mmsg_per_s_best: timed(stream) / ns[0] * 1e3,
        ratio: first / median(ns),
    };
    InstrumentFigures {
        idle_book_bytes,
        spreads: counts.iter().zip(&streams).zip(&ns).map(figures).collect(),
    }
}

/// The second half of the stream is timed: before it, books are opened and memory is asked of the system, as happens
/// before the trading day.
fn elapsed_ns(stream: &[BookMessage], count: usize) -> f64 {
    let mut books = Books::<FastBook>::with_instruments(count);
    let mut ring = ReportRing::new();
    let (before, timed) = stream.split_at(stream.len() / 2);
    books.apply(before, &mut ring, &mut || {});
    let start = Instant::now();
    books.apply(timed, &mut ring, &mut || {});
    let elapsed = start.elapsed();
    assert!(black_box(&ring).written() >= stream.len(), "a report for every message");
    elapsed.as_nanos() as f64
}

fn active(stream: &[BookMessage]) -> usize {
    let mut instruments: Vec<u32> = stream.iter().map(|message| message.instrument).collect();
    instruments.sort_unstable();
    instruments.dedup();
    instruments.len()
}
