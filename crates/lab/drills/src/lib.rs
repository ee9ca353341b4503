//! The exchange while parts of it die.
//!
//! | module | what |
//! |---|---|
//! | [`drill`] | do clients notice when a part dies, sleeps, loses its disk, is flooded or is wrong? |
//! | `exchange` | the exchange's own requests, whatever gateway dies |
//! | `feed` | market data, received over lines that lose, and held against the record |
//! | [`demo`] | the same to look at |
//! | `recorded` | recorders' logs for tests of audits |
//! | [`replay`] | a recorded trading day, every published state of the book compared |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

pub mod demo;
pub mod drill;
mod exchange;
mod feed;
#[cfg(test)]
mod recorded;
pub mod replay;
