//! What a person or a CI machine runs: `cargo xtask test`, `setup`, `demo`, `drill`, `tidy`, `fuzz`, `compare`, `instructions`, `s3`.
//!
//! A shell script or a make file would need tools that a fresh machine may not have. This is a Rust program without
//! dependencies, so a machine that can build the exchange can run it; it installs what else is missing, or names it.
//!
//! | module | what |
//! |---|---|
//! | `setup` | what a fresh machine lacks |
//! | `suite` | the steps of `cargo xtask test`, in two tiers |
//! | `affected` | which crates a change to some crates affects |
//! | `programs` | building the programs of tests |
//! | `running` | running them, several at a time |
//! | `report` | the results of all steps |
//! | `slow` | why a test of the gate may take long |
//! | `disturbance` | taking the processors away while tests run |
//! | `demo` | an exchange with traders and a page |
//! | `drill` | most drills, briefly |
//! | `tidy` | rules of the workspace that the compiler does not check |
//! | `fuzz` | fuzzing with coverage, beyond the short runs in the tests |
//! | `s3` | tests of archives in a bucket |
//! | `compare` | the two books side by side over fresh random requests |
//! | `instructions` | instructions per message of the book, compared with what was accepted |
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command-line program prints

mod affected;
mod compare;
mod demo;
mod disturbance;
mod drill;
mod fuzz;
mod instructions;
mod programs;
mod report;
mod running;
mod s3;
mod setup;
mod slow;
mod suite;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
cargo xtask test                    the gate: format, tidy, clippy, and one proof of each promise
cargo xtask test --all              the gate, and what repeats and searches: drills, browsers, fresh seeds, loom, ...
cargo xtask test --part 1/4         the first of four parts of the gate (or of --all), one for each of four machines
cargo xtask test CRATE...           what a change to these crates needs
cargo xtask test --disturbed        the gate, while a busy loop takes every processor for one second of every five (as root)
                                    with --yes, `test` and `setup` install missing packages without asking
cargo xtask setup                   install or name what the tests need and this machine lacks; `test` begins with it
cargo xtask demo                    build and run an exchange with traders and a page to look at, until Ctrl-C
cargo xtask drill [ARGS]            most drills of `pares drill`, briefly (ARGS go to each drill of the exchange, such as --rate 5000)
cargo xtask tidy                    only the rules that the compiler does not check
cargo xtask fuzz TARGET [SECONDS]   fuzz with coverage (60 s by default; needs a nightly toolchain)
cargo xtask compare [ARGS]          compare the two books over fresh random requests: --minutes M, --requests N, --seed S
cargo xtask instructions [--accept] count the book's instructions per message (installs valgrind if it can)
cargo xtask s3 [TEST]               the tests of archives, in a bucket of a server that it starts (installs moto from PyPI)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let result = match arguments.first().map(String::as_str) {
        Some("test") => suite::run(rest),
        Some("setup") => setup::all(true, rest.iter().any(|argument| argument == "--yes")),
        Some("demo") => demo::run(rest),
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
