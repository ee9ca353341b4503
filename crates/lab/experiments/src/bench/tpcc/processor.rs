//! Processor time of processes, from `/proc/PID/stat`.

use std::time::Duration;

/// A tick of that file: a hundredth of a second on every architecture that Linux has.
const TICK: Duration = Duration::from_millis(10);

/// What a process has used so far, threads that have ended included; nothing if it is gone.
pub(super) fn used(process: u32) -> Option<Duration> {
    let (user, system) = (field(process, 11)?, field(process, 12)?);
    Some(TICK * u32::try_from(user + system).ok()?)
}

/// The process that started it.
pub(super) fn parent(process: u32) -> Option<u32> {
    u32::try_from(field(process, 1)?).ok()
}

/// A field behind the program's name, which may itself hold spaces and brackets.
fn field(process: u32, place: usize) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
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
    }
}
