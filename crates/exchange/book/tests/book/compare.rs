//! Two books side by side: the same requests to both, and whatever can be asked of them asked of both.
//!
//! Also the heart of `cargo xtask compare` (`fuzz/examples/compare.rs`), which goes on with it for as long as it is told.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::checked::Checked;
use crate::random::{Flow, Random, instrument};
use pares_book::{Book, Instrument, Level};
use pares_types::{Event, Outcome, Request, Side};

/// What happened in runs.
#[derive(Default)]
pub(crate) struct Tally {
    /// Requests applied to both.
    pub(crate) requests: u64,
    /// By kind: fill, cancelled, incoming, rested, phase entered, auction, busted, instrument.
    pub(crate) events: [u64; 8],
    pub(crate) statuses: [u64; 8],
    /// By the code of the reason.
    pub(crate) reasons: Vec<u64>,
    /// The requests of the last run, so that one that fails can be shown.
    pub(crate) last_run: Vec<Request>,
}

impl Tally {
    fn count(&mut self, events: &[Event], outcome: &Outcome) {
        for event in events {
            let kind = match event {
                Event::Fill { .. } => 0,
                Event::Cancelled { .. } => 1,
                Event::Incoming { .. } => 2,
                Event::Rested { .. } => 3,
                Event::PhaseEntered { .. } => 4,
                Event::Auction { .. } => 5,
                Event::Busted { .. } => 6,
                // Of a market, not of a book.
                _ => 7,
            };
            self.events[kind] += 1;
        }
        self.requests += 1;
        self.statuses[outcome.status as usize] += 1;
        self.reasons.resize(usize::from(u8::MAX) + 1, 0);
        self.reasons[outcome.reason as usize] += 1;
    }
}

/// Two books that are to be one.
pub(crate) struct Pair<A, B> {
    one: Checked<A>,
    other: Checked<B>,
}

impl<A: Book, B: Book> Pair<A, B> {
    pub(crate) fn of(rules: Instrument) -> Self {
        Self { one: Checked::of(rules), other: Checked::of(rules) }
    }

    /// Applies a request to both and compares all there is.
    pub(crate) fn apply(&mut self, request: &Request) -> (Vec<Event>, Outcome) {
        let told = self.one.apply(request);
        assert_eq!(told, self.other.apply(request), "after {request:?}");
        assert_equal(&self.one.book, &self.other.book);
        told
    }

    /// Each goes on as restored from the other's snapshot.
    pub(crate) fn restore_each_other(&mut self) {
        let from_other = restored(&self.other.book);
        self.other.book = restored(&self.one.book);
        self.one.book = from_other;
    }
}

/// Everything that can be asked of the books has one answer.
fn assert_equal(one: &impl Book, other: &impl Book) {
    assert_eq!(one.snapshot(), other.snapshot());
    assert_eq!(one.instrument(), other.instrument());
    assert_eq!(one.state_hash(), other.state_hash());
    assert_eq!(one.deadline(), other.deadline());
    assert_eq!(one.indication(), other.indication());
    for side in [Side::Buy, Side::Sell] {
        assert_eq!(one.best(side), other.best(side));
        assert_eq!(levels(one, side, 3), levels(other, side, 3));
        for level in levels(one, side, usize::MAX) {
            assert_eq!(one.front(side, level.price), other.front(side, level.price));
        }
    }
}

fn levels(book: &impl Book, side: Side, count: usize) -> Vec<Level> {
    let mut levels = Vec::new();
    book.depth(side, count, &mut |level| levels.push(level));
    levels
}

fn restored<B: Book>(from: &impl Book) -> B {
    B::restore(*from.instrument(), &from.snapshot()).unwrap()
}

/// The instrument of a seed.
pub(crate) fn rules_of(seed: u64) -> Instrument {
    instrument(&mut Random::new(seed))
}

/// Applies `steps` random requests to two books, each of which goes on now and then, or always, as restored
/// from the other's snapshot.
///
/// # Panics
/// If they differ, or one breaks what holds for any book. `tally` ends with the request at which they did.
pub(crate) fn compare<A: Book, B: Book>(seed: u64, steps: u64, always_restore: bool, tally: &mut Tally) {
    let mut random = Random::new(!seed);
    let mut pair = Pair::<A, B>::of(rules_of(seed));
    let mut flow = Flow::new(seed);
    tally.last_run.clear();
    for _ in 0..steps {
        if always_restore || random.below(25) == 0 {
            pair.restore_each_other();
        }
        let request = flow.next(&pair.one.book);
        tally.last_run.push(request);
        let (events, outcome) = pair.apply(&request);
        tally.count(&events, &outcome);
    }
}

/// The fewest of these requests, in their order, that still make the books differ; `None` if they do not.
pub(crate) fn shortened<A: Book, B: Book>(rules: Instrument, requests: &[Request]) -> Option<Vec<Request>> {
    let restoring = [false, true].into_iter().find(|&always| differ::<A, B>(rules, requests, always))?;
    let mut kept = requests.to_vec();
    let mut piece = kept.len();
    while piece > 0 {
        let before = kept.len();
        for at in (0..kept.len()).step_by(piece).rev() {
            let mut fewer = kept.clone();
            fewer.drain(at..kept.len().min(at + piece));
            if differ::<A, B>(rules, &fewer, restoring) {
                kept = fewer;
            }
        }
        // What one request was needed for may have gone after it.
        piece = if piece == 1 && kept.len() < before { 1 } else { piece / 2 };
    }
    Some(kept)
}

/// Whether requests make the books differ, as they are or restored after each of them.
fn differ<A: Book, B: Book>(rules: Instrument, requests: &[Request], always_restore: bool) -> bool {
    let run = || {
        let mut pair = Pair::<A, B>::of(rules);
        for request in requests {
            pair.apply(request);
            if always_restore {
                pair.restore_each_other();
            }
        }
    };
    catch_unwind(AssertUnwindSafe(run)).is_err()
}
