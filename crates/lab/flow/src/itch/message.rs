//! The messages of ITCH 5.0 that change a displayed book (Nasdaq TotalView-ITCH 5.0 specification,
//! sections 1.2 to 1.5), out of bytes nobody vouches for.
//!
//! ```text
//!  0     1              3               5                11
//!  +-----+--------------+---------------+----------------+------------ - -
//!  |type | stock locate | tracking no.  | time, 6 bytes  | by type
//!  +-----+--------------+---------------+----------------+------------ - -
//!   all integers big-endian; prices in ten-thousandths; time in nanoseconds after midnight
//! ```

use pares_types::{Price, Quantity, Side};

use crate::recorded::RecordedId;

/// The day's number of an instrument in ITCH messages.
pub(crate) type StockLocate = u16;

/// What a message says of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItchMessage {
    /// `R`: an instrument and its symbol (space padded).
    Directory {
        /// The symbol.
        symbol: [u8; 8],
    },
    /// `A`, `F`: an order was added.
    Add {
        /// Its reference number.
        id: RecordedId,
        /// Buy or sell.
        side: Side,
        /// Shares.
        quantity: Quantity,
        /// The symbol (space padded).
        symbol: [u8; 8],
        /// Limit price.
        price: Price,
    },
    /// `E`, `C`: an order was executed (`C`: printed at another price than its own).
    Execute {
        /// The order.
        id: RecordedId,
        /// Shares.
        quantity: Quantity,
    },
    /// `X`: part of an order was cancelled.
    Cancel {
        /// The order.
        id: RecordedId,
        /// Shares.
        quantity: Quantity,
    },
    /// `D`: an order was deleted.
    Delete {
        /// The order.
        id: RecordedId,
    },
    /// `U`: an order was replaced by one that queues last.
    Replace {
        /// The order that is gone.
        old: RecordedId,
        /// The one in its place.
        new: RecordedId,
        /// Its shares.
        quantity: Quantity,
        /// Its limit price.
        price: Price,
    },
    /// `P`: a hidden order was executed.
    HiddenTrade,
    /// A type of the specification that leaves the displayed book alone.
    Other,
    /// A type the specification does not have.
    Unknown,
}

/// The head all messages share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) locate: StockLocate,
    pub(crate) time_ns: u64,
}

/// Reads one message (without its length prefix). Bytes beyond the known fields are left alone.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Head, ItchMessage), String> {
    let mut fields = Fields { bytes, kind: char::from(bytes.first().copied().unwrap_or(b'?')) };
    let kind = fields.u8()?;
    if !is_specified(kind) {
        return Ok((Head { locate: 0, time_ns: 0 }, ItchMessage::Unknown));
    }
    let locate = fields.u16()?;
    fields.u16()?; // tracking number
    let time_ns = fields.u48()?;
    let message = match kind {
        b'R' => ItchMessage::Directory { symbol: fields.take()? },
        b'A' | b'F' => add(&mut fields)?,
        b'E' | b'C' => ItchMessage::Execute { id: fields.id()?, quantity: fields.quantity()? },
        b'X' => ItchMessage::Cancel { id: fields.id()?, quantity: fields.quantity()? },
        b'D' => ItchMessage::Delete { id: fields.id()? },
        b'U' => ItchMessage::Replace {
            old: fields.id()?,
            new: fields.id()?,
            quantity: fields.quantity()?,
            price: fields.price()?,
        },
        b'P' => ItchMessage::HiddenTrade,
        _ => ItchMessage::Other,
    };
    Ok((Head { locate, time_ns }, message))
}

fn add(fields: &mut Fields<'_>) -> Result<ItchMessage, String> {
    let id = fields.id()?;
    let side = match fields.u8()? {
        b'B' => Side::Buy,
        b'S' => Side::Sell,
        other => return Err(format!("side byte {other:#04x} is neither B nor S")),
    };
    let quantity = fields.quantity()?;
    let symbol = fields.take()?;
    Ok(ItchMessage::Add { id, side, quantity, symbol, price: fields.price()? })
}

fn is_specified(kind: u8) -> bool {
    b"SRHYLVWKJhAFECXDUPQBINO".contains(&kind)
}

/// The bytes of one message not read yet.
struct Fields<'a> {
    bytes: &'a [u8],
    kind: char,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| format!("type `{}` is cut short", self.kind))?;
        self.bytes = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, String> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, String> {
        self.take().map(u16::from_be_bytes)
    }

    fn u48(&mut self) -> Result<u64, String> {
        let [a, b, c, d, e, f] = self.take()?;
        Ok(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    fn id(&mut self) -> Result<RecordedId, String> {
        self.take().map(|bytes| RecordedId(u64::from_be_bytes(bytes)))
    }

    /// Shares; zero of them is no order, no execution and no cancel.
    fn quantity(&mut self) -> Result<Quantity, String> {
        match u32::from_be_bytes(self.take()?) {
            0 => Err(format!("type `{}` of zero shares", self.kind)),
            shares => Ok(Quantity(u64::from(shares))),
        }
    }

    fn price(&mut self) -> Result<Price, String> {
        self.take().map(|bytes| Price(i64::from(u32::from_be_bytes(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An add of 100 shares of order 7 at 28.34, as published.
    fn add_bytes() -> Vec<u8> {
        let mut bytes = b"A\x00\x0d\x00\x00\x00\x00\x00\x00\x00\x2a".to_vec();
        bytes.extend_from_slice(&7u64.to_be_bytes());
        bytes.push(b'B');
        bytes.extend_from_slice(&100u32.to_be_bytes());
        bytes.extend_from_slice(b"AAPL    ");
        bytes.extend_from_slice(&283_400u32.to_be_bytes());
        bytes
    }

    #[test]
    fn an_add_is_read_field_by_field() {
        let (head, message) = parse(&add_bytes()).unwrap();
        assert_eq!(head, Head { locate: 13, time_ns: 42 });
        let (id, side, quantity, price) = (RecordedId(7), Side::Buy, Quantity(100), Price(283_400));
        assert_eq!(message, ItchMessage::Add { id, side, quantity, symbol: *b"AAPL    ", price });
    }

    #[test]
    fn an_add_cut_anywhere_is_an_error() {
        let bytes = add_bytes();
        for length in 0..bytes.len() {
            assert!(parse(&bytes[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_third_side_is_an_error() {
        let mut bytes = add_bytes();
        bytes[19] = b'X';
        assert_eq!(parse(&bytes), Err("side byte 0x58 is neither B nor S".to_owned()));
    }

    #[test]
    fn a_type_nobody_specified_is_unknown_whatever_follows() {
        assert_eq!(parse(b"z").unwrap().1, ItchMessage::Unknown);
    }
}
