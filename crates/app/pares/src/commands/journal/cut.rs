//! `pares journal cut`: ends a log before damage that no peer can repair.

use std::path::PathBuf;

use pares_log::Offset;

use crate::error::{CommandError, CommandResult};
use crate::text;

/// Arguments of `pares journal cut`.
#[derive(clap::Args)]
pub struct Args {
    /// The log: a directory such as pares-data/gateway-0. No process may be writing to it
    log: PathBuf,
    /// The new end of the log: the damaged offset that `pares journal verify` reports
    #[arg(long)]
    at: u64,
    /// Confirm that everything after it is discarded
    #[arg(long)]
    yes: bool,
}

/// Cuts the log.
///
/// # Errors
/// Without `--yes`, if the log is being written, or if no record begins or ends there.
pub fn run(args: &Args) -> CommandResult {
    let path = args.log.display();
    if !args.yes {
        return Err(CommandError::Usage(format!(
            "this permanently discards every record of {path} from offset {} on. If a copy or a peer's log \
             exists, use that instead; otherwise repeat with --yes",
            args.at
        )));
    }
    let bytes = pares_log::cut(&args.log, Offset(args.at))
        .map_err(|error| CommandError::Failed(format!("{path} was not cut: {error}")))?;
    pares_text::say!("{path} now ends at offset {}; {} discarded", args.at, text::bytes(bytes));
    Ok(())
}
