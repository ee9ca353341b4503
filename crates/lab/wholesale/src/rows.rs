//! Rows as items: a key in the order of the table's primary key, a value of the row's size in the standard.
//!
//! ```text
//!   key     table u8 | warehouse u32 | district u32 | ...        big-endian, so that a range of keys is a range of rows
//!   value   the columns below, little-endian | zeros up to the row's size (clause 4.2.2)
//! ```
//! Columns are those that transactions or conditions read. Left out, and in the zeros: names but for a number in place of a last name,
//! addresses, phones, `C_DATA`, `C_CREDIT_LIM`, `C_SINCE`, `H_DATE`, `H_DATA`, `I_NAME`, `I_DATA`, `S_DIST_xx`, `S_DATA`, `OL_DIST_INFO`.
//! Money is in cents, taxes and discounts in ten-thousandths.

use pares_site::ApplicationError;
use pares_store::{Reads, Work};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange, Value};

/// Takes no part, and leaves everything as it was.
pub(crate) fn refuse<T>(why: impl Into<String>) -> Result<T, ApplicationError> {
    Err(ApplicationError::Refused(why.into()))
}

/// A struct of fields with bytes: those of its fields, in order.
macro_rules! coded {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name { $($(#[$about])* pub(crate) $field: $type),* }

        impl pares_wice::codec::Coded for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                $(self.$field.encode(to);)*
            }
            fn decode(from: &mut &[u8]) -> Result<Self, pares_wice::codec::DecodeError> {
                Ok(Self { $($field: pares_wice::codec::Coded::decode(from)?),* })
            }
        }
    )*};
}
pub(crate) use coded;

coded! {
    /// WAREHOUSE, by warehouse.
    Warehouse {
        /// Ten-thousandths.
        tax: u32,
        /// `W_YTD`, cents, but for sums in a counter ([`YEAR`]).
        year: i64,
    }
    /// DISTRICT, by warehouse, district.
    District {
        /// Ten-thousandths.
        tax: u32,
        /// `D_YTD`, as in [`Warehouse`].
        year: i64,
        /// `D_NEXT_O_ID`.
        next_order: u32,
    }
    /// CUSTOMER, by warehouse, district, customer.
    Customer {
        /// Cents.
        balance: i64,
        /// `C_YTD_PAYMENT`, cents.
        paid: i64,
        /// `C_PAYMENT_CNT`.
        payments: u32,
        /// `C_DELIVERY_CNT`.
        deliveries: u32,
        /// Ten-thousandths.
        discount: u32,
    }
    /// HISTORY, by warehouse and district of the payment, then those of the customer, customer, and which of his payments it is.
    History {
        /// Cents.
        amount: i64,
        /// Whose payment: a client's number for it, 0 of the beginning.
        tag: u64,
    }
    /// ORDER, by warehouse, district, order.
    Order {
        customer: u32,
        /// `O_ENTRY_D`, by the client's clock, ms.
        entered_ms: u64,
        /// 0 until it is delivered.
        carrier: u8,
        /// `O_OL_CNT`.
        lines: u8,
        all_local: bool,
        /// As in [`History`].
        tag: u64,
    }
    /// NEW-ORDER, by warehouse, district, order.
    Open { customer: u32 }
    /// ORDER-LINE, by warehouse, district, order, line.
    OrderLine {
        item: u32,
        supplier: u32,
        /// `OL_DELIVERY_D`, by the client's clock, ms; 0 until then.
        delivered_ms: u64,
        quantity: u8,
        /// Cents.
        amount: i64,
    }
    /// ITEM, by item.
    Item {
        /// Cents.
        price: u32,
    }
    /// STOCK, by warehouse, item.
    Stock {
        quantity: u32,
        /// `S_YTD`.
        year: u32,
        orders: u32,
        remote: u32,
    }
}

/// A row of a table.
pub(crate) trait Row: Coded {
    /// What its keys begin with.
    const TABLE: u8;
    /// Its size (clause 4.2.2).
    const BYTES: usize;

