//! A book of the feed, for people and for programs.

use pares_receiver::{ReceivedBook, SubscriptionState};
use pares_types::{ShardId, Side};
use serde_json::{Value, json};

use super::watch::{Came, best};
use crate::text::{self, Table, grouped};

/// What the books are worth, in a word or some.
fn state_words(state: SubscriptionState) -> String {
    match state {
        SubscriptionState::Current => "current".into(),
        SubscriptionState::Gap { from, to } => format!("gap: {from} to {}", to - 1),
        SubscriptionState::Recovering => "recovering".into(),
        SubscriptionState::Stale => "stale".into(),
        SubscriptionState::Over => "over".into(),
    }
}

/// What the instrument does.
fn phase_words(book: ReceivedBook<'_>) -> &'static str {
    match (book.state, &book.reason) {
        (b'T', b"POST") => "at the closing price",
        (b'T', _) => "trading",
        (b'Q', b"OPEN") => "opening call",
        (b'Q', b"CLOS") => "closing call",
        (b'Q', _) => "volatility call",
        (b'H', b"CLSD") => "closed",
        (b'H', _) => "halted",
        _ => "unknown",
    }
}

fn side_words(book: ReceivedBook<'_>, side: Side) -> String {
    best(book, side).map_or("-".into(), |(price, shares)| format!("{} at {price}", grouped(shares)))
}

fn last_words(book: ReceivedBook<'_>) -> String {
    book.last.map_or("-".into(), |(price, shares)| format!("{} at {}", grouped(shares.0), text::cents(price)))
}

/// One line.
pub(super) fn line(state: SubscriptionState, book: ReceivedBook<'_>) -> String {
    let [bid, offer] = [Side::Buy, Side::Sell].map(|side| side_words(book, side));
    let call = book
        .indicative
        .map(|(price, shares)| format!("; {} at {} indicative", grouped(shares.0), text::cents(price)));
    format!(
        "{:8} {}, {}: bid {bid}, offer {offer}, last {}{}",
        book.symbol,
        state_words(state),
        phase_words(book),
        last_words(book),
        call.unwrap_or_default()
    )
}

/// One object.
pub(super) fn json(
    shard: ShardId,
    state: SubscriptionState,
    book: ReceivedBook<'_>,
    levels: usize,
) -> String {
    let side = |side| {
        best(book, side).map_or(Value::Null, |(price, shares)| json!({ "price": price, "shares": shares }))
    };
    let queue = |side| {
        let level = |(price, shares, orders): (pares_types::Price, pares_types::Quantity, u64)| json!({ "price": text::cents(price), "shares": shares.0, "orders": orders });
        book.levels(side).take(levels).map(level).collect::<Vec<_>>()
    };
    let trade = |told: Option<(pares_types::Price, pares_types::Quantity)>| {
        told.map_or(Value::Null, |(price, shares)| json!({ "price": text::cents(price), "shares": shares.0 }))
    };
    json!({
        "symbol": book.symbol,
        "shard": shard.0,
        "state": state_words(state).split(':').next(),
        "phase": phase_words(book),
        "bid": side(Side::Buy),
        "offer": side(Side::Sell),
        "bids": queue(Side::Buy),
        "offers": queue(Side::Sell),
        "last": trade(book.last),
        "indicative": trade(book.indicative),
    })
    .to_string()
}

/// The best of all books.
pub(super) fn table<'a>(books: impl Iterator<Item = (SubscriptionState, ReceivedBook<'a>)>) -> String {
    let mut table =
        Table::new(["instrument", "books are", "phase", ">shares", ">bid", ">offer", ">shares", ">last"]);
    for (state, book) in books {
        let [bid, offer] = [Side::Buy, Side::Sell].map(|side| best(book, side));
        let cells = |side: Option<(String, u64)>| {
            side.map_or(("-".into(), "-".into()), |(price, shares)| (price, grouped(shares)))
        };
        let ((bid, bid_shares), (offer, offer_shares)) = (cells(bid), cells(offer));
        let last = book.last.map_or("-".into(), |(price, _)| text::cents(price));
        let phase = phase_words(book).to_owned();
        table.row(vec![
            book.symbol.to_owned(),
            state_words(state),
            phase,
            bid_shares,
            bid,
            offer,
            offer_shares,
            last,
        ]);
    }
    table.render()
}

/// A book's levels, best first on both sides.
pub(super) fn ladder(state: SubscriptionState, book: ReceivedBook<'_>, came: Came, levels: usize) -> String {
    let mut table = Table::new([">orders", ">shares", ">bid", ">offer", ">shares", ">orders"]);
    let side = |side| book.levels(side).take(levels).map(Some).chain(std::iter::repeat(None));
    let cells = |level: Option<(pares_types::Price, pares_types::Quantity, u64)>| {
        level.map_or([String::new(), String::new(), String::new()], |(price, shares, orders)| {
            [text::cents(price), grouped(shares.0), grouped(orders)]
        })
    };
    for (bid, offer) in side(Side::Buy).zip(side(Side::Sell)).take(levels) {
        let ([bid, bid_shares, bid_orders], [offer, offer_shares, offer_orders]) = (cells(bid), cells(offer));
        table.row(vec![bid_orders, bid_shares, bid, offer, offer_shares, offer_orders]);
    }
    let indicative = book.indicative.map_or(String::new(), |(price, shares)| {
        format!("\nthe auction would trade {} at {}", grouped(shares.0), text::cents(price))
    });
    format!(
        "{}: {}; the book is {}\n\n{}\n\nlast {}{indicative}\n{}, {}, {}; Ctrl-C ends",
        book.symbol,
        phase_words(book),
        state_words(state).to_uppercase(),
        table.render().trim_end(),
        last_words(book),
        text::count(came.messages, "message"),
        text::count(came.gaps, "gap"),
        text::count(came.resets, "snapshot"),
    )
}
