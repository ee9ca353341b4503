//! One result of the record into the tables, so that `orders` shows each order as it stands.
//!
//! ```text
//!   enter    -> a row of `orders` with the outcome          fill      -> a row of `trades`; both orders' totals
//!   amend    -> new terms and outcome of the order          cancelled -> the order's totals and a row of `changes`,
//!   cancel   -> outcome of the order                        rested       unless the request's own outcome says it
//!   refused  -> only its row of `requests`                  busted    -> a mark at the trade
//! ```
//! An outcome holds the totals of the one order it concerns when its own matching is over. What other orders trade or
//! lose is in the events only: the incoming one is the request's order until an event names another (docs/rules.md,
//! section 9). An order entered before the log begins has no row; its trades have.

use pares_text::name;
use pares_types::{
    CancelCause, Command, Event, IncomingCause, OrderId, Outcome, Price, Quantity, Request, RestCause, Side,
    Status,
};
use pares_wire::record::ResultRecord;
use rusqlite::{Connection, params};

use self::rows::{shares, word};
use crate::index::ApplyError;

mod rows;

/// Enters a result.
///
/// # Errors
/// If the record is not understood or SQLite refuses; the caller gives up its transaction then.
pub fn apply(db: &Connection, result: &ResultRecord<'_>) -> Result<(), ApplyError> {
    let step = Step { db, request: result.request()?, outcome: result.outcome()?, place: place(result) };
    step.insert_request()?;
    match step.request.command {
        Command::Enter(order) => step.insert_order(&order)?,
        Command::Amend(amendment) if step.is_carried_out() => {
            step.settle(amendment.target)?;
            step.set_terms(&amendment)?;
        }
        Command::Cancel { target } if step.is_carried_out() => step.settle(target)?,
        Command::AddInstrument(symbol) if step.is_carried_out() => {
            let named = params![step.request.instrument.0, symbol.as_str()];
            step.execute("INSERT INTO instruments VALUES (?1, ?2)", named)?;
        }
        _ => {}
    }
    let mut reading = Reading {
        number: 0,
        instrument: step.request.instrument.0,
        incoming: Incoming::Own(step.own_party()),
    };
    for event in result.events() {
        step.apply_event(&mut reading, event?)?;
        reading.number += 1;
    }
    Ok(())
}

/// How far the events of a result have been read.
struct Reading {
    /// Which event it is.
    number: u32,
    instrument: u32,
    incoming: Incoming,
}

/// The order that trades with those on the book.
#[derive(Clone, Copy)]
enum Incoming {
    /// The request's own; its outcome says what became of it.
    Own(Party),
    /// One that was waiting, or whose price follows the book; with the shares it has left.
    Other(Party, Quantity),
    /// The buy order of an auction, with the shares it has left.
    Auction(Party, Quantity),
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

impl Step<'_> {
    fn is_carried_out(&self) -> bool {
        self.outcome.status != Status::Refused
    }

    fn stamp(&self) -> i64 {
        self.request.stamp.0.cast_signed()
    }

    /// The order the request brings to match: the one entered, or the one amended.
    fn own_party(&self) -> Party {
        let order = match self.request.command {
            Command::Amend(amendment) => amendment.target,
            _ => OrderId(self.request.id),
        };
        Party { order, member: self.request.member.0 }
    }

    fn apply_event(&self, reading: &mut Reading, event: Event) -> rusqlite::Result<()> {
        match event {
            Event::Fill { .. } => self.apply_fill(reading, &event),
            Event::Cancelled { order, quantity, cause, .. } => {
                // What the outcome says already is not said again.
                let own = self.is_carried_out()
                    && matches!(reading.incoming, Incoming::Own(_))
                    && order == self.outcome.order;
                if own { Ok(()) } else { self.take_off(reading.number, order, quantity, cause) }
            }
            Event::Incoming { order, member, quantity, cause, .. } => {
                let party = Party { order, member: member.0 };
                reading.incoming = match cause {
                    IncomingCause::Auction => Incoming::Auction(party, quantity),
                    IncomingCause::Triggered | IncomingCause::Repriced | IncomingCause::Continued => {
                        Incoming::Other(party, quantity)
                    }
                };
                if cause == IncomingCause::Triggered {
                    self.note_change(reading.number, order, "triggered")?;
                }
                Ok(())
            }
            Event::Rested { order, cause, price, .. } => self.rest(reading.number, order, cause, price),
            Event::Busted { position, index, .. } => self.execute(
                "UPDATE trades SET busted = 1 WHERE shard = ?1 AND position = ?2 AND number = ?3",
                params![self.place.shard, position.0.cast_signed(), index],
            ),
            Event::Instrument(instrument) => {
                reading.instrument = instrument.0;
                Ok(())
            }
            // Of the market, not of an order.
            _ => Ok(()),
        }
    }

