//! `pares bench`: what this machine does.

pub mod book;
pub mod checkpoint;
pub mod end_to_end;
pub mod journal;
pub mod kill_switch;
pub mod overload;
pub mod peer;
pub mod restart;
pub mod sequencer;
pub mod site;

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::error::{CommandError, CommandResult};

/// Arguments of `pares bench`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// One order book beside those of others: five streams of orders, million messages per second, latency
    Book(book::Args),
    /// Agreeing on an order: time per position, alone and against another process, beside a bare compare-and-swap
    Sequencer(sequencer::Args),
    /// The log beside raw writes of the same bytes in the same run, rolls, stopped readers, round trips
    Journal(journal::Args),
    /// A whole exchange under load: throughput, and latency from the scheduled send time to the answer
    EndToEnd(end_to_end::Args),
    /// How long it takes to cancel ten thousand orders of a member that has run away
    KillSwitch(kill_switch::Args),
    /// Twice the highest rate for minutes: what is refused, what is answered how fast, and whether any node's memory grows
    Overload(overload::Args),
    /// Everything killed at once under load: how long until the exchange answers again, and what it remembers
    Restart(restart::Args),
    /// Members' latency while a venue takes a checkpoint of a large state, and while one joins with it
    Checkpoint(checkpoint::Args),
    /// What a broker's transaction costs at a site of a replicated database, alone and with two more in its cluster
    Site(site::Args),
    /// The other process of a benchmark
    #[command(subcommand, hide = true)]
    Peer(peer::Peer),
}

/// Runs one benchmark.
///
/// # Errors
/// If it cannot run.
pub fn run(args: &Args) -> CommandResult {
    match &args.bench {
        Bench::Book(args) => book::run(args),
        Bench::Sequencer(args) => sequencer::run(args),
        Bench::Journal(args) => journal::run(args),
        Bench::EndToEnd(args) => end_to_end::run(args),
        Bench::KillSwitch(args) => kill_switch::run(args),
        Bench::Overload(args) => overload::run(args),
        Bench::Restart(args) => restart::run(args),
        Bench::Checkpoint(args) => checkpoint::run(args),
        Bench::Site(args) => site::run(args),
        Bench::Peer(peer) => peer::run(peer),
    }
}

/// A directory for the files of one benchmark, removed when it ends.
pub struct ScratchDirectory {
    path: PathBuf,
}

impl ScratchDirectory {
    /// Makes one in `within`, or where temporary files go.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(within: Option<&Path>) -> Result<Self, CommandError> {
        let within = within.map_or_else(std::env::temp_dir, Path::to_owned);
        let path = within.join(format!("pares-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(CommandError::io(format!("making the directory {}", path.display())))?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // What cannot be removed now is reported by nobody: the command has its result already.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Makes a failure of `what` the command's failure.
pub fn failed<E: Display>(what: &str) -> impl FnOnce(E) -> CommandError {
    move |error| CommandError::Failed(format!("{what}: {error}"))
}
