//! Two books side by side: the same requests to both, and whatever can be asked of them asked of both.
//!
//! Bytes decide what is asked ([`requests`](crate::requests)), so that who searches by coverage can steer, and who draws them meets what no
//! author thought of. The heart of the tests of `pares-book`, of the fuzz targets `books` and `markets`, and of `cargo xtask compare`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pares_book::{Book, Instrument, Level, Market};
use pares_types::{Event, Outcome, Request, Side, Status};

use crate::checked::CheckedBook;
use crate::requests::Requests;

/// How closely is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparePace {
    /// Requests from one comparison of the whole state to the next. With 1 each book's steps are checked by themselves too.
    pub compare_every: u64,
    /// Requests until each continues as restored from the other's snapshot.
    pub restore_every: u64,
}

impl ComparePace {
    /// Much in little time.
    pub const QUICK: Self = Self { compare_every: 16, restore_every: 16 };
    /// Everything, after each request.
    pub const THOROUGH: Self = Self { compare_every: 1, restore_every: 25 };
    /// As `THOROUGH`, always restored: a snapshot that leaves something out shows at the next request.
    pub const RESTORED: Self = Self { compare_every: 1, restore_every: 1 };
}

/// What happened in runs: nothing is compared that never happens.
#[derive(Clone, Debug, Default)]
pub struct CompareTally {
    /// Requests applied to both.
    pub requests: u64,
    /// Events, by kind: fill, cancelled, incoming, rested, phase entered, auction, busted, instrument.
    pub events: [u64; 8],
    /// Outcomes, by the code of their status.
    pub statuses: [u64; Status::ALL.len() + 1],
    /// Outcomes, by the code of their reason.
    pub reasons: Vec<u64>,
    /// The requests of the last run, so that one that fails can be shown.
    pub last_run: Vec<Request>,
}

