//! Who is who: keys, rights and limits, and that they hold at every gateway and after every death.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pares_client::{Client, ClientError, Credential, KeyFile, Options, Secret, Update};
use pares_config::SignOnSetting;
use pares_node::SystemConfig;
use pares_types::{GatewayId, MemberId, Reason, Side, Status};
use pares_wire::Transcript;
use pares_wire::frame::{self, Challenge, GatewayFrame, Proof, SignOn};
use serde_json::Value;

use crate::bad_input::{raw, read_frame};
use crate::common::exchange::{Exchange, PROGRAM, gateway, small};
use crate::common::{PATIENCE, cancel, eventually, limit};

pub(crate) fn required(gateways: usize) -> SystemConfig {
    SystemConfig { sign_on: SignOnSetting::Required, ..small(gateways) }
}

/// Runs `pares admin`. Whether it succeeded, and what it said.
fn admin(exchange: &Exchange, arguments: &str) -> (bool, String) {
    let ran = exchange.pares(&format!("admin {arguments}"));
    (ran.is_ok(), ran.said())
}

pub(crate) fn done(exchange: &Exchange, arguments: &str) -> String {
    let (ok, said) = admin(exchange, arguments);
    assert!(ok, "{arguments}: {said}");
    said
}

fn refused(exchange: &Exchange, arguments: &str, why: &str) {
    let (ok, said) = admin(exchange, arguments);
    assert!(!ok && said.contains(why), "{arguments}: {said}");
}

pub(crate) fn key(exchange: &Exchange, member: u32, session: u16) -> KeyFile {
    KeyFile::read(&exchange.layout().keys().join(format!("member-{member}-{session}.key"))).unwrap()
}

pub(crate) fn sign_on(exchange: &Exchange, gateway: usize, key: &KeyFile) -> Result<Client, ClientError> {
    Client::connect_as(exchange.addresses()[gateway], key)
}

pub(crate) fn refusal(signed_on: Result<Client, ClientError>) -> Reason {
    match signed_on {
        Err(ClientError::Rejected(reason)) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("signed on"),
    }
}

/// Signs on; a gateway knows a key once it has followed the record so far.
pub(crate) fn known(exchange: &Exchange, gateway: usize, key: &KeyFile) -> Client {
    let mut client = None;
    eventually("the key is known", || {
        client = sign_on(exchange, gateway, key).ok();
        client.is_some()
    });
    client.unwrap()
}

/// The reason for which the gateway ends the connection.
pub(crate) fn end_of(client: &mut Client) -> Reason {
    let mut reason = None;
    while reason.is_none() {
        assert!(client.wait(PATIENCE).unwrap(), "the connection ends");
        let polled = client.poll(|update| {
            if let Update::Rejected { reason: why, .. } = update {
                reason = Some(why);
            }
        });
        assert!(polled.is_ok() || reason.is_some(), "it is told why");
    }
    reason.unwrap()
}

#[test]
fn a_member_signs_on_by_its_key_and_nobody_else_does() {
    let exchange = Exchange::start(&required(2));
    done(&exchange, "member add 7");
    let own = key(&exchange, 7, 1);
    for gateway in [0, 1] {
        let mut client = known(&exchange, gateway, &own);
        let answer = client.submit_and_wait(&limit(1 + gateway as u64, 1, Side::Buy, 5, 2_238_200)).unwrap();
        assert_eq!(answer.status, Status::Resting);
    }
    let wrong = [
        KeyFile { secret: Secret::generate(), ..own.clone() },
        KeyFile { secret: Secret::Shared([7; 32]), ..own.clone() },
        KeyFile { member: 8, ..own.clone() },
        KeyFile { session: 2, ..own.clone() },
        KeyFile { member: 0, ..own.clone() },
    ];
    for wrong in wrong {
        assert_eq!(refusal(sign_on(&exchange, 0, &wrong)), Reason::WrongKey, "{wrong:?}");
    }
    let without = Client::connect(exchange.addresses()[0], MemberId(7));
    assert!(matches!(without, Err(ClientError::NoKey)));
}

