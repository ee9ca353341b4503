//! `cargo xtask compare`: the two books side by side over fresh random requests.
//!
//! Every test run compares them over the same seeds, and finds what those find. This tries new seeds, for as long as asked. The program that does it is `fuzz/examples/compare.rs`; here it is built, in release, and run.

use std::process::Stdio;

use crate::cargo;

/// Compares; the arguments are the program's.
///
/// # Errors
/// If the books differ; the program has printed how to reproduce it.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let status = cargo()
        .args(["run", "--quiet", "--release", "--locked", "-p", "pares-fuzz", "--example", "compare", "--"])
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("compare ended with {status}")) }
}
