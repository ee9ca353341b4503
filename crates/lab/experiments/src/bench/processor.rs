//! Processor time of processes and of threads, from `/proc/PID/stat` and `/proc/self/task/TID/stat`.

use std::collections::BTreeMap;
use std::time::Duration;

/// A tick of that file: a hundredth of a second on every architecture that Linux has.
const TICK: Duration = Duration::from_millis(10);

/// What a process has used so far, threads that have ended included; nothing if it is gone.
pub(super) fn used(process: u32) -> Option<Duration> {
    used_in(&stat(process)?)
}

fn used_in(stat: &str) -> Option<Duration> {
    Some(TICK * u32::try_from(field(stat, 11)? + field(stat, 12)?).ok()?)
}

/// What the threads of this process that are running have used so far, by their names.
pub(super) fn used_by_threads() -> BTreeMap<String, Duration> {
    let mut used = BTreeMap::new();
    for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        // It may have ended meanwhile.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { continue };
        let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        if let (Some((name, _)), Some(time)) = (name, used_in(&stat)) {
            *used.entry(name.to_owned()).or_default() += time;
        }
    }
    used
}

/// The process that started it.
pub(super) fn parent(process: u32) -> Option<u32> {
    u32::try_from(field(&stat(process)?, 1)?).ok()
}

fn stat(process: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{process}/stat")).ok()
}

/// A field behind the program's name, which may itself hold spaces and brackets.
fn field(stat: &str, place: usize) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent_and_uses_time() {
        let own = std::process::id();
        assert_eq!(parent(own), Some(std::os::unix::process::parent_id()));
        let before = used(own).unwrap();
        let mut sum = 0_u64;
        while used(own).unwrap() < before + 2 * TICK {
            sum = (0..100_000).fold(sum, |sum, more| std::hint::black_box(sum ^ more));
        }
        assert_eq!(used(u32::MAX), None);
        // The system keeps the first 15 bytes.
        let name =
            std::thread::current().name().map(|name| name.chars().take(15).collect::<String>()).unwrap();
        assert!(used_by_threads().contains_key(&name), "{name}");
    }
}
