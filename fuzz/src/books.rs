//! Two implementations of one rule book: whatever they are asked, they answer alike.
//!
//! The tests of `pares-book` compare them over bytes drawn at random. Here the same bytes may be chosen by coverage of the
//! books' own branches. Outcome and events are compared at each request, the state at every sixteenth.

use pares_book::{FastBook, NaiveBook};
use pares_exercise::compare::{ComparePace, CompareTally, compare_books, compare_markets};
use pares_random::Random;

/// The books to run and to compare with, as one book.
///
/// # Panics
/// If they differ.
pub fn books(bytes: &[u8]) {
    compare_books::<NaiveBook, FastBook>(bytes, ComparePace::QUICK, &mut CompareTally::default());
}

/// The books as markets of a few instruments.
///
/// # Panics
/// If they differ.
pub fn markets(bytes: &[u8]) {
    compare_markets::<NaiveBook, FastBook>(bytes, ComparePace::QUICK, &mut CompareTally::default());
}

/// Any bytes are requests, so these are as good as others.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random::new(2_024);
    (0..24).map(|seed| random.bytes(40 + 20 * seed)).collect()
}
