//! What is asked of each order, from its entry to its end.
//!
//! In the public streams an order's messages follow each other before the next order arrives: quotes that live for less
//! than a millisecond in a market with a few thousand orders a second. So a cancel finds its order warm, and what costs is
//! what an order touches first: a random place among the ids and a random price. The orders that are never cancelled are
//! the book. (Lives that overlap would trade with each other, ten times as much as the public streams do.)

use pares_types::Side;

use super::SCENARIO_MEMBERS;
use super::message::{BookMessage, MessageKind};
use super::orders::Placed;
use pares_random::Random;

/// Of 100 orders so many are immediate or cancel; of the others so many are amended, and cancelled.
const IOC_PERCENT: u64 = 15;
const AMEND_PERCENT: u64 = 20;
const CANCEL_PERCENT: u64 = 95;
/// Of 100 cancels, and of 100 amends of orders that are cancelled, so many are sent again.
const AGAIN_PERCENT: u64 = 2;
/// Of 100 amends so many change the price, all of them the quantity.
const REPRICE_PERCENT: u64 = 80;
/// The most shares an amend adds.
const ADDED_MAX: u64 = 10;

/// The messages about all orders, in the order they are sent.
pub(super) fn expand(placed: &[Placed], random: &mut Random) -> Vec<BookMessage> {
    let mut messages = Vec::with_capacity(placed.len() * 2 + placed.len() / 16);
    for order in placed {
        follow(order, random, &mut messages);
    }
    messages
}

/// One order from its entry to its end.
fn follow(order: &Placed, random: &mut Random, messages: &mut Vec<BookMessage>) {
    let mut message = entry(order, random.percent(IOC_PERCENT));
    messages.push(message);
    if message.ioc {
        return;
    }
    let amended = random.percent(AMEND_PERCENT);
    if amended {
        message = amendment(message, random);
        messages.push(message);
    }
    if !random.percent(CANCEL_PERCENT) {
        return;
    }
    let cancel = BookMessage { kind: MessageKind::Cancel, ..message };
    messages.push(cancel);
    if random.percent(AGAIN_PERCENT) {
        messages.push(cancel);
    }
    if amended && random.percent(AGAIN_PERCENT) {
        messages.push(message);
    }
}

fn entry(order: &Placed, ioc: bool) -> BookMessage {
    BookMessage {
        id: u64::from(order.id),
        price_ticks: order.price_ticks,
        quantity: order.quantity,
        member: 1 + order.id % SCENARIO_MEMBERS,
        instrument: 1,
        kind: MessageKind::New,
        side: order.side,
        ioc,
        reserved: 0,
    }
}

/// More shares, and mostly a tick nearer to the market: either costs the order its place.
fn amendment(entered: BookMessage, random: &mut Random) -> BookMessage {
    let nearer = i64::from(random.percent(REPRICE_PERCENT));
    let price_ticks = match entered.side {
        Side::Buy => entered.price_ticks + nearer,
        Side::Sell => (entered.price_ticks - nearer).max(1),
    };
    let quantity = entered.quantity + 1 + random.below(ADDED_MAX) as u32;
    BookMessage { kind: MessageKind::Amend, price_ticks, quantity, ..entered }
}
