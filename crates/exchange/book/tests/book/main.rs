//! The books, tested from outside: one suite for both implementations, written scenarios with their
//! full trace, and random runs that compare the two.

// The lint's own exception reaches only the test functions, not what they call.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

mod checked;
mod compare;
mod equivalence;
mod limits;
mod oracle;
mod planted;
mod random;
mod random_end;
mod rebuilt;
mod restore;
mod rules;
mod scenarios;
mod script;
mod telling;
mod words;
mod wrong;

/// The book that is compared with [`pares_book::NaiveBook`].
type Other = pares_book::FastBook;
