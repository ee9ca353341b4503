//! The initial database (clause 4.3), in parts that are a transaction each.
//!
//! A transaction has room for three quarters of a mebibyte, so a warehouse is hundreds of parts. They touch different rows, and any number can
//! be under way at once. What the standard draws at random is a function of the row's place here, so that a part asked for twice is the same.

use pares_site::ApplicationError;
use pares_store::{Reads, Work};
use pares_tpcc::mix;

use crate::rows::{
    BY_CUSTOMER, BY_NAME, Customer, District, History, Item, Open, Order, OrderLine, Row, Stock, Warehouse,
    coded, key, newest_first, put, refuse,
};

/// Districts of a warehouse, as in the standard.
pub(crate) const DISTRICTS: u32 = 10;
/// Different last names; customers beyond that number share them.
const NAMES: u32 = 1_000;
/// What each customer has paid in the beginning, and so each owes; cents.
const FIRST_PAYMENT: i64 = 1_000;
/// Rows in a part, but for orders, which have lines.
const ROWS: u32 = 500;
/// Customers in a part, each with an order and its lines.
const CUSTOMERS: u32 = 50;

/// How large the database is. The standard's has 3,000 customers a district and 100,000 items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseSize {
    /// 1 to 10,000.
    pub warehouses: u32,
    /// Of each district: 10 to 3,000. As many orders are there in the beginning, the last three of ten not delivered.
    pub customers: u32,
    /// 100 to 100,000.
    pub items: u32,
}

coded! {
    /// A part of the initial database.
    Part {
        /// One of the kinds below.
        kind: u8,
        warehouse: u32,
        district: u32,
        /// First row.
        from: u32,
        /// Last row.
        to: u32,
        /// Of each district.
        customers: u32,
    }
}

const ITEMS: u8 = 1;
const WAREHOUSE: u8 = 2;
const STOCK: u8 = 3;
const DISTRICT: u8 = 4;

impl DatabaseSize {
    /// The parts that make it.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let part = |kind, warehouse, district, (from, to)| Part {
            kind,
            warehouse,
            district,
            from,
            to,
            customers: self.customers,
        };
        let mut parts: Vec<Part> = pieces(self.items, ROWS).map(|rows| part(ITEMS, 0, 0, rows)).collect();
        for warehouse in 1..=self.warehouses {
            parts.push(part(WAREHOUSE, warehouse, 0, (1, 1)));
            parts.extend(pieces(self.items, ROWS).map(|rows| part(STOCK, warehouse, 0, rows)));
            for district in 1..=DISTRICTS {
                let rows = pieces(self.customers, CUSTOMERS);
                parts.extend(rows.map(|rows| part(DISTRICT, warehouse, district, rows)));
            }
        }
        parts
    }
}

/// `1..=count` in pieces: first and last of each.
fn pieces(count: u32, each: u32) -> impl Iterator<Item = (u32, u32)> {
    (1..=count).step_by(each as usize).map(move |from| (from, count.min(from + each - 1)))
}

/// The last order that is delivered in the beginning.
pub(crate) fn delivered_first(customers: u32) -> u32 {
    customers / 10 * 7
}

/// Of a customer's last name. There are no more names than customers of a district.
pub(crate) fn names(customers: u32) -> u32 {
    customers.min(NAMES)
}

/// A number in `low..=high` that belongs to a place.
fn drawn(place: &[u32], salt: u32, low: u32, high: u32) -> u32 {
    let seed = place.iter().fold(u64::from(salt), |seed, part| mix(seed ^ u64::from(*part)));
    low + u32::try_from(seed % u64::from(high - low + 1)).expect("below a u32")
}

/// Makes a part.
///
/// # Errors
/// If it is none of [`DatabaseSize::parts`].
pub(crate) fn populate<R: Reads>(part: &Part, work: &mut Work<R>) -> Result<Vec<u8>, ApplicationError> {
    let rows = part.to.checked_sub(part.from).filter(|more| *more < ROWS);
    let is_within = (10..=3_000).contains(&part.customers) && part.district <= DISTRICTS;
    if rows.is_none() || !is_within || part.from == 0 || part.to > 100_000 {
        return refuse("no database has such a part");
    }
    match part.kind {
        ITEMS => (part.from..=part.to)
            .for_each(|item| put(work, &[item], &Item { price: drawn(&[item], 1, 100, 10_000) })),
        WAREHOUSE => warehouse(part, work),
        STOCK => stock(part, work),
        DISTRICT => {
            for customer in part.from..=part.to {
                self::customer(part, customer, work);
                order(part, customer, work);
            }
        }
        kind => return refuse(format!("{kind} is no kind of part")),
    }
    Ok(Vec::new())
}

fn warehouse<R: Reads>(part: &Part, work: &mut Work<R>) {
    let year = FIRST_PAYMENT * i64::from(part.customers);
    let place = [part.warehouse];
    let row = Warehouse { tax: drawn(&place, 2, 0, 2_000), year: year * i64::from(DISTRICTS) };
    put(work, &place, &row);
    for district in 1..=DISTRICTS {
        let place = [part.warehouse, district];
        let row = District { tax: drawn(&place, 3, 0, 2_000), year, next_order: part.customers + 1 };
        put(work, &place, &row);
    }
}

fn stock<R: Reads>(part: &Part, work: &mut Work<R>) {
    for item in part.from..=part.to {
        let place = [part.warehouse, item];
        put(work, &place, &Stock { quantity: drawn(&place, 4, 10, 100), ..Stock::default() });
    }
}

fn customer<R: Reads>(part: &Part, customer: u32, work: &mut Work<R>) {
    let (w, d) = (part.warehouse, part.district);
    let row = Customer {
        balance: -FIRST_PAYMENT,
        paid: FIRST_PAYMENT,
        payments: 1,
        deliveries: 0,
        discount: drawn(&[w, d, customer], 5, 0, 5_000),
    };
    put(work, &[w, d, customer], &row);
    let name = (customer - 1) % NAMES;
    work.put(&key(BY_NAME, &[w, d, name, customer]), pares_wice::Value::new([]));
    put(work, &[w, d, w, d, customer, 1], &History { amount: FIRST_PAYMENT, tag: 0 });
}

/// A customer has one order in the beginning, and orders are in another order than customers.
fn order<R: Reads>(part: &Part, number: u32, work: &mut Work<R>) {
    let (w, d) = (part.warehouse, part.district);
    let customer = (number + 7 * d) % part.customers + 1;
    let is_delivered = number <= delivered_first(part.customers);
    let place = [w, d, number];
    let lines = drawn(&place, 6, 5, 15);
    (1..=lines).for_each(|line| order_line([w, d, number, line], is_delivered, work));
    let row = Order {
        customer,
        entered_ms: 1,
        carrier: if is_delivered { drawn(&place, 9, 1, 10) as u8 } else { 0 },
        lines: lines as u8,
        all_local: true,
        tag: 0,
    };
    put(work, &place, &row);
    work.put(&key(BY_CUSTOMER, &[w, d, customer, newest_first(number)]), pares_wice::Value::new([]));
    if !is_delivered {
        work.put(&key(Open::TABLE, &place), Open { customer }.value());
    }
}

fn order_line<R: Reads>(place: [u32; 4], is_delivered: bool, work: &mut Work<R>) {
    let row = OrderLine {
        item: drawn(&place, 7, 1, 100),
        supplier: place[0],
        delivered_ms: u64::from(is_delivered),
        quantity: 5,
        amount: if is_delivered { 0 } else { i64::from(drawn(&place, 8, 1, 999_999)) },
    };
    put(work, &place, &row);
}
