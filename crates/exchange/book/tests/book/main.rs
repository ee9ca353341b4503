//! The books, tested from outside: one suite for both implementations, written scenarios with their
//! full trace, and random runs that compare the two.

// The lint's own exception reaches only the test functions, not what they call.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

mod equivalence;
mod limits;
mod oracle;
mod random_end;
mod restore;
mod rules;
mod scenarios;

/// The book that is compared with [`pares_book::NaiveBook`].
type Other = pares_book::FastBook;