    /// As it is kept.
    fn value(&self) -> Value {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        self.encode(&mut bytes);
        assert!(bytes.len() <= Self::BYTES, "columns fit into the row's size");
        bytes.resize(Self::BYTES, 0);
        Value::new(bytes)
    }

    /// From a kept value.
    fn of(value: &Value) -> Result<Self, ApplicationError> {
        Self::decode(&mut value.as_bytes())
            .or_else(|_: DecodeError| refuse("a row is shorter than its columns"))
    }
}

macro_rules! tables {
    ($($name:ident $table:literal $bytes:literal)*) => {$(
        impl Row for $name {
            const TABLE: u8 = $table;
            const BYTES: usize = $bytes;
        }
    )*};
}
tables! {
    Warehouse b'w' 89
    District b'd' 95
    Customer b'c' 655
    History b'h' 46
    Order b'o' 24
    Open b'n' 8
    OrderLine b'l' 54
    Item b'i' 82
    Stock b's' 306
}

/// An index: by warehouse, district, last name, customer.
pub(crate) const BY_NAME: u8 = b'x';
/// An index: by warehouse, district, customer, and the order's number, the last first ([`newest_first`]).
pub(crate) const BY_CUSTOMER: u8 = b'q';
/// Counters of a year's takings beside the rows: by warehouse, or warehouse and district.
pub(crate) const YEAR: u8 = b'y';

/// Numbers in the opposite order.
pub(crate) fn newest_first(order: u32) -> u32 {
    u32::MAX - order
}

fn bytes(table: u8, place: &[u32]) -> Vec<u8> {
    std::iter::once(table).chain(place.iter().flat_map(|part| part.to_be_bytes())).collect()
}

pub(crate) fn key(table: u8, place: &[u32]) -> Key {
    Key::new(bytes(table, place))
}

/// All rows of a table whose place begins so.
pub(crate) fn within(table: u8, place: &[u32]) -> KeyRange {
    KeyRange::prefix(&bytes(table, place))
}

/// The last part of a place.
pub(crate) fn last_part(key: &Key) -> u32 {
    key.as_bytes().last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn missing<T>(table: u8, place: &[u32]) -> Result<T, ApplicationError> {
    refuse(format!("there is no row {} {place:?}", char::from(table)))
}

/// A row that an execution reads.
pub(crate) fn take<T: Row, R: Reads>(work: &mut Work<R>, place: &[u32]) -> Result<T, ApplicationError> {
    match work.get(&key(T::TABLE, place))? {
        Some(value) => T::of(&value),
        None => missing(T::TABLE, place),
    }
}

/// A row that only a read reads.
pub(crate) fn look<T: Row>(items: &dyn Reads, place: &[u32]) -> Result<T, ApplicationError> {
    match items.get(&key(T::TABLE, place))? {
        Some(value) => T::of(&value),
        None => missing(T::TABLE, place),
    }
}

/// Writes a row.
pub(crate) fn put<T: Row, R: Reads>(work: &mut Work<R>, place: &[u32], row: &T) {
    work.put(&key(T::TABLE, place), row.value());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_size_of_the_standard_and_is_read_as_it_was() {
        let row = Order { customer: 7, entered_ms: 8, carrier: 9, lines: 10, all_local: true, tag: u64::MAX };
        assert_eq!(row.value().as_bytes().len(), 24);
        assert_eq!(Order::of(&row.value()).unwrap(), row);
        assert!(Order::of(&Value::new([1, 2])).is_err(), "and anything else is refused");
    }

    #[test]
    fn rows_lie_in_the_order_of_their_numbers() {
        assert!(key(b'o', &[1, 2, 255]) < key(b'o', &[1, 2, 256]));
        assert!(within(b'o', &[1, 2]).contains(&key(b'o', &[1, 2, 256])));
        assert!(!within(b'o', &[1, 2]).contains(&key(b'o', &[1, 3, 0])));
        assert_eq!(last_part(&key(b'o', &[1, 2, 256])), 256);
        assert!(newest_first(8) < newest_first(7));
    }
}
