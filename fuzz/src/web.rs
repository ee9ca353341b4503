//! What comes over HTTP and WebSocket: bodies in JSON and XML, wishes, and numbers as text.

use pares_api::inbound::{BodyForm, wish};
use pares_resources::decimal::{natural, price, price_text, quantity};
use pares_resources::order_terms::{self_trade_word, side_word};
use pares_types::{
    ClientOrderId, NewOrder, NewTerms, OrderKind, Peg, Price, Quantity, SelfTrade, TimeInForce, Timestamp,
};

const FORMS: [BodyForm; 2] = [BodyForm::Json, BodyForm::Xml];

/// Reads a body as every form, in JSON and in XML; an order that it says is the same written in either.
pub fn forms(bytes: &[u8]) {
    for form in FORMS {
        let _ = form.is_other(bytes);
        if let Some((name, order)) = form.order(bytes) {
            let fields = order_fields(name, &order);
            FORMS.iter().for_each(|again| {
                assert_eq!(again.order(&written(*again, &fields)), Some((name, order)), "as read");
            });
        }
        if let Some(terms) = form.terms(bytes) {
            let fields = terms_fields(&terms);
            FORMS.iter().for_each(|again| {
                assert_eq!(again.terms(&written(*again, &fields)), Some(terms), "as read");
            });
        }
    }
}

type Fields = Vec<(&'static str, String)>;

fn written(form: BodyForm, fields: &Fields) -> Vec<u8> {
    let text = match form {
        BodyForm::Json => {
            let bare = |name: &str| ["post_only", "seconds", "member", "session"].contains(&name);
            let one = |(name, value): &(&str, String)| match bare(name) {
                true => format!("\"{name}\":{value}"),
                false => format!("\"{name}\":\"{value}\""),
            };
            format!("{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(","))
        }
        BodyForm::Xml => {
            let one = |(name, value): &(&str, String)| format!("<{name}>{value}</{name}>");
            format!("<form>{}</form>", fields.iter().map(one).collect::<String>())
        }
    };
    text.into_bytes()
}

fn order_fields(name: ClientOrderId, order: &NewOrder) -> Fields {
    let mut fields = vec![
        ("client_order_id", name.0.to_string()),
        ("symbol", "ABC".to_owned()),
        ("side", side_word(order.side).to_owned()),
        ("quantity", order.quantity.to_string()),
        ("post_only", order.post_only.to_string()),
        ("self_trade", self_trade_word(order.self_trade).to_owned()),
        ("display", order.display.to_string()),
        ("minimum", order.minimum.to_string()),
    ];
    let (kind, limit) = match order.kind {
        OrderKind::Limit { price } => ("limit", Some(price)),
        OrderKind::Market => ("market", None),
        OrderKind::Pegged { to: Peg::Best, limit } => ("peg_best", Some(limit)),
        OrderKind::Pegged { to: Peg::Mid, limit } => ("peg_mid", Some(limit)),
    };
    fields.push(("kind", kind.to_owned()));
    fields.extend(limit.map(|limit| ("price", price_text(limit))));
    fields.extend(order.trigger.map(|trigger| ("trigger", price_text(trigger))));
    time_fields(order.time_in_force, &mut fields);
    fields
}

fn terms_fields(terms: &NewTerms) -> Fields {
    let mut fields = vec![
        ("client_order_id", "1".to_owned()),
        ("price", price_text(terms.price)),
        ("quantity", terms.quantity.to_string()),
    ];
    fields.extend(terms.display.map(|display| ("display", display.to_string())));
    fields.extend(terms.trigger.map(|trigger| ("trigger", price_text(trigger))));
    if let Some(time) = terms.time_in_force {
        time_fields(time, &mut fields);
    }
    fields
}

fn time_fields(time: TimeInForce, fields: &mut Fields) {
    let word = match time {
        TimeInForce::Day => "day",
        TimeInForce::Ioc => "ioc",
        TimeInForce::Fok => "fok",
        TimeInForce::Gtc => "gtc",
        TimeInForce::Gtd { until: Timestamp(until) } => {
            fields.push(("until_ns", until.to_string()));
            "gtd"
        }
        TimeInForce::AtOpen => "at_open",
        TimeInForce::AtClose => "at_close",
    };
    fields.push(("time_in_force", word.to_owned()));
}

/// Bodies of each form, in both.
#[must_use]
pub fn form_seeds() -> Vec<Vec<u8>> {
    let (name, buy) = (ClientOrderId(7), pares_types::Side::Buy);
    let plain = NewOrder::limit(buy, Price(2_238_200), Quantity(100));
    let until = TimeInForce::Gtd { until: Timestamp(1_790_000_000_000_000_000) };
    let mid = OrderKind::Pegged { to: Peg::Mid, limit: Price(-1) };
    let orders = [
        plain,
        NewOrder::market(buy, Quantity(1)),
        NewOrder { kind: mid, self_trade: SelfTrade::CancelBoth, time_in_force: until, ..plain },
        NewOrder { display: Quantity(10), minimum: Quantity(20), trigger: Some(Price(5)), ..plain },
    ];
    let terms = NewTerms { trigger: Some(Price(7)), ..NewTerms::new(Price(5), Quantity(9)) };
    let others = [
        vec![("member", "7".to_owned()), ("session", "1".to_owned())],
        vec![("proof", "0f".repeat(64))],
        vec![("seconds", "30".to_owned())],
    ];
    let forms: Vec<Fields> = orders
        .iter()
        .map(|order| order_fields(name, order))
        .chain([terms_fields(&terms)])
        .chain(others)
        .collect();
    let both = |form: BodyForm| forms.iter().map(move |fields| written(form, fields)).collect::<Vec<_>>();
    let order = String::from_utf8(written(BodyForm::Json, &forms[0])).expect("text");
    let batch = format!("{{\"orders\":[{order},{order}]}}").into_bytes();
    FORMS.into_iter().flat_map(both).chain([batch]).collect()
}

/// Reads what a client says on a socket.
pub fn wishes(bytes: &[u8]) {
    if let Ok(Some(shards)) = wish(bytes) {
        assert!(shards < 1 << 16, "a shard is named once");
    }
}

/// A wish for each channel.
#[must_use]
pub fn wish_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"op":"subscribe","channel":"orders"}"#,
        r#"{"op":"subscribe","channel":"orders","from":{"0":"1","7":"18446744073709551615"}}"#,
        r#"{"op":"subscribe","channel":"book","symbol":"ABC"}"#,
        r#"{"op":"subscribe","channel":"trades","symbol":"ABC","after":"12"}"#,
        r#"{"op":"subscribe","channel":"candles","symbol":"ABC","interval":"5m"}"#,
    ]
    .map(|wish| wish.as_bytes().to_vec())
    .into()
}

/// Reads a number as text: what is one has one value, however it is written.
pub fn numbers(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = price(text) {
        assert_eq!(price(&price_text(read)), Ok(read), "as read");
    }
    if let Some(read) = natural(text) {
        assert_eq!(quantity(text), Ok(Quantity(read)));
        assert_eq!(natural(&read.to_string()), Some(read), "as read");
        // A price of so many, if it is not too large.
        let whole = i64::try_from(read).ok().and_then(|whole| whole.checked_mul(10_000));
        assert_eq!(price(text).ok(), whole.map(Price));
    }
}

/// Numbers as they are written.
#[must_use]
pub fn number_seeds() -> Vec<Vec<u8>> {
    ["223.82", "-0.0001", "922337203685477.5807", "18446744073709551615", "0"].map(|text| text.into()).into()
}
