//! `pares-lab wholesale`: one site, as a process, that executes TPC-C's transactions.

use std::path::PathBuf;

use pares_load::LabResult;
use pares_operator::run::{Args as SiteArgs, one};
use pares_wholesale::Wholesale;

/// The command that runs one.
pub(super) const COMMAND: &[&str] = &["wholesale"];

/// Arguments of `pares-lab wholesale`.
#[derive(clap::Args)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    #[command(flatten)]
    site: SiteArgs,
    /// The system's directory
    #[arg(long)]
    dir: PathBuf,
}

/// Runs a site until it receives a request to stop.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run(args: &Args) -> LabResult {
    Ok(one(&args.site, &args.dir, Wholesale)?)
}
