//! Orders and trades, looked up in what a recorder has recorded.
//!
//! A recorder's log is the truth and answers no questions: finding a member's orders in it means reading all of it.
//! So an index is brought up to date first ([`Index::update`]), a SQLite file beside the logs, and is asked instead. The index
//! holds nothing of its own: delete it, and the next call rebuilds it.
//!
//! | module | what |
//! |---|---|
//! | `index` | the file, and how far it has read |
//! | `apply` | one result into the tables |
//! | `query` | orders, trades, and the story of one order |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod apply;
mod index;
mod query;
#[cfg(test)]
mod tests;

pub use index::{ApplyError, HistoryError, Index, Updated};
pub use query::{Filter, OrderRow, Page, Step, Story, TradeRow};
