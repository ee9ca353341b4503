//! The steps of `cargo xtask test`, cheapest first.
//!
//! There are two tiers. *The gate* proves each promise once, and is what a change waits for; `--all` repeats and searches: more seeds,
//! drills, browsers, other FIX engines. Tests that the gate leaves out say so themselves (`#[ignore = "all: .."]`).
//!
//! Building costs more than running. So all tests come from one `cargo test --no-run`, in one profile: another build of
//! one package would unify features differently, and compile its libraries again. Only `--all` builds more: examples in
//! documentation, archives with the feature `s3`, and loom.

use std::process::Command;

use crate::affected;
use crate::disturbance::Disturbance;
use crate::programs::{self, Program};
use crate::report::{Report, Tally};
use crate::running::{self, Way};
use crate::{cargo, s3, setup, target_dir, tidy};

/// Minutes of seeds that nobody has seen before. The log names them.
const SIMULATOR_MINUTES: &str = "1";
/// What `--all` sets so that tests which repeat do it more often: inputs for each fuzz target, seeds for each scenario of the
/// simulator, passages of each crash point.
const MORE: &[(&str, &str)] =
    &[("PARES_FUZZ_ITERATIONS", "50000"), ("PARES_SEEDS", "all"), ("PARES_CRASH_COUNTS", "10")];

/// What to test.
#[derive(Debug, Default, PartialEq)]
struct Options {
    all: bool,
    /// This part, from 0, of so many.
    part: Option<(usize, usize)>,
    disturbed: bool,
    /// Packages may be installed without a question.
    yes: bool,
    crates: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--all" => options.all = true,
                "--disturbed" => options.disturbed = true,
                "--yes" => options.yes = true,
                "--part" => options.part = Some(part(rest.next().map_or("", String::as_str))?),
                flag if flag.starts_with('-') => {
                    return Err(format!("test: there is no {flag}; see `cargo xtask`"));
                }
                name => options.crates.push(name.to_owned()),
            }
        }
        if !options.crates.is_empty() && (options.all || options.part.is_some()) {
            return Err("test: crates go with neither --all nor --part".into());
        }
        Ok(options)
    }

    /// Whether this run does the step of that number; parts take them in turn.
    fn does(&self, number: usize) -> bool {
        self.part.is_none_or(|(part, of)| number % of == part)
    }
}

/// Reads `2/4`: the second of four parts.
fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((part, of)) if (1..=of).contains(&part) => Ok((part - 1, of)),
        _ => Err(format!("test: --part takes a part of all, such as 1/4, not {text:?}")),
    }
}

/// Runs a tier, a part of it, or what a change to some crates needs.
///
/// # Errors
/// Invalid arguments, what a build needs and cannot find, or the steps that failed.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let affected = affected::by(&options.crates)?;
    setup::all(options.all, options.yes)?;
    let mut report = Report::default();
    if options.does(0) {
        report.command("format", cargo().args(["fmt", "--all", "--check"]));
        report.check("tidy", tidy::run);
    }
    let programs = built(&mut report, "clippy and build", checked_tests().args(affected.arguments()));
    let programs = programs.into_iter().enumerate().filter(|(index, _)| options.does(*index));
    let programs: Vec<Program> = programs.map(|(_, program)| program).collect();
    let way = way(options.all)?;
    // Behind the compiler: no test sees how long that takes.
    let _disturbance = options.disturbed.then(Disturbance::begin).transpose()?;
    report.step("tests", || running::run(programs, &way));
    if options.all {
        further(&options, &mut report);
    } else {
        report.leave_out(
            "fresh seeds, doctests, rustdoc, loom, archives in a bucket (`cargo xtask test --all`)",
        );
    }
    affected.left_out().into_iter().for_each(|what| report.leave_out(what));
    report.finish()
}

fn way(all: bool) -> Result<Way, String> {
    let more = MORE.iter().filter(|_| all).map(|(name, value)| (*name, (*value).to_owned()));
    Ok(Way { ignored: all, skip: tidy::tests_by_hand()?, variables: more.collect() })
}