/// As a program of another user of the machine can.
#[test]
fn crowd_on_the_machine_bars_no_operator() {
    let exchange = Exchange::start(&SystemConfig { sessions_max: 64, ..required(1) });
    let address = exchange.addresses()[0];
    let is_enough = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_enough);
    let crowd = std::thread::spawn(move || {
        let mut crowd = VecDeque::new();
        while !seen.load(Ordering::Relaxed)
            && let Ok(stream) = TcpStream::connect(address)
        {
            crowd.push_back(stream);
            crowd.drain(..crowd.len().saturating_sub(100));
        }
    });
    eventually("strangers have all their places", || {
        exchange.counter(gateway(0), "refused_connections") > 100
    });
    (1..=5).for_each(|member| _ = done(&exchange, &format!("member add {member}")));
    is_enough.store(true, Ordering::Relaxed);
    crowd.join().unwrap();
}

#[test]
fn who_is_revoked_is_disconnected_everywhere_and_stays_out() {
    let mut exchange = Exchange::start(&required(2));
    done(&exchange, "member add 7");
    done(&exchange, "member key 7 2");
    let keys = [key(&exchange, 7, 1), key(&exchange, 7, 2)];
    let mut clients =
        [(0, 0), (1, 1)].map(|(gateway, session): (usize, usize)| known(&exchange, gateway, &keys[session]));
    clients[0].submit_and_wait(&limit(1, 1, Side::Buy, 5, 2_238_200)).unwrap();
    done(&exchange, "member revoke 7 2");
    assert_eq!(end_of(&mut clients[1]), Reason::Revoked);
    let answer = clients[0].submit_and_wait(&cancel(2, 1)).unwrap();
    assert_eq!(answer.status, Status::Cancelled, "the other session stays");
    done(&exchange, "member revoke 7");
    assert_eq!(end_of(&mut clients[0]), Reason::Revoked);
    for gateway_id in [0, 1] {
        exchange.kill(gateway(gateway_id));
    }
    exchange.wait_until_up();
    for gateway in [0, 1] {
        eventually("the gateway is back and refuses", || {
            exchange.tick();
            matches!(sign_on(&exchange, gateway, &keys[0]), Err(ClientError::Rejected(Reason::WrongKey)))
        });
    }
    exchange.stop();
    exchange.start_again();
    assert_eq!(refusal(sign_on(&exchange, 0, &keys[0])), Reason::WrongKey);
    let list: Value = serde_json::from_str(&done(&exchange, "member list --json")).unwrap();
    assert_eq!(list["register"].as_array().unwrap().len(), 2, "the exchange and its operator: {list}");
}

#[test]
fn a_password_is_a_key_too() {
    let exchange = Exchange::start(&required(1));
    let add = |password: &str, pause: Duration| {
        let mut process = Command::new(PROGRAM);
        process.args(["admin", "member", "add", "7", "--password", "--dir"]).arg(exchange.layout().root());
        let mut child = process.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(pause);
        child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
        child.wait().unwrap().success()
    };
    assert!(!add("contra\u{8}sena", Duration::ZERO), "a control character");
    // For longer than a gateway waits for an operator.
    assert!(add("contrase\u{f1}a", Duration::from_secs(4)));
    let sign_on = |password: &str| {
        let salt = pares_client::password_salt(MemberId(7), 1);
        let secret = Secret::from_password(password, &salt).unwrap();
        let credential = Some(Credential { session: 1, secret });
        let options = Options { credential, ..Options::default() };
        Client::connect_with(exchange.addresses()[0], MemberId(7), options)
    };
    assert!(sign_on("contrasen\u{303}a").is_ok(), "an accent as a character of its own");
    assert_eq!(refusal(sign_on("contrasena")), Reason::WrongKey);
}

fn send(stream: &mut TcpStream, message: &impl frame::Message) {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, message);
    stream.write_all(&bytes).unwrap();
}

