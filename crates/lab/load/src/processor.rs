//! Processor time of processes and of threads, from `/proc/PID/stat` and `/proc/PID/task/TID/stat`.

use std::collections::BTreeMap;
use std::time::Duration;

/// A tick of that file: a hundredth of a second on every architecture that Linux has.
const TICK: Duration = Duration::from_millis(10);

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// In the program.
    pub user: Duration,
    /// In the kernel on its behalf.
    pub kernel: Duration,
}

impl Spent {
    fn in_stat(stat: &str) -> Option<Self> {
        let ticks = |place| Some(TICK * u32::try_from(field(stat, place)?).ok()?);
        Some(Self { user: ticks(11)?, kernel: ticks(12)? })
    }

    /// What was spent since then.
    pub fn since(self, earlier: Self) -> Self {
        let Self { user, kernel } = self;
        Self { user: user.saturating_sub(earlier.user), kernel: kernel.saturating_sub(earlier.kernel) }
    }

    /// Both.
    pub fn all(self) -> Duration {
        self.user + self.kernel
    }
}

/// What a process has used so far, threads that have ended included; nothing if it is gone.
pub fn used(process: u32) -> Option<Duration> {
    Spent::in_stat(&stat(process)?).map(Spent::all)
}

/// What the threads of this process that are running have used so far, by their names.
pub fn used_by_threads() -> BTreeMap<String, Duration> {
    used_by_threads_of(std::process::id()).into_iter().map(|(name, spent)| (name, spent.all())).collect()
}

/// The same of any process; nothing if it is gone.
pub fn used_by_threads_of(process: u32) -> BTreeMap<String, Spent> {
    let mut used = BTreeMap::<String, Spent>::new();
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        // It may have ended meanwhile.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { continue };
        let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        if let (Some((name, _)), Some(spent)) = (name, Spent::in_stat(&stat)) {
            let sum = used.entry(name.to_owned()).or_default();
            (sum.user, sum.kernel) = (sum.user + spent.user, sum.kernel + spent.kernel);
        }
    }
    used
}

/// The process that started it.
pub fn parent(process: u32) -> Option<u32> {
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
