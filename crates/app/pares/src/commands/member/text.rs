//! Items of the member's stream in words.

use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_desk::view::{BookView, ToldView, ViewLevel};
use pares_types::{Price, Quantity, Reason, Reply};

use crate::text::name;

/// One item, in one line.
pub(super) fn line(item: &OrderedItem<'_>) -> String {
    let (position, who) = (item.position.0, who(item.item.name.trader));
    if item.repeats.is_some() {
        return format!("{position:>8}  {who}: (again)");
    }
    let says = item.item.says().map_or_else(|error| error.to_string(), |body| body_text(&body));
    format!("{position:>8}  {who}: {says}")
}

/// A book, in one line.
pub(super) fn book_line(book: &ToldView) -> String {
    let best = |levels: &[ViewLevel]| {
        side(levels.first().map_or((Price(0), Quantity(0)), |best| (best.price, best.quantity)))
    };
    let BookView { symbol, bids, offers, .. } = &book.view;
    format!("   book   {symbol}: {} / {}", best(bids), best(offers))
}

fn who(trader: TraderId) -> String {
    if trader.is_trader() { format!("trader {trader}") } else { "exchange".into() }
}

fn to(to: TraderId) -> String {
    if to.0 == 0 { "all".into() } else { format!("trader {to}") }
}

/// What an item says.
pub(super) fn body_text(body: &ItemBody<'_>) -> String {
    match *body {
        ItemBody::Message { to: whom, text } => format!("to {}: {}", to(whom), clean(text)),
        ItemBody::Note { instrument, text } => format!("note on {instrument}: {}", clean(text)),
        ItemBody::QuoteRequest { to: whom, instrument, quantity } => {
            format!("asks {} for a quote in {instrument}{}", to(whom), of(quantity))
        }
        ItemBody::IndicativeQuote { to: whom, instrument, bid, offer, .. } => {
            format!("quotes {instrument} to {}: {} / {}", to(whom), side(bid), side(offer))
        }
        ItemBody::Report { shard, .. } => body
            .reply()
            .map_or_else(|| format!("shard {shard}: a report of a newer version"), |reply| report(&reply)),
    }
}

/// Nothing that a terminal would take for a command.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn of(quantity: Quantity) -> String {
    if quantity.is_zero() { String::new() } else { format!(" for {quantity}") }
}

fn side((at, quantity): (Price, Quantity)) -> String {
    if quantity.is_zero() { "-".into() } else { format!("{quantity} at {at}") }
}

fn report(reply: &Reply) -> String {
    let (order, what) = match reply {
        Reply::Answer(of) => {
            let (executed, left) = (of.executed, of.remaining);
            (
                of.client_order_id,
                format!(
                    "{}{} in {}, {executed} traded, {left} left",
                    name(&of.status),
                    why(of.reason),
                    of.instrument
                ),
            )
        }
        Reply::Trade(of) => {
            let (side, at, left) = (name(&of.side), of.price, of.remaining);
            (of.client_order_id, format!("{side} {} of {} at {at}, {left} left", of.quantity, of.instrument))
        }
        Reply::Cancelled(of) => {
            let (side, at, cause) = (name(&of.side), of.price, name(&of.cause));
            let gone = format!("{side} {} of {} at {at} cancelled ({cause})", of.quantity, of.instrument);
            (of.client_order_id, gone)
        }
        Reply::News(of) => (of.client_order_id, format!("{} in {}", name(&of.change), of.instrument)),
        Reply::Busted(of) => {
            let void = format!("the trade of {} of {} at {} is void", of.quantity, of.instrument, of.price);
            (of.client_order_id, void)
        }
        Reply::Journalled { client_order_id, .. } => (*client_order_id, "journalled".into()),
        Reply::Rejected { client_order_id, reason } => (*client_order_id, name(reason)),
    };
    format!("{what}: order {order}")
}

/// Why it came to that, if there is a reason.
fn why(reason: Reason) -> String {
    if reason == Reason::None { String::new() } else { format!(" ({})", name(&reason)) }
}
