//! The business days of an exchange, as its recorders' logs have them.
//!
//! A log has no days: the shards' results lie in it as they came. A day of a shard goes from the result that began it to the one that
//! ended it, so what is said of a day is read out of the log, from each recorder's log by itself. That two
//! recorders come to the same is worth more than any signature of one.
//!
//! | question | module |
//! |---|---|
//! | what of a log belongs to which day? | `scan` |
//! | what happened on a day, and do two recorders say the same? | `report` |
//! | the same for people | `html` |
//! | which files is a closed day made of? | `manifest` |
//! | which days of a log are closed? | `days` |
//! | how is damage to a list of files seen? | `seal` |
//! | where do archives lie? | `store` |
//! | how does a day lie there? | `folder` |
//! | how does a day get there and back? | `archive`, `restore` |
//! | how is a running system copied? | `backup` |
//! | was it copied back in whole? | `unfinished` |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod archive;
mod backup;
mod days;
mod error;
mod folder;
mod html;
mod manifest;
mod report;
mod restore;
#[cfg(feature = "s3")]
mod s3;
mod scan;
mod seal;
mod store;
mod unfinished;

pub use archive::{Archived, CopiedDay};
pub use backup::{Backup, back_up, restore_backup};
pub use days::Days;
pub use error::ArchiveError;
pub use manifest::{DayFile, DayShard, Manifest};
pub use report::{Agreement, DayReport, InstrumentReport, MemberReport, ShardReport, reports};
pub use restore::{holds_days_only, restore};
pub use scan::{DayScan, EndedDay, ShardDay};
pub use store::Store;
pub use unfinished::is_unfinished;
