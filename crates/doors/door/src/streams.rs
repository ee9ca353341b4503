//! How far a session has been told its member's stream, shard by shard, and how far its peer is known to have read it.
//!
//! Bytes that were sent may never arrive. So each mark is followed by a TestRequest, and what the peer has read is what was told before the last one that it
//! answered. A gateway that goes on with the session begins there.

use std::collections::BTreeMap;

use pares_types::ShardId;

/// A shard's stream.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The number to be told next; 0 until it is known.
    next: u64,
    /// Where this connection began.
    first: u64,
    /// All before has been read by the peer.
    read: u64,
    /// What is told now was perhaps told before.
    is_replaying: bool,
}

/// The streams of all shards.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    shards: BTreeMap<ShardId, Stream>,
    /// Of the test that is open: its number, and what had been told.
    test: Option<(u64, Vec<(ShardId, u64)>)>,
    tests: u64,
}

impl Streams {
    /// The shards, each at the number where a mark left it, or at none.
    pub(crate) fn new(shards: &[ShardId], told: &[(ShardId, u64)]) -> Self {
        let next_of = |shard| told.iter().find(|(of, _)| *of == shard).map_or(0, |(_, next)| *next);
        let stream = |next| Stream { next, first: next, read: next, is_replaying: next > 0 };
        let shards = shards.iter().map(|shard| (*shard, stream(next_of(*shard)))).collect();
        Self { shards, test: None, tests: 0 }
    }

    /// Each shard, and the number to be told next.
    pub(crate) fn next(&self) -> impl Iterator<Item = (ShardId, u64)> + '_ {
        self.shards.iter().map(|(shard, stream)| (*shard, stream.next))
    }

    /// What the peer is known to have read.
    pub(crate) fn read(&self) -> Vec<(ShardId, u64)> {
        self.shards.iter().map(|(shard, stream)| (*shard, stream.read)).collect()
    }

    /// Whether it is known of each shard where it is.
    pub(crate) fn are_placed(&self) -> bool {
        self.shards.values().all(|stream| stream.next > 0)
    }

    pub(crate) fn is_replaying(&self, shard: ShardId) -> bool {
        self.shards.get(&shard).is_some_and(|stream| stream.is_replaying)
    }

    /// A message of the stream has come. Whether it is the first time on this connection.
    pub(crate) fn take(&mut self, shard: ShardId, number: u64) -> bool {
        let Some(stream) = self.shards.get_mut(&shard).filter(|_| number > 0) else { return false };
        let is_new = number >= stream.next;
        if is_new {
            stream.next = number.saturating_add(1);
        }
        is_new
    }

    /// The shard is told live from now on; it goes on with that number.
    pub(crate) fn on_live(&mut self, shard: ShardId, next: u64) {
        let Some(stream) = self.shards.get_mut(&shard) else { return };
        if stream.next == 0 {
            *stream = Stream { next, first: next, read: next, is_replaying: false };
        }
        stream.is_replaying = false;
    }

    /// The shard is told again from the number on that is the oldest there is.
    pub(crate) fn on_not_kept(&mut self, shard: ShardId, oldest: u64) -> Option<u64> {
        let stream = self.shards.get_mut(&shard)?;
        let from = if oldest > stream.first { oldest } else { 0 };
        *stream = Stream { next: from, first: from, read: from, is_replaying: from > 0 };
        Some(from)
    }

    /// Tells all again since the connection began: where to begin, of the shards that are not being told again already.
    pub(crate) fn replay(&mut self) -> Vec<(ShardId, u64)> {
        let behind =
            self.shards.iter_mut().filter(|(_, stream)| !stream.is_replaying && stream.first < stream.next);
        behind
            .map(|(shard, stream)| {
                stream.is_replaying = true;
                (*shard, stream.first)
            })
            .collect()
    }

    /// The number of a new test, if none is open.
    pub(crate) fn begin_test(&mut self) -> Option<u64> {
        if self.test.is_some() {
            return None;
        }
        self.tests += 1;
        self.test = Some((self.tests, self.next().collect()));
        Some(self.tests)
    }

    /// The peer has answered a test.
    pub(crate) fn on_test_answered(&mut self, number: u64) {
        let Some((_, told)) = self.test.take_if(|(open, _)| *open == number) else { return };
        for (shard, next) in told {
            if let Some(stream) = self.shards.get_mut(&shard) {
                stream.read = stream.read.max(next);
            }
        }
    }
}
