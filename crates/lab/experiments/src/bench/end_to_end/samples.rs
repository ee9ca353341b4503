//! Samples of where threads are, by `perf`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use pares_load::LabError;

/// Samples in a second of each thread that runs; no divisor of anything that happens regularly.
const PER_SECOND: &str = "499";

/// How often each function was met, by process and name of thread.
pub(super) type Counts = BTreeMap<(u32, String), BTreeMap<String, u64>>;

/// Samples that `perf` has taken.
pub(super) struct Samples {
    file: PathBuf,
}

/// Waits for that time, taking samples of these processes meanwhile. Nothing if there is no `perf`, or it may not.
pub(super) fn take(
    processes: impl Iterator<Item = u32>,
    time: Duration,
) -> Result<Option<Samples>, LabError> {
    let list = processes.map(|process| process.to_string()).collect::<Vec<_>>().join(",");
    let file = std::env::temp_dir().join(format!("pares-{}.perf", std::process::id()));
    let perf = Command::new("perf")
        .args(["record", "-q", "-F", PER_SECOND, "-e", "cpu-clock", "-p", &list, "-o"])
        .arg(&file)
        .args(["--", "sleep", &time.as_secs().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut perf) = perf else {
        std::thread::sleep(time);
        return Ok(None);
    };
    std::thread::sleep(time);
    let ended = perf.wait().map_err(LabError::io("waiting for perf"))?;
    Ok(ended.success().then_some(Samples { file }))
}

impl Samples {
    /// Counts them.
    ///
    /// # Errors
    /// If `perf` cannot read what it has written.
    pub(super) fn counts(&self) -> Result<Counts, LabError> {
        let mut script = Command::new("perf");
        script.arg("script").arg("-i").arg(&self.file).args(["-F", "comm,pid,ip,sym"]);
        let output = script.stderr(Stdio::null()).output().map_err(LabError::io("reading samples"))?;
        Ok(count(&String::from_utf8_lossy(&output.stdout)))
    }
}

impl Drop for Samples {
    fn drop(&mut self) {
        // It lies among temporary files.
        let _ = std::fs::remove_file(&self.file);
    }
}

fn count(lines: &str) -> Counts {
    let mut counts = Counts::new();
    for (thread, process, function) in lines.lines().filter_map(sample) {
        *counts.entry((process, thread)).or_default().entry(function).or_default() += 1;
    }
    counts
}

/// The name of the thread, the process and the function of a line: `turns-0  812  55d0c0a3 pares_book::fast::...`. Functions of the kernel
/// get the prefix `kernel:`, which their addresses tell.
fn sample(line: &str) -> Option<(String, u32, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // A thread's name may have spaces; behind it come a number and an address.
    let is_address = |word: &str| word.len() >= 8 && u64::from_str_radix(word, 16).is_ok();
    let at = (1..words.len().checked_sub(1)?)
        .find(|&at| is_address(words[at + 1]) && words[at].parse::<u32>().is_ok())?;
    let address = u64::from_str_radix(words[at + 1], 16).ok()?;
    let place = if address >> 63 == 1 { "kernel:" } else { "" };
    let function = format!("{place}{}", words[at + 2..].join(" "));
    Some((words[..at].join(" "), words[at].parse().ok()?, function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_by_thread_and_function() {
        let lines = "       turns-0   812     55d0c0a3f2b0 <pares_book::fast::FastBook as Book>::apply\n\
                     turns-0   812     55d0c0a3f2b4 <pares_book::fast::FastBook as Book>::apply\n\
                     pares lab 7   813 ffffffff8123abcd tcp_sendmsg\n\
                     turns-0   812     7f0000000000 [unknown]\n\nnonsense\n";
        let counts = count(lines);
        let of = |process, thread: &str| counts[&(process, thread.to_owned())].clone();
        assert_eq!(
            of(812, "turns-0"),
            BTreeMap::from([
                ("<pares_book::fast::FastBook as Book>::apply".to_owned(), 2),
                ("[unknown]".to_owned(), 1)
            ])
        );
        assert_eq!(of(813, "pares lab 7"), BTreeMap::from([("kernel:tcp_sendmsg".to_owned(), 1)]));
        assert_eq!(counts.len(), 2);
    }
}
