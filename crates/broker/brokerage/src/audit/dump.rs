//! `pares broker audit dump`: the log of everything, of all fronts.
//!
//! A front's DUMPLOG has what every front has answered before. It does not have the questions that another front has asked of the quote server, and that no command has used yet: those are noted by
//! the front that has them. So this asks every front to have them noted, and then reads the log from the sites, like any front.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_keys::to_hex;
use pares_text::{grouped, progress};

use crate::children::BrokerPlaces;
use crate::error::{BrokerageError, BrokerageResult, already_exists};
use crate::loader::Loader;
use crate::{dump, front};

/// A front that has not noted its hits within this is left out.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for something to do.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Arguments of `pares broker audit dump`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The file to write; it appears under this name when complete
    file: PathBuf,
    /// The broker's directory
    #[arg(long, default_value = "broker-data")]
    dir: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Writes the log of everything.
///
/// # Errors
/// If no site answers, or the file cannot be written, or is there already and is not to be overwritten.
pub fn run(args: &Args) -> BrokerageResult {
    let file = args.file.display();
    if args.file.exists() && !args.force {
        return Err(already_exists(&args.file));
    }
    let access = front::access(&args.dir)?;
    front::reached(&access, &args.dir)?;
    for front in BrokerPlaces::of(&args.dir)?.fronts {
        if !note(front).map_err(BrokerageError::io("asking fronts"))? {
            pares_text::tell!(
                "the front at {front} did not confirm within 10 s that its quotes are stored: unstored quotes are missing from the log"
            );
        }
    }
    let bar = progress::rate("entries", 0);
    let doors = front::doors(&access)?;
    dump::make_folder_of(&args.file)?;
    let name = dump::unused_name();
    let written = dump::write(doors, name, None, &args.file, |count| bar.set_position(count))?;
    bar.finish_and_clear();
    pares_text::say!("{} entries in {file}", grouped(written.entries));
    pares_text::say!("its head is {}", to_hex(&written.head.0));
    Ok(())
}

/// Whether a front says that its hits are noted.
fn note(front: SocketAddr) -> std::io::Result<bool> {
    let (mut loader, began) = (Loader::new(vec![front])?, Instant::now());
    loader.note();
    while !loader.is_noted() && began.elapsed() < PATIENCE {
        loader.turn(WAIT_MAX)?;
    }
    Ok(loader.is_noted())
}
