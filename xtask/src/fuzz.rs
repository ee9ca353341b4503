//! `cargo xtask fuzz TARGET [SECONDS]`: fuzzing guided by coverage.
//!
//! The targets' bodies and a deterministic driver are in `fuzz/` and run with every test. Guidance by coverage needs
//! libFuzzer, which needs a nightly compiler. So `fuzz/libfuzzer` is a separate workspace: the tests need neither.

use std::process::{Command, Stdio};

use crate::{cargo, root, setup};

const SECONDS: &str = "60";

/// Fuzzes one target.
///
/// # Errors
/// What is missing, or that the fuzzer found an input that breaks the target.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let targets = targets()?;
    let Some(target) = arguments.first().filter(|target| targets.contains(target)) else {
        return Err(format!(
            "cargo xtask fuzz TARGET [SECONDS], where TARGET is one of: {}",
            targets.join(", ")
        ));
    };
    let seconds = arguments.get(1).map_or(SECONDS, String::as_str);
    check_tools()?;
    write_seeds(target)?;
    let status = Command::new("cargo")
        .args(["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz/libfuzzer", target, "--"])
        .arg(format!("-max_total_time={seconds}"))
        .current_dir(root())
        // Cargo sets its children's toolchain; this child needs another one.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cargo fuzz: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => {
            Err(format!("cargo fuzz ended with {status}; inputs found: fuzz/libfuzzer/artifacts/{target}"))
        }
    }
}

/// Writes inputs that the target accepts into its corpus.
fn write_seeds(target: &str) -> Result<(), String> {
    let corpus = format!("fuzz/libfuzzer/corpus/{target}");
    let written = cargo()
        .args(["run", "--quiet", "--locked", "-p", "pares-fuzz", "--example", "write_seeds", "--"])
        .args([target, &corpus])
        .stdin(Stdio::null())
        .status();
    match written.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err(format!("{corpus}: the seeds could not be written; see above")),
    }
}

/// The names of the targets: the binaries of `fuzz/libfuzzer`.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/libfuzzer/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn check_tools() -> Result<(), String> {
    let nightly = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        command.arg("+nightly").args(arguments).env_remove("RUSTUP_TOOLCHAIN");
        command
    };
    if !setup::answers(&mut nightly(&["--version"])) {
        return Err("setup: fuzzing with coverage needs a nightly compiler; get one with \
                    `rustup toolchain install nightly --profile minimal`"
            .into());
    }
    if setup::answers(&mut nightly(&["fuzz", "--version"])) {
        return Ok(());
    }
    println!("setup: cargo-fuzz is missing; installing it");
    let installed = nightly(&["install", "cargo-fuzz", "--locked"]).stdin(Stdio::null()).status();
    match installed.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err("setup: `cargo install cargo-fuzz` failed; see above".into()),
    }
}
