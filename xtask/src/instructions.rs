//! `cargo xtask instructions [--accept]`: how many instructions the book takes per message.
//!
//! Times on a shared machine move by a tenth from run to run, so that a change which costs three percent is never seen, and ten of
//! them make a slow book. Instructions counted by valgrind are the same on every run: a change for the worse is seen at
//! once, before anybody has to trust a clock. They say nothing about waiting for memory; `pares bench book` does.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, root, setup, target_dir};

const SCENARIOS: [&str; 10] =
    ["static", "normal", "swing-25", "swing-40", "flash-crash", "churn", "sweep", "far", "amends", "misses"];
/// Messages counted of each scenario.
const MESSAGES: u64 = 100_000;
/// More than so much growth fails, in thousandths: a compiler moves a count by less.
const GROWTH_MAX: u64 = 30;
const ACCEPTED: &str = "docs/results/instructions.csv";
const TITLES: &str = "scenario,instructions_per_message";

/// Counts, and compares with what was accepted last.
///
/// # Errors
/// What is missing, or which count grew.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let accept = match arguments {
        [] => false,
        [only] if only == "--accept" => true,
        _ => return Err("cargo xtask instructions [--accept]".into()),
    };
    setup::valgrind()?;
    let program = build()?;
    let path = root().join(ACCEPTED);
    let accepted = if accept { Vec::new() } else { parse(&read(&path)?)? };
    let mut counted = Vec::new();
    for scenario in SCENARIOS {
        let tenths = count(&program, scenario)?;
        let before = accepted.iter().find(|(name, _)| name == scenario).map(|&(_, tenths)| tenths);
        println!("{scenario:12} {:>8} instructions per message{}", decimal(tenths), compared(before));
        counted.push((scenario.to_owned(), tenths));
    }
    if accept {
        return std::fs::write(&path, render(&counted)).map_err(|error| format!("{ACCEPTED}: {error}"));
    }
    let grown: Vec<String> =
        counted.into_iter().filter(|c| grew(c, &accepted)).map(|(name, _)| name).collect();
    match grown.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "more than 3 % beyond {ACCEPTED}: {}; if that is worth it, `cargo xtask instructions --accept`",
            grown.join(", ")
        )),
    }
}

fn compared(before: Option<u64>) -> String {
    before.map_or_else(String::new, |before| format!(" (accepted: {})", decimal(before)))
}

/// Whether a count is new or beyond what is accepted.
fn grew((name, tenths): &(String, u64), accepted: &[(String, u64)]) -> bool {
    let before = accepted.iter().find(|(other, _)| other == name);
    before.is_none_or(|(_, before)| tenths * 1_000 > before * (1_000 + GROWTH_MAX))
}

fn build() -> Result<PathBuf, String> {
    let built = cargo()
        .args(["build", "--quiet", "--release", "--locked", "-p", "pares-books", "--example", "instructions"])
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    match built.success() {
        true => Ok(target_dir().join("release/examples/instructions")),
        false => Err("the build failed; see above".into()),
    }
}

/// Instructions per message, in tenths.
fn count(program: &Path, scenario: &str) -> Result<u64, String> {
    let stream = std::env::temp_dir().join(format!("pares-instructions-{}", std::process::id()));
    let written =
        Command::new(program).arg("write").arg(&stream).args([scenario, &MESSAGES.to_string()]).status();
    if !written.is_ok_and(|status| status.success()) {
        return Err(format!("{}: cannot be written", stream.display()));
    }
    let counts = ["apply", "read"].map(|what| instructions(program, what, &stream));
    // The next scenario writes it again; a file left over harms nobody.
    let _ = std::fs::remove_file(&stream);
    let [apply, read] = counts;
    Ok((apply? - read?) * 10 / MESSAGES)
}

fn instructions(program: &Path, what: &str, stream: &Path) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg(what)
        .arg(stream)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    match collected(&told) {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("valgrind counted nothing:\n{told}")),
    }
}

/// The number behind `Collected :` among what valgrind tells.
fn collected(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("{ACCEPTED}: {error}; `cargo xtask instructions --accept` makes it"))
}

fn parse(csv: &str) -> Result<Vec<(String, u64)>, String> {
    let row = |line: &str| {
        let (name, count) = line.split_once(',')?;
        let (whole, tenth) = count.split_once('.')?;
        Some((name.to_owned(), whole.parse::<u64>().ok()? * 10 + tenth.parse::<u64>().ok()?))
    };
    let rows: Option<Vec<_>> = csv.lines().skip(1).map(row).collect();
    rows.ok_or_else(|| format!("{ACCEPTED}: a row is not `scenario,12.3`"))
}

fn render(counted: &[(String, u64)]) -> String {
    counted.iter().fold(format!("{TITLES}\n"), |mut csv, (name, tenths)| {
        writeln!(csv, "{name},{}", decimal(*tenths)).expect("writing to a string never fails");
        csv
    })
}

fn decimal(tenths: u64) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let counted = vec![("static".to_owned(), 1_234), ("normal".to_owned(), 7)];
        assert_eq!(render(&counted), "scenario,instructions_per_message\nstatic,123.4\nnormal,0.7\n");
        assert_eq!(parse(&render(&counted)).unwrap(), counted);
        assert!(parse("scenario\nstatic;1").is_err());
    }

    #[test]
    fn growth_beyond_three_percent_and_a_new_row_fail() {
        let accepted = [("static".to_owned(), 1_000)];
        let grew = |name: &str, tenths| grew(&(name.to_owned(), tenths), &accepted);
        assert!(!grew("static", 1_030));
        assert!(grew("static", 1_031));
        assert!(grew("normal", 1));
    }

    #[test]
    fn the_count_is_found_among_what_valgrind_tells() {
        let told = "==7== Events    : Ir\n==7== Collected : 1234567\n==7==\n";
        assert_eq!(collected(told), Some(1_234_567));
        assert_eq!(collected("==7== fatal"), None);
    }
}
