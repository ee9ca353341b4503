//! What a publisher's log holds: the messages as they were sent, and now and then all that it needs to continue.
//!
//! ```text
//!  Published   | head, 40 bytes | length (2, big-endian), message | length, message | ...
//!  StatePiece  | head, 40 bytes | a part of a state
//!
//!  head        0 schema  1 version  2 shard  4 count        6 session
//!              16 first number      24 position             32 chain  36 ends, or which piece
//! ```
//! The messages lie there as they lie in a packet, so that those who send them again copy them. The *chain* is a checksum of all messages of the session
//! up to there: a publisher that starts makes them again out of the record, and knows by one comparison that they are the same.
//! Numbers are little-endian but for the lengths.

use pares_feed::publication::Session;
use pares_types::{Position, ShardId};
use pares_wire::WireError;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `schema` of messages.
pub const PUBLISHED: u8 = 16;
/// `schema` of a piece of a state.
pub const PIECE: u8 = 17;
/// The version of both in this build.
pub const VERSION: u8 = 1;

/// What a record of a publisher's log begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct LoggedHead {
    schema: u8,
    version: u8,
    shard: U16,
    count: U16,
    session: [u8; 10],
    first: U64,
    position: U64,
    chain: U32,
    extra: U32,
}

const _: () = assert!(size_of::<LoggedHead>() == HEAD_BYTES);

/// Bytes of a head.
pub const HEAD_BYTES: usize = 40;

/// How far the messages of a session have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The session.
    pub session: Session,
    /// The number of the next message.
    pub next: u64,
    /// Checksum of all before.
    pub chain: u32,
    /// Whether the session is over.
    pub over: bool,
}

impl Reached {
    /// Before the first session.
    pub const NONE: Self = Self { session: Session([0; 10]), next: 0, chain: 0, over: false };

    /// The beginning of a session.
    #[must_use]
    pub fn beginning(session: Session) -> Self {
        Self { session, next: 1, chain: 0, over: false }
    }

    /// The next message was made.
    pub fn count(&mut self, message: &[u8]) {
        self.next += 1;
        self.chain = crc32c::crc32c_append(self.chain, message);
    }
}

/// Messages that lie in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published<'a> {
    /// Their shard.
    pub shard: ShardId,
    /// The number of the first.
    pub first: u64,
    /// How many.
    pub count: u16,
    /// How far the session is with them.
    pub reached: Reached,
    /// The record they came of, or the last of them.
    pub position: Position,
    /// Each behind its length.
    pub blocks: &'a [u8],
}

/// A piece of a state: of all that a publisher needs to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatePiece<'a> {
    /// Its shard.
    pub shard: ShardId,
    /// Which piece, from 0.
    pub index: u32,
    /// How many pieces there are.
    pub count: u16,
    /// How far the session is.
    pub reached: Reached,
    /// The next record to read.
    pub position: Position,
    /// A part of the state.
    pub bytes: &'a [u8],
}

/// One record of a publisher's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logged<'a> {
    /// Messages.
    Published(Published<'a>),
    /// A piece of a state.
    Piece(StatePiece<'a>),
}

impl<'a> Logged<'a> {
    /// Reads a record.
    ///
    /// # Errors
    /// If it is none that this build understands.
    pub fn read(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (head, rest) = LoggedHead::ref_from_prefix(bytes).map_err(|_| WireError::InvalidField("head"))?;
        let (shard, count) = (ShardId(head.shard.get()), head.count.get());
        let (position, extra) = (Position(head.position.get()), head.extra.get());
        let (session, first, chain) = (Session(head.session), head.first.get(), head.chain.get());
        match (head.schema, head.version) {
            (PUBLISHED, VERSION) => {
                check_blocks(rest, count)?;
                let next = first.checked_add(count.into()).ok_or(WireError::InvalidField("first"))?;
                let reached = Reached { session, next, chain, over: extra & 1 == 1 };
                Ok(Self::Published(Published { shard, first, count, reached, position, blocks: rest }))
            }
            (PIECE, VERSION) => {
                let (index, over) = (extra >> 1, extra & 1 == 1);
                let reached = Reached { session, next: first, chain, over };
                Ok(Self::Piece(StatePiece { shard, index, count, reached, position, bytes: rest }))
            }
            (schema, version) => Err(WireError::UnknownSchema { schema, version }),
        }
    }
}

fn check_blocks(mut blocks: &[u8], count: u16) -> Result<(), WireError> {
    for _ in 0..count {
        (_, blocks) = split(blocks).ok_or(WireError::InvalidField("blocks"))?;
    }
    if blocks.is_empty() { Ok(()) } else { Err(WireError::InvalidField("count")) }
}

/// The first message of some, and the rest.
fn split(blocks: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = zerocopy::big_endian::U16::ref_from_prefix(blocks).ok()?;
    rest.split_at_checked(usize::from(length.get()))
}

/// Messages that lie one behind the other, each behind its length.
pub fn blocks(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let message;
        (message, rest) = split(rest)?;
        Some(message)
    })
}

