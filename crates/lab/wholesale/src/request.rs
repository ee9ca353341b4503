//! Requests as bytes: a kind, then fields, in the layouts of [`pares_wice::codec`].
//!
//! | kind | | asked to be |
//! |---|---|---|
//! | 1 to 5 | the five transactions of clause 2 | 1 to 3 executed, 4 and 5 read |
//! | 6 | a part of the initial database (clause 4.3) | executed |
//! | 7 | a consistency check of a warehouse or a district (clause 3.3.2) | read |
//! | 8 | a page of orders or payments, to be compared with what clients received | read |
//! | 9 | a number for all there is, as of `pares site` | read |

use pares_site::ApplicationError;
use pares_wice::codec::{Coded, DecodeError};

use crate::population::Part;
use crate::rows::{coded, refuse};

coded! {
    /// Clause 2.4.
    NewOrder {
        warehouse: u32,
        district: u32,
        customer: u32,
        /// Item, supplying warehouse, quantity.
        lines: Vec<LineAsked>,
        entered_ms: u64,
        tag: u64,
    }
    /// A line of an order.
    LineAsked { item: u32, supplier: u32, quantity: u8 }
    /// Clause 2.5.
    Payment {
        warehouse: u32,
        district: u32,
        customer_warehouse: u32,
        customer_district: u32,
        who: CustomerAsked,
        /// Cents.
        amount: i64,
        /// The year's takings of warehouse and district are counters that it adds to, instead of columns that it writes.
        in_counters: bool,
        tag: u64,
    }
    /// A customer, by number or by last name.
    CustomerAsked { by_name: bool, number: u32 }
    /// Clause 2.7, all ten districts.
    Delivery { warehouse: u32, carrier: u8, delivered_ms: u64 }
    /// Clause 2.6.
    OrderStatus { warehouse: u32, district: u32, who: CustomerAsked }
    /// Clause 2.8.
    StockLevel { warehouse: u32, district: u32, threshold: u32 }
    /// A check of a district, or with district 0 of a warehouse.
    Check { warehouse: u32, district: u32 }
    /// Rows of a table in a district, behind a key; an empty one is before all of them.
    Page { table: u8, warehouse: u32, district: u32, after: Vec<u8> }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    NewOrder(NewOrder),
    Payment(Payment),
    Delivery(Delivery),
    OrderStatus(OrderStatus),
    StockLevel(StockLevel),
    Populate(Part),
    Check(Check),
    Page(Page),
    Digest,
}

impl Asks {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut write = |kind: u8, fields: &dyn Fn(&mut Vec<u8>)| {
            bytes.push(kind);
            fields(&mut bytes);
        };
        match self {
            Self::NewOrder(ask) => write(1, &|to| ask.encode(to)),
            Self::Payment(ask) => write(2, &|to| ask.encode(to)),
            Self::Delivery(ask) => write(3, &|to| ask.encode(to)),
            Self::OrderStatus(ask) => write(4, &|to| ask.encode(to)),
            Self::StockLevel(ask) => write(5, &|to| ask.encode(to)),
            Self::Populate(part) => write(6, &|to| part.encode(to)),
            Self::Check(ask) => write(7, &|to| ask.encode(to)),
            Self::Page(ask) => write(8, &|to| ask.encode(to)),
            Self::Digest => write(9, &|_| {}),
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, ApplicationError> {
        Self::decode(bytes).or_else(|error| refuse(format!("not a request of this application: {error}")))
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut from = bytes;
        let from = &mut from;
        let asks = match u8::decode(from)? {
            1 => Self::NewOrder(Coded::decode(from)?),
            2 => Self::Payment(Coded::decode(from)?),
            3 => Self::Delivery(Coded::decode(from)?),
            4 => Self::OrderStatus(Coded::decode(from)?),
            5 => Self::StockLevel(Coded::decode(from)?),
            6 => Self::Populate(Coded::decode(from)?),
            7 => Self::Check(Coded::decode(from)?),
            8 => Self::Page(Coded::decode(from)?),
            9 => Self::Digest,
            other => return Err(DecodeError::Kind(other, "request")),
        };
        if from.is_empty() { Ok(asks) } else { Err(DecodeError::Length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written_and_nothing_else_is() {
        let line = LineAsked { item: 1, supplier: 2, quantity: 3 };
        let order = NewOrder { warehouse: 1, lines: vec![line; 5], tag: 9, ..NewOrder::default() };
        for asks in [Asks::NewOrder(order), Asks::Payment(Payment::default()), Asks::Digest] {
            let mut bytes = asks.to_bytes();
            assert_eq!(Asks::from_bytes(&bytes).unwrap(), asks);
            bytes.push(0);
            assert!(Asks::from_bytes(&bytes).is_err());
        }
        for bytes in [&b""[..], b"\x0a", b"\x01\x01", b"put started yes"] {
            assert!(Asks::from_bytes(bytes).is_err(), "{bytes:?}");
        }
    }
}
