//! A whole exchange's rule book, as pure state machines: order books with price-time priority, icebergs, stops, pegs,
//! auctions, phases, price bands, self-trade prevention; one instrument ([`Book`]) or all of a shard ([`Market`]).
//!
//! A book takes one request of the total order at a time, hands events to a sink the
//! caller owns, and gives exactly one [`Outcome`](pares_types::Outcome) back. It reads no clock, does
//! no I/O and holds no randomness, so two venues that apply the same requests hold the same book
//! (paper 1, section 2.2); [`Book::state_hash`] lets them prove it. The rules, every one with the scenario that shows it, are in
//! docs/rules.md.
//!
//! ```text
//!             Request                        asks   10.02 | m4 300 | m1 100 |
//!                |                                  10.01 | m2 100 |            <- best ask
//!                v                           -----------------------------------
//!   validate -> match -> rest or cancel      bids   10.00 | m1 200 | m3 100 |   <- best bid
//!                |            |                      9.99 | m3 500 |
//!                v            v                             ^ oldest trades first
//!         Event, Event, ... Outcome                 held: stops, pegs without a price, orders for the close
//! ```
//!
//! There are two implementations behind one trait, written apart from each other. [`NaiveBook`] is written to be
//! obviously right: sorted vectors and scans. [`FastBook`] is written for the memory hierarchy. One test suite runs
//! on both, and millions of random requests over all features leave them equal after every single one.
//!
//! # In a program of your own
//!
//! The crate stands alone: it needs `pares-types`, `pares-table` and nothing else of Pares. `examples/embed.rs` is a whole program.
//!
//! ```
//! use pares_book::{Book, FastBook, Instrument, Symbol};
//! use pares_types::{
//!     ClientOrderId, Command, GatewayId, InstrumentId, MemberId, NewOrder, Price, Quantity, Request, RequestId,
//!     ShardId, Side, Status, Timestamp,
//! };
//!
//! let mut book = FastBook::new(Instrument::listed(InstrumentId(1), Symbol::new("ACME")?));
//! let mut events = Vec::new();
//! let request = Request {
//!     id: RequestId::new(GatewayId(1), 1),
//!     stamp: Timestamp(0),
//!     member: MemberId(7),
//!     client_order_id: ClientOrderId(1),
//!     instrument: InstrumentId(1),
//!     shard: ShardId(0),
//!     // Prices are in ten-thousandths: 100 shares at 10.00.
//!     command: Command::Enter(NewOrder::limit(Side::Buy, Price(100_000), Quantity(100))),
//! };
//! let outcome = book.apply(&request, &mut events);
//! assert_eq!(outcome.status, Status::Resting);
//! assert_eq!(book.best(Side::Buy).map(|level| level.quantity), Some(Quantity(100)));
//! # Ok::<(), pares_types::SymbolError>(())
//! ```
//!
//! # What an order can become
//!
//! ```text
//!            +--> Refused            nothing happened, the reason says why
//!            |
//!   Enter ---+--> Filled             all of it traded
//!            |
//!            +--> Cancelled          what could not trade and may not rest; the reason says why
//!            |
//!            +--> Resting --+--> Filled       by later orders, by its own amend, by an auction
//!            |     ^  ^ |   |
//!            |     |  | |   +--> Cancelled    by request, self-trade prevention, its date, the day's end ...
//!            |     |  +-+ Amend
//!            |     |
//!            +--> Held ---------> Cancelled   waits for its trigger, a price to follow, the closing call
//! ```
//!
//! # Where to look
//!
//! | question | module |
//! |---|---|
//! | what does an instrument allow? | `instrument`, `ticks`, `validate` |
//! | what are the rules? | docs/rules.md, then `naive`, which follows it word for word |
//! | what does a book know besides its orders? | `state` |
//! | how is a book kept, moved and compared? | `snapshot`, `hash`, `rule_codec` |
//! | who gets which request of a shard? | `market` |
//! | why is it fast? | `fast`, one module per structure |

mod book;
mod doomed;
mod fast;
mod hash;
mod instrument;
mod listing;
mod market;
mod naive;
mod rule_codec;
mod snapshot;
mod state;
mod ticks;
mod validate;

pub use book::{Book, Level};
pub use fast::FastBook;
pub use instrument::{Instrument, InstrumentError};
pub use listing::Listing;
pub use market::{
    Beside, Copied, Day, DayCount, KEPT_ORDERS_MAX, Market, MarketError, Pause, Stage, Statistics, Totals,
    WriteBook,
};
pub use naive::NaiveBook;
pub use pares_types::Symbol;
pub use snapshot::{RestoreError, Snapshot};
pub use state::{Indication, Priority, RestingOrder, Trading, Transition, Unfinished};
pub use ticks::{TickRow, TickTable, Timetable, TimetableRow};