/// A connection that asks to sign on, and its challenge.
fn challenged(exchange: &Exchange, sign_on: &SignOn) -> (TcpStream, Challenge) {
    let mut stream = raw(exchange.addresses()[0]);
    send(&mut stream, sign_on);
    match read_frame(&mut stream) {
        Some(GatewayFrame::Challenge(challenge)) => (stream, challenge),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sign_on_that_was_listened_to_is_of_no_use() {
    let exchange = Exchange::start(&required(1));
    done(&exchange, "member add 7");
    let key = key(&exchange, 7, 1);
    let sign_on = SignOn { member: 7.into(), session: 1.into(), token: 9.into(), ..SignOn::default() };
    let prove = |challenge: &Challenge| {
        let gateway = pares_types::GatewayId(challenge.gateway.get());
        let (member, session, token) = (MemberId(7), 1, 9);
        let transcript = Transcript { nonce: challenge.nonce, gateway, member, session, token };
        let proof = key.secret.prove(&transcript.bytes());
        let (first, second) = proof.split_at(32);
        Proof { first: first.try_into().unwrap(), second: second.try_into().unwrap() }
    };
    let (mut heard, challenge) = challenged(&exchange, &sign_on);
    let proof = prove(&challenge);
    send(&mut heard, &proof);
    assert!(matches!(read_frame(&mut heard), Some(GatewayFrame::SignedOn(_))));
    // The same bytes again, on a connection of its own, before and after a challenge.
    for mut stream in [challenged(&exchange, &sign_on).0, raw(exchange.addresses()[0])] {
        send(&mut stream, &proof);
        let Some(GatewayFrame::Reply(pares_types::Reply::Rejected { reason, .. })) = read_frame(&mut stream)
        else {
            panic!("it is refused")
        };
        assert_eq!((reason, read_frame(&mut stream)), (Reason::WrongKey, None));
    }
}

/// Sends an order of instrument 1 at one price. Why it was rejected.
fn order(client: &mut Client, name: u64, side: Side, quantity: u64) -> Option<Reason> {
    match client.submit_and_wait(&limit(name, 1, side, quantity, 2_238_200)) {
        Err(ClientError::Rejected(reason)) => Some(reason),
        Ok(_) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn rights_limits_four_eyes_set_live_and_recorded() {
    let exchange = Exchange::start(&required(1));
    done(&exchange, "member add 7");
    let mut client = known(&exchange, 0, &key(&exchange, 7, 1));
    let rejected = |client: &mut Client, name, quantity| order(client, name, Side::Buy, quantity);
    done(&exchange, "member limit 7 --quantity 10 --orders 1");
    assert_eq!(rejected(&mut client, 1, 11), Some(Reason::QuantityLimit));
    assert_eq!(rejected(&mut client, 1, 10), None, "the name is free");
    assert_eq!(rejected(&mut client, 2, 10), Some(Reason::OrdersLimit));
    done(&exchange, "member right 7 --session 1 amend");
    assert_eq!(rejected(&mut client, 3, 1), Some(Reason::NoRight));
    assert_eq!(client.submit_and_wait(&cancel(4, 1)).unwrap().status, Status::Cancelled);
    done(&exchange, "member right 7 --session 1 enter sell every_instrument");
    assert_eq!(rejected(&mut client, 5, 1), Some(Reason::NoRight), "it may not buy");
    done(&exchange, "member right 7 --session 1 enter buy");
    assert_eq!(rejected(&mut client, 5, 1), Some(Reason::NoRight), "nothing is listed");
    done(&exchange, "member instrument 7 --session 1 1 2");
    assert_eq!(rejected(&mut client, 5, 1), None);
    assert_eq!(client.submit_and_wait(&cancel(6, 5)).unwrap().status, Status::Cancelled);
    done(&exchange, "member instrument 7 --session 1 --remove 1");
    assert_eq!(rejected(&mut client, 7, 1), Some(Reason::NoRight));
    let listed: Value = serde_json::from_str(&done(&exchange, "member list --json")).unwrap();
    let entries = listed["register"].as_array().unwrap();
    let of_session = |entry: &&Value| entry["member"] == 7 && entry["session"] == 1;
    assert_eq!(entries.iter().find(of_session).unwrap()["instruments"], serde_json::json!([2]));

    done(&exchange, "member key 0 2");
    done(&exchange, "four-eyes on");
    let second = exchange.layout().keys().join("member-0-2.key");
    let second = format!("--key {}", second.display());
    refused(&exchange, "block 7", "second_operator");
    done(&exchange, &format!("block 7 --propose {second}"));
    done(&exchange, "block 7");
    done(&exchange, "day begin 2026-11-23");
    refused(&exchange, "day end", "second_operator");
    done(&exchange, &format!("day end --propose {second}"));
    done(&exchange, "day end");
    refused(&exchange, "four-eyes off", "second_operator");
    done(&exchange, &format!("member revoke 0 1 --propose {second}"));
    let (ok, said) = admin(&exchange, "member revoke 0 1");
    assert!(!ok && said.contains("last_operator"), "four eyes need two: {said}");
    done(&exchange, &format!("four-eyes off --propose {second}"));
    done(&exchange, "four-eyes off");
    let own = exchange.layout().operator_key();
    let before = std::fs::read(&own).unwrap();
    done(&exchange, "member key 0 1");
    assert_ne!(std::fs::read(&own).unwrap(), before, "the new key lies where commands look for it");
    let (ok, said) = admin(&exchange, "member revoke 0 1");
    assert!(ok, "another operator is left: {said}");
    refused(&exchange, &format!("member revoke 0 2 {second}"), "last_operator");

    let audit: Value = serde_json::from_str(&done(&exchange, "audit --json")).unwrap();
    let rows = audit["requests"].as_array().unwrap();
    let by = |asked: &str| {
        let of = rows.iter().find(|row| row["asked"] == asked);
        of.unwrap_or_else(|| panic!("no {asked}: {audit}"))["operator"].as_u64().unwrap()
    };
    let proposed = "register member 0 session 2: proposes to block member 7";
    assert_eq!((by("register member 7: added"), by(proposed), by("block member 7")), (1, 2, 1));
    assert!(rows.iter().any(|row| row["reason"] == "last_operator" && row["operator"] == 2), "{audit}");
}

#[test]
fn operator_without_key_or_unknown_member_gets_warning() {
    let exchange = Exchange::start(&required(1));
    let key = exchange.layout().operator_key();
    std::fs::rename(&key, key.with_extension("away")).unwrap();
    let (ok, said) = admin(&exchange, "block 77");
    assert!(!ok && said.contains("operator.key is missing"), "{said}");
    std::fs::rename(key.with_extension("away"), &key).unwrap();
    let said = done(&exchange, "block 77");
    assert!(said.contains("no member 77"), "{said}");
    done(&exchange, "member add 77");
    let said = done(&exchange, "block 77");
    assert!(!said.contains("no member"), "{said}");
    // Its orders show that one that was removed is meant.
    done(&exchange, "unblock 77");
    let mut client = known(&exchange, 0, &self::key(&exchange, 77, 1));
    assert_eq!(order(&mut client, 1, Side::Buy, 5), None);
    done(&exchange, "member revoke 77");
    let said = done(&exchange, "block 77");
    assert!(said.contains("1 orders cancelled") && !said.contains("no member"), "{said}");
}

/// What operators asked for, as the record of the lowest shard has it.
fn asked(exchange: &Exchange) -> Vec<String> {
    let audit: Value = serde_json::from_str(&done(exchange, "audit --json")).unwrap();
    let rows = audit["requests"].as_array().unwrap();
    let lowest = rows.iter().filter(|row| row["shard"] == 0);
    lowest.map(|row| row["asked"].as_str().unwrap().to_owned()).collect()
}

/// Takes everything to a gateway, and of what it says only that the sign-on is done.
fn without_answers(gateway: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(gateway).unwrap());
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || {
                let mut bytes = [0; 4_096];
                for said in 0.. {
                    let Ok(read @ 1..) = server.read(&mut bytes) else { return };
                    // The challenge, and that it is met.
                    if said < 2 {
                        client.write_all(&bytes[..read]).unwrap();
                    }
                }
            });
        }
    });
    address
}

#[test]
fn unanswered_operator_request_is_repeated_and_done_once() {
    let exchange = Exchange::start(&required(2));
    let published = exchange.layout().gateway_address(GatewayId(0));
    let address = std::fs::read_to_string(&published).unwrap();
    let deaf = without_answers(address.trim().parse().unwrap());
    std::fs::write(&published, deaf.to_string()).unwrap();
    done(&exchange, "member add 7");
    done(&exchange, "block 7");
    let added = ["register member 7: added", "register member 7 session 1: new key (ed25519)"];
    assert_eq!(asked(&exchange), [added[0], added[1], "block member 7"]);
    let (ok, said) = admin(&exchange, &format!("unblock 7 --gateway {deaf}"));
    assert!(!ok && said.contains("or later, until another operator request"), "{said}");
}
