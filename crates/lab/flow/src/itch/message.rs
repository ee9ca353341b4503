//! The messages of ITCH 5.0 that change a displayed book (Nasdaq TotalView-ITCH 5.0 specification,
//! sections 1.2 to 1.5), out of bytes nobody vouches for. Their layouts are those in which `pares-feed` sends them.

use pares_feed::itch::{
    AddOrder, Cancelled, Deleted, Directory, Executed, ExecutedAt, Head, Replaced, Trade, side_of,
};
use pares_types::{Price, Quantity};
use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::recorded::{BookChange, OrderRef, RecordedId};

/// The day's number of an instrument in ITCH messages.
pub(crate) type StockLocate = u16;

/// What a message says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItchMessage {
    /// The specification does not have its type.
    pub(crate) is_unknown: bool,
    pub(crate) locate: StockLocate,
    pub(crate) time_ns: u64,
    /// The instrument's symbol (space padded), where it is named.
    pub(crate) symbol: Option<[u8; 8]>,
    /// What changed on the displayed book, if anything.
    pub(crate) change: Option<BookChange>,
}

/// Reads one message (without its length prefix). Bytes beyond the known fields are left alone.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(bytes: &[u8]) -> Result<ItchMessage, String> {
    let kind = *bytes.first().ok_or("it is empty")?;
    if !b"SRHYLVWKJhAFECXDUPQBINO".contains(&kind) {
        return Ok(ItchMessage { is_unknown: true, ..ItchMessage::default() });
    }
    let head = read::<Head>(bytes)?;
    let symbol = match kind {
        Directory::KIND => Some(read::<Directory>(bytes)?.stock),
        AddOrder::KIND | b'F' => Some(read::<AddOrder>(bytes)?.stock),
        _ => None,
    };
    let (locate, time_ns) = (head.locate.get(), head.time_ns());
    Ok(ItchMessage { is_unknown: false, locate, time_ns, symbol, change: change(kind, bytes)? })
}

fn change(kind: u8, bytes: &[u8]) -> Result<Option<BookChange>, String> {
    Ok(Some(match kind {
        // `F` says whose it is behind the fields of `A`.
        AddOrder::KIND | b'F' => submitted(kind, read(bytes)?)?,
        // A `C` has its own price behind the fields of an `E`.
        Executed::KIND | ExecutedAt::KIND => {
            let Executed { reference, shares, .. } = *read(bytes)?;
            BookChange::Execute { order: order(reference), quantity: quantity(kind, shares)? }
        }
        Cancelled::KIND => {
            let Cancelled { reference, shares, .. } = *read(bytes)?;
            BookChange::Reduce { order: order(reference), quantity: quantity(kind, shares)? }
        }
        Deleted::KIND => {
            let Deleted { reference, .. } = *read(bytes)?;
            BookChange::Delete { order: order(reference), quantity: None }
        }
        Replaced::KIND => {
            let Replaced { original, reference, shares, price: at, .. } = *read(bytes)?;
            let (old, new, quantity) = (order(original), id(reference), quantity(kind, shares)?);
            BookChange::Replace { old, new, price: price(at), quantity }
        }
        Trade::KIND => BookChange::HiddenExecution,
        _ => return Ok(None),
    }))
}

fn submitted(kind: u8, added: &AddOrder) -> Result<BookChange, String> {
    let no_side = || format!("side byte {:#04x} is neither B nor S", added.side);
    let side = side_of(added.side).ok_or_else(no_side)?;
    let (id, quantity) = (id(added.reference), quantity(kind, added.shares)?);
    Ok(BookChange::Submit { id, side, price: price(added.price), quantity })
}

fn read<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> Result<&T, String> {
    let whole = T::ref_from_prefix(bytes).map(|(message, _)| message);
    whole.map_err(|_| format!("type `{}` is cut short", char::from(bytes[0])))
}

fn id(reference: U64) -> RecordedId {
    RecordedId(reference.get())
}

fn order(reference: U64) -> OrderRef {
    OrderRef { id: id(reference), at: None }
}

/// Shares; zero of them is no order, no execution and no cancel.
fn quantity(kind: u8, shares: U32) -> Result<Quantity, String> {
    match shares.get() {
        0 => Err(format!("type `{}` of zero shares", char::from(kind))),
        shares => Ok(Quantity(shares.into())),
    }
}

fn price(units: U32) -> Price {
    Price(units.get().into())
}

#[cfg(test)]
mod tests {
    use pares_types::Side;

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
        let message = parse(&add_bytes()).unwrap();
        let (id, side, quantity, price) = (RecordedId(7), Side::Buy, Quantity(100), Price(283_400));
        let change = Some(BookChange::Submit { id, side, price, quantity });
        let symbol = Some(*b"AAPL    ");
        assert_eq!(message, ItchMessage { is_unknown: false, locate: 13, time_ns: 42, symbol, change });
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
        assert!(parse(b"z").unwrap().is_unknown);
    }
}