    fn apply_fill(&self, reading: &mut Reading, fill: &Event) -> rusqlite::Result<()> {
        let Event::Fill { resting, resting_member, resting_side, price, quantity, resting_remaining, .. } =
            *fill
        else {
            return Ok(());
        };
        self.fill(resting, quantity, resting_remaining)?;
        let incoming = match &mut reading.incoming {
            Incoming::Own(party) => *party,
            Incoming::Other(party, left) | Incoming::Auction(party, left) => {
                // What a wrong venue had recorded before it was found need not add up; it is shown as it is recorded.
                *left = Quantity(left.0.saturating_sub(quantity.0));
                self.fill(party.order, quantity, *left)?;
                *party
            }
        };
        let resting = Party { order: resting, member: resting_member.0 };
        let (buy, sell) = match resting_side {
            Side::Buy => (resting, incoming),
            Side::Sell => (incoming, resting),
        };
        let aggressor = match reading.incoming {
            Incoming::Auction(..) => "none".to_owned(),
            Incoming::Own(_) | Incoming::Other(..) => name(&resting_side.opposite()),
        };
        self.insert_trade(reading, [buy, sell], aggressor, price, quantity)
    }

    /// An order that was not asked about lost shares.
    fn take_off(
        &self,
        number: u32,
        order: OrderId,
        quantity: Quantity,
        cause: CancelCause,
    ) -> rusqlite::Result<()> {
        let (change, reason) = match cause {
            CancelCause::MassCancel => ("mass_cancel".to_owned(), "requested".to_owned()),
            _ => (cause.to_string(), cause.to_string()),
        };
        self.execute(
            "UPDATE orders SET remaining = remaining - ?2, \
             status = CASE remaining - ?2 WHEN 0 THEN 'cancelled' ELSE status END, \
             reason = CASE remaining - ?2 WHEN 0 THEN ?3 ELSE reason END, changed_position = ?4, changed_stamp = ?5 \
             WHERE id = ?1",
            params![word(order), shares(quantity), reason, self.place.position, self.stamp()],
        )?;
        self.note_change(number, order, &change)
    }

    /// An order joined a queue, or was put aside.
    fn rest(&self, number: u32, order: OrderId, cause: RestCause, price: Price) -> rusqlite::Result<()> {
        if cause == RestCause::Priced {
            self.execute(
                "UPDATE orders SET kind = 'limit', price = ?2 WHERE id = ?1",
                params![word(order), price.0],
            )?;
        }
        let is_aside = matches!(cause, RestCause::Withdrawn | RestCause::Unfinished);
        let status = if is_aside { "held" } else { "resting" };
        self.execute(
            "UPDATE orders SET status = ?2, changed_position = ?3, changed_stamp = ?4 WHERE id = ?1",
            params![word(order), status, self.place.position, self.stamp()],
        )?;
        // That a triggered order came to rest adds nothing to that it was triggered.
        if cause == RestCause::Triggered { Ok(()) } else { self.note_change(number, order, &name(&cause)) }
    }

    /// Notes how the order stands after an event that its own requests do not tell of.
    fn note_change(&self, number: u32, order: OrderId, change: &str) -> rusqlite::Result<()> {
        self.execute(
            "INSERT INTO changes SELECT id, ?2, ?3, ?4, ?5, status, reason, executed, remaining FROM orders \
             WHERE id = ?1",
            params![word(order), self.place.shard, self.place.position, number, change],
        )
    }
}
