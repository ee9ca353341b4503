//! HTTP at a process of its own: a client of the gateways, whichever of them live.

pub(crate) mod clients;
mod hostile;
mod leaving;
mod market;
mod operators;
mod pages;
mod positions;
mod schemas;
mod socket;
mod support;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pares_client::KeyFile;
use pares_node::{Layout, SystemConfig};
use pares_testbed::ports::free_address;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use self::support::{Answer, Asker, Web, serving};
use crate::common::eventually;
use crate::common::exchange::{Exchange, PROGRAM, gateway, small};
use crate::common::process::pares;
use crate::sign_on::{done, key, required};

#[test]
fn an_order_is_entered_seen_traded_and_cancelled() {
    let (_exchange, web) = serving(&small(2));
    let (mut seller, mut buyer) = (Asker::open(&web.address, 7), Asker::open(&web.address, 8));
    let rests = seller.limit(1, "sell", 100, "223.82");
    assert_eq!(rests.status, 201, "{}", rests.body);
    assert_eq!((&rests.json()["status"], &rests.json()["remaining"]), (&json!("resting"), &json!("100")));
    let place = rests.head.split("location: ").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();

    let filled = buyer.limit(1, "buy", 60, "223.90").json();
    assert_eq!((&filled["status"], &filled["executed"]), (&json!("filled"), &json!("60")));
    let fills = seller.ask("GET", "/v1/fills", "").json();
    assert_eq!(
        (&fills["fills"][0]["price"], &fills["fills"][0]["quantity"]),
        (&json!("223.82"), &json!("60"))
    );
    assert_eq!((&fills["is_all"], &fills["fills"].as_array().unwrap().len()), (&json!(true), &1));

    let seen = seller.ask("GET", &place, "").json();
    assert_eq!(
        (&seen["state"], &seen["executed"], &seen["remaining"]),
        (&json!("working"), &json!("60"), &json!("40"))
    );
    let amended = seller.ask("PATCH", &place, r#"{"client_order_id":"2","price":"224","quantity":"90"}"#);
    assert_eq!((amended.status, &amended.json()["remaining"]), (200, &json!("30")), "{}", amended.body);
    let gone = seller.ask("DELETE", &format!("{place}?client_order_id=3"), "");
    assert_eq!((gone.status, &gone.json()["status"]), (200, &json!("cancelled")), "{}", gone.body);
    let again = seller.ask("DELETE", "/v1/orders/by-name/1?client_order_id=3", "").json();
    assert_eq!((&again["status"], &again["repeat"]), (&json!("cancelled"), &json!(true)));
    let seen = seller.ask("GET", "/v1/orders/by-name/1", "").json();
    assert_eq!(seen["state"], "ended");
    assert_eq!(seller.ask("GET", "/v1/orders/by-name/99", "").reason(), "unknown_order");
}

/// Signs a session with a key on, as its owner does: the secret stays here.
fn prove(asker: &mut Asker, key: &KeyFile) -> Answer {
    let who = json!({ "member": key.member, "session": key.session });
    let challenge = asker.ask("POST", "/v1/sign-on", &who.to_string());
    if challenge.status == 503 {
        return challenge; // no gateway is there yet
    }
    assert_eq!(challenge.status, 202, "{}", challenge.body);
    let challenge = challenge.json();
    let hex = challenge["transcript"].as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    let transcript: Vec<u8> = (0..hex.len() / 2).map(byte).collect();
    let proof: String = key.secret.prove(&transcript).iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/v1/sign-on/{}", challenge["sign_on"].as_str().unwrap());
    asker.ask("POST", &path, &json!({ "proof": proof }).to_string())
}

/// The same, once the gateways know the key.
fn signed_on(asker: &mut Asker, key: &KeyFile) {
    eventually("the key is known", || {
        let answer = prove(asker, key);
        asker.token = answer.json()["token"].as_str().map(str::to_owned);
        answer.status == 201
    });
}

#[test]
fn key_signs_on_via_fresh_server_and_after_gateway_death() {
    let mut exchange = Exchange::start(&required(2));
    done(&exchange, "member add 7");
    let (key, web) = (key(&exchange, 7, 1), Web::start(exchange.layout().root()));
    let mut asker = Asker::new(&web.address);
    signed_on(&mut asker, &key);
    assert_eq!(asker.limit(1, "sell", 10, "5").status, 201);

    for number in [0, 1] {
        exchange.replace(gateway(number));
    }
    eventually("the session has ended", || {
        let answer = asker.ask("GET", "/v1/status", "");
        answer.status == 401 && answer.reason() == "sign_on_again"
    });
    signed_on(&mut asker, &key);
    let again = asker.limit(1, "sell", 10, "5");
    assert_eq!((again.status, &again.json()["repeat"]), (201, &json!(true)), "{}", again.body);
}

#[test]
fn a_proof_is_tried_once_and_a_wrong_one_is_refused() {
    let exchange = Exchange::start(&required(1));
    done(&exchange, "member add 7");
    let (right, web) = (key(&exchange, 7, 1), Web::start(exchange.layout().root()));
    let mut asker = Asker::new(&web.address);
    signed_on(&mut asker, &right);
    let challenge = asker.ask("POST", "/v1/sign-on", r#"{"member":7,"session":1}"#).json();
    let path = format!("/v1/sign-on/{}", challenge["sign_on"].as_str().unwrap());
    let wrong = json!({ "proof": "00".repeat(64) }).to_string();
    assert_eq!(asker.ask("POST", &path, &wrong).reason(), "wrong_key");
    assert_eq!(asker.ask("POST", &path, &wrong).reason(), "not-found");
    assert_eq!(asker.ask("GET", "/v1/status", "").status, 200, "the session goes on");
}

#[test]
fn batches_and_cancels_of_all_are_answered_each_by_itself() {
    let (_exchange, web) = serving(&small(1));
    let mut asker = Asker::open(&web.address, 7);
    let symbol = asker.symbol();
    let order = |name: u64, quantity: &str| json!({ "client_order_id": name.to_string(), "symbol": symbol, "side": "buy", "price": "5", "quantity": quantity });
    let batch = json!({ "orders": [order(1, "10"), order(2, "0"), order(3, "x"), order(4, "10")] });
    let answers = asker.ask("POST", "/v1/orders/batch", &batch.to_string()).json();
    let statuses: Vec<u64> =
        answers["results"].as_array().unwrap().iter().map(|one| one["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 422, 400, 201], "{answers}");
    assert_eq!(answers["results"][1]["problem"]["reason"], "zero_quantity");
    let gone = asker.ask("DELETE", "/v1/orders?client_order_id=9&side=buy", "").json();
    assert_eq!((&gone["status"], &gone["executed"]), (&json!("mass_cancelled"), &json!("2")));
    let too_many = json!({ "orders": (1..=101).map(|name| order(name, "1")).collect::<Vec<_>>() });
    assert_eq!(asker.ask("POST", "/v1/orders/batch", &too_many.to_string()).reason(), "bad-form");
}

#[test]
fn xml_says_the_same() {
    let (_exchange, web) = serving(&small(1));
    let mut asker = Asker::open(&web.address, 7);
    let symbol = asker.symbol();
    asker.kind = "application/xml";
    let order = format!(
        "<?xml version=\"1.0\"?><order><client_order_id>1</client_order_id><symbol>{symbol}</symbol><side>sell</side><price>5</price><quantity>10</quantity></order>"
    );
    let rests = asker.ask("POST", "/v1/orders", &order);
    assert_eq!(rests.status, 201, "{}", rests.body);
    assert!(rests.body.starts_with("<outcome><client_order_id>1</client_order_id>"), "{}", rests.body);
    for path in ["/v1/orders", "/v1/instruments", "/v1/status", "/v1/fills"] {
        let answer = asker.ask("GET", path, "");
        assert!(answer.status == 200 && answer.body.starts_with('<'), "{path}: {}", answer.body);
    }
    let inner =
        order.split_once("?>").unwrap().1.replace("<order>", "<orders>").replace("</order>", "</orders>");
    let two = format!("<batch>{inner}{}</batch>", inner.replace(">1<", ">2<"));
    let batch = asker.ask("POST", "/v1/orders/batch", &two);
    assert_eq!(batch.body.matches("<status>201</status>").count(), 2, "{}", batch.body);
}

/// A system in that directory, which `pares up --web` runs at an address of its own until this ends.
fn up_with_web(dir: &Path) -> (Child, SocketAddr) {
    let free = free_address();
    let mut command = Command::new(PROGRAM);
    command.args(["up", "--web", &free.to_string(), "--dir"]).arg(dir).stdout(Stdio::null());
    let up = command.spawn().unwrap();
    eventually("it serves", || TcpStream::connect(free).is_ok());
    assert_eq!(Asker::open(&free.to_string(), 7).limit(1, "sell", 10, "5").status, 201);
    (up, free)
}

/// A directory with that configuration.
fn configured(config: &SystemConfig) -> (tempfile::TempDir, Layout) {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    pares_node::config::save(config, &layout.config()).unwrap();
    (dir, layout)
}

fn stop(mut up: Child) {
    kill_process(Pid::from_child(&up), Signal::TERM).unwrap();
    assert!(up.wait().unwrap().success());
}

#[test]
fn exchange_starts_restarts_and_stops_web_server() {
    let (dir, _) = configured(&small(1));
    let (up, free) = up_with_web(dir.path());
    let is_there = || TcpStream::connect(free).is_ok();
    let stat = || {
        let told = pares(dir.path(), "stat --json");
        let web = told.json()["web"].clone();
        let pid = web["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).unwrap()));
        (told.status, web["state"].as_str().unwrap().to_owned(), pid)
    };
    let (status, state, server) = stat();
    assert_eq!((status, state.as_str()), (Some(0), "up"));
    let server = server.unwrap();
    kill_process(server, Signal::STOP).unwrap();
    eventually("it is seen that it is stopped", || stat() == (Some(4), "stopped".to_owned(), Some(server)));
    kill_process(server, Signal::KILL).unwrap();
    eventually("it serves again", || {
        let (status, _, again) = stat();
        status == Some(0) && again.is_some_and(|again| again != server) && is_there()
    });
    stop(up);
    assert!(!is_there(), "it ended too");
}

#[test]
fn web_server_on_gateway_address_is_refused_at_start() {
    let free = free_address();
    let (dir, layout) = configured(&SystemConfig { gateways: vec![free], ..small(1) });
    let told = pares(dir.path(), &format!("up --web {free}"));
    let why = told.complaint.as_str();
    let is_told = why.contains("a node of this system is configured to listen there")
        && why.contains("choose another address");
    assert!(!told.is_ok() && is_told, "{why}");
    assert!(!layout.run().exists(), "nothing was started");
}

#[test]
fn server_without_output_or_address_file_still_serves() {
    let (dir, layout) = configured(&small(1));
    std::fs::create_dir_all(layout.run().join("web.addr.new")).unwrap();
    std::os::unix::fs::symlink("/dev/full", layout.run().join("web.log")).unwrap();
    stop(up_with_web(dir.path()).0);
}
