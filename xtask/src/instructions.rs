//! `cargo xtask instructions [--accept]`: how many instructions the book takes per message.
//!
//! Times on a shared machine vary by a tenth from run to run, so a change that costs three percent goes unseen, and ten of
//! them make a slow book. Instructions counted by valgrind are the same on every run, so a change for the worse shows at once. So are the
//! branches that valgrind's model of a processor mispredicts; a real processor mispredicts fewer. Neither count
//! includes waiting for memory; `pares bench book` does.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, root, setup, target_dir};

const SCENARIOS: [&str; 10] =
    ["static", "normal", "swing-25", "swing-40", "flash-crash", "churn", "sweep", "far", "amends", "misses"];
/// Messages counted of each scenario.
const MESSAGES: u64 = 100_000;
/// More growth than this fails, in thousandths: another compiler changes a count by less.
const GROWTH_MAX: u64 = 30;
const ACCEPTED: &str = "docs/results/instructions.csv";
const TITLES: &str = "scenario,instructions_per_message,mispredictions_per_message";

/// What valgrind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    mispredictions: u64,
}

impl Counts {
    /// The counts without those of `other`, per message, in tenths and in hundredths.
    fn per_message_without(self, other: Self) -> Self {
        let Self { instructions, mispredictions } = self;
        Self {
            instructions: instructions.saturating_sub(other.instructions) * 10 / MESSAGES,
            mispredictions: mispredictions.saturating_sub(other.mispredictions) * 100 / MESSAGES,
        }
    }
}

/// A scenario and its counts per message, in tenths and in hundredths.
type Row = (String, Counts);

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
        let counts = count(&program, scenario)?;
        let before = accepted.iter().find(|(name, _)| name == scenario).map(|&(_, counts)| counts);
        println!("{scenario:12} {} per message{}", told(counts), compared(before));
        counted.push((scenario.to_owned(), counts));
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

fn told(counts: Counts) -> String {
    let (instructions, mispredictions) = (tenths(counts.instructions), hundredths(counts.mispredictions));
    format!("{instructions:>8} instructions, {mispredictions} mispredictions")
}

fn compared(before: Option<Counts>) -> String {
    before.map_or_else(String::new, |before| format!(" (accepted: {})", told(before).trim_start()))
}

/// Whether a count is new or beyond what is accepted.
fn grew((name, counts): &Row, accepted: &[Row]) -> bool {
    let before = accepted.iter().find(|(other, _)| other == name);
    let grown = |before: u64| counts.instructions * 1_000 > before * (1_000 + GROWTH_MAX);
    before.is_none_or(|(_, before)| grown(before.instructions))
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

fn count(program: &Path, scenario: &str) -> Result<Counts, String> {
    let stream = std::env::temp_dir().join(format!("pares-instructions-{}", std::process::id()));
    let written =
        Command::new(program).arg("write").arg(&stream).args([scenario, &MESSAGES.to_string()]).status();
    if !written.is_ok_and(|status| status.success()) {
        return Err(format!("{}: cannot be written", stream.display()));
    }
    let counts = ["apply", "read"].map(|what| counted(program, what, &stream));
    // The next scenario writes it again; a file left over harms nobody.
    let _ = std::fs::remove_file(&stream);
    let [apply, read] = counts;
    Ok(apply?.per_message_without(read?))
}

fn counted(program: &Path, what: &str, stream: &Path) -> Result<Counts, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--branch-sim=yes", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg(what)
        .arg(stream)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    match counts_in(&told) {
        Some(counts) if output.status.success() => Ok(counts),
        _ => Err(format!("valgrind counted nothing:\n{told}")),
    }
}

/// The numbers after `Collected :` and `Mispredicts:` in valgrind's output.
fn counts_in(told: &str) -> Option<Counts> {
    let behind = |words: &str| {
        let rest = told.lines().find_map(|line| line.split_once(words))?.1;
        rest.split_whitespace().next()?.replace(',', "").parse().ok()
    };
    Some(Counts { instructions: behind("Collected :")?, mispredictions: behind("Mispredicts:")? })
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("{ACCEPTED}: {error}; `cargo xtask instructions --accept` makes it"))
}

fn parse(csv: &str) -> Result<Vec<Row>, String> {
    let row = |line: &str| {
        let (name, counts) = line.split_once(',')?;
        let (instructions, mispredictions) = counts.split_once(',')?;
        let counts =
            Counts { instructions: scaled(instructions, 1)?, mispredictions: scaled(mispredictions, 2)? };
        Some((name.to_owned(), counts))
    };
    let rows: Option<Vec<_>> = csv.lines().skip(1).map(row).collect();
    rows.ok_or_else(|| format!("{ACCEPTED}: a row is not `scenario,12.3,0.45`"))
}

/// A number with that many digits after its point, without the point.
fn scaled(number: &str, digits: usize) -> Option<u64> {
    let (whole, rest) = number.split_once('.')?;
    (rest.len() == digits).then(|| format!("{whole}{rest}").parse().ok())?
}

fn render(counted: &[Row]) -> String {
    counted.iter().fold(format!("{TITLES}\n"), |mut csv, (name, counts)| {
        let (instructions, mispredictions) = (tenths(counts.instructions), hundredths(counts.mispredictions));
        writeln!(csv, "{name},{instructions},{mispredictions}").expect("writing to a string never fails");
        csv
    })
}

fn tenths(number: u64) -> String {
    format!("{}.{}", number / 10, number % 10)
}

fn hundredths(number: u64) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, instructions: u64, mispredictions: u64) -> Row {
        (name.to_owned(), Counts { instructions, mispredictions })
    }

    #[test]
    fn what_is_written_is_read_again() {
        let counted = vec![row("static", 1_234, 205), row("normal", 7, 9)];
        let csv = format!("{TITLES}\nstatic,123.4,2.05\nnormal,0.7,0.09\n");
        assert_eq!(render(&counted), csv);
        assert_eq!(parse(&csv).unwrap(), counted);
        assert!(parse("scenario\nstatic,123.4").is_err() && parse("scenario\nstatic,123.4,2.5").is_err());
    }

    #[test]
    fn growth_beyond_three_percent_and_a_new_row_fail() {
        let accepted = [row("static", 1_000, 0)];
        let grew = |name: &str, instructions| grew(&row(name, instructions, 0), &accepted);
        assert!(!grew("static", 1_030));
        assert!(grew("static", 1_031));
        assert!(grew("normal", 1));
    }

    #[test]
    fn the_counts_are_found_among_what_valgrind_tells() {
        let told =
            "==7== Collected : 1234567 12 3\n==7==\n==7== Mispredicts:      215,392  (  214,927 cond)\n";
        let counts = Counts { instructions: 1_234_567, mispredictions: 215_392 };
        assert_eq!(counts_in(told), Some(counts));
        assert_eq!(counts_in("==7== Collected : 12\n"), None);
    }
}
