//! An entry of the tap's log.
//!
//! ```text
//!  0        8        16       24       32           36       40        42     43     44      45       46        48
//! +--------+--------+--------+--------+------------+--------+---------+------+------+-------+--------+---------+--------
//! | wall   | mono   | at     | life   | connection | member | session | kind | door | flags | detail | version | bytes
//! +--------+--------+--------+--------+------------+--------+---------+------+------+-------+--------+---------+--------
//! ```
//! `at` is how many bytes went that way on the connection before. So a loss shows, by itself, as a gap between two entries. `life` and `connection` name
//! a connection for good, whichever older entries are dropped.

use pares_types::coded;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of an entry's head.
pub const TAP_HEAD_BYTES: usize = size_of::<TapHead>();
/// Bytes behind the head, at most: more are cut into several entries.
pub const TAP_BYTES_MAX: usize = 32 << 10;
/// The version of the layout.
const VERSION: u16 = 2;
/// [`TapHead::flags`]: some of the bytes are blanked.
const BLANKED: u8 = 1;

/// The beginning of every entry.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TapHead {
    /// Nanoseconds since 1970.
    pub wall_ns: U64,
    /// Nanoseconds by the clock that never goes back.
    pub mono_ns: U64,
    /// Bytes of the connection that went the same way before.
    pub at: U64,
    /// Of the gateway's process: where its log ended as it began.
    pub life: U64,
    /// Which connection since the gateway began; the gateway itself in an entry about all.
    pub connection: U32,
    /// The member, once it has signed on; 0 before.
    pub member: U32,
    /// Its session.
    pub session: U16,
    /// A [`TapKind`].
    pub kind: u8,
    /// A [`TapDoor`].
    pub door: u8,
    /// Bit 0: some of the bytes are blanked.
    pub flags: u8,
    /// Of an end: a [`TapClose`].
    pub detail: u8,
    /// 2.
    pub version: U16,
}
const _: () = assert!(TAP_HEAD_BYTES == 48);

impl TapHead {
    /// The head of an entry of that kind.
    #[must_use]
    pub fn new(kind: TapKind, door: TapDoor, connection: u32) -> Self {
        Self {
            connection: connection.into(),
            kind: kind as u8,
            door: door as u8,
            version: VERSION.into(),
            ..Self::default()
        }
    }

    /// Says that some of the bytes are blanked.
    pub fn set_blanked(&mut self) {
        self.flags |= BLANKED;
    }
}

coded! {
    /// What an entry tells.
    pub enum TapKind {
        /// A gateway's process began: connections of an earlier one are over.
        Began = 1 "began",
        /// A connection was taken in; behind the head both addresses as text, the peer's first.
        Opened = 2 "opened",
        /// What a read of its socket gave.
        In = 3 "in",
        /// What a write of its socket took.
        Out = 4 "out",
        /// It is closed; behind the head how many bytes came in and went out.
        Ended = 5 "ended",
        /// The tap took nothing for a while; behind the head how many entries and bytes are missing.
        Lost = 6 "lost",
    }
}

coded! {
    /// At which port a connection came.
    #[derive(PartialOrd, Ord)]
    pub enum TapDoor {
        /// The binary protocol (docs/protocols/order-entry.md).
        Binary = 0 "binary",
        /// FIX.
        Fix = 1 "fix",
        /// OUCH over SoupBinTCP.
        Ouch = 2 "ouch",
    }
}

coded! {
    /// Why a gateway closed a connection.
    pub enum TapClose {
        /// The client closed it, or it broke, or its session ended.
        Gone = 1 "gone",
        /// The client sent something that is not the protocol.
        Malformed = 2 "malformed",
        /// The client does not read.
        Slow = 3 "slow",
        /// Nothing useful came for too long.
        Silent = 4 "silent",
        /// There is no room for it, or it may not sign on.
        Refused = 5 "refused",
        /// Another connection has its session.
        TakenOver = 6 "taken over",
    }
}

/// How much was lost.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct TapLoss {
    /// Entries.
    pub entries: U64,
    /// Bytes in them, without heads.
    pub bytes: U64,
}

/// Why something in a tap's log is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapFault {
    /// Too short for what it says.
    Short,
    /// Of another version of the layout, which is the number.
    Version(u16),
    /// Kind or door is unknown.
    Unknown,
}

impl std::fmt::Display for TapFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Short => f.write_str("an entry is too short"),
            Self::Version(version) => {
                write!(f, "an entry has version {version}, but this program reads {VERSION}")
            }
            Self::Unknown => f.write_str("an entry is of an unknown kind or door"),
        }
    }
}

/// An entry, read.
#[derive(Clone, Copy, Debug)]
pub struct TapEntry<'a> {
    /// Its head.
    pub head: &'a TapHead,
    /// What it tells.
    pub kind: TapKind,
    /// At which port.
    pub door: TapDoor,
    /// What lies behind the head.
    pub bytes: &'a [u8],
}

impl<'a> TapEntry<'a> {
    /// Reads a record of a tap's log.
    ///
    /// # Errors
    /// If it is no entry.
    pub fn read(record: &'a [u8]) -> Result<Self, TapFault> {
        let (head, bytes) = TapHead::ref_from_prefix(record).map_err(|_| TapFault::Short)?;
        if head.version.get() != VERSION {
            return Err(TapFault::Version(head.version.get()));
        }
        let kind = TapKind::of(head.kind).ok_or(TapFault::Unknown)?;
        let door = TapDoor::of(head.door).ok_or(TapFault::Unknown)?;
        Ok(Self { head, kind, door, bytes })
    }

    /// Whether some of its bytes are blanked.
    #[must_use]
    pub fn is_blanked(&self) -> bool {
        self.head.flags & BLANKED != 0
    }

    /// Of an end: how many bytes came in and went out.
    #[must_use]
    pub fn totals(&self) -> Option<[u64; 2]> {
        let (totals, _) = <[U64; 2]>::read_from_prefix(self.bytes).ok()?;
        Some(totals.map(U64::get))
    }

    /// Of a loss: how much.
    #[must_use]
    pub fn loss(&self) -> Option<TapLoss> {
        TapLoss::read_from_prefix(self.bytes).ok().map(|(loss, _)| loss)
    }
}
