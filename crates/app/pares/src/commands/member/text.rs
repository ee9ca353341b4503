//! Items of the member's stream in words.

use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_desk::view::{BookView, ToldView, ViewLevel};
use pares_types::{Price, Quantity, Reply};

use super::say::price;

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
        ItemBody::Report { shard, .. } => body.reply().map_or_else(
            || format!("shard {shard}: a report that this build does not know"),
            |reply| report(&reply),
        ),
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
    if quantity.is_zero() { "-".into() } else { format!("{quantity} at {}", price(at)) }
}

fn report(reply: &Reply) -> String {
    match reply {
        Reply::Answer(answer) => format!(
            "order {} in {}: {:?}, {} traded, {} left",
            answer.client_order_id, answer.instrument, answer.status, answer.executed, answer.remaining
        ),
        Reply::Trade(trade) => format!(
            "order {} in {}: {:?} {} at {}, {} left",
            trade.client_order_id,
            trade.instrument,
            trade.side,
            trade.quantity,
            price(trade.price),
            trade.remaining
        ),
        Reply::Cancelled(cancelled) => format!(
            "order {} in {}: {} cancelled ({:?})",
            cancelled.client_order_id, cancelled.instrument, cancelled.quantity, cancelled.cause
        ),
        Reply::News(news) => {
            format!("order {} in {}: {:?}", news.client_order_id, news.instrument, news.change)
        }
        Reply::Busted(bust) => format!(
            "order {} in {}: the trade of {} at {} is void",
            bust.client_order_id,
            bust.instrument,
            bust.quantity,
            price(bust.price)
        ),
        Reply::Journalled { client_order_id, .. } => format!("order {client_order_id} is journalled"),
        Reply::Rejected { client_order_id, reason } => format!("order {client_order_id}: {reason:?}"),
    }
}
