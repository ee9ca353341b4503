//! `pares member server`: one server in this process.

use std::path::PathBuf;

use pares_node::{Layout, leftovers};

use crate::error::CommandResult;

/// Arguments of `pares member server`.
#[derive(clap::Args)]
pub struct Args {
    /// Which server, from 0
    server: u16,
    /// The system's directory
    #[arg(long, default_value = "member-data")]
    dir: PathBuf,
    /// Continue when the parent process ends
    #[arg(long)]
    detached: bool,
}

/// Runs the server until a signal stops it.
pub(super) fn run(args: &Args) -> CommandResult {
    if !args.detached {
        leftovers::end_with_parent()?;
    }
    Ok(pares_member::process::run(args.server, &Layout::new(&args.dir))?)
}
