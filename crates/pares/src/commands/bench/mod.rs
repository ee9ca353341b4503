//! `pares bench`: what this machine does.

pub mod end_to_end;

use clap::Subcommand;

use crate::error::CommandResult;

/// Arguments of `pares bench`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// A whole exchange under load: throughput, and latency from the scheduled send time to the answer
    EndToEnd(end_to_end::Args),
}

/// Runs one benchmark.
///
/// # Errors
/// If it cannot run.
pub fn run(args: &Args) -> CommandResult {
    match &args.bench {
        Bench::EndToEnd(args) => end_to_end::run(args),
    }
}
