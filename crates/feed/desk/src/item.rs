//! Items of the local stream, and their bytes (docs/protocols/member.md, *Items*).
//!
//! A server writes what its traders submit into its own log, and what was ordered into another. Both hold the same bytes; the ordered one
//! has a place in front. Traders, peers and files get these bytes as they are, so an item is encoded once in its life.
//!
//! ```text
//!  submitted   [ItemHead 32 | body]
//!  ordered     [OrderedHead 24 | ItemHead 32 | body]      a repeat has no body
//! ```

use pares_types::{Epoch, InstrumentId, Position, Price, Quantity, Reply, RequestId, ShardId};
use pares_wire::frame as entry;
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `schema` of an [`ItemHead`] that begins a record.
pub const SUBMITTED: u8 = 33;
/// `schema` of an [`OrderedHead`].
pub const ORDERED: u8 = 34;
/// The version of all schemas here.
pub const VERSION: u8 = 1;
/// The longest body.
pub const BODY_BYTES_MAX: usize = 8_192;
/// The longest ordered record.
pub const RECORD_BYTES_MAX: usize = size_of::<OrderedHead>() + size_of::<ItemHead>() + BODY_BYTES_MAX;
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

    /// Whether somebody may sign on as that trader.
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
    #[error("an item of schema {schema}, version {version}, kind {kind} is not known here")]
    Unknown {
        /// Its schema.
        schema: u8,
        /// Its version.
        version: u8,
        /// Its kind.
        kind: u8,
    },
    /// A field says what cannot be.
    #[error("an item's `{0}` says what cannot be")]
    Field(&'static str),
}

/// What an item says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemBody<'a> {
    /// A message to a trader, or to all.
    Message {
        /// To whom; 0: all.
        to: TraderId,
        /// What.
        text: &'a str,
    },
    /// A note on an instrument, in the place of an earlier one by the same trader.
    Note {
        /// Which; 0: on none in particular.
        instrument: InstrumentId,
        /// What.
        text: &'a str,
    },
    /// A wish for a quote.
    QuoteRequest {
        /// Of whom; 0: of anybody.
        to: TraderId,
        /// In what.
        instrument: InstrumentId,
        /// How much; 0: not said.
        quantity: Quantity,
    },
    /// A quote that binds nobody.
    IndicativeQuote {
        /// For whom; 0: for all.
        to: TraderId,
        /// In what.
        instrument: InstrumentId,
        /// The bid's price and quantity; quantity 0: no bid.
        bid: (Price, Quantity),
        /// The offer's price and quantity; quantity 0: no offer.
        offer: (Price, Quantity),
        /// The position of the request it answers, plus 1; 0: none.
        answers: u64,
    },
    /// What the exchange told the member, as its gateways write it (docs/protocols/order-entry.md, *The stream of a member*).
    Report {
        /// Of which shard.
        shard: ShardId,
        /// The frame.
        frame: &'a [u8],
    },
}

