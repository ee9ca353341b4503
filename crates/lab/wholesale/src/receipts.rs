//! What clients received, compared with the rows there are.
//!
//! Counting is not enough: one order lost and one entered twice cancel out. So every order and payment carries a number of its
//! client's, and a delivery tells which orders it delivered: sets, not sums.

use std::collections::{BTreeMap, BTreeSet};

use pares_site::ApplicationError;
use pares_store::Reads;
use pares_tpcc::Kind;
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange};

use crate::population::{DISTRICTS, DatabaseSize, delivered_first};
use crate::request::{Asks, Page};
use crate::rows::{History, Order, Row, last_part, refuse, within};
use crate::terminal::TerminalTransaction;
use crate::transactions::told;

/// Rows of a page: some 40 bytes each.
const ROWS: usize = 10_000;

/// An order's warehouse, district, number.
type Place = [u32; 3];

/// What a client received.
#[derive(Clone, Debug, Default)]
pub struct Receipts {
    /// The client's number for each order that was entered, and the order's.
    orders: Vec<(u64, Place)>,
    payments: Vec<u64>,
    delivered: Vec<Place>,
    deliveries: u64,
    /// Client's numbers of orders and payments that may be there or not: nobody said.
    open: BTreeSet<u64>,
    /// Warehouses with a delivery of which nobody said what became of it.
    open_deliveries: BTreeSet<u32>,
}

/// What is there of it.
#[derive(Clone, Debug, Default)]
pub struct FoundRows {
    /// By place: the client's number, and whether it has been delivered.
    orders: BTreeMap<Place, (u64, bool)>,
    payments: Vec<u64>,
}

impl Receipts {
    /// An errand was done, with this reply.
    ///
    /// # Errors
    /// If it is no reply to such an errand.
    pub fn note(&mut self, errand: &TerminalTransaction, mut reply: &[u8]) -> Result<(), DecodeError> {
        let reply = &mut reply;
        match errand.kind {
            Kind::NewOrder => {
                let (number, _) = <(u32, i64)>::decode(reply)?;
                self.orders.push((errand.tag, [errand.warehouse, errand.district, number]));
            }
            Kind::Payment => self.payments.push(errand.tag),
            Kind::Delivery => {
                self.deliveries += 1;
                let places = Vec::<(u32, u32)>::decode(reply)?.into_iter();
                self.delivered.extend(places.map(|(district, number)| [errand.warehouse, district, number]));
            }
            Kind::OrderStatus | Kind::StockLevel => {}
        }
        Ok(())
    }

    /// Nobody said what became of an errand.
    pub fn note_open(&mut self, errand: &TerminalTransaction) {
        match errand.kind {
            Kind::Delivery => drop(self.open_deliveries.insert(errand.warehouse)),
            _ => drop(self.open.insert(errand.tag)),
        }
    }

    /// How many updates were done.
    #[must_use]
    pub fn updates(&self) -> u64 {
        (self.orders.len() + self.payments.len()) as u64 + self.deliveries
    }

    /// Adds what another client received.
    pub fn add(&mut self, other: Self) {
        self.orders.extend(other.orders);
        self.payments.extend(other.payments);
        self.delivered.extend(other.delivered);
        self.deliveries += other.deliveries;
        self.open.extend(other.open);
        self.open_deliveries.extend(other.open_deliveries);
    }

    /// How many receipts are not among the rows, or differ there; and how many rows are there twice, or have no receipt.
    #[must_use]
    pub fn lost_and_repeated(&self, found: &FoundRows, scale: &DatabaseSize) -> u64 {
        let entered = found.orders.iter().filter(|(_, (tag, _))| *tag != 0);
        let there: Vec<(u64, Place)> = entered.map(|(place, (tag, _))| (*tag, *place)).collect();
        let open = |tag: &u64| self.open.contains(tag);
        let twice = beyond_one(there.iter().map(|(tag, _)| *tag).filter(open))
            + beyond_one(found.payments.iter().copied().filter(open));
        let said = self.orders.iter().copied();
        let orders = apart(said, there.into_iter().filter(|(tag, _)| !self.open.contains(tag)));
        let paid = found.payments.iter().copied().filter(|tag| *tag != 0 && !self.open.contains(tag));
        let payments = apart(self.payments.iter().copied(), paid);
        let first = delivered_first(scale.customers);
        let delivered = found.orders.iter().filter(|(place, (_, done))| *done && place[2] > first);
        let known =
            delivered.map(|(place, _)| *place).filter(|place| !self.open_deliveries.contains(&place[0]));
        let said = self.delivered.iter().copied().filter(|place| !self.open_deliveries.contains(&place[0]));
        orders + payments + twice + apart(said, known)
    }
}

