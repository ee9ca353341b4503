//! What operators ask over HTTP: the rights are the gateways'.

use serde_json::json;

use super::support::{Answer, Asker, Web, serving};
use super::{eventually, signed_on};
use crate::common::exchange::{Exchange, gateway, small};
use crate::sign_on::{done, key, required};
use pares_client::KeyFile;

fn ask(asker: &mut Asker, path: &str, name: u64, propose: bool) -> Answer {
    let deed = json!({ "client_order_id": name.to_string(), "propose": propose });
    asker.ask("PUT", path, &deed.to_string())
}

#[test]
fn an_operator_halts_and_opens_and_nobody_else_does() {
    let (_exchange, web) = serving(&small(1));
    let (mut operator, mut member) = (Asker::open(&web.address, 0), Asker::open(&web.address, 7));
    let halt = "/v1/instruments/ALFA/phase/halted";
    assert_eq!(ask(&mut member, halt, 1, false).reason(), "not_permitted");
    assert_eq!(ask(&mut operator, halt, 1, false).json()["status"], "accepted");
    assert_eq!(ask(&mut operator, halt, 1, false).json()["repeat"], true);
    assert_eq!(member.limit(2, "sell", 10, "5").status, 422);
    let phase = member.ask("GET", "/v1/instruments", "").json()["instruments"][0]["phase"].clone();
    assert_eq!(phase, "halted");
    let call = "/v1/instruments/ALFA/phase/volatility_call";
    assert_eq!(ask(&mut operator, call, 2, false).reason(), "bad-form");
    let open = "/v1/instruments/ALFA/phase/continuous";
    assert_eq!(ask(&mut operator, open, 2, true).reason(), "bad-form", "needs no second operator");
    assert_eq!(ask(&mut operator, open, 2, false).status, 200);
    assert_eq!(member.limit(3, "sell", 10, "5").status, 201);
    // A member may block itself, and none but an operator takes that back.
    assert_eq!(ask(&mut member, "/v1/members/8/block", 4, false).reason(), "not_permitted");
    assert_eq!(ask(&mut member, "/v1/members/7/block", 4, false).json()["executed"], "1");
    let unblock = |asker: &mut Asker| asker.ask("DELETE", "/v1/members/7/block?client_order_id=5", "");
    assert_eq!(unblock(&mut member).reason(), "not_permitted");
    assert_eq!(unblock(&mut operator).status, 200);
}

#[test]
fn what_one_operator_proposed_another_one_seconds() {
    let exchange = Exchange::start(&required(1));
    done(&exchange, "member key 0 2");
    let web = Web::start(exchange.layout().root());
    let (mut first, mut second) = (Asker::new(&web.address), Asker::new(&web.address));
    signed_on(&mut first, &KeyFile::read(&exchange.layout().operator_key()).unwrap());
    signed_on(&mut second, &key(&exchange, 0, 2));
    let halt = "/v1/instruments/ALFA/phase/halted";
    assert_eq!(ask(&mut first, "/v1/four-eyes", 1, false).reason(), "other_series");
    assert_eq!(ask(&mut first, "/v1/four-eyes", 1 << 48 | 1, false).status, 200);
    assert_eq!(ask(&mut first, halt, 1 << 48 | 2, false).reason(), "second_operator");
    assert_eq!(ask(&mut first, halt, 1 << 48 | 3, true).status, 202);
    assert_eq!(ask(&mut first, halt, 1 << 48 | 4, false).reason(), "second_operator", "not his own");
    eventually("the gateway knows the proposal", || ask(&mut second, halt, 2 << 48 | 1, false).status == 200);
    let off = |asker: &mut Asker, name: u64, propose: bool| {
        asker.ask("DELETE", &format!("/v1/four-eyes?client_order_id={name}&propose={propose}"), "")
    };
    assert_eq!(off(&mut second, 2 << 48 | 2, true).status, 202);
    eventually("it is switched off", || off(&mut first, 1 << 48 | 5, false).status == 200);
    assert_eq!(ask(&mut first, "/v1/members/7/block", 1 << 48 | 6, false).status, 200, "alone again");
}

#[test]
fn operator_session_ends_with_its_gateway_if_open() {
    let (mut exchange, web) = serving(&small(2));
    let (mut operator, member) = (Asker::open(&web.address, 0), Asker::open(&web.address, 8));
    [0, 1].into_iter().for_each(|one| exchange.replace(gateway(one)));
    eventually("it has ended", || {
        let answer = operator.ask("GET", "/v1/instruments", "");
        answer.status == 401 && answer.reason() == "sign_on_again"
    });
    // A connection that is idle for as long as that was is closed.
    let mut member = Asker { token: member.token, ..Asker::new(&web.address) };
    eventually("a member's goes on", || member.ask("GET", "/v1/instruments", "").status == 200);
}
