//! What a fresh machine lacks, installed where that is possible and named where it is not.

use std::process::{Command, Stdio};

use crate::{cargo, root};

/// Makes sure that everything the tests need is there, and says what they will pass over because it cannot be had.
///
/// # Errors
/// As [`check`].
pub(crate) fn all() -> Result<(), String> {
    check()?;
    postgresql();
    tshark();
    quickfixj();
    xmllint();
    chromium();
    Ok(())
}

/// Makes sure that everything a build needs is there.
///
/// # Errors
/// What is missing and cannot be installed from here, and how to get it.
pub(crate) fn check() -> Result<(), String> {
    for part in ["fmt", "clippy"] {
        if !answers(cargo().args([part, "--version"])) {
            install_component(if part == "fmt" { "rustfmt" } else { part })?;
        }
    }
    if !c_compilers().iter().any(|compiler| answers(Command::new(compiler).arg("--version"))) {
        return Err("setup: no C compiler (cc, gcc or clang), which SQLite is built with; install one \
                    (Debian, Ubuntu: `apt-get install gcc libc6-dev`; Fedora: `dnf install gcc`)"
            .into());
    }
    fetch()
}

fn c_compilers() -> Vec<String> {
    let chosen = std::env::var("CC").ok();
    chosen.into_iter().chain(["cc", "gcc", "clang"].map(str::to_owned)).collect()
}

/// The toolchain is pinned by `rust-toolchain.toml`, which rustup follows by itself; a component may still be
/// missing if the toolchain was there before.
fn install_component(component: &str) -> Result<(), String> {
    println!("setup: {component} is missing; installing it with rustup");
    let installed = Command::new("rustup")
        .args(["component", "add", component])
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    match installed {
        true => Ok(()),
        false => Err(format!(
            "setup: {component} is missing and rustup cannot add it; install Rust from https://rustup.rs"
        )),
    }
}

/// Makes sure that valgrind is there, which only `cargo xtask instructions` needs.
///
/// # Errors
/// If it is not and cannot be installed from here: how to get it.
pub(crate) fn valgrind() -> Result<(), String> {
    let is_there = || answers(Command::new("valgrind").arg("--version"));
    if is_there() {
        return Ok(());
    }
    match install("valgrind") && is_there() {
        true => Ok(()),
        false => Err("setup: valgrind is missing and cannot be installed from here; install it \
                      (Debian, Ubuntu: `apt-get install valgrind`; Fedora: `dnf install valgrind`)"
            .into()),
    }
}

/// Makes sure that PostgreSQL is there, which the tests of `pares-store` and of the broker start servers of.
fn postgresql() {
    // Debian keeps the server's programs out of the path.
    let is_in_its_folder =
        || std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some());
    let is_there = || is_in_its_folder() || answers(Command::new("postgres").arg("--version"));
    offer("PostgreSQL", is_there, "postgresql", "postgresql-server");
}

/// Makes sure that Chromium and its driver are there, which pages are tested in.
fn chromium() {
    let is_there = || answers(Command::new("chromedriver").arg("--version"));
    offer("Chromium with its driver", is_there, "chromium-driver", "chromium chromedriver");
}

/// Makes sure that tshark is there, which dissects captures of market data in tests.
fn tshark() {
    offer("tshark", || answers(Command::new("tshark").arg("--version")), "tshark", "wireshark-cli");
}

/// Makes sure that a member's FIX engine is there, which the tests of FIX order entry start: QuickFIX/J, from Maven's registry.
fn quickfixj() {
    let pom = root().join("tests/quickfixj/pom.xml");
    let is_built = || root().join("target/quickfixj/lib").is_dir();
    let built = answers(Command::new("java").arg("--version"))
        && (answers(Command::new("mvn").args(["-q", "-B", "-o", "-f"]).arg(&pom).arg("package"))
            || answers(Command::new("mvn").args(["-q", "-B", "-f"]).arg(&pom).arg("package")));
    if !(built && is_built()) {
        println!(
            "setup: QuickFIX/J cannot be built, so FIX is not tested against it; install Java 17 and Maven (Debian, Ubuntu: \
             `apt-get install openjdk-17-jdk-headless maven`; Fedora: `dnf install java-17-openjdk-devel maven`)"
        );
    }
}

/// Makes sure that xmllint is there, which holds the broker's logs against their schema.
fn xmllint() {
    offer("xmllint", || answers(Command::new("xmllint").arg("--version")), "libxml2-utils", "libxml2");
}

/// Installs what some tests need, in Debian's package or by hand in Fedora's. Where it cannot be installed they say so and leave that out: everything else can be
/// tested without.
fn offer(name: &str, is_there: impl Fn() -> bool, debian: &str, fedora: &str) {
    if !(is_there() || install(debian) && is_there()) {
        println!(
            "setup: {name} is missing and cannot be installed from here, so what needs it is left out; install it \
             (Debian, Ubuntu: `apt-get install {debian}`; Fedora: `dnf install {fedora}`)"
        );
    }
}

/// Installs a package of Debian's; says whether that succeeded.
fn install(package: &str) -> bool {
    println!("setup: {package} is missing; installing it");
    // As root, or as somebody whom sudo asks nothing.
    let install = ["-n", "apt-get", "install", "--yes", package];
    answers(Command::new("apt-get").args(&install[2..])) || answers(Command::new("sudo").args(install))
}

/// Libraries come from the registry once; afterwards nothing needs a network.
fn fetch() -> Result<(), String> {
    if answers(cargo().args(["metadata", "--format-version=1", "--locked", "--offline"])) {
        return Ok(());
    }
    println!("setup: fetching the libraries named in Cargo.lock");
    let fetched = cargo().args(["fetch", "--locked"]).stdin(Stdio::null()).status();
    match fetched.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err("setup: the libraries cannot be fetched; is there a network?".into()),
    }
}

/// Whether a command runs and succeeds.
pub(crate) fn answers(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
