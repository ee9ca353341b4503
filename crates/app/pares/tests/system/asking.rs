//! What a client asks of a gateway beside requests.

use std::time::Duration;

use pares_client::{Client, List, ListEnd, ListRequest, Options, Update};
use pares_types::{ClientOrderId, MemberId, Reason, Side};

use crate::common::exchange::{Exchange, small};
use crate::common::{eventually, limit};

fn until(client: &mut Client, told: &mut Vec<Update>, what: &str, is_it: impl Fn(&Update) -> bool) {
    eventually(what, || {
        client.flush().unwrap();
        client.wait(Duration::from_millis(10)).unwrap();
        client.poll(|update| told.push(update)).unwrap();
        told.iter().any(&is_it)
    });
}

#[test]
fn client_asks_for_journalled_lists_limits_and_timer() {
    let exchange = Exchange::start(&small(1));
    let options = Options { journalled: true, ..Options::default() };
    let mut client = Client::connect_with(exchange.addresses()[0], MemberId(7), options).unwrap();
    let (guarded, mut told) = (ClientOrderId::guarded(0, 1), Vec::new());
    client.send(&limit(guarded.0, 1, Side::Buy, 5, 1_000_000)).unwrap();
    until(
        &mut client,
        &mut told,
        "it is journalled",
        |update| matches!(update, Update::Journalled { client_order_id, .. } if *client_order_id == guarded),
    );
    until(&mut client, &mut told, "it is answered", |update| matches!(update, Update::Answer(_)));
    assert_eq!(client.own_limits_and_wait().unwrap().orders, 1);
    for (list, count) in [(List::Orders, 1), (List::Instruments, 3)] {
        let request = ListRequest { token: 5, list, instrument: None };
        client.list(&request).unwrap();
        let end = Update::ListEnd(ListEnd { request, count, reason: Reason::None });
        until(&mut client, &mut told, "the list ends", |update| *update == end);
    }
    client.cancel_after(Some(Duration::from_millis(50))).unwrap();
    client.cancel_after(None).unwrap();
    client.cancel_after(Some(Duration::from_secs(3_600))).unwrap();
    client.cancel_after(Some(Duration::from_millis(50))).unwrap();
    until(
        &mut client,
        &mut told,
        "the timer runs out",
        |update| matches!(update, Update::Cancelled(one) if one.client_order_id == guarded),
    );
}
