//! Running commands one after the other: what each is for, how long it took, how many tests it ran.
//!
//! A step that fails does not keep the others from running: whoever reads the end of the output wants to
//! know everything that is wrong.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What became of all steps.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: u64,
    failed: u64,
    /// What tests said that could not be done here, each reason with how often.
    skipped: BTreeMap<String, u64>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
}

impl Report {
    /// Runs a command with its standard input closed. Tests it reports are counted; if it fails without reporting
    /// a failed test, that is one failure.
    pub(crate) fn command(&mut self, name: &'static str, command: &mut Command) {
        self.step(name, || {
            let mut tally = Tally::default();
            let succeeded = run(command, &mut tally).unwrap_or_else(|error| {
                println!("{name}: {error}");
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
                (Tally::default(), false)
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
        self.steps.push(Step { name, passed: tally.passed, failed, took: begun.elapsed() });
    }

    /// Prints each step's time and, alone on the last line, the sum.
    ///
    /// # Errors
    /// If anything failed.
    pub(crate) fn finish(self) -> Result<(), String> {
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
        println!(
            "{} passed, {} failed, {skipped} of the passed skipped what they could not do here",
            self.passed, self.failed
        );
        let broken = self.steps.iter().filter(|step| step.failed > 0).map(|step| step.name);
        match broken.collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            names => Err(format!("failed: {}", names.join(", "))),
        }
    }
}

/// Runs a command, shows what it prints except for tests that passed, and counts those.
fn run(command: &mut Command, tally: &mut Tally) -> std::io::Result<bool> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().expect("piped just above");
    let mut said = false;
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match result_line(&line) {
            Some(result) => {
                tally.passed += result.passed;
                tally.failed += result.failed;
                said = false;
            }
            None if line == "successes:" => said = true,
            None if line == "failures:" => said = false,
            None if said => tally.skipped.extend(line.strip_prefix("skipped: ").map(str::to_owned)),
            None if is_noise(&line) => {}
            None => println!("{line}"),
        }
    }
    Ok(child.wait()?.success())
}

/// Reads `test result: ok. 5 passed; 0 failed; 1 ignored; ...`.
fn result_line(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |what: &str| {
        let part = counts.split("; ").find_map(|part| part.trim().strip_suffix(what))?;
        part.trim().parse().ok()
    };
    Some(Tally { passed: count("passed")?, failed: count("failed")?, skipped: Vec::new() })
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
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(result_line(line), Some(Tally { passed: 12, failed: 3, skipped: Vec::new() }));
        assert_eq!(result_line("test a::b ... ok"), None);
    }

    #[test]
    fn what_tests_skipped_is_counted_and_what_else_they_said_is_hidden() {
        let mut tally = Tally::default();
        let text = "successes:\n---- a stdout ----\nskipped: no data\nmuch else\ntest result: ok. 1 passed; 0 failed; 0 ignored";
        assert!(run(Command::new("printf").arg(text), &mut tally).unwrap());
        assert_eq!(tally, Tally { passed: 1, failed: 0, skipped: vec!["no data".into()] });
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
}
