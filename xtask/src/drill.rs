//! `cargo xtask drill`: most drills of `pares drill`, briefly, one line each. Not here: `away`, `days`, `backup`, `broker`, `bad-input`.
//!
//! Counts decide whether a drill succeeds: requests lost, answered twice, executed twice, recorded differently. The longest gap is
//! printed beside that of the quiet stretches, for the reader to judge: on a machine that does other things at the same time
//! no bound would be fair. For longer drills use `pares drill` itself.

use std::process::Command;

use crate::{cargo, setup, target_dir};

/// The drills, and how many rounds each has.
const DRILLS: [&str; 19] = [
    "kill-venue --count 10",
    "stop-venue --count 10",
    "slow-venue --count 10",
    "kill-recorder --count 10",
    "kill-recorder --count 10 --recorders 3 --quorum 2",
    "wipe-recorder --count 5",
    "wipe-recorder --count 5 --recorders 3 --quorum 2",
    "fill-disk --count 2",
    "slow-disk --count 5",
    "kill-gateway --count 6",
    "kill-front --protocol fix --count 6",
    "kill-front --protocol ws --count 6",
    "kill-everything --count 5 --gateways 2",
    "flood --count 2",
    "poison --count 6",
    "diverge --count 5",
    "feed --loss 5 --seconds 6",
    SITES[0],
    SITES[1],
];
/// The drills of sites, which have loads of their own and do not accept the exchange's arguments.
const SITES: [&str; 2] = ["wice --rtt-ms 50 --seconds-per-part 0.5", "history --seconds-per-part 0.5"];
/// The status of `pares-lab` when this machine does not permit the drill.
const SKIPPED: i32 = 77;
/// Requests per second, unless the arguments say another rate.
const RATE: &str = "1000";

/// Builds exchange and laboratory and runs all drills; the arguments go to each drill of the exchange, such as `--rate 5000` or `--durability disk`.
///
/// # Errors
/// The drills whose promise was broken.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    setup::check()?;
    let built = cargo().args(["build", "--release", "--locked", "-p", "pares", "-p", "pares-lab"]).status();
    if !built.map_err(|error| format!("cargo: {error}"))?.success() {
        return Err("the build failed; see above".into());
    }
    println!(
        "{:<50} {:>7} {:>10} {:>9} {:>10}  promise",
        "drill", "answers", "repeated", "gap ms", "quiet ms"
    );
    let mut broken = Vec::new();
    for drill in DRILLS {
        let (line, kept) = one(drill, arguments)?;
        println!("{line}");
        if !kept {
            broken.push(drill);
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("broken: {}", broken.join(", "))) }
}

/// Runs one drill. Returns its line, and whether the promise was kept or could not be tried.
fn one(drill: &str, arguments: &[String]) -> Result<(String, bool), String> {
    let program = target_dir().join("release").join("pares-lab");
    let mut command = Command::new(&program);
    command.arg("drill").args(drill.split_whitespace()).arg("--json");
    let of_exchange = !SITES.contains(&drill);
    if of_exchange {
        command.args(arguments);
    }
    if of_exchange && !arguments.iter().any(|argument| argument.starts_with("--rate")) {
        command.args(["--rate", RATE]);
    }
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let skipped = output.status.code() == Some(SKIPPED);
    let kept = output.status.success();
    let verdict = if kept { "kept" } else { said.lines().last().unwrap_or("broken, without a message") };
    Ok((line(drill, &String::from_utf8_lossy(&output.stdout), verdict), kept || skipped))
}

fn line(drill: &str, figures: &str, verdict: &str) -> String {
    let figure = |name| number(figures, name);
    let count = |name| figure(name).map_or("-".into(), |number| format!("{number:.0}"));
    let ms = |name| figure(name).map_or("-".into(), |number| format!("{number:.1}"));
    format!(
        "{drill:<50} {:>7} {:>10} {:>9} {:>10}  {verdict}",
        count("completed"),
        count("client_retries"),
        ms("max_gap_ms"),
        ms("baseline_max_gap_ms"),
    )
}

/// A number of a JSON object of plain fields: xtask has no dependencies, and so no parser.
fn number(json: &str, name: &str) -> Option<f64> {
    let (_, rest) = json.split_once(&format!("\"{name}\":"))?;
    rest.split([',', '}']).next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_whole_name() {
        let json = r#"{"baseline_max_gap_ms":1.5,"max_gap_ms":2.25,"resync_ms":null,"completed":7}"#;
        assert_eq!(number(json, "max_gap_ms"), Some(2.25));
        assert_eq!(number(json, "completed"), Some(7.0));
        assert_eq!(number(json, "resync_ms"), None);
        assert_eq!(number(json, "gap_ms"), None);
    }

    #[test]
    fn a_drill_that_said_nothing_has_a_line_too() {
        assert!(line("flood --count 2", "", "it broke").ends_with("-          -  it broke"));
    }
}
