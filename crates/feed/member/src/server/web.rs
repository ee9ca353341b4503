//! What WebSocket traders receive, as JSON in frames of RFC 6455, encoded once for all of them.
//!
//! What a server sends is not masked, so the bytes of a frame are the same for all traders, as those of a packet are.

use std::sync::Arc;

use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_desk::shown::BookKey;
use pares_desk::view::{BookView, ViewLevel};
use pares_types::{Price, Quantity, Reason, Reply, Side};
use serde_json::{Map, Value, json};

use crate::sources::MarketState;

/// Appends a text as one frame.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    const TEXT: u8 = 0x81;
    out.push(TEXT);
    match text.len() {
        length @ 0..=125 => out.push(length as u8),
        length @ 126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(text.as_bytes());
}

fn frame(value: &Value) -> Arc<[u8]> {
    let mut out = Vec::new();
    write_text(&mut out, &value.to_string());
    out.into()
}

/// Prices are text, since a number of JSON is a float in most languages.
pub(super) fn price(price: Price) -> String {
    let sign = if price.0 < 0 { "-" } else { "" };
    format!("{sign}{}.{:04}", price.0.unsigned_abs() / 10_000, price.0.unsigned_abs() % 10_000)
}

fn pair(pair: Option<(Price, Quantity)>) -> Value {
    pair.map_or(Value::Null, |(at, quantity)| json!([price(at), quantity.0]))
}

fn level(level: &ViewLevel) -> Value {
    json!([price(level.price), level.quantity.0, level.orders])
}

/// The levels that are not as before, and those that are gone, with quantity 0.
fn changed(now: &[ViewLevel], before: Option<&[ViewLevel]>) -> Value {
    let Some(before) = before else { return now.iter().map(level).collect() };
    let gone = before.iter().filter(|old| !now.iter().any(|new| new.price == old.price));
    let gone = gone.map(|old| json!([price(old.price), 0, 0]));
    now.iter().filter(|new| !before.contains(new)).map(level).chain(gone).collect()
}

/// A book, or what changed since `before`.
pub(super) fn book(key: BookKey, sequence: u64, view: &BookView, before: Option<&BookView>) -> Arc<[u8]> {
    frame(&json!({
        "type": "book",
        "snapshot": before.is_none(),
        "shard": key.0,
        "instrument": key.1,
        "symbol": view.symbol,
        "sequence": sequence,
        "state": char::from(view.state).to_string(),
        "bids": changed(&view.bids, before.map(|before| &before.bids[..])),
        "offers": changed(&view.offers, before.map(|before| &before.offers[..])),
        "last": pair(view.last),
        "indicative": pair(view.indicative),
        "checksum": view.checksum(),
    }))
}

/// How a shard's data are.
pub(super) fn feed_state(shard: u16, state: MarketState) -> String {
    json!({ "type": "feed", "shard": shard, "state": state.word() }).to_string()
}

/// The server is there; all below was sent.
pub(super) fn alive(told: u64) -> String {
    json!({ "type": "alive", "told": told }).to_string()
}

/// An item of the stream.
pub(super) fn item(record: &[u8]) -> String {
    let Ok(ordered) = OrderedItem::read(record) else { return json!({ "type": "item" }).to_string() };
    let name = ordered.item.name;
    let mut map = Map::new();
    map.insert("type".into(), "item".into());
    map.insert("position".into(), ordered.position.0.into());
    map.insert("time_ns".into(), ordered.item.stamp_ns.to_string().into());
    map.insert("trader".into(), trader(name.trader));
    map.insert("number".into(), name.number.into());
    match ordered.repeats {
        Some(first) => {
            map.insert("kind".into(), "repeat".into());
            map.insert("first".into(), Some(first.0).filter(|&first| first != u64::MAX).into());
        }
        None => says(&mut map, &ordered),
    }
    Value::Object(map).to_string()
}

fn trader(trader: TraderId) -> Value {
    if trader.is_trader() { trader.0.into() } else { "exchange".into() }
}

fn says(map: &mut Map<String, Value>, ordered: &OrderedItem<'_>) {
    let Ok(says) = ordered.item.says() else { return };
    let fields = match says {
        ItemBody::Message { to, text } => json!({ "kind": "message", "to": to.0, "text": text }),
        ItemBody::Note { instrument, text } => {
            json!({ "kind": "note", "instrument": instrument.0, "text": text })
        }
        ItemBody::QuoteRequest { to, instrument, quantity } => {
            json!({ "kind": "quote_request", "to": to.0, "instrument": instrument.0, "quantity": quantity.0 })
        }
        ItemBody::IndicativeQuote { to, instrument, bid, offer, answers } => json!({
            "kind": "quote",
            "to": to.0,
            "instrument": instrument.0,
            "bid": pair(Some(bid)),
            "offer": pair(Some(offer)),
            "answers": answers.checked_sub(1),
        }),
        ItemBody::Report { shard, .. } => report(shard.0, &says),
    };
    if let Value::Object(fields) = fields {
        map.extend(fields);
    }
}

