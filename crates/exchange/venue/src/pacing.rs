//! When to take a checkpoint, of which shard, and how fast.
//!
//! A joining venue replays what lies behind the newest checkpoint of *every* shard, so one quiet shard whose
//! checkpoint is old makes every joining venue replay the busy ones from there. A fixed interval per shard has just
//! that flaw. So the interval counts positions over all shards, and each time it is over the
//! shard whose checkpoint is oldest gets a new one.
//!
//! A checkpoint is taken by a venue that is behind, so that the one ahead is never disturbed (design section
//! 4). When no venue is behind and one is overdue, the venue whose turn it is takes it.
//!
//! An interval in positions alone is wrong for large states: one that takes half a minute to hand out would be followed by the next
//! at once, for ever. So a venue rests after a checkpoint for a multiple of what it took ([`REST`]), and only as
//! long as it took when there is much to replay ([`REPLAY_LONG`]). And its pieces leave most of the time between them to what the
//! venue is for ([`PiecePacing`]).
//!
//! ```text
//!  |#  #  #  #  #  #|..............................................|#  #  #
//!   pieces, pauses   rest: four times as long, or once
//! ```

/// Rest after a checkpoint, as a multiple of the time it took to hand out.
pub const REST: u64 = 4;
/// Positions to replay, in intervals, from which the rest is only as long as the last checkpoint took.
pub const REPLAY_LONG: u64 = 512;
/// Between the starts of two checkpoints at least, nanoseconds: small ones come one after the other otherwise, at high rates.
pub const STARTS_APART_NS: u64 = 50_000_000;

/// Of a venue's time, pieces of a checkpoint take one part in this.
pub const SHARE: u64 = 10;
/// Bytes of checkpoints a venue hands out in a second, at most: everything behind it reads and writes them too.
pub const BYTES_PER_SECOND: u64 = 16 << 20;
/// Pauses are no longer than this, nanoseconds: a piece that took long because the processor was taken away tells little.
const PAUSE_MAX_NS: u64 = 100_000_000;

/// The pace of checkpoints at one venue. Counts are positions over all shards, or the venue's part of them: equal on every venue that
/// executes the same shards and has come as far.
#[derive(Clone, Debug)]
pub struct Pacing {
    every: u64,
    turn: u64,
    venues: u64,
    /// Per shard, in the caller's order.
    shards: Vec<Covered>,
    /// The count when any checkpoint was last taken or stored.
    newest: u64,
    /// The interval last considered.
    considered: u64,
    /// When this venue's last checkpoint began and was handed out.
    last_ns: Option<(u64, u64)>,
}

/// The newest checkpoint of a shard.
#[derive(Clone, Copy, Debug, Default)]
struct Covered {
    /// How far into the committed stream it reaches.
    reach: u64,
    /// The count when it was taken, stored or found.
    count: u64,
}

impl Pacing {
    /// Checkpoints every `every` positions, for so many shards; `turn` is the venue's place among so many that take turns.
    ///
    /// # Panics
    /// If there are no shards, no venues or no interval.
    #[must_use]
    pub fn new(every: u64, (turn, venues): (u64, u64), shards: usize) -> Self {
        assert!(every > 0 && venues > 0 && shards > 0, "checkpoints need an interval, venues and shards");
        Self {
            every,
            turn,
            venues,
            shards: vec![Covered::default(); shards],
            newest: 0,
            considered: 0,
            last_ns: None,
        }
    }

    /// There is a checkpoint of the shard at that index, which makes the committed stream before `reach` (bytes,
    /// say) superfluous for it; it was taken, stored or found when the count was `count`.
    pub fn on_checkpoint(&mut self, shard: usize, reach: u64, count: u64) {
        let covered = &mut self.shards[shard];
        *covered = Covered { reach: covered.reach.max(reach), count: covered.count.max(count) };
        self.newest = self.newest.max(count);
    }

