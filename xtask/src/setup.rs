//! What a fresh machine lacks, installed where that is possible and named where it is not.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use crate::{cargo, root};

/// Installs what the tests need and this machine lacks, and names what is missing still: tests that need it are skipped.
/// `further`: also what only `--all` needs. It asks before it installs packages, unless `yes`, or on a CI machine (`CI=true`).
///
/// # Errors
/// As [`check`].
pub(crate) fn all(further: bool, yes: bool) -> Result<(), String> {
    check()?;
    let more = OF_ALL.iter().filter(|_| further);
    let missing: Vec<&Tool> = OF_THE_GATE.iter().chain(more).filter(|tool| !tool.is_there()).collect();
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|tool| tool.debian).collect();
        let may = yes || std::env::var("CI").is_ok_and(|value| value == "true") || agreed(&packages);
        missing.iter().for_each(|tool| offer(tool, may));
    }
    if further {
        quickfixj();
    }
    Ok(())
}

/// Asks a person at a terminal; without one, nothing is installed.
fn agreed(packages: &[&str]) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    print!("setup: install {} with apt-get (as root, or by sudo)? [y/N] ", packages.join(", "));
    let _shown_or_not = std::io::stdout().flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// A program that some tests need, and skip themselves without.
struct Tool {
    name: &'static str,
    program: &'static str,
    debian: &'static str,
    fedora: &'static str,
}

/// What tests of the gate need: sites and the broker start servers of PostgreSQL; xmllint checks the broker's logs against their schema.
const OF_THE_GATE: [Tool; 2] = [
    Tool { name: "PostgreSQL", program: "postgres", debian: "postgresql", fedora: "postgresql-server" },
    Tool { name: "xmllint", program: "xmllint", debian: "libxml2-utils", fedora: "libxml2" },
];

/// What only `--all` needs: tshark dissects captures of market data, pages are tested in Chromium.
const OF_ALL: [Tool; 2] = [
    Tool { name: "tshark", program: "tshark", debian: "tshark", fedora: "wireshark-cli" },
    Tool {
        name: "Chromium with its driver",
        program: "chromedriver",
        debian: "chromium-driver",
        fedora: "chromium chromedriver",
    },
];

impl Tool {
    fn is_there(&self) -> bool {
        // On Debian the server's programs are not in PATH.
        let in_its_folder = self.program == "postgres"
            && std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| versions.next().is_some());
        in_its_folder || answers(Command::new(self.program).arg("--version"))
    }
}

/// Makes sure that everything is there that a build and its checks need.
///
/// # Errors
/// What is missing and cannot be installed by this program, and how to get it.
pub(crate) fn check() -> Result<(), String> {
    for part in ["fmt", "clippy"] {
        if !answers(cargo().args([part, "--version"])) {
            install_component(if part == "fmt" { "rustfmt" } else { part })?;
        }
    }
    for_a_build()
}

/// Makes sure that everything a build needs is there: a C compiler and the libraries.
///
/// # Errors
/// As [`check`].
pub(crate) fn for_a_build() -> Result<(), String> {
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
/// If it is missing and cannot be installed by this program: how to get it.
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

/// Builds QuickFIX/J from Maven Central, which the tests of FIX use as a member's engine; says so if it cannot.
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

/// Installs a tool from Debian's package if it may; otherwise says that tests are skipped, and how to get it.
fn offer(tool: &Tool, may: bool) {
    if may && install(tool.debian) && tool.is_there() {
        return;
    }
    let Tool { name, debian, fedora, .. } = tool;
    println!(
        "setup: {name} is missing, so the tests that need it are skipped; install it \
         (Debian, Ubuntu: `apt-get install {debian}`; Fedora: `dnf install {fedora}`), or let this command do so (`--yes`)"
    );
}

/// Installs a Debian package; returns whether that succeeded.
fn install(package: &str) -> bool {
    println!("setup: {package} is missing; installing it");
    // As root, or by sudo where it asks for no password.
    let install = ["-n", "apt-get", "install", "--yes", package];
    answers(Command::new("apt-get").args(&install[2..])) || answers(Command::new("sudo").args(install))
}

/// Fetches the libraries from the registry once; later builds need no network.
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
