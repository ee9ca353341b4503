//! Running commands one after the other: what each is for, how long it took, how many tests it ran.
//!
//! A step that fails does not keep the others from running: the end of the output names everything that is wrong.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Programs of tests whose times are shown.
const SLOWEST: usize = 12;

/// What became of all steps.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: u64,
    failed: u64,
    /// What tests said that could not be done here, each reason with how often.
    skipped: BTreeMap<String, u64>,
    /// Names of tests that failed, and the last words of steps that failed without one.
    failures: Vec<String>,
    /// Programs of tests, and the seconds each took.
    programs: Vec<(f64, String)>,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    passed: u64,
    failed: u64,
    took: Duration,
}

/// Tests counted in the output of one command.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
    failures: Vec<String>,
    programs: Vec<(f64, String)>,
    /// The last line that said something: why the command failed, if it did.
    last: String,
}

impl Report {
    /// Runs a command with its standard input closed. Tests it reports are counted; if it fails without reporting
    /// a failed test, that is one failure.
    pub(crate) fn command(&mut self, name: &'static str, command: &mut Command) {
        self.step(name, || {
            let mut tally = Tally::default();
            let succeeded = run(command, &mut tally).unwrap_or_else(|error| {
                println!("{name}: {error}");
                tally.last = error.to_string();
                false
            });
            (tally, succeeded)
        });
    }

    /// Runs a check of our own.
    pub(crate) fn check(&mut self, name: &'static str, check: impl FnOnce() -> Result<(), String>) {
        self.step(name, || match check() {
            Ok(()) => (Tally::default(), true),
            Err(why) => {
                println!("{why}");
                (Tally { last: why, ..Tally::default() }, false)
            }
        });
    }

    fn step(&mut self, name: &'static str, work: impl FnOnce() -> (Tally, bool)) {
        println!("\n== {name}");
        let begun = Instant::now();
        let (tally, succeeded) = work();
        let failed = tally.failed.max(u64::from(!succeeded));
        self.passed += tally.passed;
        self.failed += failed;
        tally.skipped.into_iter().for_each(|why| *self.skipped.entry(why).or_default() += 1);
        if !succeeded && tally.failures.is_empty() {
            self.failures.push(format!("{name}: {}", tally.last));
        }
        self.failures.extend(tally.failures);
        self.programs.extend(tally.programs);
        self.steps.push(Step { name, passed: tally.passed, failed, took: begun.elapsed() });
    }

    /// Prints each step's time and, alone on the last line, the sum.
    ///
    /// # Errors
    /// If anything failed.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        self.programs.sort_by(|one, other| other.0.total_cmp(&one.0));
        println!("\n{:<46} {:>9}", "slowest programs of tests", "seconds");
        for (seconds, program) in self.programs.iter().take(SLOWEST) {
            println!("{program:<46} {seconds:>9.1}");
        }
        for name in &self.failures {
            println!("failed: {name}");
        }
        println!("\n{:<28} {:>8} {:>8} {:>9}", "step", "passed", "failed", "seconds");
        for step in &self.steps {
            let seconds = step.took.as_secs_f64();
            println!("{:<28} {:>8} {:>8} {seconds:>9.1}", step.name, step.passed, step.failed);
        }
        let total: Duration = self.steps.iter().map(|step| step.took).sum();
        println!("{:<28} {:>8} {:>8} {:>9.1}\n", "all", self.passed, self.failed, total.as_secs_f64());
        for (why, count) in &self.skipped {
            println!("skipped {count}: {why}");
        }
        let skipped: u64 = self.skipped.values().sum();
        // Others count tests by this line's form.
        println!("{} passed, {} failed, {skipped} skipped", self.passed.saturating_sub(skipped), self.failed);
        let broken = self.steps.iter().filter(|step| step.failed > 0).map(|step| step.name);
        match broken.collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            names => Err(format!("failed: {}", names.join(", "))),
        }
    }
}

/// Runs a command, shows what it prints except for tests that passed, and counts those.
fn run(command: &mut Command, tally: &mut Tally) -> std::io::Result<bool> {
    // One pipe for both: cargo names a program on standard error before the program speaks on standard output.
    let (output, into) = std::io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(into.try_clone()?).stderr(into).spawn()?;
    // The command holds the pipe's other end until it is told to hold another.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (mut program, mut said) = (String::new(), false);
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match result_line(&line) {
            Some((passed, failed, seconds)) => {
                tally.passed += passed;
                tally.failed += failed;
                tally.programs.push((seconds, std::mem::take(&mut program)));
                said = false;
            }
            None if line == "successes:" => said = true,
            None if line == "failures:" => said = false,
            None if said => tally.skipped.extend(line.strip_prefix("skipped: ").map(str::to_owned)),
            None => heard(&line, &mut program, tally),
        }
    }
    Ok(child.wait()?.success())
}