fn report(shard: u16, says: &ItemBody<'_>) -> Value {
    let mut report = json!({ "kind": "report", "shard": shard });
    let fields = says.reply().map(|reply| reported(&reply)).unwrap_or_default();
    if let (Value::Object(report), Value::Object(fields)) = (&mut report, fields) {
        report.extend(fields);
    }
    report
}

/// What a report says; null if it is none of a member's stream.
fn reported(reply: &Reply) -> Value {
    let (order, instrument) = match reply {
        Reply::Answer(of) => (of.client_order_id, of.instrument),
        Reply::Trade(of) => (of.client_order_id, of.instrument),
        Reply::Cancelled(of) => (of.client_order_id, of.instrument),
        Reply::News(of) => (of.client_order_id, of.instrument),
        Reply::Busted(of) => (of.client_order_id, of.instrument),
        _ => return Value::Null,
    };
    let mut fields = json!({ "order": order.0.to_string(), "instrument": instrument.0 });
    let own = match reply {
        Reply::Answer(of) => json!({
            "what": "answer", "status": of.status.word(), "reason": why(of.reason),
            "price": null, "quantity": of.executed.0, "remaining": of.remaining.0,
        }),
        Reply::Trade(of) => json!({
            "what": "trade", "side": side(of.side), "price": price(of.price), "quantity": of.quantity.0, "remaining": of.remaining.0,
        }),
        Reply::Cancelled(of) => json!({
            "what": "cancelled", "side": side(of.side), "price": price(of.price), "cause": of.cause.word(),
            "quantity": of.quantity.0,
        }),
        Reply::News(of) => json!({
            "what": "news", "side": side(of.side), "price": price(of.price), "quantity": of.remaining.0,
        }),
        Reply::Busted(of) => json!({ "what": "busted", "price": price(of.price), "quantity": of.quantity.0 }),
        _ => Value::Null,
    };
    if let (Value::Object(fields), Value::Object(own)) = (&mut fields, own) {
        fields.extend(own);
    }
    fields
}

fn why(reason: Reason) -> Option<&'static str> {
    (reason != Reason::None).then(|| reason.word())
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{
        Answer, ClientOrderId, GatewayId, InstrumentId, OrderId, Position, RequestDigest, RequestId, ShardId,
        Status,
    };

    fn view(bids: &[(i64, u64)]) -> BookView {
        let level = |&(price, quantity): &(i64, u64)| ViewLevel {
            price: Price(price),
            quantity: Quantity(quantity),
            orders: 1,
        };
        BookView {
            symbol: "ALFA".into(),
            state: b'T',
            bids: bids.iter().map(level).collect(),
            ..BookView::default()
        }
    }

    fn text(frame: &[u8]) -> Value {
        let at = if frame[1] < 126 { 2 } else { 4 };
        serde_json::from_slice(&frame[at..]).unwrap()
    }

    #[test]
    fn a_refused_order_and_a_resting_one_are_told_apart() {
        let answer = |status, reason| {
            let (client_order_id, quantity) = (ClientOrderId(7), Quantity(0));
            let request = RequestId::new(GatewayId(0), 1);
            reported(&Reply::Answer(Answer {
                client_order_id,
                request,
                order: OrderId(request),
                shard: ShardId(0),
                position: Position(0),
                instrument: InstrumentId(1),
                status,
                reason,
                executed: quantity,
                remaining: quantity,
                events: 0,
                repeat: false,
                number: 1,
                asked: RequestDigest::UNKNOWN,
            }))
        };
        let refused = answer(Status::Refused, Reason::OffTick);
        assert_eq!((&refused["status"], &refused["reason"]), (&"refused".into(), &"off_tick".into()));
        let resting = answer(Status::Resting, Reason::None);
        assert_eq!((&resting["status"], &resting["reason"]), (&"resting".into(), &Value::Null));
        assert_eq!(resting["order"], "7");
    }

    #[test]
    fn change_applied_has_its_stated_checksum() {
        let (before, now) = (view(&[(100, 5), (90, 1)]), view(&[(110, 2), (100, 7)]));
        let change = text(&book((0, 1), 2, &now, Some(&before)));
        assert_eq!(change["bids"], json!([["0.0110", 2, 1], ["0.0100", 7, 1], ["0.0090", 0, 0]]));
        assert_eq!(change["checksum"], now.checksum());
        assert_eq!(change["snapshot"], false);
    }

    #[test]
    fn a_frame_says_how_long_it_is() {
        for length in [0, 125, 126, 65_535, 65_536] {
            let mut out = Vec::new();
            write_text(&mut out, &"x".repeat(length));
            let head = if length < 126 {
                2
            } else if length < 65_536 {
                4
            } else {
                10
            };
            assert_eq!(out.len(), head + length);
        }
    }

    #[test]
    fn prices_are_text_with_four_decimals() {
        assert_eq!([Price(123_456), Price(-5)].map(price), ["12.3456", "-0.0005"]);
    }
}