    /// The shards are others from now on: by index the place that each had, or none. One that comes is covered up to `reach`. The count was
    /// `old` and is `new` now, and what was counted since stays so.
    pub fn follow(
        &mut self,
        (turn, venues): (u64, u64),
        places: impl Iterator<Item = Option<usize>>,
        (reach, old, new): (u64, u64, u64),
    ) {
        let moved = |count: u64| new.saturating_sub(old.saturating_sub(count));
        let covered = |place: Option<usize>| match place.map(|place| self.shards[place]) {
            Some(Covered { reach, count }) => Covered { reach, count: moved(count) },
            None => Covered { reach, count: new },
        };
        self.shards = places.map(covered).collect();
        (self.turn, self.venues, self.newest) = (turn, venues, moved(self.newest));
    }

    /// A checkpoint begun here at `began_ns` was handed out, or given up, at `ended_ns`.
    pub fn on_handed_out(&mut self, began_ns: u64, ended_ns: u64) {
        self.last_ns = Some((began_ns, ended_ns));
    }

    /// The shard to take a checkpoint of now, if any. `count` is as above; `is_here` says of
    /// which a checkpoint can be taken at all, and `behind` whether others have recorded positions this venue has not executed; that
    /// is asked once an interval.
    pub fn due(
        &mut self,
        (now_ns, count): (u64, u64),
        is_here: impl Fn(usize) -> bool,
        behind: impl FnOnce() -> bool,
    ) -> Option<usize> {
        let interval = count / self.every;
        if interval == self.considered || self.rests(now_ns, count) {
            return None;
        }
        self.considered = interval;
        let turn = interval % self.venues == self.turn;
        let overdue = count.saturating_sub(self.newest) >= 2 * self.every;
        if !(behind() || turn && overdue) {
            return None;
        }
        let here = (0..self.shards.len()).filter(|&shard| is_here(shard));
        here.min_by_key(|&shard| self.shards[shard].reach)
    }

    /// Whether there is so much to replay that a checkpoint matters more than whom it disturbs.
    #[must_use]
    pub fn is_long(&self, count: u64) -> bool {
        let oldest = self.shards.iter().map(|covered| covered.count).min().unwrap_or_default();
        count.saturating_sub(oldest) / self.every >= REPLAY_LONG
    }

    fn rests(&self, now_ns: u64, count: u64) -> bool {
        let Some((began_ns, ended_ns)) = self.last_ns else { return false };
        let rest_ns = (ended_ns - began_ns).saturating_mul(if self.is_long(count) { 1 } else { REST });
        now_ns < ended_ns.saturating_add(rest_ns).max(began_ns.saturating_add(STARTS_APART_NS))
    }
}

/// The pauses between the pieces of a checkpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct PiecePacing {
    next_ns: u64,
}

impl PiecePacing {
    /// A piece of so many bytes was handed out in the time from `began_ns` to `ended_ns`.
    pub fn on_piece(&mut self, began_ns: u64, ended_ns: u64, bytes: u64) {
        let by_time = ended_ns.saturating_sub(began_ns).saturating_mul(SHARE - 1);
        let by_bytes = bytes.saturating_mul(1_000_000_000) / BYTES_PER_SECOND;
        self.next_ns = ended_ns + by_time.max(by_bytes).min(PAUSE_MAX_NS);
    }

