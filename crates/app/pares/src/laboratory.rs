//! Commands of the laboratory, which is a program of its own beside this one.
//!
//! What proves and measures is three times as much as what operators need, and may build faults in. So it does not ship inside
//! this program; but people look for `pares drill` here, and so it is run from here.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::error::CommandError;

/// What it is asked for, as the first argument.
pub const COMMANDS: [&str; 6] = ["bench", "demo", "drill", "experiment", "replay", "sim"];

/// What `pares --help` says of them.
pub const HELP: &str = "\
Laboratory commands (they need the program `pares-lab` beside this one):
  demo        Watch an exchange trade while its leading venue is killed every few seconds
  bench       Measure the exchange and its parts on this machine
  drill       Inject faults into an exchange under load, and count losses
  sim         Simulate an exchange in virtual time, with faults from a seed, and check every invariant
  replay      Replay a recorded trading day through an exchange and compare every book state
  experiment  Repeat the papers' measurements on this machine";

/// The arguments of this program, if they are for the laboratory: `pares drill ...` or `pares help drill`.
pub fn asked() -> Option<Vec<OsString>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = arguments.iter().find(|argument| *argument != "help")?;
    COMMANDS.iter().any(|name| command == name).then_some(arguments)
}

/// Becomes the laboratory. Returns only if that fails.
pub fn run(arguments: &[OsString]) -> CommandError {
    let program = match std::env::current_exe() {
        Ok(own) => own.with_file_name("pares-lab"),
        Err(error) => return CommandError::io("finding the path of this program")(error),
    };
    let error = Command::new(&program).args(arguments).exec();
    match error.kind() {
        ErrorKind::NotFound => CommandError::Usage(format!(
            "this command belongs to the laboratory, and {} is missing: install it with `cargo install \
             --locked --path crates/lab/lab`, or build both programs with `cargo build --release -p pares \
             -p pares-lab`",
            program.display()
        )),
        _ => CommandError::io(format!("starting {}", program.display()))(error),
    }
}