/// `kind` of each body.
mod kind {
    pub(super) const MESSAGE: u8 = 1;
    pub(super) const NOTE: u8 = 2;
    pub(super) const QUOTE_REQUEST: u8 = 3;
    pub(super) const INDICATIVE_QUOTE: u8 = 4;
    pub(super) const REPORT: u8 = 5;
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TextHead {
    /// A trader, or an instrument.
    to: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct QuoteRequestBytes {
    to: U32,
    instrument: U32,
    quantity: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct QuoteBytes {
    to: U32,
    instrument: U32,
    bid: I64,
    bid_quantity: U64,
    offer: I64,
    offer_quantity: U64,
    answers: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ReportHead {
    shard: U16,
    reserved: [u8; 6],
}

impl<'a> ItemBody<'a> {
    /// Its `kind`.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Message { .. } => kind::MESSAGE,
            Self::Note { .. } => kind::NOTE,
            Self::QuoteRequest { .. } => kind::QUOTE_REQUEST,
            Self::IndicativeQuote { .. } => kind::INDICATIVE_QUOTE,
            Self::Report { .. } => kind::REPORT,
        }
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Message { to: TraderId(to), text } | Self::Note { instrument: InstrumentId(to), text } => {
                out.extend_from_slice(TextHead { to: to.into() }.as_bytes());
                out.extend_from_slice(text.as_bytes());
            }
            Self::QuoteRequest { to, instrument, quantity } => {
                let (to, instrument, quantity) = (to.0.into(), instrument.0.into(), quantity.0.into());
                out.extend_from_slice(QuoteRequestBytes { to, instrument, quantity }.as_bytes());
            }
            Self::IndicativeQuote { to, instrument, bid, offer, answers } => {
                let quote = QuoteBytes {
                    to: to.0.into(),
                    instrument: instrument.0.into(),
                    bid: bid.0.0.into(),
                    bid_quantity: bid.1.0.into(),
                    offer: offer.0.0.into(),
                    offer_quantity: offer.1.0.into(),
                    answers: answers.into(),
                };
                out.extend_from_slice(quote.as_bytes());
            }
            Self::Report { shard, frame } => {
                out.extend_from_slice(ReportHead { shard: shard.0.into(), reserved: [0; 6] }.as_bytes());
                out.extend_from_slice(frame);
            }
        }
    }

    /// Reads what [`ItemBody::write`] wrote.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(kind: u8, bytes: &'a [u8]) -> Result<Self, ItemError> {
        if bytes.len() > BODY_BYTES_MAX {
            return Err(ItemError::Field("length"));
        }
        match kind {
            kind::MESSAGE => read_text(bytes).map(|(to, text)| Self::Message { to: TraderId(to), text }),
            kind::NOTE => {
                read_text(bytes).map(|(id, text)| Self::Note { instrument: InstrumentId(id), text })
            }
            kind::QUOTE_REQUEST => {
                let read: QuoteRequestBytes = whole(bytes)?;
                Ok(Self::QuoteRequest {
                    to: TraderId(read.to.get()),
                    instrument: InstrumentId(read.instrument.get()),
                    quantity: Quantity(read.quantity.get()),
                })
            }
            kind::INDICATIVE_QUOTE => {
                let read: QuoteBytes = whole(bytes)?;
                Ok(Self::IndicativeQuote {
                    to: TraderId(read.to.get()),
                    instrument: InstrumentId(read.instrument.get()),
                    bid: (Price(read.bid.get()), Quantity(read.bid_quantity.get())),
                    offer: (Price(read.offer.get()), Quantity(read.offer_quantity.get())),
                    answers: read.answers.get(),
                })
            }
            kind::REPORT => {
                let (head, frame) = ReportHead::read_from_prefix(bytes).map_err(|_| ItemError::Truncated)?;
                Ok(Self::Report { shard: ShardId(head.shard.get()), frame })
            }
            _ => Err(ItemError::Unknown { schema: SUBMITTED, version: VERSION, kind }),
        }
    }

    /// What a report says.
    #[must_use]
    pub fn reply(&self) -> Option<Reply> {
        let Self::Report { frame, .. } = self else { return None };
        let (kind, body, _) = entry::split(frame).ok()??;
        match entry::decode_gateway(kind, body).ok()? {
            entry::GatewayFrame::Reply(reply) => Some(reply),
            _ => None,
        }
    }
}

fn whole<T: FromBytes>(bytes: &[u8]) -> Result<T, ItemError> {
    T::read_from_bytes(bytes).map_err(|_| ItemError::Truncated)
}

fn read_text(bytes: &[u8]) -> Result<(u32, &str), ItemError> {
    let (head, text) = TextHead::read_from_prefix(bytes).map_err(|_| ItemError::Truncated)?;
    let text = core::str::from_utf8(text).map_err(|_| ItemError::Field("text"))?;
    Ok((head.to.get(), text))
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
