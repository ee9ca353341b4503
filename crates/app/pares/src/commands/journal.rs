//! `pares journal`: looking into a log, checking it, and the last resort when it is damaged.
//!
//! A log is a directory: `DIR/gateway-0`, `DIR/venue-1`, `DIR/recorder-0` (docs/protocols/log.md). Looking and
//! checking only read, and work while the log is being written.

mod cut;
mod decode;
mod event;
mod inspect;
pub mod request;
mod verify;

pub use inspect::failed;

use crate::error::CommandResult;

/// The commands of `pares journal`.
#[derive(clap::Subcommand)]
pub enum JournalCommand {
    /// Print a log's marks, segments and records
    Inspect(inspect::Args),
    /// Verify every checksum of a log; fails on damage, and prints what to do
    Verify(verify::Args),
    /// Discard everything from an offset on: the last resort for a damaged log
    Cut(cut::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// If there is no log, it cannot be read, or it is damaged.
pub fn run(command: &JournalCommand) -> CommandResult {
    match command {
        JournalCommand::Inspect(args) => inspect::run(args),
        JournalCommand::Verify(args) => verify::run(args),
        JournalCommand::Cut(args) => cut::run(args),
    }
}
