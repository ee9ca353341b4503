//! One shard at a replayer: its sessions, and snapshots of its books.

use std::sync::Arc;

use pares_feed::snapshot::{FeedSnapshot, SnapshotSource};
use pares_feed::store::SessionStore;

use super::tape::Tape;

/// A snapshot is given to all who ask within this time after it was made, nanoseconds.
const FRESH_NS: u64 = 1_000_000_000;
/// Messages that the books of a shard take in, in one turn.
const FOLLOWED_MAX: u64 = 8_192;
/// Orders that are written into a snapshot in one turn.
const PIECE_ORDERS: usize = 4_096;

/// One shard.
#[derive(Debug)]
pub(super) struct ShardTape {
    pub(super) tape: Tape,
    source: SnapshotSource,
    /// Whether the source has all there is.
    is_up_to_date: bool,
    is_making: bool,
    /// Whether a client waits for a snapshot.
    pub(super) is_wanted: bool,
    /// The last one, and when it was made.
    snapshot: Option<(Arc<FeedSnapshot>, u64)>,
}

impl ShardTape {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            tape: Tape::default(),
            source: SnapshotSource::new(seed),
            is_up_to_date: false,
            is_making: false,
            is_wanted: false,
            snapshot: None,
        }
    }

    /// There are more messages.
    pub(super) fn grew(&mut self) {
        self.is_up_to_date = false;
    }

    /// A snapshot that was made lately, if there is one.
    pub(super) fn fresh(&self) -> Option<Arc<FeedSnapshot>> {
        self.snapshot.as_ref().map(|(snapshot, _)| Arc::clone(snapshot))
    }

    /// Continues the books, or the snapshot that a client waits for. Says whether anything was done, and whether a snapshot was finished.
    pub(super) fn step(
        &mut self,
        store: impl FnOnce(&Tape, &mut dyn FnMut(&mut dyn SessionStore)),
        now_ns: u64,
    ) -> (bool, bool) {
        self.snapshot.take_if(|(_, made_ns)| now_ns.saturating_sub(*made_ns) > FRESH_NS);
        if self.is_making {
            let Some(snapshot) = self.source.piece(PIECE_ORDERS) else { return (true, false) };
            self.snapshot = Some((Arc::new(snapshot), now_ns));
            (self.is_making, self.is_wanted) = (false, false);
            return (true, true);
        }
        if !self.is_up_to_date {
            let source = &mut self.source;
            let mut followed = None;
            store(&self.tape, &mut |store| followed = Some(source.follow(store, FOLLOWED_MAX)));
            // While the log cannot be opened there is nothing to follow.
            let Some(followed) = followed else { return (false, false) };
            // What cannot be read is read again once the log is rebuilt.
            self.is_up_to_date = followed.unwrap_or(true);
            return (followed.is_ok(), false);
        }
        if self.is_wanted && !self.tape.standing().is_empty() {
            self.is_making = self.source.begin();
            self.is_up_to_date = self.is_making;
            return (self.is_making, false);
        }
        (false, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logged::{Published, Reached, push_block};
    use pares_feed::kept::Kept;
    use pares_feed::publication::{FeedSink, Session};
    use pares_log::Offset;
    use pares_types::{Position, ShardId};

    #[test]
    fn a_snapshot_is_made_once_the_log_can_be_opened_again() {
        let (session, message) = (Session(*b"0001000001"), b"S");
        let (mut shard, mut kept, mut blocks) = (ShardTape::new(0), Kept::default(), Vec::new());
        kept.begin(session);
        kept.message(message);
        push_block(&mut blocks, message);
        let reached = Reached { session, next: 2, chain: 0, over: false };
        let (position, blocks) = (Position(0), &blocks[..]);
        let published = Published { shard: ShardId(1), first: 1, count: 1, reached, position, blocks };
        assert!(shard.tape.on_published(Offset::START, &published));
        shard.is_wanted = true;
        for _ in 0..4 {
            assert_eq!(shard.step(|_, _| {}, 0), (false, false), "it waits");
        }
        let made = (0..4).any(|_| shard.step(|_, act| act(&mut kept), 0).1);
        assert!(made && !shard.is_wanted);
        assert_eq!(shard.fresh().unwrap().next, 2);
    }
}
