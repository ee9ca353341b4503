//! Order books measured side by side: the same orders in, the same reports out.
//!
//! Two figures that two programs print about themselves cannot be compared: each feeds its book what suits it, and times what it
//! likes. Here a book is an [`Engine`]: it takes the messages of a [`pares_flow::BookScenario`] and must write a
//! 64-byte [`Report`] of everything that happens, because an exchange that tells nobody is fast and useless. A book of ours runs
//! this crate's loop; the books of others do so in a process of their own ([`serve`]), so that what they are
//! built from is no part of the exchange.
//!
//! ```text
//!   Scenario --messages--> Engine::apply --reports--> Ring   (timed: 256 KiB, overwritten)
//!                             |     |
//!                             |     +------reports--> Tally  (not timed: what happened, as sums)
//!                             +--after each message--> clock (a run of its own: one reading per message)
//! ```
//!
//! | question | module |
//! |---|---|
//! | what must an engine do? | [`Engine`] |
//! | how do our books do it? | [`Books`] |
//! | what is measured, and how? | [`Task`] |
//! | how do two processes agree on it? | `service` |
//! | what do many instruments cost? | [`spread`], [`idle_book_bytes`] |

mod books;
mod engine;
mod instruments;
mod measure;
mod report;
mod service;

pub use books::Books;
pub use engine::Engine;
pub use instruments::{idle_book_bytes, resident_bytes, spread};
pub use measure::{Latency, Measured, Task, clock_ns, measure};
pub use report::{Output, Report, ReportKind, ReportRing, Sums};
pub use service::{Contender, EngineInfo, load, save, serve};
