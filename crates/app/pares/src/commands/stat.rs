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
use crate::standing::Standing;
use crate::text;

/// Between two looks of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `pares stat`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 all nodes are up and healthy; 3 the system is not running; 4 a node is \
                        down or unhealthy (standard error names it); 1 the state cannot be read. With \
                        --watch: 0 when stopped."
)]
pub struct Args {
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Refresh every second until Ctrl-C (with --json: one object per line)
    #[arg(long)]
    watch: bool,
}

/// Prints the state of the system.
///
/// # Errors
/// If there is no system in the directory, it does not run, or it is not healthy.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let config = configuration(&layout)?;
    let mut before = None;
    // A record that cannot be read is no reason not to show the rest.
    let mut standing = Standing::read(&config, &layout).ok();
    loop {
        let system = collect::collect(&config, &layout, standing.as_ref())?;
        let text = match args.json {
            true => print::as_json(&system).to_string(),
            false => print::as_tables(&system, before.as_ref()),
        };
        if args.watch && !args.json {
            clear()?;
        }
        text::print(&text);
        if !args.watch {
            return judge(&system);
        }
        before = Some(system);
        std::thread::sleep(EVERY);
        standing = standing.and_then(|mut standing| standing.read_on().is_ok().then_some(standing));
    }
}

/// Whether the system is up and healthy.
fn judge(system: &collect::System) -> CommandResult {
    if !system.is_running() {
        return Err(CommandError::NotRunning(format!("{} is not running", system.dir)));
    }
    match system.complaints() {
        all if all.is_empty() => Ok(()),
        all => Err(CommandError::Unhealthy(all.join("; "))),
    }
}

/// The configuration of the system in a directory.
///
/// # Errors
/// If there is none, with how to start one, or it is not valid.
pub fn configuration(layout: &Layout) -> Result<SystemConfig, CommandError> {
    let dir = layout.root().display();
    if !layout.config().exists() && pares_member::process::config_file(layout).exists() {
        return Err(CommandError::Usage(format!(
            "{dir} contains a member's system, not an exchange: use `pares member stat --dir {dir}`"
        )));
    }
    if !layout.config().exists() {
        return Err(CommandError::Usage(format!(
            "there is no system in {dir}: start one with `pares up --dir {dir}`, or name its directory"
        )));
    }
    Ok(pares_node::config::load(&layout.config())?)
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
