//! What items say, and its bytes.

use pares_types::{InstrumentId, Price, Quantity, Reply, ShardId};
use pares_wire::frame as entry;
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BODY_BYTES_MAX, ItemError, SUBMITTED, TraderId, VERSION};

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
        /// Of whom; 0: of any trader.
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
            kind::INDICATIVE_QUOTE => whole(bytes).map(|read| Self::from_quote(&read)),
            kind::REPORT => {
                let (head, frame) = ReportHead::read_from_prefix(bytes).map_err(|_| ItemError::Truncated)?;
                Ok(Self::Report { shard: ShardId(head.shard.get()), frame })
            }
            _ => Err(ItemError::Unknown { schema: SUBMITTED, version: VERSION, kind }),
        }
    }

    fn from_quote(read: &QuoteBytes) -> Self {
        Self::IndicativeQuote {
            to: TraderId(read.to.get()),
            instrument: InstrumentId(read.instrument.get()),
            bid: (Price(read.bid.get()), Quantity(read.bid_quantity.get())),
            offer: (Price(read.offer.get()), Quantity(read.offer_quantity.get())),
            answers: read.answers.get(),
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
