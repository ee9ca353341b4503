//! `--disturbed`: a busy loop takes every processor for one second of every five.
//!
//! On a shared machine everything stalls now and then, and a test that depends on timing fails there, rarely. Here that
//! happens often: on each processor a loop of real-time priority is busy for one second and rests for four.

use std::process::{Child, Command, Stdio};
use std::thread;

/// One second busy, four at rest, for as long as xtask runs.
const TURNS: &str = "while kill -0 $0 2>/dev/null; do timeout 1 sh -c 'while :; do :; done'; sleep 4; done";

/// The busy loops; dropping this ends them.
#[derive(Debug)]
pub(crate) struct Disturbance(Vec<Child>);

impl Disturbance {
    /// Begins to take the processors away.
    ///
    /// # Errors
    /// If no process can have that priority (`chrt`, of util-linux, as root).
    pub(crate) fn begin() -> Result<Self, String> {
        let tried = Command::new("chrt").args(["--rr", "50", "true"]).status();
        if !tried.is_ok_and(|status| status.success()) {
            return Err("chrt --rr 50 true failed; --disturbed needs root and util-linux".into());
        }
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let own = std::process::id().to_string();
        let mut loops = Self(Vec::new());
        for processor in 0..processors {
            let mut command = Command::new("chrt");
            // Round robin: beside a loop of FIFO priority `timeout` would never run, and the loop never end.
            let words = format!("--rr 50 taskset --cpu-list {processor} sh -c");
            command.args(words.split(' ')).args([TURNS, &own]);
            let child = command.stdin(Stdio::null()).spawn().map_err(|error| format!("chrt: {error}"))?;
            loops.0.push(child);
        }
        Ok(loops)
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ended_before = child.kill();
            let _nothing_to_wait_for = child.wait();
        }
    }
}
