//! `pares stat`: what a system is doing, read from outside.
//!
//! Nobody is asked: counters, marks and windows lie in mapped files that each node keeps up to date, so a live, a
//! stopped and a dead node can all be looked at, and looking costs them nothing.

mod collect;
mod print;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use crossterm::{cursor, execute, terminal};
use pares_node::{Layout, SystemConfig};

use crate::error::{CommandError, CommandResult};
use crate::text;

/// Between two looks of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `pares stat`.
#[derive(clap::Args)]
pub struct Args {
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Look again every second until Ctrl-C (with --json: one object a line)
    #[arg(long)]
    watch: bool,
}

/// Prints the state of the system.
///
/// # Errors
/// If there is no system in the directory.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let config = configuration(&layout)?;
    let mut before = None;
    loop {
        let system = collect::collect(&config, &layout)?;
        let text = match args.json {
            true => print::as_json(&system).to_string(),
            false => print::as_tables(&system, before.as_ref()),
        };
        if args.watch && !args.json {
            clear()?;
        }
        if !text::print(&text)? || !args.watch {
            return Ok(());
        }
        before = Some(system);
        std::thread::sleep(EVERY);
    }
}

/// The configuration of the system in a directory.
///
/// # Errors
/// If there is none, with how to start one, or it is not valid.
pub fn configuration(layout: &Layout) -> Result<SystemConfig, CommandError> {
    let dir = layout.root().display();
    if !layout.config().exists() {
        return Err(CommandError::Usage(format!(
            "there is no system in {dir}; start one with `pares up --dir {dir}`, or name its directory with --dir"
        )));
    }
    Ok(SystemConfig::load(&layout.config())?)
}

/// Empties the screen, if it is one.
fn clear() -> CommandResult {
    let mut out = std::io::stdout();
    if !out.is_terminal() {
        return Ok(());
    }
    execute!(out, terminal::Clear(terminal::ClearType::All), cursor::MoveTo(0, 0))
        .map_err(CommandError::io("clearing the screen"))
}
