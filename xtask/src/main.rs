//! What a person or a CI machine runs: `cargo xtask test`, `setup`, `demo`, `drill`, `tidy`, `fuzz`, `compare`, `s3`.
//!
//! A shell script or a make file would need tools that a fresh machine may not have. This is a Rust program without
//! dependencies, so a machine that can build the exchange can run it; what else is missing it installs or names.
//!
//! | module | what |
//! |---|---|
//! | `setup` | what a fresh machine lacks |
//! | `suite` | the steps of `cargo xtask test` |
//! | `steps` | running commands, timing them, counting their tests |
//! | `drill` | every drill, briefly |
//! | `tidy` | rules of the workspace that the compiler does not know |
//! | `fuzz` | fuzzing with coverage, beyond the short runs in the tests |
//! | `s3` | archives in a bucket |
//! | `compare` | the two books side by side over fresh random requests, for as long as it is told |
//! | `instructions` | instructions per message of the book, compared with what was accepted |
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line talks

mod compare;
mod drill;
mod fuzz;
mod instructions;
mod s3;
mod setup;
mod steps;
mod suite;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo xtask test                    everything that must hold: format, tidy, clippy, tests, loom, simulator
cargo xtask setup                   what the tests need and a fresh machine lacks; part of test
cargo xtask demo [ARGS]             build and run `pares demo` (arguments are passed on)
cargo xtask drill [ARGS]            every drill of `pares drill`, briefly (arguments are passed on to each)
cargo xtask tidy                    only the rules that the compiler does not know
cargo xtask fuzz TARGET [SECONDS]   fuzz with coverage (60 s unless told; needs a nightly toolchain)
cargo xtask compare [ARGS]          compare the two books over fresh random requests: --minutes M, --requests N, --seed S
cargo xtask instructions [--accept] count the book's instructions per message (needs valgrind; installed if it can be)
cargo xtask s3 [TEST]               the tests of archives in a bucket, of a server that it starts (installs moto, from PyPI)
cargo xtask ci                      the same as test";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let result = match arguments.first().map(String::as_str) {
        Some("test" | "ci") => suite::run(),
        Some("setup") => setup::all(),
        Some("demo") => demo(rest),
        Some("drill") => drill::run(rest),
        Some("tidy") => tidy::run(),
        Some("fuzz") => fuzz::run(rest),
        Some("compare") => compare::run(rest),
        Some("s3") => s3::run(rest),
        Some("instructions") => instructions::run(rest),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Where builds go.
fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The cargo that runs this program, or any.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds the exchange and shows it.
fn demo(arguments: &[String]) -> Result<(), String> {
    setup::check()?;
    println!("building (the first time takes a few minutes)");
    // `cargo run` stays between the terminal and the exchange; the built program itself gets Ctrl-C directly.
    let built = cargo().args(["build", "--release", "--locked", "-p", "pares", "-p", "pares-lab"]).status();
    if !built.map_err(|error| format!("cargo: {error}"))?.success() {
        return Err("the build failed; see above".into());
    }
    let program = target_dir().join("release").join("pares-lab");
    let status = Command::new(&program)
        .arg("demo")
        .args(arguments)
        .current_dir(root())
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("pares demo ended with {status}")) }
}
