//! PyPI's `itch-book` over the same messages, in a process of its own.
//!
//! It is a C++ core with a face in Python. It is asked for no table, so that it reads messages and keeps books and does nothing else, and
//! gets its bytes from memory, in the pieces in which its own command hands them over. Python is left out of the time but for one call a piece.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pares_load::{LabError, ScratchDirectory, failed};
use serde::Deserialize;

use super::Rates;
use super::day::Day;
use crate::bench::peer::PeerProcess;

/// Its published rate over a day of 8,907 symbols.
pub(super) const PUBLISHED_PER_S: u64 = 17_300_000;
const PACKAGE: &str = "itch-book==0.2.1";
const PROGRAM: &str = include_str!("itch_book.py");

/// The process.
pub(super) struct Peer {
    process: PeerProcess,
    _scratch: ScratchDirectory,
}

/// What it tells of a round.
#[derive(Deserialize)]
struct Round {
    elapsed_ns: u64,
    living: u64,
    lost: u64,
}

impl Peer {
    /// Installs and starts it; or the reason why not.
    pub(super) fn start(day: &Day) -> Result<Self, String> {
        let python = install()?;
        let scratch = ScratchDirectory::create(None).map_err(|error| error.to_string())?;
        let save = |name: &str, bytes: &[u8]| {
            let path = scratch.path().join(name);
            std::fs::write(&path, bytes).map(|()| path).map_err(|error| format!("writing a day: {error}"))
        };
        let (opening, trading) = (save("opening", &day.opening)?, save("trading", &day.trading)?);
        let mut command = Command::new(python);
        command.args(["-c", PROGRAM]).arg(opening).arg(trading);
        let process = PeerProcess::spawn(&mut command).map_err(|error| error.to_string())?;
        Ok(Self { process, _scratch: scratch })
    }

    /// One round.
    ///
    /// # Errors
    /// If it ends, or its books are not ours.
    pub(super) fn round(&mut self, messages: u64, living: u64, rates: &mut Rates) -> Result<(), LabError> {
        let answer = self.process.ask("go")?;
        let round: Round = serde_json::from_str(&answer).map_err(failed("what itch-book answered"))?;
        if (round.living, round.lost) != (living, 0) {
            return Err(LabError::Failed(format!(
                "itch-book has {} orders at the end and missed {}, our books have {living}",
                round.living, round.lost
            )));
        }
        rates.add(messages, round.elapsed_ns.into());
        Ok(())
    }
}

fn said(what: &str) -> impl FnOnce(std::io::Error) -> String {
    move |error| format!("{what}: {error}")
}

/// A Python that has the package, beside this program, where builds are.
fn install() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(said("this program"))?;
    let folder = program.with_file_name("itch-book-0.2.1");
    let python = folder.join("bin/python");
    if has_package(&python) {
        return Ok(python);
    }
    pares_text::aside!("installing {PACKAGE} (once)");
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]))?;
    Ok(python)
}

fn has_package(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import itch_book"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(said("python3"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{PACKAGE} cannot be installed: {}", said.trim().lines().last().unwrap_or("no reason given")))
}
