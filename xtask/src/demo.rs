//! `cargo xtask demo`: an exchange with traders and a page, from a fresh clone, by one command.
//!
//! A release build of everything takes twenty minutes on a small machine. So the profile `demo` favours compile time, and only
//! what the exchange needs is built: no sites, no broker, no laboratory (whose `pares demo` has a dashboard and kills processes itself).

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::{cargo, root, setup, target_dir};

/// The profile of `Cargo.toml`.
const PROFILE: &str = "demo";

/// Builds `pares` and `market` and becomes `market`, which runs the exchange: Ctrl-C in the terminal reaches it directly.
///
/// # Errors
/// What is missing, or that the build failed. Returns only then.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(argument) = arguments.first() {
        return Err(format!(
            "cargo xtask demo: there is no `{argument}`. The laboratory's demonstration has options: \
             `cargo run --release -p pares-lab -- demo --help`"
        ));
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("cargo xtask demo: Pares runs on Linux on x86-64 only".into());
    }
    setup::for_a_build()?;
    println!(
        "This builds the exchange (needs: Linux on x86-64, Rust by rustup, a C compiler) and runs it in a temporary folder.\n\
         The first build takes about three minutes on two cores, later ones seconds."
    );
    let built = cargo()
        .args(["build", "--profile", PROFILE, "--locked"])
        .args(["-p", "pares", "--no-default-features", "-p", "market"])
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if !built.success() {
        return Err("cargo xtask demo: the build failed; see above".into());
    }
    let program = target_dir().join(PROFILE).join("market");
    let error = Command::new(&program).current_dir(root()).exec();
    Err(format!("{}: {error}", program.display()))
}
