//! The steps of `cargo xtask test`, cheapest first.
//!
//! Building costs more than running. So every step but loom runs what the tests built: the whole workspace, in one profile. A
//! step of one package would unite features otherwise, and build its libraries once more.

use std::process::Command;

use crate::steps::Report;
use crate::{cargo, root, s3, setup, target_dir, tidy};

/// Time spent on seeds that nobody has seen before. The log names them.
const SIMULATOR_MINUTES: &str = "1";
/// Inputs per fuzz target. The same ones each time: this is a test, not a search.
const FUZZ_ITERATIONS: &str = "50000";

/// Runs everything that must hold.
///
/// # Errors
/// The steps that failed.
pub(crate) fn run() -> Result<(), String> {
    setup::all()?;
    let mut report = Report::default();
    report.command("format", cargo().args(["fmt", "--all", "--check"]));
    report.check("tidy", tidy::run);
    report.command(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    );
    report.command("tests", tests().args(["--no-fail-fast", "--", "--show-output"]));
    report.command("stateright, further", tests().args(["--test", "protocol", "--", "--ignored"]));
    report.command("simulator, fresh seeds", &mut simulator());
    s3::test(&mut report);
    report.command(
        "documentation",
        documentation().args(["doc", "--workspace", "--no-deps", "--locked", "--keep-going"]),
    );
    report.command("loom: the window", &mut loom());
    licences(&mut report);
    report.finish()
}

/// Every schedule and reordering of the window's protocol. Another cfg is another build of everything, so it has
/// a target folder of its own; sharing one would rebuild the world twice per run.
fn loom() -> Command {
    let mut command = cargo();
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target_dir().join("loom")).args([
        "test",
        "-p",
        "pares-sequencer",
        "--test",
        "loom",
        "--release",
        "--locked",
    ]);
    command
}

fn tests() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked"]).env("PARES_FUZZ_ITERATIONS", FUZZ_ITERATIONS);
    command
}

/// Every scenario over seeds of today, by the program that the tests built; the tests hold the same ones each time.
fn simulator() -> Command {
    let mut command = Command::new(target_dir().join("debug").join("pares-lab"));
    command.current_dir(root()).args(["sim", "--minutes", SIMULATOR_MINUTES]);
    command
}

fn documentation() -> Command {
    let mut command = cargo();
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// Licences and sources of the libraries, where cargo-deny is installed: it decides nothing that Cargo.lock has
/// not pinned already, so it is not worth installing on every machine.
fn licences(report: &mut Report) {
    if setup::answers(cargo().args(["deny", "--version"])) {
        report
            .command("licences", cargo().args(["deny", "--offline", "check", "bans", "licenses", "sources"]));
    } else {
        println!("\n== licences: left out, cargo-deny is not installed (`cargo install cargo-deny`)");
    }
}
