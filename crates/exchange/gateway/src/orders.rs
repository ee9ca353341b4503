//! What is left of each order, as the committed stream tells it.
//!
//! The names of orders that live are never forgotten, since amends and cancels name them. Events up to the first [`Event::Incoming`]
//! have the request's own order as the incoming one, and the outcome says what is left of it then; the events after it concern others,
//! or what became of it later (docs/rules.md, section 9). An order just entered has what its answer said. Of a request that was refused
//! all events are of what else its step did.

use pares_stream::left_after;
use pares_types::{Command, Event, OrderId, Outcome, Quantity, Request, Status};

use crate::Gateway;
use crate::names::Names;

/// The order that trades with those on the book, and what is left of it.
#[derive(Clone, Copy)]
enum Incoming {
    /// The request's own, if it has one.
    Own,
    Other(OrderId, Quantity),
}

impl Gateway {
    /// A record of the committed stream, after its own name was settled.
    pub(crate) fn follow_orders(&mut self, request: &Request, outcome: &Outcome, events: &[Event]) {
        let first = events.iter().position(|event| matches!(event, Event::Incoming { .. }));
        let (own, others) = events.split_at(first.unwrap_or(events.len()));
        let mut incoming = Incoming::Own;
        let is_refused = outcome.status == Status::Refused;
        let settled = (!is_refused).then_some(outcome.order);
        for event in own {
            follow_event(&mut self.names, settled, &mut incoming, event);
        }
        let is_of_an_earlier = matches!(request.command, Command::Amend(_) | Command::Cancel { .. });
        if is_of_an_earlier && !is_refused {
            self.names.change_order(outcome.order, |entry| {
                (entry.executed, entry.remaining) = (outcome.executed, outcome.remaining);
            });
        }
        for event in others {
            follow_event(&mut self.names, settled, &mut incoming, event);
        }
    }
}

/// `settled` is the order of which the outcome says what is left.
fn follow_event(names: &mut Names, settled: Option<OrderId>, incoming: &mut Incoming, event: &Event) {
    match *event {
        Event::Fill { resting, quantity, resting_remaining, .. } => {
            trade(names, resting, quantity, resting_remaining);
            if let Incoming::Other(order, left) = incoming {
                *left = left_after(*left, quantity);
                trade(names, *order, quantity, *left);
            }
        }
        Event::Incoming { order, quantity, .. } => {
            *incoming = Incoming::Other(order, quantity);
            names.set_remaining(order, quantity);
        }
        Event::Rested { order, quantity, .. } => names.set_remaining(order, quantity),
        Event::Cancelled { order, quantity, .. } => match incoming {
            Incoming::Own if Some(order) == settled => {}
            Incoming::Other(other, left) if *other == order => {
                *left = left_after(*left, quantity);
                names.set_remaining(order, *left);
            }
            _ => names.change_order(order, |entry| entry.remaining = left_after(entry.remaining, quantity)),
        },
        // Of the market, not of an order.
        _ => {}
    }
}

fn trade(names: &mut Names, order: OrderId, quantity: Quantity, remaining: Quantity) {
    names.change_order(order, |entry| {
        entry.executed.0 = entry.executed.0.saturating_add(quantity.0);
        entry.remaining = remaining;
    });
}
