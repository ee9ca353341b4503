//! The results of all steps: how long each took, how many tests it ran, which were slow, which failed, which were skipped and why.
//!
//! A step that fails does not keep the others from running: the end of the output names everything that is wrong.

use std::collections::BTreeMap;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::slow;

/// How many of the slowest tests are shown.
const SLOWEST: usize = 20;

/// The results of all steps.
#[derive(Debug, Default)]
pub(crate) struct Report {
    all: Tally,
    steps: Vec<Step>,
    /// What this run did not do, each with the reason.
    left_out: Vec<String>,
}

#[derive(Debug)]
struct Step {
    name: String,
    passed: u64,
    failed: u64,
    took: Duration,
}

/// Tests counted in the output of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    /// Tests that this tier leaves out.
    ignored: u64,
    /// Reasons for which tests were skipped, and how many were.
    skipped: BTreeMap<String, u64>,
    /// Names of tests that failed, and the reasons of steps that failed without one.
    failures: Vec<String>,
    /// Each test's seconds and name.
    times: Vec<(f64, String)>,
}

impl Report {
    /// Runs a command that prints to the terminal, as a step without tests of its own. If it fails, that is one failure.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) -> bool {
        self.step(name, || {
            let mut tally = Tally::default();
            match command.stdin(Stdio::null()).status() {
                Ok(status) if status.success() => {}
                Ok(status) => tally.fail(format!("{name}: {status}; see above")),
                Err(error) => tally.fail(format!("{name}: {error}")),
            }
            tally
        })
    }

    /// Runs a check of our own.
    pub(crate) fn check(&mut self, name: &str, check: impl FnOnce() -> Result<(), String>) {
        self.step(name, || {
            let mut tally = Tally::default();
            if let Err(why) = check() {
                println!("{why}");
                tally.fail(format!("{name}: {}", why.lines().last().unwrap_or_default()));
            }
            tally
        });
    }

    /// Runs a step and adds what it counted; returns whether nothing failed.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Tally) -> bool {
        println!("\n== {name}");
        let begun = Instant::now();
        let tally = work();
        let (passed, failed) = (tally.passed, tally.failed);
        self.steps.push(Step { name: name.to_owned(), passed, failed, took: begun.elapsed() });
        self.all.add(tally);
        failed == 0
    }

    /// Notes what this run does not do.
    pub(crate) fn leave_out(&mut self, what: impl Into<String>) {
        self.left_out.push(what.into());
    }

    /// Prints slow tests, failures, each step's time, what was left out and, alone on the last line, the sums.
    ///
    /// # Errors
    /// If anything failed.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        self.print_slowest();
        for name in &self.all.failures {
            println!("failed: {name}");
        }
        println!("\n{:<28} {:>8} {:>8} {:>9}", "step", "passed", "failed", "seconds");
        for step in &self.steps {
            let seconds = step.took.as_secs_f64();
            println!("{:<28} {:>8} {:>8} {seconds:>9.1}", step.name, step.passed, step.failed);
        }
        let total: Duration = self.steps.iter().map(|step| step.took).sum();
        let (passed, failed) = (self.all.passed, self.all.failed);
        println!("{:<28} {passed:>8} {failed:>8} {:>9.1}\n", "all", total.as_secs_f64());
        self.print_left_out();
        let skipped: u64 = self.all.skipped.values().sum();
        // Other programs read this line: keep its form.
        println!("{} passed, {failed} failed, {skipped} skipped", passed.saturating_sub(skipped));
        let broken: Vec<&str> =
            self.steps.iter().filter(|step| step.failed > 0).map(|step| step.name.as_str()).collect();
        if broken.is_empty() { Ok(()) } else { Err(format!("failed: {}", broken.join(", "))) }
    }

    fn print_slowest(&mut self) {
        self.all.times.sort_by(|one, other| other.0.total_cmp(&one.0));
        if self.all.times.is_empty() {
            return;
        }
        println!("\n{:>9}  slowest tests", "seconds");
        for (seconds, test) in self.all.times.iter().take(SLOWEST) {
            println!("{seconds:>9.1}  {test}{}", slow::reason(*seconds, test));
        }
    }

    fn print_left_out(&self) {
        for what in &self.left_out {
            println!("left out: {what}");
        }
        if self.all.ignored > 0 {
            println!("left out: {} tests that search or repeat (`cargo xtask test --all`)", self.all.ignored);
        }
        for (why, count) in &self.all.skipped {
            println!("skipped {count}: {why}");
        }
    }
}

impl Tally {
    /// Notes a failure that no test reported.
    pub(crate) fn fail(&mut self, why: String) {
        self.failed += 1;
        self.failures.push(why);
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        other.skipped.into_iter().for_each(|(why, count)| *self.skipped.entry(why).or_default() += count);
        self.failures.extend(other.failures);
        self.times.extend(other.times);
    }

