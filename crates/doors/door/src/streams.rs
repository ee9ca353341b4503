//! How much of its member's stream a session has been sent, shard by shard, and how much of it its peer is known to have read.
//!
//! Bytes that were sent may never arrive. So each mark is followed by a TestRequest, and the peer has read what was sent before the last one that it
//! answered. A gateway that continues the session begins there.

use std::collections::BTreeMap;

use pares_types::ShardId;

/// What the gateway tells of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Telling {
    /// What happens.
    #[default]
    Live,
    /// What was perhaps told before.
    Again,
    /// All there is, since the peer asks for trades; of what was sent before, only those are sent.
    Trades,
}

/// A shard's stream.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// The number to be told next; 0 until it is known.
    next: u64,
    /// Where this connection began.
    first: u64,
    /// All before has been read by the peer.
    read: u64,
    telling: Telling,
    /// It is to be told again once its trades are.
    wants_again: bool,
}

impl Stream {
    /// One of which nothing was sent, and that number comes next; 0: it is not known which.
    fn at(next: u64) -> Self {
        Self { next, first: next, read: next, ..Self::default() }
    }

    /// Has it told again since the connection began, now or once its trades are: from which number on.
    fn again(&mut self) -> Option<u64> {
        self.wants_again |= self.telling == Telling::Trades;
        if self.telling != Telling::Live || self.first >= self.next {
            return None;
        }
        self.telling = Telling::Again;
        Some(self.first)
    }
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
        let telling = |next| if next > 0 { Telling::Again } else { Telling::Live };
        let stream = |next| Stream { telling: telling(next), ..Stream::at(next) };
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

    fn telling(&self, shard: ShardId) -> Telling {
        self.shards.get(&shard).map_or(Telling::Live, |stream| stream.telling)
    }

    /// Whether the gateway sends it from the record.
    pub(crate) fn is_replaying(&self, shard: ShardId) -> bool {
        self.telling(shard) != Telling::Live
    }

    /// Whether what comes now was perhaps sent before.
    pub(crate) fn is_told_again(&self, shard: ShardId) -> bool {
        self.telling(shard) == Telling::Again
    }

    /// Whether all there is comes for its trades.
    pub(crate) fn is_for_trades(&self, shard: ShardId) -> bool {
        self.telling(shard) == Telling::Trades
    }

    /// Requests all there is of the shard, for its trades. Not while it comes from the record.
    pub(crate) fn begin_trades(&mut self, shard: ShardId) -> bool {
        let live = self.shards.get_mut(&shard).filter(|stream| stream.telling == Telling::Live);
        live.map(|stream| stream.telling = Telling::Trades).is_some()
    }

    /// The trades of the shard cannot be told. What happened meanwhile can, from that number on.
    pub(crate) fn give_up_trades(&mut self, shard: ShardId) -> Option<u64> {
        let stream = self.shards.get_mut(&shard)?;
        stream.telling = Telling::Again;
        let from_first = std::mem::take(&mut stream.wants_again);
        Some(if from_first { stream.first } else { stream.next })
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

    /// The shard is live from now on, and continues with that number. Gives where the gateway is to send it again from, if so.
    pub(crate) fn on_live(&mut self, shard: ShardId, next: u64) -> Option<u64> {
        let stream = self.shards.get_mut(&shard)?;
        if stream.next == 0 {
            *stream = Stream::at(next);
        }
        stream.telling = Telling::Live;
        std::mem::take(&mut stream.wants_again).then(|| stream.again()).flatten()
    }

    /// The shard comes again from the oldest number there is.
    pub(crate) fn on_not_kept(&mut self, shard: ShardId, oldest: u64) -> Option<u64> {
        let stream = self.shards.get_mut(&shard)?;
        let from = if oldest > stream.first { oldest } else { 0 };
        *stream = Stream { telling: Telling::Again, ..Stream::at(from) };
        Some(from)
    }

    /// Tells all again since the connection began: where to begin, of the shards that are not being told again already.
    pub(crate) fn replay(&mut self) -> Vec<(ShardId, u64)> {
        let again = self.shards.iter_mut().filter_map(|(shard, stream)| Some((*shard, stream.again()?)));
        again.collect()
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