    /// Nanoseconds until the next piece may go; 0 for now.
    #[must_use]
    pub fn pause_ns(&self, now_ns: u64) -> u64 {
        self.next_ns.saturating_sub(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1 << 40;

    fn pacing(turn: u64) -> Pacing {
        Pacing::new(100, (turn, 2), 3)
    }

    #[test]
    fn lagging_venue_takes_oldest_shard_per_interval() {
        let mut pacing = pacing(0);
        pacing.on_checkpoint(0, 50, 50);
        assert_eq!(pacing.due((NOW, 99), |_| true, || true), None);
        assert_eq!(pacing.due((NOW, 100), |_| true, || true), Some(1));
        assert_eq!(pacing.due((NOW, 101), |_| true, || true), None);
    }

    #[test]
    fn a_venue_that_leads_leaves_it_to_the_others() {
        assert_eq!(pacing(1).due((NOW, 100), |_| true, || false), None);
    }

    #[test]
    fn when_nobody_is_behind_they_take_turns() {
        let (mut a, mut b) = (pacing(0), pacing(1));
        assert_eq!(
            (a.due((NOW, 200), |_| true, || false), b.due((NOW, 200), |_| true, || false)),
            (Some(0), None)
        );
        a.on_checkpoint(0, 9_000, 200);
        b.on_checkpoint(0, 9_000, 200);
        assert_eq!(
            (a.due((NOW, 300), |_| true, || false), b.due((NOW, 300), |_| true, || false)),
            (None, None)
        );
        assert_eq!(
            (a.due((NOW, 400), |_| true, || false), b.due((NOW, 400), |_| true, || false)),
            (Some(1), None)
        );
        a.on_checkpoint(1, 9_400, 400);
        b.on_checkpoint(1, 9_400, 400);
        assert_eq!(
            (a.due((NOW, 700), |_| true, || false), b.due((NOW, 700), |_| true, || false)),
            (None, Some(2))
        );
    }

    #[test]
    fn a_venue_rests_four_times_as_long_as_a_checkpoint_took() {
        let mut pacing = pacing(0);
        let took = 2 * STARTS_APART_NS;
        pacing.on_handed_out(NOW, NOW + took);
        let over = NOW + took + REST * took;
        assert_eq!(pacing.due((over - 1, 100), |_| true, || true), None);
        assert_eq!(
            pacing.due((over, 100), |_| true, || true),
            Some(0),
            "in the same interval: it was not considered"
        );
    }

    #[test]
    fn with_much_to_replay_it_rests_as_long_as_the_checkpoint_took() {
        let mut pacing = pacing(0);
        (0..3).for_each(|shard| pacing.on_checkpoint(shard, 1, 50));
        let took = 2 * STARTS_APART_NS;
        pacing.on_handed_out(NOW, NOW + took);
        let long = 50 + REPLAY_LONG * 100;
        assert_eq!((pacing.is_long(long - 1), pacing.is_long(long)), (false, true));
        assert_eq!(pacing.due((NOW + 2 * took, long - 1), |_| true, || true), None);
        assert_eq!(pacing.due((NOW + 2 * took - 1, long), |_| true, || true), None);
        assert_eq!(pacing.due((NOW + 2 * took, long), |_| true, || true), Some(0));
    }

    #[test]
    fn small_checkpoints_start_a_while_apart() {
        let mut pacing = pacing(0);
        pacing.on_handed_out(NOW, NOW + 1);
        assert_eq!(pacing.due((NOW + STARTS_APART_NS - 1, 100), |_| true, || true), None);
        assert_eq!(pacing.due((NOW + STARTS_APART_NS, 100), |_| true, || true), Some(0));
    }

    #[test]
    fn pieces_take_a_tenth_of_the_time() {
        let mut pieces = PiecePacing::default();
        assert_eq!(pieces.pause_ns(0), 0);
        pieces.on_piece(NOW, NOW + 1_000, 1);
        assert_eq!(pieces.pause_ns(NOW + 1_000), 9_000);
        assert_eq!(pieces.pause_ns(NOW + 9_999), 1);
        assert_eq!(pieces.pause_ns(NOW + 10_000), 0);
    }

    #[test]
    fn pieces_that_cost_nothing_are_paced_by_their_bytes() {
        let mut pieces = PiecePacing::default();
        pieces.on_piece(NOW, NOW, BYTES_PER_SECOND / 64);
        assert_eq!(pieces.pause_ns(NOW), 15_625_000);
    }

    #[test]
    fn a_pause_has_an_end() {
        let mut pieces = PiecePacing::default();
        pieces.on_piece(NOW, NOW + 60_000_000_000, 1);
        assert_eq!(pieces.pause_ns(NOW + 60_000_000_000), PAUSE_MAX_NS);
    }
}
