//! Items: a row of a TPC-C table, or a counter split off from one.

use pares_wice::{Key, Value, Write};

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Table {
    Warehouse,
    District,
    Customer,
    Stock,
    Order,
    NewOrder,
    /// The year's takings of a warehouse, as an item of its own.
    WarehouseTakings,
    /// The same of a district.
    DistrictTakings,
}

/// A row's name.
///
/// ```text
///   63   60 59            40 39    32 31                 0
///  | table |   warehouse    | district |       row        |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Item(u64);

impl Item {
    pub(crate) fn new(table: Table, warehouse: u32, district: u8, row: u32) -> Self {
        debug_assert!(warehouse < 1 << 20, "20 bits of warehouse");
        let place = u64::from(warehouse) << 40 | u64::from(district) << 32 | u64::from(row);
        Self((table as u64) << 60 | place)
    }

    /// As the replication rules name it.
    pub(crate) fn key(self) -> Key {
        Key::new(self.0.to_be_bytes())
    }

    #[cfg(test)]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

/// An item a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) item: Item,
    /// It is added to, not replaced: additions do not conflict with each other.
    pub(crate) adds: bool,
}

impl Written {
    pub(crate) fn put(item: Item) -> Self {
        Self { item, adds: false }
    }

    pub(crate) fn add(item: Item) -> Self {
        Self { item, adds: true }
    }

    /// As the replication rules take it. Values are a byte: how many bytes travel is a parameter of the model.
    pub(crate) fn as_write(self) -> Write {
        match self.adds {
            true => Write::add(self.item.key(), 1),
            false => Write::put(self.item.key(), Value::new([0_u8])),
        }
    }
}
