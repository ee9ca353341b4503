//! One server of a member's system that the laboratory started, in this process.

use std::path::PathBuf;

use pares_load::LabResult;
use pares_node::{Layout, leftovers};

/// What its supervisor tells it.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// One server
    Server {
        server: u16,
        #[arg(long)]
        dir: PathBuf,
    },
}

/// Runs the server until it receives a request to stop.
///
/// # Errors
/// Whatever ends it otherwise.
pub(crate) fn run(command: &Command) -> LabResult {
    let Command::Server { server, dir } = command;
    leftovers::end_with_parent()?;
    Ok(pares_member::process::run(*server, &Layout::new(dir))?)
}
