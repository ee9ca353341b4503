//! Things that carry bytes one after another: a port of the switch, the link between the clusters, a log's disk.

use crate::queue::{Nanos, SECOND};

/// Carries bytes in the order they come, at one rate.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    bytes_per_second: u64,
    free_at: Nanos,
    busy: Nanos,
    bytes: u64,
    loads: u64,
}

impl Pipe {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, free_at: 0, busy: 0, bytes: 0, loads: 0 }
    }

    /// Takes `bytes` at `now`; says when the last of them is through.
    pub(crate) fn take(&mut self, now: Nanos, bytes: u64) -> Nanos {
        let time = bytes * SECOND / self.bytes_per_second;
        self.free_at = self.free_at.max(now) + time;
        self.busy += time;
        self.bytes += bytes;
        self.loads += 1;
        self.free_at
    }

    /// Bytes taken, and in how many pieces.
    pub(crate) fn taken(&self) -> (u64, u64) {
        (self.bytes, self.loads)
    }

    /// How long it was busy, or will have been with what it has taken, ns.
    pub(crate) fn busy(&self) -> Nanos {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_second_waits_for_the_first() {
        let mut pipe = Pipe::new(1_000_000_000);
        assert_eq!(pipe.take(100, 50), 150);
        assert_eq!(pipe.take(120, 50), 200);
        assert_eq!(pipe.take(300, 50), 350);
        assert_eq!((pipe.taken(), pipe.busy()), ((150, 3), 150));
    }
}