/// Of what may be there or not, how many are there once more, and again.
fn beyond_one(tags: impl Iterator<Item = u64>) -> u64 {
    let mut seen = BTreeSet::new();
    tags.filter(|tag| !seen.insert(*tag)).count() as u64
}

/// How many are in only one of two lists, each as often as it stands there.
fn apart<T: Ord>(said: impl Iterator<Item = T>, there: impl Iterator<Item = T>) -> u64 {
    let mut balance: BTreeMap<T, i64> = BTreeMap::new();
    said.for_each(|one| *balance.entry(one).or_default() += 1);
    there.for_each(|one| *balance.entry(one).or_default() -= 1);
    balance.values().map(|count| count.unsigned_abs()).sum()
}

/// A page of rows: key, client's number, whether delivered.
pub(crate) fn page(ask: &Page, items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
    let all = within(ask.table, &[ask.warehouse, ask.district]);
    let range = match ask.after.is_empty() {
        true => all,
        false => KeyRange { from: Key::new([&ask.after[..], &[0]].concat()), to: all.to },
    };
    let mut found: Vec<(Key, (u64, bool))> = Vec::new();
    for (key, value) in items.first(&range, ROWS)? {
        let row = match ask.table {
            Order::TABLE => Order::of(&value).map(|row| (row.tag, row.carrier != 0))?,
            History::TABLE => History::of(&value).map(|row| (row.tag, false))?,
            table => return refuse(format!("table {table} has no pages")),
        };
        found.push((key, row));
    }
    Ok(told(&found))
}

impl FoundRows {
    /// Reads all of it, by asking `read`.
    ///
    /// # Errors
    /// Those of `read`; and if a reply is none.
    pub fn read<E: From<DecodeError>>(
        scale: &DatabaseSize,
        mut read: impl FnMut(&[u8]) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let mut found = Self::default();
        let districts = |warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district));
        for (warehouse, district) in (1..=scale.warehouses).flat_map(districts) {
            for table in [Order::TABLE, History::TABLE] {
                let mut ask = Page { table, warehouse, district, after: Vec::new() };
                loop {
                    let reply = read(&Asks::Page(ask.clone()).to_bytes())?;
                    let rows = Vec::<(Key, (u64, bool))>::decode(&mut &reply[..])?;
                    let Some((last, _)) = rows.last() else { break };
                    ask.after = last.as_bytes().to_vec();
                    found.take(table, [warehouse, district], &rows);
                }
            }
        }
        Ok(found)
    }

    fn take(&mut self, table: u8, [w, d]: [u32; 2], rows: &[(Key, (u64, bool))]) {
        match table {
            Order::TABLE => {
                self.orders.extend(rows.iter().map(|(key, row)| ([w, d, last_part(key)], *row)));
            }
            _ => self.payments.extend(rows.iter().map(|(_, (tag, _))| *tag)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: DatabaseSize = DatabaseSize { warehouses: 1, customers: 10, items: 100 };

    fn found(orders: &[(u32, u64, bool)], payments: &[u64]) -> FoundRows {
        let orders = orders.iter().map(|(number, tag, done)| ([1, 1, *number], (*tag, *done)));
        FoundRows { orders: orders.collect(), payments: payments.to_vec() }
    }

    #[test]
    fn what_is_lost_repeated_or_untold_is_found() {
        let told = Receipts {
            orders: vec![(5, [1, 1, 11])],
            payments: vec![6, 7],
            delivered: vec![[1, 1, 8]],
            ..Receipts::default()
        };
        let count = |orders: &[(u32, u64, bool)], payments: &[u64]| {
            told.lost_and_repeated(&found(orders, payments), &SCALE)
        };
        let right = [(7, 0, true), (8, 0, true), (9, 0, false), (11, 5, false)];
        assert_eq!(count(&right, &[0, 6, 7]), 0);
        assert_eq!(count(&right, &[6]), 1, "a payment is lost");
        assert_eq!(count(&right, &[6, 7, 7]), 1, "done twice");
        assert_eq!(count(&right, &[6, 7, 9]), 1, "and one that nobody was told of");
        assert_eq!(count(&right[..3], &[6, 7]), 1, "an order is lost");
        assert_eq!(count(&[right[0], right[1], right[3], (12, 5, false)], &[6, 7]), 1, "entered twice");
        assert_eq!(count(&[(8, 0, true), (9, 0, true), (11, 5, false)], &[6, 7]), 1, "a delivery untold");
        let mut open = told.clone();
        open.open.insert(9);
        assert_eq!(open.lost_and_repeated(&found(&right, &[6, 7, 9]), &SCALE), 0, "it may be there or not");
        assert_eq!(open.lost_and_repeated(&found(&right, &[6, 7, 9, 9]), &SCALE), 1, "not twice");
    }
}