/// A line that is neither a result nor what a test said: shown unless it says that nothing is wrong.
fn heard(line: &str, program: &mut String, tally: &mut Tally) {
    let started = line.trim_start().strip_prefix("Running ").or(line.trim_start().strip_prefix("Doc-tests "));
    if let Some(name) = started {
        *program = readable(name);
    } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
        tally.failures.push(format!("{program}: {name}"));
    } else if !is_noise(line) {
        println!("{line}");
        line.clone_into(&mut tally.last);
    }
}

/// `tests/seeds.rs (target/debug/deps/seeds-a3a1f11bef93ebb1)` as `tests/seeds.rs seeds`.
fn readable(program: &str) -> String {
    let Some((source, file)) = program.split_once(" (") else { return format!("{program} (documentation)") };
    let name = file.rsplit('/').next().unwrap_or(file);
    let name = name.rsplit_once('-').map_or(name, |(name, _hash)| name);
    format!("{} {name}", source.trim_start_matches("unittests "))
}

/// Reads `test result: ok. 5 passed; 0 failed; 1 ignored; ...; finished in 0.10s`: passed, failed, seconds.
fn result_line(line: &str) -> Option<(u64, u64, f64)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |what: &str| {
        let part = counts.split("; ").find_map(|part| part.trim().strip_suffix(what))?;
        part.trim().parse().ok()
    };
    let seconds =
        counts.rsplit_once("finished in ").and_then(|(_, seconds)| seconds.strip_suffix('s')?.parse().ok());
    Some((count("passed")?, count("failed")?, seconds.unwrap_or_default()))
}

/// Lines of the test harness that say that nothing is wrong.
fn is_noise(line: &str) -> bool {
    let passed = line.starts_with("test ") && (line.ends_with("... ok") || line.contains(" ... ok ("));
    let skipped = line.starts_with("test ") && line.contains("... ignored");
    let heading = line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
    passed || skipped || heading || line.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_line_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s";
        assert_eq!(result_line(line), Some((12, 3, 0.1)));
        assert_eq!(result_line("test a::b ... ok"), None);
    }

    #[test]
    fn what_tests_skipped_is_counted_and_what_else_they_said_is_hidden() {
        let mut tally = Tally::default();
        let text = "successes:\n---- a stdout ----\nskipped: no data\nmuch else\ntest result: ok. 1 passed; 0 failed; 0 ignored";
        assert!(run(Command::new("printf").arg(text), &mut tally).unwrap());
        assert_eq!((tally.passed, tally.failed, tally.skipped), (1, 0, vec!["no data".into()]));
    }

    #[test]
    fn a_test_that_failed_is_named_with_its_program() {
        let mut tally = Tally::default();
        let text = "     Running tests/sky.rs (target/debug/deps/sky-a3a1)\ntest rain ... FAILED\n\
                    test result: FAILED. 0 passed; 1 failed; finished in 2.50s";
        run(Command::new("printf").arg(text), &mut tally).unwrap();
        assert_eq!(tally.failures, ["tests/sky.rs sky: rain"]);
        assert_eq!(tally.programs, [(2.5, "tests/sky.rs sky".into())]);
    }

    #[test]
    fn only_what_passed_is_hidden() {
        assert!(is_noise("test a::b ... ok"));
        assert!(is_noise("running 1 test"));
        assert!(!is_noise("test a::b ... FAILED"));
        assert!(!is_noise("assertion failed: it rains"));
    }

    #[test]
    fn a_failing_step_without_tests_is_one_failure() {
        let mut report = Report::default();
        report.check("sky", || Err("it rains".into()));
        report.command("true", &mut Command::new("true"));
        assert_eq!((report.passed, report.failed), (0, 1));
        assert_eq!(report.finish(), Err("failed: sky".into()));
    }

    #[test]
    fn a_step_that_fails_without_tests_is_named_with_its_last_words() {
        let mut report = Report::default();
        report.command("sky", Command::new("sh").args(["-c", "echo clouds; echo replay seed 7; exit 1"]));
        report.check("sea", || Err("it is salty".into()));
        assert_eq!(report.failures, ["sky: replay seed 7", "sea: it is salty"]);
    }
}
