//! Requests as they are asked for.

use pares_resources::decimal::price_text;
use pares_resources::order_terms::side_word;
use pares_types::{ClientRequest, NewOrder, OrderKind, TimeInForce};

use super::http::HttpConnection;
use crate::setup;

/// Buffers a request. Whether a load sends such over HTTP.
pub(super) fn put(connection: Option<&mut HttpConnection>, request: &ClientRequest) -> bool {
    let name = request.client_order_id();
    let (method, path, body) = match request {
        ClientRequest::Enter { instrument, order, .. } => {
            let Some(terms) = terms(order) else { return false };
            let (symbol, side) = (setup::instrument(instrument.0).symbol, side_word(order.side));
            let quantity = order.quantity;
            let body = format!(
                "{{\"client_order_id\":\"{name}\",\"symbol\":\"{symbol}\",\"side\":\"{side}\",\"quantity\":\"{quantity}\",{terms}}}"
            );
            ("POST", "/v1/orders".to_owned(), body)
        }
        ClientRequest::Amend { target, terms, .. } => {
            let (price, quantity) = (price_text(terms.price), terms.quantity);
            let body = format!(
                "{{\"client_order_id\":\"{name}\",\"price\":\"{price}\",\"quantity\":\"{quantity}\"}}"
            );
            ("PATCH", format!("/v1/orders/by-name/{target}"), body)
        }
        ClientRequest::Cancel { target, .. } => {
            ("DELETE", format!("/v1/orders/by-name/{target}?client_order_id={name}"), String::new())
        }
        ClientRequest::MassCancel { .. } | ClientRequest::Exchange { .. } => return false,
    };
    if let Some(connection) = connection {
        connection.put(method, &path, "", &body);
    }
    true
}

fn terms(order: &NewOrder) -> Option<String> {
    let time = match order.time_in_force {
        TimeInForce::Day => "day",
        TimeInForce::Ioc => "ioc",
        TimeInForce::Fok => "fok",
        _ => return None,
    };
    let kind = match order.kind {
        OrderKind::Limit { price } => format!("\"kind\":\"limit\",\"price\":\"{}\"", price_text(price)),
        OrderKind::Market => "\"kind\":\"market\"".to_owned(),
        OrderKind::Pegged { .. } => return None,
    };
    Some(format!("{kind},\"time_in_force\":\"{time}\""))
}
