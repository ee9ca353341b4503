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
#[derive(Debug, Default)]
pub(super) struct ShardTape {
    pub(super) tape: Tape,
    source: SnapshotSource,
    /// Whether the source has all there is.
    is_up_to_date: bool,
    is_making: bool,
    /// Whether anybody waits for a snapshot.
    pub(super) is_wanted: bool,
    /// The last one, and when it was made.
    snapshot: Option<(Arc<FeedSnapshot>, u64)>,
}

impl ShardTape {
    /// There are more messages.
    pub(super) fn grew(&mut self) {
        self.is_up_to_date = false;
    }

    /// A snapshot that was made lately, if there is one.
    pub(super) fn fresh(&self) -> Option<Arc<FeedSnapshot>> {
        self.snapshot.as_ref().map(|(snapshot, _)| Arc::clone(snapshot))
    }

    /// Goes on with the books, or with the snapshot that somebody waits for. Says whether anything was done, and whether a snapshot was finished.
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
            let mut followed = Ok(true);
            store(&self.tape, &mut |store| followed = source.follow(store, FOLLOWED_MAX));
            // What cannot be read is read again once the log is made anew.
            self.is_up_to_date = followed.unwrap_or(true);
            return (true, false);
        }
        if self.is_wanted && !self.tape.standing().is_empty() {
            self.source.begin();
            self.is_making = true;
            return (true, false);
        }
        (false, false)
    }
}
