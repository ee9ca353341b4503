//! A follower of the member's streams: it receives what comes next for it, as a server sends it to each follower (`Followed` in `pares-api`).

use std::collections::BTreeMap;

use pares_resources::{Cursor, FollowerStanding};
use pares_types::{Reply, ShardId};

use crate::WebSeen;

/// What it received of a stream without a gap.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) shard: ShardId,
    /// The number of the first.
    pub(super) first: u64,
    pub(super) told: Vec<Reply>,
}

impl Stretch {
    fn new(shard: ShardId, first: u64) -> Self {
        Self { shard, first, told: Vec::new() }
    }
}

#[derive(Debug)]
struct Stream {
    cursor: Cursor,
    now: Stretch,
    /// When the follower asks for it again, if the server sends no more of it.
    again_at_ns: Option<u64>,
}

/// A follower, and all that it received.
#[derive(Debug)]
pub(super) struct Follower {
    streams: BTreeMap<ShardId, Stream>,
    before: Vec<Stretch>,
}

impl Follower {
    /// From the first number on: a number that was never used is sent to no follower.
    pub(super) fn new(shards: impl Iterator<Item = ShardId>) -> Self {
        let stream =
            |shard| Stream { cursor: Cursor::from(1), now: Stretch::new(shard, 1), again_at_ns: None };
        Self { streams: shards.map(|shard| (shard, stream(shard))).collect(), before: Vec::new() }
    }

    pub(super) fn shards(&self) -> Vec<ShardId> {
        self.streams.keys().copied().collect()
    }

    pub(super) fn has(&self, shard: ShardId) -> bool {
        self.streams.contains_key(&shard)
    }

    /// The number that comes next for it.
    pub(super) fn next(&self, shard: ShardId) -> u64 {
        self.streams.get(&shard).and_then(|stream| stream.cursor.next()).unwrap_or(1)
    }

    pub(super) fn told(&self) -> impl Iterator<Item = &Stretch> {
        self.before.iter().chain(self.streams.values().map(|stream| &stream.now))
    }

    /// Whether it waits to follow a stream again.
    pub(super) fn waits(&self) -> bool {
        self.streams.values().any(|stream| stream.again_at_ns.is_some())
    }

    /// Streams that are to be followed again by now.
    pub(super) fn due(&self, now_ns: u64) -> Vec<ShardId> {
        let due = |stream: &Stream| stream.again_at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        self.streams.iter().filter(|(_, stream)| due(stream)).map(|(shard, _)| *shard).collect()
    }

    /// It follows from where it stands. Gives the number.
    pub(super) fn follow(&mut self, shard: ShardId) -> u64 {
        let next = self.next(shard);
        if let Some(stream) = self.streams.get_mut(&shard) {
            (stream.cursor, stream.again_at_ns) = (Cursor::from(next), None);
        }
        next
    }

    /// It continues at another number.
    pub(super) fn jump(&mut self, shard: ShardId, to: u64) {
        if let Some(stream) = self.streams.get_mut(&shard) {
            self.before.push(std::mem::replace(&mut stream.now, Stretch::new(shard, to)));
            stream.cursor = Cursor::from(to);
        }
    }

    /// Whether the message is the next for it.
    pub(super) fn takes(&mut self, (shard, number): (ShardId, u64), counts: &mut WebSeen) -> bool {
        let Some(Stream { cursor, .. }) = self.streams.get_mut(&shard) else { return false };
        counts.caught_up += u64::from(cursor.catches_up(number));
        cursor.takes(number)
    }

    pub(super) fn hear(&mut self, shard: ShardId, reply: Reply) {
        self.streams.get_mut(&shard).into_iter().for_each(|stream| stream.now.told.push(reply));
    }

    /// All that was asked for has been sent. A follower that is ahead waits for its number.
    pub(super) fn on_live(&mut self, shard: ShardId, next: u64, counts: &mut WebSeen) {
        let standing = self.streams.get_mut(&shard).map(|stream| stream.cursor.on_live(next));
        counts.ahead += u64::from(standing == Some(FollowerStanding::Ahead));
    }

    /// The stream is not sent. If that concerns the follower it follows it later, from the oldest number that is kept if it is behind that.
    pub(super) fn on_not_told(&mut self, shard: ShardId, oldest: u64, at_ns: u64, counts: &mut WebSeen) {
        let next = self.next(shard);
        let Some(stream) = self.streams.get_mut(&shard).filter(|stream| stream.cursor.lacks(oldest)) else {
            return;
        };
        stream.again_at_ns = Some(at_ns);
        counts.not_told += 1;
        if next < oldest {
            self.jump(shard, oldest);
        }
    }
}
