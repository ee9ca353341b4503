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
#[inline]
pub fn mono_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Identifies this boot of the host; zero if it cannot be told, which is to be treated as another boot.
#[must_use]
pub fn boot_id() -> u128 {
    boot_id_of(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default())
}

fn boot_id_of(text: &str) -> u128 {
    u128::from_str_radix(&text.trim().replace('-', ""), 16).unwrap_or(0)
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    let seconds = u64::try_from(t.tv_sec).expect("the clock is past its epoch");
    seconds * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_told_by_its_id_and_none_is_told_by_anything_else() {
        assert_eq!(
            boot_id_of("0a3c2d10-0001-4000-8000-0000000000ff\n"),
            0x0a3c_2d10_0001_4000_8000_0000_0000_00ff
        );
        assert_eq!([boot_id_of(""), boot_id_of("no such file")], [0, 0]);
    }

    #[test]
    fn monotonic_clock_rises_and_wall_clock_is_plausible() {
        let a = mono_ns();
        assert!(mono_ns() >= a);
        assert!(now_ns() > 946_684_800_000_000_000);
    }
}
