//! Events in words, and as JSON.

use pares_text::count;
use pares_types::{Event, IncomingCause, RestCause, Timestamp};
use serde_json::{Value, json};

use crate::text::name;
use crate::utc;

/// An event in a few words.
pub fn line(event: &Event) -> String {
    match event {
        Event::Fill { resting, price, quantity, resting_remaining, .. } => {
            format!("{quantity} at {price} with {resting} ({resting_remaining} left)")
        }
        Event::Cancelled { order, price, quantity, cause, .. } => {
            format!("{quantity} of {order} cancelled at {price} ({cause})")
        }
        Event::Incoming { order, price, quantity, cause, .. } => match cause {
            IncomingCause::Auction => format!("{order} buys ({quantity} left)"),
            _ => format!("{order} {} with {quantity} at {price}", name(cause)),
        },
        Event::Rested { order, price, quantity, shown, cause, .. } => match cause {
            RestCause::Withdrawn => format!("{order} withdrawn with {quantity} from {price}"),
            _ => format!("{order} rests with {quantity} at {price}, {shown} shown ({})", name(cause)),
        },
        Event::PhaseEntered { phase, until, reference } => {
            let mut words = format!("enters {}", name(phase));
            if *until != Timestamp::NEVER {
                words.push_str(&format!(" until {}", utc::format(*until)));
            }
            if let Some(reference) = reference {
                words.push_str(&format!(", reference {reference}"));
            }
            words
        }
        Event::Auction { price, quantity, surplus, surplus_side, firm } => {
            let sort = if *firm { "firm" } else { "indicative" };
            format!("auction {quantity} at {price} ({sort}, surplus {surplus} {})", name(surplus_side))
        }
        Event::Busted { resting, incoming, position, index, price, quantity } => {
            format!("{quantity} at {price} of {incoming} with {resting} busted ({position}.{index})")
        }
        Event::Instrument(instrument) => format!("in instrument {instrument}"),
        Event::DayPrices { open, high, low, last } => {
            format!("traded from {low} to {high}, first at {open}, last at {last}")
        }
        Event::DayVolume { closing, quantity, trades } => {
            let closing =
                closing.map_or("no closing price".to_owned(), |price| format!("closing price {price}"));
            format!("{closing}, {quantity} shares in {trades} trades")
        }
        Event::DayEnded { day, requests, orders, trades, quantity, state_hash } => format!(
            "day {day} ended: {}, {}, {} in {}, state {state_hash:016x}",
            count(*requests, "request"),
            count(*orders, "order"),
            count(quantity.0, "share"),
            count(*trades, "trade")
        ),
    }
}

/// All fields of an event.
pub fn fields(event: &Event) -> Value {
    let mut fields = match event {
        Event::Fill {
            resting,
            resting_member,
            resting_client_order_id,
            resting_side,
            price,
            quantity,
            resting_remaining,
        } => json!({
            "resting": resting.to_string(),
            "resting_member": resting_member.0,
            "resting_client_order_id": resting_client_order_id.0,
            "resting_side": name(resting_side),
            "price": price.to_string(),
            "quantity": quantity.0,
            "resting_remaining": resting_remaining.0,
        }),
        Event::Cancelled { order, member, client_order_id, side, price, quantity, .. }
        | Event::Incoming { order, member, client_order_id, side, price, quantity, .. }
        | Event::Rested { order, member, client_order_id, side, price, quantity, .. } => json!({
            "order": order.to_string(),
            "member": member.0,
            "client_order_id": client_order_id.0,
            "side": name(side),
            "price": price.to_string(),
            "quantity": quantity.0,
            "cause": cause(event),
        }),
        _ => book_fields(event),
    };
    if let Event::Rested { shown, .. } = event {
        fields["shown"] = json!(shown.0);
    }
    fields["event"] = json!(name(event));
    fields
}

/// Why that became of an order.
fn cause(event: &Event) -> Option<String> {
    match event {
        Event::Cancelled { cause, .. } => Some(cause.word().to_owned()),
        Event::Incoming { cause, .. } => Some(name(cause)),
        Event::Rested { cause, .. } => Some(name(cause)),
        _ => None,
    }
}

/// Events of no member's order.
fn book_fields(event: &Event) -> Value {
    match event {
        Event::PhaseEntered { phase, until, reference } => json!({
            "phase": name(phase),
            "until": (*until != Timestamp::NEVER).then(|| utc::format(*until)),
            "reference": reference.map(|price| price.to_string()),
        }),
        Event::Auction { price, quantity, surplus, surplus_side, firm } => json!({
            "price": price.to_string(),
            "quantity": quantity.0,
            "surplus": surplus.0,
            "surplus_side": name(surplus_side),
            "firm": firm,
        }),
        Event::Busted { resting, incoming, position, index, price, quantity } => json!({
            "resting": resting.to_string(),
            "incoming": incoming.to_string(),
            "position": position.0,
            "index": index,
            "price": price.to_string(),
            "quantity": quantity.0,
        }),
        Event::Instrument(instrument) => json!({ "instrument": instrument.0 }),
        Event::DayPrices { open, high, low, last } => json!({
            "open": open.to_string(),
            "high": high.to_string(),
            "low": low.to_string(),
            "last": last.to_string(),
        }),
        Event::DayVolume { closing, quantity, trades } => json!({
            "closing": closing.map(|price| price.to_string()),
            "quantity": quantity.0,
            "trades": trades,
        }),
        Event::DayEnded { day, requests, orders, trades, quantity, state_hash } => json!({
            "day": day.to_string(),
            "requests": requests,
            "orders": orders,
            "trades": trades,
            "quantity": quantity.0,
            "state_hash": format!("{state_hash:016x}"),
        }),
        _ => unreachable!("an order's event"),
    }
}
