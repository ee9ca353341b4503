//! Order book and matching: price-time priority in one instrument.
//!
//! A book is a pure state machine. One request of the total order goes in, events go to a sink the
//! caller owns, and exactly one [`Outcome`](pares_types::Outcome) comes back. It reads no clock, does
//! no I/O and holds no randomness, so two venues that apply the same requests hold the same book
//! (paper 1, section 2.2); [`Book::state_hash`] lets them prove it.
//!
//! ```text
//!             Request                        asks   10.02 | m4 300 | m1 100 |
//!                |                                  10.01 | m2 100 |            <- best ask
//!                v                           -----------------------------------
//!   validate -> match -> rest or cancel      bids   10.00 | m1 200 | m3 100 |   <- best bid
//!                |            |                      9.99 | m3 500 |
//!                v            v                             ^ oldest trades first
//!         Event, Event, ... Outcome
//! ```
//!
//! There are two implementations behind one trait. [`NaiveBook`] is written to be obviously right:
//! one sorted vector per side. [`FastBook`] is written for the memory hierarchy. One test suite runs
//! on both, and property tests keep them equal after every request.
//!
//! # What an order can become
//!
//! ```text
//!            +--> Refused            nothing happened, the reason says why
//!            |
//!   Enter ---+--> Filled             all of it traded
//!            |
//!            +--> Cancelled          IOC / market remainder, or FOK that could not fill
//!            |
//!            +--> Resting --+--> Filled       by later orders, or by its own amend
//!                   ^   |   |
//!                   |   |   +--> Cancelled    cancel, mass cancel
//!                   +---+
//!                   Amend
//! ```
//!
//! # Where to look
//!
//! | question | module |
//! |---|---|
//! | what does an instrument allow? | `instrument` |
//! | what are the rules? | [`Book`], then `naive`, which follows them word for word |
//! | what can an order end as? | `incoming` |
//! | how is a book kept, moved and compared? | `snapshot`, `hash` |
//! | who gets which request of a shard? | `market` |
//! | why is it fast? | `fast`, one module per structure |

mod book;
mod fast;
mod hash;
mod instrument;
mod market;
mod naive;
mod snapshot;
mod state;
mod ticks;
mod validate;

pub use book::{Book, Level};
pub use fast::FastBook;
pub use instrument::{Instrument, InstrumentError};
pub use market::{Market, MarketError};
pub use naive::NaiveBook;
pub use pares_types::Symbol;
pub use snapshot::{RestoreError, Snapshot};
pub use state::{Indication, Priority, RestingOrder, Trading, Transition};
pub use ticks::{TickRow, TickTable, Timetable, TimetableRow};