/// Puts a message behind others.
///
/// # Panics
/// If it has more than 65,535 bytes.
pub fn push_block(blocks: &mut Vec<u8>, message: &[u8]) {
    let length = u16::try_from(message.len()).expect("messages are short");
    blocks.extend_from_slice(&length.to_be_bytes());
    blocks.extend_from_slice(message);
}

impl<'a> Published<'a> {
    /// The messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        blocks(self.blocks)
    }

    /// Its head.
    #[must_use]
    pub fn head(&self) -> LoggedHead {
        let Self { shard, first, count, reached, position, .. } = *self;
        head(PUBLISHED, (shard, count, first), &reached, position, u32::from(reached.over))
    }
}

impl StatePiece<'_> {
    /// Its head.
    #[must_use]
    pub fn head(&self) -> LoggedHead {
        let Self { shard, index, count, reached, position, .. } = *self;
        head(PIECE, (shard, count, reached.next), &reached, position, index << 1 | u32::from(reached.over))
    }
}

fn head(
    schema: u8,
    (shard, count, first): (ShardId, u16, u64),
    reached: &Reached,
    position: Position,
    extra: u32,
) -> LoggedHead {
    LoggedHead {
        schema,
        version: VERSION,
        shard: shard.0.into(),
        count: count.into(),
        session: reached.session.0,
        first: first.into(),
        position: position.0.into(),
        chain: reached.chain.into(),
        extra: extra.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: Session = Session(*b"0001000002");

    fn published(blocks: &[u8], count: u16) -> Published<'_> {
        let mut reached = Reached { session: SESSION, next: 7, chain: 1, over: true };
        reached.next += u64::from(count);
        Published { shard: ShardId(1), first: 7, count, reached, position: Position(9), blocks }
    }

    fn bytes(head: &LoggedHead, rest: &[u8]) -> Vec<u8> {
        [head.as_bytes(), rest].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut blocks = Vec::new();
        push_block(&mut blocks, b"one");
        push_block(&mut blocks, b"");
        let messages = published(&blocks, 2);
        let written = bytes(&messages.head(), &blocks);
        assert_eq!(Logged::read(&written), Ok(Logged::Published(messages)));
        assert_eq!(messages.messages().collect::<Vec<_>>(), [&b"one"[..], b""]);
        let reached = Reached { session: SESSION, next: 3, chain: 4, over: false };
        let piece = StatePiece {
            shard: ShardId(1),
            index: 5,
            count: 6,
            reached,
            position: Position(7),
            bytes: b"state",
        };
        assert_eq!(Logged::read(&bytes(&piece.head(), b"state")), Ok(Logged::Piece(piece)));
    }

    #[test]
    fn a_count_that_does_not_fit_and_strange_records_are_refused() {
        let mut blocks = Vec::new();
        push_block(&mut blocks, b"one");
        for count in [0, 2, u16::MAX] {
            assert!(Logged::read(&bytes(&published(&blocks, count).head(), &blocks)).is_err());
        }
        let written = bytes(&published(&blocks, 1).head(), &blocks);
        (0..written.len()).for_each(|length| assert!(Logged::read(&written[..length]).is_err()));
        let other = [&[99][..], &written[1..]].concat();
        assert!(matches!(Logged::read(&other), Err(WireError::UnknownSchema { schema: 99, .. })));
    }
}