    /// Counts the tests in a program's output, prints what is not about tests that passed, and returns a summary.
    pub(crate) fn add_program(&mut self, program: &str, output: &str) -> String {
        let mut own = Self::default();
        // After the results come sections with the tests' own output, which may look like results.
        let (mut in_sections, mut of_passed) = (false, false);
        for line in output.lines() {
            match line {
                "successes:" => (in_sections, of_passed) = (true, true),
                "failures:" => (in_sections, of_passed) = (true, false),
                line if !in_sections && own.count(program, line) => {}
                line if of_passed => {
                    if let Some(why) = line.strip_prefix("skipped: ") {
                        *own.skipped.entry(why.to_owned()).or_default() += 1;
                    }
                }
                line if is_noise(line) => {}
                line => println!("{line}"),
            }
        }
        let summary = match (own.failed, own.ignored) {
            (0, 0) => format!("{} passed", own.passed),
            (0, ignored) => format!("{} passed, {ignored} left out", own.passed),
            (failed, _) => format!("{} passed, {failed} FAILED", own.passed),
        };
        self.add(own);
        summary
    }

    /// Counts one line, if it is a test's result: `test NAME ... ok <0.123s>`.
    fn count(&mut self, program: &str, line: &str) -> bool {
        let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return false;
        };
        let name = format!("{program}: {}", name.trim_end_matches(" - should panic"));
        let (outcome, seconds) = result.split_once(" <").unwrap_or((result, ""));
        match outcome {
            "ok" => self.passed += 1,
            "FAILED" => {
                self.failed += 1;
                self.failures.push(name.clone());
            }
            ignored if ignored.starts_with("ignored") => {
                self.ignored += 1;
                return true;
            }
            _ => return false,
        }
        let seconds = seconds.trim_end_matches("s>").parse().unwrap_or_default();
        self.times.push((seconds, name));
        true
    }

    /// Notes a program that did not end well although no test of it failed: it was killed, or took too long.
    pub(crate) fn check_status(&mut self, program: &str, status: Option<ExitStatus>) {
        let beginning = format!("{program}: ");
        match status {
            Some(status) if status.success() => {}
            Some(_) if self.failures.iter().any(|failure| failure.starts_with(&beginning)) => {}
            Some(status) => self.fail(format!("{program}: {status} without a test that failed")),
            None => self.fail(format!("{program}: did not end; its output names the tests that still ran")),
        }
    }
}

/// Lines of the test harness that need no reader: headings, sums, blank lines.
fn is_noise(line: &str) -> bool {
    let heading = line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
    heading || line.starts_with("test result: ") || line.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(output: &str) -> Tally {
        let mut tally = Tally::default();
        tally.add_program("sky", output);
        tally
    }

    #[test]
    fn results_are_counted_with_their_times() {
        let tally = counted(
            "running 3 tests\ntest a::b ... ok <0.500s>\ntest c ... ignored, all: repeats\n\
                             test d - should panic ... ok <1.250s>\n\ntest result: ok. 2 passed; 0 failed",
        );
        assert_eq!((tally.passed, tally.failed, tally.ignored), (2, 0, 1));
        assert_eq!(tally.times, [(0.5, "sky: a::b".into()), (1.25, "sky: d".into())]);
    }

    #[test]
    fn skip_reasons_are_counted_passed_output_is_hidden() {
        let tally = counted(
            "test a ... ok <0.1s>\n\nsuccesses:\n\n---- a stdout ----\nskipped: no data\nmuch else\n\
             test b ... FAILED <0.1s>\n\n\
                             successes:\n    a\n\ntest result: ok. 1 passed; 0 failed; 0 ignored",
        );
        assert_eq!(
            (tally.passed, tally.failed, tally.skipped),
            (1, 0, BTreeMap::from([("no data".into(), 1)]))
        );
    }

    #[test]
    fn a_test_that_failed_is_named_with_its_program() {
        let mut tally = counted("test rain ... FAILED <2.500s>\ntest result: FAILED. 0 passed; 1 failed");
        assert_eq!(tally.failures, ["sky: rain"]);
        let failed = Command::new("false").status().unwrap();
        tally.check_status("sky", Some(failed));
        assert_eq!(tally.failed, 1, "the program's status says nothing more");
    }

    #[test]
    fn a_program_that_ends_badly_without_a_failed_test_is_a_failure() {
        let mut tally = counted("test rain ... ok <0.1s>\n");
        tally.check_status("sky", None);
        tally.check_status("sea", Some(Command::new("false").status().unwrap()));
        assert_eq!((tally.passed, tally.failed), (1, 2));
    }

    #[test]
    fn a_failing_step_without_tests_is_one_failure() {
        let mut report = Report::default();
        report.check("sky", || Err("clouds\nit rains".into()));
        assert!(report.command("true", &mut Command::new("true")));
        assert!(!report.command("false", &mut Command::new("false")));
        assert_eq!((report.all.passed, report.all.failed), (0, 2));
        assert_eq!(report.all.failures[0], "sky: it rains");
        assert_eq!(report.finish(), Err("failed: sky, false".into()));
    }
}
