//! The steps of `cargo xtask test`, cheapest first.

use std::process::Command;

use crate::steps::Report;
use crate::{cargo, setup, target_dir, tidy};

/// Seeds of every scenario that every run of the tests goes through, twice each.
const SIMULATOR_SEEDS: &str = "0..100";
/// Time spent on seeds that nobody has seen before. The log names them.
const SIMULATOR_MINUTES: &str = "1";
/// Inputs per fuzz target. The same ones each time: this is a test, not a search.
const FUZZ_ITERATIONS: &str = "100000";

/// Runs everything that must hold.
///
/// # Errors
/// The steps that failed.
pub(crate) fn run() -> Result<(), String> {
    setup::check()?;
    setup::postgresql();
    let mut report = Report::default();
    report.command("format", cargo().args(["fmt", "--all", "--check"]));
    report.check("tidy", tidy::run);
    report.command(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    );
    report.command(
        "tests",
        cargo().args(["test", "--workspace", "--locked", "--no-fail-fast", "--", "--show-output"]),
    );
    report.command(
        "documentation",
        documentation().args(["doc", "--workspace", "--no-deps", "--locked", "--keep-going"]),
    );
    report.command("loom: the window", &mut loom());
    report.command("stateright, further", &mut stateright());
    report.command("fuzz, short", &mut fuzz());
    report.command("simulator, the same seeds", &mut simulator(&["--seeds", SIMULATOR_SEEDS]));
    report.command("simulator, fresh seeds", &mut simulator(&["--minutes", SIMULATOR_MINUTES]));
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

/// The protocol's cases that are too large for every `cargo test`.
fn stateright() -> Command {
    let mut command = cargo();
    command.args(["test", "-p", "pares-sequencer", "--test", "protocol", "--release", "--locked"]);
    command.args(["--", "--ignored"]);
    command
}

/// The bodies of the fuzz targets over inputs made from a fixed seed, in release: more of them in the same time.
fn fuzz() -> Command {
    let mut command = cargo();
    command.env("PARES_FUZZ_ITERATIONS", FUZZ_ITERATIONS).args([
        "test",
        "-p",
        "pares-fuzz",
        "--release",
        "--locked",
        "--no-fail-fast",
    ]);
    command
}

fn simulator(which: &[&str]) -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--locked", "-p", "pares-lab", "--", "sim"]).args(which);
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
