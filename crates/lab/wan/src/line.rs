//! One way of the line: when a piece that enters now comes out.

use crate::{Conditions, SEGMENT_BYTES};

/// What a line of a limited rate holds before senders have to wait, ns: a router's buffer.
const BUFFER_NS: u64 = 50_000_000;
/// Read at a time where the rate is not limited. Where it is, a segment, or the last bit would hold up the first.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// Shared by all connections in that direction.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) conditions: Conditions,
    /// When the last piece that entered has passed the narrow place, ns.
    free_ns: u64,
    random: u64,
    seed: u64,
}

/// What becomes of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// When it comes out, ns.
    pub(super) due_ns: u64,
    /// Segments of it that are lost.
    pub(super) lost: u64,
    /// Where in it the connection breaks, bytes.
    pub(super) breaks_at: Option<usize>,
}

impl Line {
    pub(super) fn new(conditions: Conditions, seed: u64) -> Self {
        Self { conditions, free_ns: 0, random: mix(seed), seed }
    }

    /// The most that may enter at once, bytes.
    pub(super) fn piece_bytes(&self) -> usize {
        if self.conditions.bits_per_second == 0 { PIECE_BYTES } else { SEGMENT_BYTES }
    }

    /// When the next piece may enter, ns; possibly in the past.
    pub(super) fn open_ns(&self) -> u64 {
        if self.conditions.bits_per_second == 0 { 0 } else { self.free_ns.saturating_sub(BUFFER_NS) }
    }

    /// A piece of `bytes` enters, which is at `position` of the stream of connection `name`.
    pub(super) fn enter(&mut self, now_ns: u64, name: u64, position: u64, bytes: usize) -> Passage {
        let Conditions { bits_per_second, lost_of_million, broken_of_million, .. } = self.conditions;
        let mut passed_ns = now_ns;
        if let Some(ns) = (bytes as u64 * 8 * 1_000_000_000).checked_div(bits_per_second) {
            self.free_ns = self.free_ns.max(now_ns) + ns;
            passed_ns = self.free_ns;
        }
        let segment = SEGMENT_BYTES as u64;
        let begins = position.div_ceil(segment)..(position + bytes as u64).div_ceil(segment);
        let seed = self.seed;
        let meets = |what: u64, of_million: u32| {
            begins.clone().filter(move |k| chance(seed ^ what, name, *k) < of_million)
        };
        let lost = meets(1, lost_of_million).count() as u64;
        let breaks_at = meets(2, broken_of_million).next().map(|k| (k * segment - position) as usize);
        let stall_ns = if lost > 0 { nanos(self.conditions.stall) } else { 0 };
        let due_ns = passed_ns + nanos(self.conditions.delay) + self.jitter_ns() + stall_ns;
        Passage { due_ns, lost, breaks_at }
    }

    fn jitter_ns(&mut self) -> u64 {
        let jitter_ns = nanos(self.conditions.jitter);
        if jitter_ns == 0 {
            return 0;
        }
        self.random = mix(self.random);
        self.random % (jitter_ns + 1)
    }
}

pub(super) fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// A number below a million that depends on all three and looks like chance.
fn chance(seed: u64, name: u64, segment: u64) -> u32 {
    (mix(mix(mix(seed) ^ name) ^ segment) % 1_000_000) as u32
}

/// The step of the generator `SplitMix64`.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn line(change: impl FnOnce(&mut Conditions)) -> Line {
        let mut conditions = Conditions::delayed(Duration::from_millis(100));
        change(&mut conditions);
        Line::new(conditions, 7)
    }

    #[test]
    fn a_piece_takes_the_delay() {
        let passage = line(|_| ()).enter(5, 1, 0, 1_000);
        assert_eq!(passage, Passage { due_ns: 100_000_005, lost: 0, breaks_at: None });
    }

    #[test]
    fn pieces_pass_a_narrow_line_one_after_the_other() {
        let mut line = line(|c| c.bits_per_second = 8_000_000); // a byte a microsecond
        assert_eq!(line.enter(0, 1, 0, 1_000).due_ns, 101_000_000);
        assert_eq!(line.enter(0, 2, 0, 500).due_ns, 101_500_000, "whichever connection");
        assert_eq!(line.enter(10_000_000, 1, 1_000, 100).due_ns, 110_100_000, "an idle line owes nothing");
    }

    #[test]
    fn a_full_line_lets_nobody_enter() {
        let mut line = line(|c| c.bits_per_second = 8_000_000);
        for _ in 0..100 {
            line.enter(0, 1, 0, 1_000);
        }
        assert_eq!(line.open_ns(), 50_000_000, "half of it has to pass first");
    }

    #[test]
    fn what_is_lost_depends_on_the_place_and_not_on_the_pieces() {
        let of = |piece: usize| {
            let mut line = line(|c| c.lost_of_million = 100_000);
            let total = 1_000 * SEGMENT_BYTES;
            (0..total)
                .step_by(piece)
                .map(|at| line.enter(0, 3, at as u64, piece.min(total - at)).lost)
                .sum::<u64>()
        };
        assert_eq!(of(SEGMENT_BYTES), of(100));
        assert_eq!(of(SEGMENT_BYTES), of(16_384));
        assert!((50..200).contains(&of(777)), "about a tenth: {}", of(777));
    }

    #[test]
    fn a_connection_breaks_at_the_same_byte_whatever_the_pieces() {
        let of = |piece: usize| {
            let mut line = line(|c| c.broken_of_million = 20_000);
            let mut at = 0;
            loop {
                if let Some(within) = line.enter(0, 3, at as u64, piece).breaks_at {
                    return at + within;
                }
                at += piece;
            }
        };
        assert_eq!(of(100), of(16_384));
        assert_eq!(of(100) % SEGMENT_BYTES, 0);
    }

    #[test]
    fn jitter_stays_within_its_bound_and_differs() {
        let mut line = line(|c| c.jitter = Duration::from_millis(3));
        let due: Vec<u64> = (0..100).map(|_| line.enter(0, 1, 0, 1).due_ns).collect();
        assert!(due.iter().all(|due| (100_000_000..=103_000_000).contains(due)));
        assert!(due.iter().any(|other| *other != due[0]));
    }
}
