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

/// What an entry tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TapKind {
    /// A gateway's process began: connections of an earlier one are over.
    Began = 1,
    /// A connection was taken in; behind the head both addresses as text, the peer's first.
    Opened = 2,
    /// What a read of its socket gave.
    In = 3,
    /// What a write of its socket took.
    Out = 4,
    /// It is closed; behind the head how many bytes came in and went out.
    Ended = 5,
    /// The tap took nothing for a while; behind the head how many entries and bytes are missing.
    Lost = 6,
}

/// At which port a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TapDoor {
    /// The binary protocol (docs/protocols/order-entry.md).
    Binary = 0,
    /// FIX.
    Fix = 1,
    /// OUCH over SoupBinTCP.
    Ouch = 2,
}

impl TapDoor {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Fix => "fix",
            Self::Ouch => "ouch",
        }
    }
}

/// Why a gateway closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TapClose {
    /// The client closed it, or it broke, or its session ended.
    Gone = 1,
    /// The client sent something that is not the protocol.
    Malformed = 2,
    /// The client does not read.
    Slow = 3,
    /// Nothing useful came for too long.
    Silent = 4,
    /// There is no room for it, or it may not sign on.
    Refused = 5,
    /// Another connection has its session.
    TakenOver = 6,
}

impl TapClose {
    const ALL: [Self; 6] =
        [Self::Gone, Self::Malformed, Self::Slow, Self::Silent, Self::Refused, Self::TakenOver];

    /// Of the detail of an end.
    #[must_use]
    pub fn read(detail: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|one| *one as u8 == detail)
    }

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Malformed => "malformed",
            Self::Slow => "slow",
            Self::Silent => "silent",
            Self::Refused => "refused",
            Self::TakenOver => "taken over",
        }
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
        let kind = match head.kind {
            1 => TapKind::Began,
            2 => TapKind::Opened,
            3 => TapKind::In,
            4 => TapKind::Out,
            5 => TapKind::Ended,
            6 => TapKind::Lost,
            _ => return Err(TapFault::Unknown),
        };
        let door = match head.door {
            0 => TapDoor::Binary,
            1 => TapDoor::Fix,
            2 => TapDoor::Ouch,
            _ => return Err(TapFault::Unknown),
        };
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