impl CompareTally {
    fn count(&mut self, (events, outcome): &(Vec<Event>, Outcome)) {
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

/// Applies the requests in `bytes` to two books.
///
/// # Panics
/// If they differ, or one breaks what holds for any book. `tally` ends with the request at which they did.
pub fn compare_books<A: Book, B: Book>(bytes: &[u8], pace: ComparePace, tally: &mut CompareTally) {
    let requests = Requests::of_a_book(bytes);
    compare_requests::<A, B>(requests.instruments()[0], requests, pace, tally);
}

/// Applies requests to two books.
///
/// # Panics
/// As [`compare_books`].
pub fn compare_requests<A: Book, B: Book>(
    rules: Instrument,
    requests: impl IntoIterator<Item = Request>,
    pace: ComparePace,
    tally: &mut CompareTally,
) {
    let (mut one, mut other) = (CheckedBook::<A>::of(rules), CheckedBook::<B>::of(rules));
    tally.last_run.clear();
    for (count, request) in (1_u64..).zip(requests) {
        tally.last_run.push(request);
        let told = one.apply_as(&request, pace.compare_every == 1);
        assert_eq!(told, other.apply_as(&request, pace.compare_every == 1), "after {request:?}");
        tally.count(&told);
        if count.is_multiple_of(pace.compare_every) {
            assert_equal(&one.book, &other.book, &request);
        }
        if count.is_multiple_of(pace.restore_every) {
            (one.book, other.book) = (restored(&other.book), restored(&one.book));
        }
    }
    one.book.audit();
    other.book.audit();
}

/// Everything that can be asked of the books has one answer.
fn assert_equal(one: &impl Book, other: &impl Book, last: &Request) {
    assert_eq!(one.snapshot(), other.snapshot(), "after {last:?}");
    assert_eq!(one.instrument(), other.instrument(), "after {last:?}");
    assert_eq!(one.state_hash(), other.state_hash(), "after {last:?}");
    assert_eq!(one.deadline(), other.deadline(), "after {last:?}");
    assert_eq!(one.indication(), other.indication(), "after {last:?}");
    for side in [Side::Buy, Side::Sell] {
        assert_eq!(one.best(side), other.best(side), "after {last:?}");
        assert_eq!(levels(one, side, 3), levels(other, side, 3), "after {last:?}");
        for level in levels(one, side, usize::MAX) {
            assert_eq!(one.front(side, level.price), other.front(side, level.price), "after {last:?}");
        }
    }
    one.audit();
    other.audit();
}

fn levels(book: &impl Book, side: Side, count: usize) -> Vec<Level> {
    let mut levels = Vec::new();
    book.depth(side, count, &mut |level| levels.push(level));
    levels
}

fn restored<B: Book>(from: &impl Book) -> B {
    B::restore(*from.instrument(), &from.snapshot()).expect("a book's state is a legal one")
}

/// The fewest of these requests, in their order, that still make the books differ; `None` if they do not.
pub fn shortened<A: Book, B: Book>(rules: Instrument, requests: &[Request]) -> Option<Vec<Request>> {
    let pace = [ComparePace::THOROUGH, ComparePace::RESTORED]
        .into_iter()
        .find(|&pace| differ::<A, B>(rules, requests, pace))?;
    let mut kept = requests.to_vec();
    let mut piece = kept.len();
    while piece > 0 {
        let before = kept.len();
        for at in (0..kept.len()).step_by(piece).rev() {
            let mut fewer = kept.clone();
            fewer.drain(at..kept.len().min(at + piece));
            if differ::<A, B>(rules, &fewer, pace) {
                kept = fewer;
            }
        }
        // What one request was needed for may have gone after it.
        piece = if piece == 1 && kept.len() < before { 1 } else { piece / 2 };
    }
    Some(kept)
}

fn differ<A: Book, B: Book>(rules: Instrument, requests: &[Request], pace: ComparePace) -> bool {
    let run =
        || compare_requests::<A, B>(rules, requests.iter().copied(), pace, &mut CompareTally::default());
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

/// Applies the requests in `bytes` to two markets.
///
/// # Panics
/// If they differ.
pub fn compare_markets<A: Book, B: Book>(bytes: &[u8], pace: ComparePace, tally: &mut CompareTally) {
    let requests = Requests::of_a_market(bytes);
    let mut one = Market::<A>::new(requests.instruments());
    let mut other = Market::<B>::new(requests.instruments());
    for (count, request) in (1_u64..).zip(requests) {
        let mut events = (Vec::new(), Vec::new());
        let outcome = one.apply(&request, &mut events.0);
        assert_eq!(outcome, other.apply(&request, &mut events.1), "after {request:?}");
        assert_eq!(events.0, events.1, "after {request:?}");
        tally.count(&(events.0, outcome));
        if count.is_multiple_of(pace.compare_every) {
            assert_markets_equal(&one, &other, &request);
        }
        if count.is_multiple_of(pace.restore_every) {
            (one, other) = (restored_market(&other), restored_market(&one));
            // A hash kept up to date is the same hash.
            other.refresh_hash();
        }
    }
    one.audit();
    other.audit();
}

fn assert_markets_equal<A: Book, B: Book>(one: &Market<A>, other: &Market<B>, last: &Request) {
    assert_eq!(one.blocked(), other.blocked(), "after {last:?}");
    assert_eq!(one.deadlines(), other.deadlines(), "after {last:?}");
    assert_eq!(one.time(), other.time(), "after {last:?}");
    assert_eq!(one.books().len(), other.books().len(), "after {last:?}");
    for (book, of_other) in one.books().iter().zip(other.books()) {
        assert_equal(book, of_other, last);
    }
    assert_eq!(one.state_hash(), other.state_hash(), "after {last:?}");
    one.audit();
    other.audit();
}

fn restored_market<B: Book>(from: &Market<impl Book>) -> Market<B> {
    let books = from.books().iter().map(restored).collect();
    let beside = from.beside().collect();
    let market = Market::restore(books, beside, from.blocked().to_vec(), from.time(), from.day().clone());
    market.expect("a market's state is a legal one")
}
