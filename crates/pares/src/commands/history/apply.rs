//! One result of the record into the tables, so that `orders` shows each order as it stands.
//!
//! ```text
//!   enter    -> a row of `orders` with the outcome          fill   -> a row of `trades`; the resting order's totals
//!   amend    -> new terms and outcome of the order          mass cancel -> each order it took off
//!   cancel   -> outcome of the order                        refused -> only its row of `requests`
//! ```
//! An outcome holds the totals of the one order it concerns, so nothing is added up here but the executed shares of
//! resting orders. An order entered before the log begins has no row; its trades have.

use pares_types::{
    CancelCause, Command, Event, NewOrder, OrderId, OrderKind, Outcome, Price, Quantity, Request, Side,
    Status,
};
use pares_wire::record::ResultRecord;
use rusqlite::{Connection, params};

use super::index::ApplyError;
use crate::text::name;

/// Enters a result.
///
/// # Errors
/// If the record is not understood or SQLite refuses; the caller gives up its transaction then.
pub fn apply(db: &Connection, result: &ResultRecord<'_>) -> Result<(), ApplyError> {
    let step = Step { db, request: result.request()?, outcome: result.outcome()?, place: place(result) };
    step.insert_request()?;
    match step.request.command {
        Command::Enter(order) => step.insert_order(&order)?,
        Command::Amend { target, price, quantity } if step.is_carried_out() => {
            step.settle(target)?;
            step.set_terms(target, price, quantity)?;
        }
        Command::Cancel { target } if step.is_carried_out() => step.settle(target)?,
        _ => {}
    }
    let mut number = 0;
    for event in result.events() {
        match event? {
            Event::Fill {
                resting, resting_member, resting_side, price, quantity, resting_remaining, ..
            } => {
                step.fill_resting(resting, quantity, resting_remaining)?;
                let resting = Party { order: resting, member: resting_member.0 };
                step.insert_trade(number, resting, resting_side, price, quantity)?;
                number += 1;
            }
            Event::Cancelled { order, cause: CancelCause::MassCancel, .. } => step.mass_cancel(order)?,
            // The outcome says it already.
            Event::Cancelled { .. } => {}
        }
    }
    Ok(())
}

/// Where in the total orders a result stands.
#[derive(Clone, Copy)]
struct Place {
    shard: u16,
    position: i64,
}

fn place(result: &ResultRecord<'_>) -> Place {
    Place { shard: result.shard().0, position: result.position().0.cast_signed() }
}

/// One side of a trade.
#[derive(Clone, Copy)]
struct Party {
    order: OrderId,
    member: u32,
}

/// A result on its way into the tables.
struct Step<'a> {
    db: &'a Connection,
    request: Request,
    outcome: Outcome,
    place: Place,
}

/// SQLite's integers are signed: the same 64 bits.
fn word(order: OrderId) -> i64 {
    order.0.to_bits().cast_signed()
}

fn shares(quantity: Quantity) -> i64 {
    quantity.0.cast_signed()
}

