//! The two clocks that stamps are taken from.
//!
//! Rules crates read no clock: time reaches them as data. Edges and nodes take it here, so that a search for
//! this module finds every place where time enters the system.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since 1970-01-01 UTC by the wall clock. May step backwards when the host's clock is set.
///
/// # Panics
/// If the host's clock is set before 1970.
pub fn now_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

/// Nanoseconds since an arbitrary instant (boot), never decreasing, the same for all processes of the host:
/// differences between stamps of two processes are meaningful.
pub fn mono_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Another number each time that the host is started; none if the system does not say.
#[must_use]
pub fn boot_number() -> Option<u64> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).ok()
}

fn nanoseconds(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    let seconds = u64::try_from(t.tv_sec).expect("the clock is past its epoch");
    seconds * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_clock_never_decreases_and_wall_clock_is_in_this_century() {
        let a = mono_ns();
        assert!(mono_ns() >= a);
        assert!(now_ns() > 946_684_800_000_000_000);
        assert_eq!(boot_number(), boot_number());
    }
}
