//! Items of the local stream, and their bytes (docs/protocols/member.md, *Items*).
//!
//! A server writes what its traders submit into its own log, and what was ordered into another. Both hold the same bytes; the ordered one
//! has a place in front. Traders, peers and files get these bytes as they are, so an item is encoded once in its life.
//!
//! ```text
//!  submitted   [ItemHead 32 | body]
//!  ordered     [OrderedHead 24 | ItemHead 32 | body]      a repeat has no body
//! ```

mod body;

use pares_types::{Epoch, Position, RequestId, ShardId};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use body::ItemBody;

/// `schema` of an [`ItemHead`] that begins a record.
pub const SUBMITTED: u8 = 33;
/// `schema` of an [`OrderedHead`].
pub const ORDERED: u8 = 34;
/// The version of all schemas here.
pub const VERSION: u8 = 1;
/// The longest body.
pub const BODY_BYTES_MAX: usize = 8_192;
/// The highest number that a submitter may give: the next one has to be a number too.
pub const NUMBER_MAX: u64 = 1 << 63;
/// [`OrderedHead::flags`]: it stands earlier in the stream already.
pub const REPEAT: u8 = 1;
/// Submitters from here on are shards of the exchange, whose reports servers copy; below are traders.
pub const SHARDS: u32 = 0xffff_0000;

/// A trader of the member, from 1. 0 stands for all where an item may be for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraderId(pub u32);

impl TraderId {
    /// The submitter of a shard's reports.
    #[must_use]
    pub fn of_shard(shard: ShardId) -> Self {
        Self(SHARDS | u32::from(shard.0))
    }

    /// Whether a program may sign on as that trader.
    #[must_use]
    pub fn is_trader(self) -> bool {
        (1..SHARDS).contains(&self.0)
    }
}

impl core::fmt::Display for TraderId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What its submitter calls an item: unique, with numbers that rise from 1. A repeat of a name is not done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemName {
    /// Who.
    pub trader: TraderId,
    /// Its number; a report's is that of the member's stream of the shard.
    pub number: u64,
}

/// What an item begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ItemHead {
    /// [`SUBMITTED`].
    pub schema: u8,
    /// [`VERSION`].
    pub version: u8,
    /// What the body is.
    pub kind: u8,
    /// Zero.
    pub reserved: u8,
    /// Who submitted it.
    pub trader: U32,
    /// Its submitter's number for it.
    pub number: U64,
    /// The server that took it in, and that server's number for it.
    pub request: U64,
    /// When that was, nanoseconds since 1970 by that server's clock.
    pub stamp_ns: U64,
}

/// What an ordered item begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OrderedHead {
    /// [`ORDERED`].
    pub schema: u8,
    /// [`VERSION`].
    pub version: u8,
    /// [`REPEAT`] or 0.
    pub flags: u8,
    /// Zero.
    pub reserved: u8,
    /// The life of the window that decided it.
    pub epoch: U32,
    /// Its place in the stream, from 0.
    pub position: U64,
    /// Where its name stands first: here, unless it is a repeat. The highest number if that is not remembered.
    pub first: U64,
}

const _: () = assert!(size_of::<ItemHead>() == 32 && size_of::<OrderedHead>() == 24);

/// Why bytes are no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// Shorter than its head or body.
    #[error("an item is cut short")]
    Truncated,
    /// Of another schema or version, or of no known kind.
    #[error("unknown item of schema {schema}, version {version}, kind {kind}")]
    Unknown {
        /// Its schema.
        schema: u8,
        /// Its version.
        version: u8,
        /// Its kind.
        kind: u8,
    },
    /// A field says what cannot be.
    #[error("an item's `{0}` has an impossible value")]
    Field(&'static str),
    /// More than [`BODY_BYTES_MAX`].
    #[error("an item has {bytes} bytes, but at most {BODY_BYTES_MAX} are allowed")]
    TooLong {
        /// How many bytes its body has.
        bytes: usize,
    },
}

/// An item as it was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmittedItem<'a> {
    /// Its name.
    pub name: ItemName,
    /// By which number it is ordered.
    pub request: RequestId,
    /// When a server took it in.
    pub stamp_ns: u64,
    /// What its body is.
    pub kind: u8,
    /// Its body.
    pub body: &'a [u8],
}

impl<'a> SubmittedItem<'a> {
    /// Reads a record of a server's log of submissions.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ItemError> {
        let (head, body) = ItemHead::read_from_prefix(bytes).map_err(|_| ItemError::Truncated)?;
        if (head.schema, head.version) != (SUBMITTED, VERSION) {
            let (schema, version, kind) = (head.schema, head.version, head.kind);
            return Err(ItemError::Unknown { schema, version, kind });
        }
        if body.len() > BODY_BYTES_MAX {
            return Err(ItemError::Field("length"));
        }
        let request = RequestId::from_bits(head.request.get()).ok_or(ItemError::Field("request"))?;
        let name = ItemName { trader: TraderId(head.trader.get()), number: head.number.get() };
        if name.number == 0 {
            return Err(ItemError::Field("number"));
        }
        Ok(Self { name, request, stamp_ns: head.stamp_ns.get(), kind: head.kind, body })
    }

    /// Bytes that [`SubmittedItem::write`] writes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<ItemHead>() + self.body.len()
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let head = ItemHead {
            schema: SUBMITTED,
            version: VERSION,
            kind: self.kind,
            reserved: 0,
            trader: self.name.trader.0.into(),
            number: self.name.number.into(),
            request: self.request.to_bits().into(),
            stamp_ns: self.stamp_ns.into(),
        };
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(self.body);
    }

    /// What it says.
    ///
    /// # Errors
    /// If its body is none of its kind.
    pub fn says(&self) -> Result<ItemBody<'a>, ItemError> {
        ItemBody::read(self.kind, self.body)
    }
}

/// An item at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedItem<'a> {
    /// The life of the window that decided it.
    pub epoch: Epoch,
    /// Its place in the stream.
    pub position: Position,
    /// Where its name stands first, if this is a repeat; the highest number if that is not remembered.
    pub repeats: Option<Position>,
    /// The item; a repeat has no body.
    pub item: SubmittedItem<'a>,
}

impl<'a> OrderedItem<'a> {
    /// Reads a record of a server's log of the stream.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ItemError> {
        let (head, rest) = OrderedHead::read_from_prefix(bytes).map_err(|_| ItemError::Truncated)?;
        if (head.schema, head.version) != (ORDERED, VERSION) {
            let (schema, version) = (head.schema, head.version);
            return Err(ItemError::Unknown { schema, version, kind: 0 });
        }
        let repeats = (head.flags & REPEAT != 0).then_some(Position(head.first.get()));
        let (epoch, position) = (Epoch(head.epoch.get()), Position(head.position.get()));
        if position.0 == u64::MAX {
            return Err(ItemError::Field("position"));
        }
        Ok(Self { epoch, position, repeats, item: SubmittedItem::read(rest)? })
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let head = OrderedHead {
            schema: ORDERED,
            version: VERSION,
            flags: if self.repeats.is_some() { REPEAT } else { 0 },
            reserved: 0,
            epoch: self.epoch.0.into(),
            position: self.position.0.into(),
            first: self.repeats.unwrap_or(self.position).0.into(),
        };
        out.extend_from_slice(head.as_bytes());
        self.item.write(out);
    }
}

#[cfg(test)]
mod tests;
