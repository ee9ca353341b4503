//! The business days of an exchange, as its recorders' logs have them.
//!
//! A log has no days: the shards' results lie in it as they came. A day of a shard goes from the result that began it to the one that
//! ended it, so whatever is said of a day is read out of the log, by whoever asks and from each recorder's log by itself. That two
//! recorders come to the same is worth more than any signature of one.
//!
//! | question | module |
//! |---|---|
//! | what of a log belongs to which day? | `scan` |
//! | what happened on a day, and do two recorders say the same? | `report` |
//! | the same for people | `html` |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod error;
mod html;
mod report;
mod scan;

pub use error::ArchiveError;
pub use report::{Agreement, DayReport, InstrumentReport, MemberReport, ShardReport, reports};
pub use scan::{Ended, Scan, ShardDay};