/// What only `--all` does.
fn further(options: &Options, report: &mut Report) {
    let steps: [fn(&mut Report); 6] = [doctests, fresh_seeds, s3::test, documentation, loom, licences];
    steps
        .iter()
        .enumerate()
        .filter(|(number, _)| options.does(number + 1))
        .for_each(|(_, step)| step(report));
}

/// Builds programs of tests as a step of its own; none if that fails.
pub(crate) fn built(report: &mut Report, name: &str, command: &mut Command) -> Vec<Program> {
    let mut found = Vec::new();
    report.check(name, || {
        found = programs::build(command)?;
        println!("{} programs of tests", found.len());
        Ok(())
    });
    found
}

/// Builds all targets with clippy as the compiler. `cargo clippy` is `cargo check` with this same wrapper: as a step of its own it would
/// analyse each crate twice, for two minutes.
fn checked_tests() -> Command {
    let mut command = tests();
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    command.env("CLIPPY_ARGS", ["-D", "warnings", ""].join("__CLIPPY_HACKERY__"));
    command
}

fn tests() -> Command {
    let mut command = cargo();
    // The state of incremental compilation takes more of the disk than all programs.
    command.env("CARGO_INCREMENTAL", "0");
    command.args(["test", "--locked"]);
    command
}

fn doctests(report: &mut Report) {
    report.command("examples in documentation", checked_tests().args(["--workspace", "--doc"]));
}

/// Every scenario over new seeds, by the program that the tests built; the tests themselves use the same seeds each time.
fn fresh_seeds(report: &mut Report) {
    let mut command = Command::new(target_dir().join("debug").join("pares-lab"));
    report.command("simulator, fresh seeds", command.args(["sim", "--minutes", SIMULATOR_MINUTES]));
}

fn documentation(report: &mut Report) {
    let mut command = cargo();
    command.env("RUSTDOCFLAGS", "-D warnings");
    report.command(
        "documentation",
        command.args(["doc", "--workspace", "--no-deps", "--locked", "--keep-going"]),
    );
}

/// Every schedule and reordering of the window's protocol. Another cfg is another build of everything, so it has
/// its own target folder; in a shared one each run would rebuild everything twice.
fn loom(report: &mut Report) {
    let mut command = tests();
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", target_dir().join("loom"));
    let programs =
        built(report, "loom: build", command.args(["-p", "pares-sequencer", "--test", "loom", "--release"]));
    report.step("loom: the window", || match way(false) {
        Ok(way) => running::run(programs, &way),
        Err(why) => {
            let mut tally = Tally::default();
            tally.fail(why);
            tally
        }
    });
}

/// Licences and sources of the libraries, where cargo-deny is installed. Cargo.lock pins the libraries, so one machine that checks
/// is enough.
fn licences(report: &mut Report) {
    if setup::answers(cargo().args(["deny", "--version"])) {
        let check = ["deny", "--offline", "check", "bans", "licenses", "sources"];
        report.command("licences", cargo().args(check));
    } else {
        report.leave_out("licences: cargo-deny is not installed (`cargo install cargo-deny`)");
    }
}

#[cfg(test)]
mod tests_of_options {
    use super::*;

    fn parse(arguments: &str) -> Result<Options, String> {
        Options::parse(&arguments.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn parts_share_all_steps_without_overlap() {
        let parts: Vec<Options> =
            (1..=4).map(|part| parse(&format!("--all --part {part}/4")).unwrap()).collect();
        for number in 0..20 {
            assert_eq!(parts.iter().filter(|part| part.does(number)).count(), 1);
        }
    }

    #[test]
    fn arguments_without_sense_are_refused() {
        for wrong in ["--part 0/4", "--part 5/4", "--part x", "--part", "--al", "--all log"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse("log wice").unwrap().crates, ["log", "wice"]);
    }
}