impl Step<'_> {
    fn is_carried_out(&self) -> bool {
        self.outcome.status != Status::Refused
    }

    fn stamp(&self) -> i64 {
        self.request.stamp.0.cast_signed()
    }

    /// The order that trades: the one entered, or the one an amend sent to match again.
    fn incoming(&self) -> Party {
        let order = match self.request.command {
            Command::Amend { target, .. } => target,
            _ => OrderId(self.request.id),
        };
        Party { order, member: self.request.member.0 }
    }

    fn insert_request(&self) -> rusqlite::Result<()> {
        let (command, order, price, quantity) = match self.request.command {
            Command::Enter(order) => {
                ("enter", word(OrderId(self.request.id)), limit(&order), Some(shares(order.quantity)))
            }
            Command::Amend { target, price, quantity } => {
                ("amend", word(target), Some(price.0), Some(shares(quantity)))
            }
            Command::Cancel { target } => ("cancel", word(target), None, None),
            Command::MassCancel => ("mass_cancel", 0, None, None),
        };
        let (request, outcome) = (&self.request, &self.outcome);
        self.execute(
            "INSERT INTO requests VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                self.place.shard,
                self.place.position,
                request.id.to_bits().cast_signed(),
                order,
                self.stamp(),
                request.member.0,
                request.client_order_id.0.cast_signed(),
                command,
                price,
                quantity,
                name(&outcome.status),
                name(&outcome.reason),
                shares(outcome.executed),
                shares(outcome.remaining),
            ],
        )
    }

    fn insert_order(&self, order: &NewOrder) -> rusqlite::Result<()> {
        let (request, outcome) = (&self.request, &self.outcome);
        let kind = if matches!(order.kind, OrderKind::Market) { "market" } else { "limit" };
        self.execute(
            "INSERT INTO orders VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?16, ?17)",
            params![
                request.id.to_bits().cast_signed(),
                request.member.0,
                request.client_order_id.0.cast_signed(),
                request.instrument.0,
                name(&order.side),
                kind,
                name(&order.time_in_force),
                order.post_only,
                limit(order),
                shares(order.quantity),
                shares(outcome.executed),
                shares(outcome.remaining),
                name(&outcome.status),
                name(&outcome.reason),
                self.place.shard,
                self.place.position,
                self.stamp(),
            ],
        )
    }

    /// The order's totals and status become those of the outcome.
    fn settle(&self, order: OrderId) -> rusqlite::Result<()> {
        let outcome = &self.outcome;
        self.execute(
            "UPDATE orders SET executed = ?2, remaining = ?3, status = ?4, reason = ?5, changed_position = ?6, \
             changed_stamp = ?7 WHERE id = ?1",
            params![
                word(order),
                shares(outcome.executed),
                shares(outcome.remaining),
                name(&outcome.status),
                name(&outcome.reason),
                self.place.position,
                self.stamp(),
            ],
        )
    }

    fn set_terms(&self, order: OrderId, price: Price, quantity: Quantity) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE orders SET price = ?2, quantity = ?3 WHERE id = ?1",
            params![word(order), price.0, shares(quantity)],
        )
    }

    fn fill_resting(&self, order: OrderId, quantity: Quantity, left: Quantity) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE orders SET executed = executed + ?2, remaining = ?3, \
             status = CASE ?3 WHEN 0 THEN 'filled' ELSE status END, changed_position = ?4, changed_stamp = ?5 \
             WHERE id = ?1",
            params![word(order), shares(quantity), shares(left), self.place.position, self.stamp()],
        )
    }

    fn mass_cancel(&self, order: OrderId) -> rusqlite::Result<()> {
        self.execute(
            "UPDATE orders SET remaining = 0, status = 'cancelled', reason = 'requested', changed_position = ?2, \
             changed_stamp = ?3 WHERE id = ?1",
            params![word(order), self.place.position, self.stamp()],
        )?;
        self.execute(
            "INSERT INTO mass_cancelled VALUES (?1, ?2, ?3)",
            params![word(order), self.place.shard, self.place.position],
        )
    }

    fn insert_trade(
        &self,
        number: u32,
        resting: Party,
        resting_side: Side,
        price: Price,
        quantity: Quantity,
    ) -> rusqlite::Result<()> {
        let (buy, sell) = match resting_side {
            Side::Buy => (resting, self.incoming()),
            Side::Sell => (self.incoming(), resting),
        };
        self.execute(
            "INSERT INTO trades VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                self.place.shard,
                self.place.position,
                number,
                self.request.instrument.0,
                price.0,
                shares(quantity),
                word(buy.order),
                buy.member,
                word(sell.order),
                sell.member,
                name(&resting_side.opposite()),
                self.stamp(),
            ],
        )
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.db.prepare_cached(sql)?.execute(values).map(|_| ())
    }
}

/// The limit price; a market order has none.
fn limit(order: &NewOrder) -> Option<i64> {
    match order.kind {
        OrderKind::Limit { price } => Some(price.0),
        OrderKind::Market => None,
    }
}
