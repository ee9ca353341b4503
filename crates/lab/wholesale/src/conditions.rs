//! Consistency conditions (clause 3.3.2), read from one stable version of one site.
//!
//! | condition | |
//! |---|---|
//! | 1 | what a warehouse has taken in a year is what its districts have |
//! | 2 | a district's next order follows its last one, which is the last in NEW-ORDER too |
//! | 3 | the orders in NEW-ORDER have no gap |
//! | 4 | a district has as many lines as its orders say |
//! | 5 | an order is in NEW-ORDER if it has no carrier, and only then |
//! | 6 | an order has as many lines as it says |
//! | 7 | a line has a day of delivery if its order has a carrier, and only then |
//! | 9 | what a district has taken is the sum of the payments there |
//! | 12 | what a customer owes and has paid is what was delivered to him |
//!
//! 8 follows from 1 and 9; 11 holds before the first transaction only. 10 is not checked: it sums payments by customer, where 9 sums them by district.

use std::collections::{BTreeMap, BTreeSet};

use pares_site::ApplicationError;
use pares_store::Reads;

use crate::population::DISTRICTS;
use crate::request::Check;
use crate::rows::{
    Customer, District, History, Open, Order, OrderLine, Row, Warehouse, YEAR, key, last_part, look, within,
};
use crate::transactions::rows;

/// What does not hold, a line each; nothing if all does.
pub(crate) fn check(ask: &Check, items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
    let mut broken = Broken::default();
    match ask.district {
        0 => warehouse(ask.warehouse, items, &mut broken)?,
        district => {
            let orders = Orders::read(&[ask.warehouse, district], items)?;
            orders.check(&mut broken);
            orders.check_money(items, &mut broken)?;
        }
    }
    Ok(broken.0.join("\n").into_bytes())
}

#[derive(Default)]
struct Broken(Vec<String>);

impl Broken {
    fn unless(&mut self, holds: bool, condition: u8, place: &[u32], what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(format!("condition {condition} at {place:?}: {}", what()));
        }
    }
}

/// What was taken in a year: in the row, and in the counter beside it.
fn taken(items: &dyn Reads, place: &[u32], row: i64) -> Result<i128, ApplicationError> {
    let counter = items.get(&key(YEAR, place))?.and_then(|value| value.as_counter());
    Ok(i128::from(row) + counter.unwrap_or(0))
}

fn warehouse(w: u32, items: &dyn Reads, broken: &mut Broken) -> Result<(), ApplicationError> {
    let whole = taken(items, &[w], look::<Warehouse>(items, &[w])?.year)?;
    let mut parts = 0;
    for d in 1..=DISTRICTS {
        parts += taken(items, &[w, d], look::<District>(items, &[w, d])?.year)?;
    }
    broken.unless(whole == parts, 1, &[w], || format!("took {whole}, its districts {parts}"));
    Ok(())
}

/// A district's orders and their lines.
struct Orders {
    place: [u32; 2],
    district: District,
    orders: BTreeMap<u32, Order>,
    open: BTreeSet<u32>,
    lines: BTreeMap<u32, Vec<OrderLine>>,
}

impl Orders {
    fn read(place: &[u32; 2], items: &dyn Reads) -> Result<Self, ApplicationError> {
        let mut all = Self {
            place: *place,
            district: look(items, place)?,
            orders: BTreeMap::new(),
            open: BTreeSet::new(),
            lines: BTreeMap::new(),
        };
        rows(items, &within(Order::TABLE, place), |key, row| {
            all.orders.insert(last_part(key), row);
        })?;
        rows(items, &within(Open::TABLE, place), |key, _: Open| {
            all.open.insert(last_part(key));
        })?;
        rows(items, &within(OrderLine::TABLE, place), |key, row| {
            // Before the line's own number stands the order's.
            let order = key.as_bytes().len().checked_sub(8).map(|at| &key.as_bytes()[at..at + 4]);
            let order = order.and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
            all.lines.entry(order).or_default().push(row);
        })?;
        Ok(all)
    }

    fn check(&self, broken: &mut Broken) {
        let (place, next) = (&self.place, self.district.next_order);
        let last = self.orders.last_key_value().map_or(0, |(last, _)| *last);
        broken.unless(next == last + 1, 2, place, || format!("the next order is {next}, the last {last}"));
        if let (Some(first_open), Some(last_open)) = (self.open.first(), self.open.last()) {
            broken.unless(*last_open == last, 2, place, || {
                format!("{last_open} is the last open, {last} the last")
            });
            let span = (last_open - first_open + 1) as usize;
            broken
                .unless(span == self.open.len(), 3, place, || format!("{} open of {span}", self.open.len()));
        }
        let said: usize = self.orders.values().map(|order| usize::from(order.lines)).sum();
        let there: usize = self.lines.values().map(Vec::len).sum();
        broken.unless(said == there, 4, place, || format!("{said} lines said, {there} there"));
        for (number, order) in &self.orders {
            self.check_order(*number, order, broken);
        }
    }

    fn check_order(&self, number: u32, order: &Order, broken: &mut Broken) {
        let [w, d] = self.place;
        let (place, is_open) = ([w, d, number], order.carrier == 0);
        broken.unless(is_open == self.open.contains(&number), 5, &place, || {
            format!("carrier {}", order.carrier)
        });
        let lines = self.lines.get(&number).map_or(&[][..], Vec::as_slice);
        broken
            .unless(lines.len() == usize::from(order.lines), 6, &place, || format!("{} lines", lines.len()));
        let is_right = lines.iter().all(|line| (line.delivered_ms == 0) == is_open);
        broken.unless(is_right, 7, &place, || format!("carrier {}, days of delivery differ", order.carrier));
    }

    fn check_money(&self, items: &dyn Reads, broken: &mut Broken) -> Result<(), ApplicationError> {
        let place = &self.place;
        let mut payments = 0;
        rows(items, &within(History::TABLE, place), |_, row: History| payments += i128::from(row.amount))?;
        let year = taken(items, place, self.district.year)?;
        broken.unless(year == payments, 9, place, || format!("took {year}, payments are {payments}"));
        let mut delivered: BTreeMap<u32, i128> = BTreeMap::new();
        for (number, order) in self.orders.iter().filter(|(_, order)| order.carrier != 0) {
            let lines = self.lines.get(number).into_iter().flatten();
            *delivered.entry(order.customer).or_default() +=
                lines.map(|line| i128::from(line.amount)).sum::<i128>();
        }
        rows(items, &within(Customer::TABLE, place), |key, row: Customer| {
            let (number, has) = (last_part(key), i128::from(row.balance) + i128::from(row.paid));
            let goods = delivered.get(&number).copied().unwrap_or(0);
            let place = [place[0], place[1], number];
            broken.unless(has == goods, 12, &place, || format!("owes and paid {has}, was delivered {goods}"));
        })
    }
}
