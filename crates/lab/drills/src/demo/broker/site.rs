//! `pares-lab broker-site`: one site, as a process, that has a broker's accounts.

use std::path::PathBuf;

use pares_accounts::Accounts;
use pares_load::LabResult;
use pares_operator::run::{Args as SiteArgs, one};

/// The command that runs one.
pub(super) const COMMAND: &[&str] = &["broker-site"];

/// Arguments of `pares-lab broker-site`.
#[derive(clap::Args)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    #[command(flatten)]
    site: SiteArgs,
    /// The system's directory
    #[arg(long)]
    dir: PathBuf,
}

/// Runs a site until it is told to stop.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn run(args: &Args) -> LabResult {
    Ok(one(&args.site, &args.dir, Accounts)?)
}
