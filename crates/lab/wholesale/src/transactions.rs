//! The five transactions of clause 2.
//!
//! What conflicts is what the standard has conflict: two orders of a district take its next number, two payments of a customer
//! change his balance, two deliveries of a warehouse take the same oldest orders. A payment also changes what warehouse and district have taken in
//! a year, two rows that every payment there and every order of the district meet at. Nobody needs that sum at once, so it can be a counter that is
//! added to; clause 1.4 lets a row be split so. The request says which.

use core::ops::ControlFlow;
use std::collections::BTreeSet;

use pares_site::ApplicationError;
use pares_store::{Reads, StoreError, Work};
use pares_wice::codec::Coded;
use pares_wice::{Key, KeyRange, Value};

use crate::population::DISTRICTS;
use crate::request::{CustomerAsked, Delivery, LineAsked, NewOrder, OrderStatus, Payment, StockLevel};
use crate::rows::{
    BY_CUSTOMER, BY_NAME, Customer, District, History, Item, Open, Order, OrderLine, Row, Stock, Warehouse,
    YEAR, key, last_part, look, newest_first, put, refuse, take, within,
};

type Reply = Result<Vec<u8>, ApplicationError>;

/// Most lines of an order (clause 2.4.1.3).
const LINES_MAX: usize = 15;
/// Most of one item on a line.
const QUANTITY_MAX: u8 = 10;
/// Orders that a stock level looks at.
const RECENT: u32 = 20;
/// Ten-thousandths in one.
const WHOLE: i128 = 10_000;

fn sum(a: i64, b: i64) -> Result<i64, ApplicationError> {
    a.checked_add(b).map_or_else(|| refuse("no sum of money is so large"), Ok)
}

/// Enters an order; gives its number and its total in cents. Refused, with nothing changed, if an item does not exist (clause 2.4.2.3).
pub(crate) fn new_order<R: Reads>(ask: &NewOrder, work: &mut Work<R>) -> Reply {
    let (w, d) = (ask.warehouse, ask.district);
    if ask.lines.is_empty() || ask.lines.len() > LINES_MAX {
        return refuse("an order has 1 to 15 lines");
    }
    let warehouse: Warehouse = take(work, &[w])?;
    let mut district: District = take(work, &[w, d])?;
    let customer: Customer = take(work, &[w, d, ask.customer])?;
    let number = district.next_order;
    district.next_order = number.saturating_add(1);
    put(work, &[w, d], &district);
    let mut amount = 0;
    for (line, asked) in (1..).zip(&ask.lines) {
        amount = sum(amount, order_line(ask, asked, &[w, d, number, line], work)?)?;
    }
    let order = Order {
        customer: ask.customer,
        entered_ms: ask.entered_ms,
        carrier: 0,
        lines: u8::try_from(ask.lines.len()).expect("at most 15"),
        all_local: ask.lines.iter().all(|line| line.supplier == w),
        tag: ask.tag,
    };
    put(work, &[w, d, number], &order);
    put(work, &[w, d, number], &Open { customer: ask.customer });
    work.put(&key(BY_CUSTOMER, &[w, d, ask.customer, newest_first(number)]), Value::new([]));
    Ok(told(&(number, taxed(amount, &customer, warehouse.tax, district.tax))))
}

/// With the customer's discount and both taxes.
fn taxed(amount: i64, customer: &Customer, warehouse_tax: u32, district_tax: u32) -> i64 {
    let taxes = WHOLE + i128::from(warehouse_tax) + i128::from(district_tax);
    let taxed = i128::from(amount) * (WHOLE - i128::from(customer.discount)) * taxes / (WHOLE * WHOLE);
    i64::try_from(taxed).unwrap_or(i64::MAX)
}

/// Takes a line's items from stock; gives what they cost.
fn order_line<R: Reads>(
    order: &NewOrder,
    asked: &LineAsked,
    place: &[u32],
    work: &mut Work<R>,
) -> Result<i64, ApplicationError> {
    let &LineAsked { item, supplier, quantity } = asked;
    if !(1..=QUANTITY_MAX).contains(&quantity) {
        return refuse("a line has 1 to 10 of an item");
    }
    let price = take::<Item, R>(work, &[item])?.price;
    let mut stock: Stock = take(work, &[supplier, item])?;
    let count = u32::from(quantity);
    let refill = if stock.quantity >= count + 10 { 0 } else { 91 };
    stock.quantity = (stock.quantity + refill).saturating_sub(count);
    stock.year = stock.year.saturating_add(count);
    stock.orders = stock.orders.saturating_add(1);
    stock.remote = stock.remote.saturating_add(u32::from(supplier != order.warehouse));
    put(work, &[supplier, item], &stock);
    let amount = i64::from(price) * i64::from(quantity);
    put(work, place, &OrderLine { item, supplier, delivered_ms: 0, quantity, amount });
    Ok(amount)
}

