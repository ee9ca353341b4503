//! When a gateway stops taking requests in because nothing is recorded.
//!
//! With too few recorders (or no venue) what is journalled waits, and nothing is lost; but those who send more would wait along,
//! without a word, until the window and all queues are full. A member had better know at once that its order is nowhere. No
//! node asks another whether it lives: a gateway sees all it needs, its own requests in flight and the committed stream
//! standing still.
//!
//! ```text
//!  watch(now):   in flight?  no ------------------------------> recording
//!                            yes, and a record since last time -> recording, count from now
//!                            yes, none for longer than patience -> standing still, until the next record
//! ```
//! Each shard is watched alone. A shard that stalls for good, halted say, must not have the others refused: they
//! would then never show a record again.
//!
//! Time is that of a clock that is never set, for a jump is not patience; and a gateway that was itself stopped for so long has
//! seen nothing, and starts counting again.

/// What is known of each shard. Times in nanoseconds of a clock that only goes forward.
pub(crate) struct Patience {
    patience_ns: u64,
    shards: Box<[Standing]>,
    looked_ns: u64,
    /// How many stand still.
    still: usize,
}

#[derive(Clone, Copy, Default)]
struct Standing {
    /// Records were seen since the last look.
    moved: bool,
    since_ns: u64,
    still: bool,
}

impl Patience {
    /// None at all if `patience_ns` is zero: everything waits as long as it takes.
    pub(crate) fn new(shards: usize, patience_ns: u64) -> Self {
        Self { patience_ns, shards: vec![Standing::default(); shards].into(), looked_ns: 0, still: 0 }
    }

    /// Looks whether shards stand still, but not more often than is of use.
    pub(crate) fn watch(&mut self, now_ns: u64, waits: impl Fn(usize) -> bool) {
        let since_look = now_ns.saturating_sub(self.looked_ns);
        if self.patience_ns == 0 || since_look < self.patience_ns / 8 {
            return;
        }
        let away = since_look > self.patience_ns;
        self.looked_ns = now_ns;
        for (index, shard) in self.shards.iter_mut().enumerate() {
            let moved = std::mem::take(&mut shard.moved);
            if moved || away || !waits(index) {
                shard.since_ns = now_ns;
            } else if now_ns - shard.since_ns >= self.patience_ns && !shard.still {
                shard.still = true;
                self.still += 1;
            }
        }
    }

    pub(crate) fn on_record(&mut self, shard: usize) {
        let shard = &mut self.shards[shard];
        shard.moved = true;
        if std::mem::take(&mut shard.still) {
            self.still -= 1;
        }
    }

    /// Whether nothing new is taken in for the shard; for all of them: only if none would record its part.
    pub(crate) fn is_over(&self, shard: Option<usize>) -> bool {
        match shard {
            _ if self.still == 0 => false,
            Some(shard) => self.shards[shard].still,
            None => self.still == self.shards.len(),
        }
    }

    /// Shards that stand still.
    pub(crate) fn still(&self) -> usize {
        self.still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every millisecond from `from` to `to`, in milliseconds.
    fn watch(patience: &mut Patience, from: u64, to: u64, waits: [bool; 2]) {
        for ms in from..=to {
            patience.watch(ms * 1_000_000, |shard| waits[shard]);
        }
    }

    fn patience() -> Patience {
        let mut patience = Patience::new(2, 80_000_000);
        watch(&mut patience, 1, 100, [false; 2]);
        patience
    }

    #[test]
    fn silent_shard_with_waiters_is_given_up_until_active() {
        let mut patience = patience();
        watch(&mut patience, 101, 170, [true, false]);
        assert!(!patience.is_over(Some(0)), "not yet");
        watch(&mut patience, 171, 200, [true, false]);
        assert!(patience.is_over(Some(0)) && !patience.is_over(Some(1)) && !patience.is_over(None));
        assert_eq!(patience.still(), 1);
        patience.on_record(0);
        assert!(!patience.is_over(Some(0)), "the first record lifts it");
        watch(&mut patience, 201, 270, [true, false]);
        assert!(!patience.is_over(Some(0)), "and it counts from there");
    }

    #[test]
    fn what_goes_on_is_never_given_up_however_slowly() {
        let mut patience = patience();
        for ms in (101..1_000).step_by(60) {
            watch(&mut patience, ms, ms + 59, [true; 2]);
            patience.on_record(0);
            patience.on_record(1);
        }
        assert_eq!(patience.still(), 0);
    }

    #[test]
    fn without_anything_in_flight_nothing_is_expected() {
        let mut patience = patience();
        watch(&mut patience, 101, 1_000, [false; 2]);
        assert!(!patience.is_over(None));
    }

    #[test]
    fn all_are_refused_only_if_all_stand_still() {
        let mut patience = patience();
        watch(&mut patience, 101, 200, [true; 2]);
        assert!(patience.is_over(None));
        patience.on_record(1);
        assert!(!patience.is_over(None));
    }

    #[test]
    fn who_was_away_himself_counts_again() {
        let mut patience = patience();
        watch(&mut patience, 101, 120, [true; 2]);
        patience.watch(10_000_000_000, |_| true);
        assert_eq!(patience.still(), 0);
        watch(&mut patience, 10_001, 10_120, [true; 2]);
        assert_eq!(patience.still(), 2);
    }

    #[test]
    fn without_a_patience_everything_waits() {
        let mut patience = Patience::new(2, 0);
        watch(&mut patience, 0, 10_000, [true; 2]);
        assert!(!patience.is_over(None));
    }
}