/// Takes a payment; gives the customer's balance.
pub(crate) fn payment<R: Reads>(ask: &Payment, work: &mut Work<R>) -> Reply {
    let (w, d, amount) = (ask.warehouse, ask.district, ask.amount);
    let (customer_w, customer_d) = (ask.customer_warehouse, ask.customer_district);
    if amount <= 0 {
        return refuse("a payment is more than nothing");
    }
    let number = customer(&ask.who, [customer_w, customer_d], |range, limit| {
        work.first(range, limit).map_err(ApplicationError::from)
    })?;
    let place = [customer_w, customer_d, number];
    let mut row: Customer = take(work, &place)?;
    row.balance = sum(row.balance, -amount)?;
    row.paid = sum(row.paid, amount)?;
    row.payments = row.payments.saturating_add(1);
    put(work, &place, &row);
    let history = [w, d, customer_w, customer_d, number, row.payments];
    put(work, &history, &History { amount, tag: ask.tag });
    if ask.in_counters {
        work.add(&key(YEAR, &[w]), amount)?;
        work.add(&key(YEAR, &[w, d]), amount)?;
    } else {
        let (mut warehouse, mut district): (Warehouse, District) = (take(work, &[w])?, take(work, &[w, d])?);
        warehouse.year = sum(warehouse.year, amount)?;
        district.year = sum(district.year, amount)?;
        put(work, &[w], &warehouse);
        put(work, &[w, d], &district);
    }
    Ok(told(&row.balance))
}

/// The customer's number. Of several with one last name it is the middle one (clause 2.5.2.2).
fn customer(
    who: &CustomerAsked,
    [w, d]: [u32; 2],
    first: impl FnOnce(&KeyRange, usize) -> Result<Vec<(Key, Value)>, ApplicationError>,
) -> Result<u32, ApplicationError> {
    if !who.by_name {
        return Ok(who.number);
    }
    let found = first(&within(BY_NAME, &[w, d, who.number]), 100)?;
    match found.get(found.len().saturating_sub(1) / 2) {
        Some((key, _)) => Ok(last_part(key)),
        None => refuse("nobody has that name"),
    }
}

/// Delivers the oldest order of each district that has one; gives their districts and numbers.
pub(crate) fn delivery<R: Reads>(ask: &Delivery, work: &mut Work<R>) -> Reply {
    if ask.carrier == 0 {
        return refuse("carriers count from 1");
    }
    let mut delivered = Vec::new();
    for district in 1..=DISTRICTS {
        let open = work.first(&within(Open::TABLE, &[ask.warehouse, district]), 1)?;
        if let Some((key, _)) = open.first() {
            let number = last_part(key);
            work.delete(key);
            deliver(ask, [ask.warehouse, district, number], work)?;
            delivered.push((district, number));
        }
    }
    Ok(told(&delivered))
}

fn deliver<R: Reads>(ask: &Delivery, place: [u32; 3], work: &mut Work<R>) -> Result<(), ApplicationError> {
    let [w, d, number] = place;
    let mut order: Order = take(work, &place)?;
    order.carrier = ask.carrier;
    put(work, &place, &order);
    let mut amount = 0;
    for line in 1..=u32::from(order.lines) {
        let place = [w, d, number, line];
        let mut row: OrderLine = take(work, &place)?;
        row.delivered_ms = ask.delivered_ms.max(1);
        amount = sum(amount, row.amount)?;
        put(work, &place, &row);
    }
    let place = [w, d, order.customer];
    let mut customer: Customer = take(work, &place)?;
    customer.balance = sum(customer.balance, amount)?;
    customer.deliveries = customer.deliveries.saturating_add(1);
    put(work, &place, &customer);
    Ok(())
}

/// A customer's balance, the number of his last order, and of its lines.
pub(crate) fn order_status(ask: &OrderStatus, items: &dyn Reads) -> Reply {
    let (w, d) = (ask.warehouse, ask.district);
    let number =
        customer(&ask.who, [w, d], |range, limit| items.first(range, limit).map_err(ApplicationError::from))?;
    let row: Customer = look(items, &[w, d, number])?;
    let last = items.first(&within(BY_CUSTOMER, &[w, d, number]), 1)?;
    let Some((key, _)) = last.first() else { return refuse("this customer has ordered nothing") };
    let order = newest_first(last_part(key));
    let lines = u32::from(look::<Order>(items, &[w, d, order])?.lines);
    for line in 1..=lines {
        look::<OrderLine>(items, &[w, d, order, line])?;
    }
    Ok(told(&(row.balance, (order, lines))))
}

/// How many items of a district's last twenty orders are scarce.
pub(crate) fn stock_level(ask: &StockLevel, items: &dyn Reads) -> Reply {
    let (w, d) = (ask.warehouse, ask.district);
    let next = look::<District>(items, &[w, d])?.next_order;
    let place = |order| key(OrderLine::TABLE, &[w, d, order]);
    let range = KeyRange { from: place(next.saturating_sub(RECENT)), to: Some(place(next)) };
    let mut sold = BTreeSet::new();
    rows(items, &range, |_, line: OrderLine| {
        sold.insert(line.item);
    })?;
    let mut scarce = 0u32;
    for item in sold {
        scarce += u32::from(look::<Stock>(items, &[w, item])?.quantity < ask.threshold);
    }
    Ok(told(&scarce))
}

pub(crate) fn told(what: &impl Coded) -> Vec<u8> {
    let mut bytes = Vec::new();
    what.encode(&mut bytes);
    bytes
}

/// Shows all rows of a range.
pub(crate) fn rows<T: Row>(
    items: &dyn Reads,
    range: &KeyRange,
    mut show: impl FnMut(&Key, T),
) -> Result<(), ApplicationError> {
    let mut outcome = Ok(());
    let walked: Result<(), StoreError> = items.range(range, &mut |key, value| match T::of(&value) {
        Ok(row) => {
            show(&key, row);
            ControlFlow::Continue(())
        }
        Err(error) => {
            outcome = Err(error);
            ControlFlow::Break(())
        }
    });
    walked?;
    outcome
}
