//! The demonstration as a user runs it: the built program, real processes, real kills.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The phases of the day, in order.
const COURSE: [&str; 11] = [
    "opening_call",
    "continuous",
    "volatility_call",
    "halted",
    "volatility_call",
    "continuous",
    "closing_call",
    "post_close",
    "closed",
    "opening_call",
    "continuous",
];

/// Runs a demonstration with these arguments and gives its verdict.
fn run(args: &[&str]) -> serde_json::Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_pares-lab")).args(["demo", "--json"]).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else")
}

/// Runs a short demonstration in `dir` and gives its verdict.
fn demo(dir: &Path) -> serde_json::Value {
    let dir = dir.to_str().unwrap();
    run(&["--seconds", "4", "--rate", "500", "--kill-every", "1", "--dir", dir])
}

/// Command lines of processes that were started with `dir` as an argument.
fn processes_of(dir: &Path) -> Vec<String> {
    let dir = dir.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(dir))
        .collect()
}

/// Twice in the same directory: the second finds a system that lasts.
#[test]
#[ignore = "all: a demonstration, of minutes; the drills and the simulator prove what it shows"]
fn venues_are_killed_and_nothing_is_lost_or_answered_twice() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("system");
    let mut recorded = 0;
    for _ in 0..2 {
        let verdict = demo(&dir);
        let count = |name: &str| verdict[name].as_u64().unwrap_or_else(|| panic!("no {name} in {verdict}"));
        assert!(count("kills") >= 1, "{verdict}");
        assert_eq!((count("lost"), count("duplicated"), count("differing")), (0, 0, 0), "{verdict}");
        recorded += count("completed");
        assert_eq!(count("recorded"), recorded, "{verdict}");
        assert_eq!(processes_of(&dir), Vec::<String>::new());
    }
}

#[test]
#[ignore = "all: a demonstration, of minutes; the drills and the simulator prove what it shows"]
fn a_whole_day_is_gone_through_while_venues_are_killed() {
    let verdict = run(&["--day", "--day-seconds", "24"]);
    let day = &verdict["day"];
    let names = |list: &str, field: &str| -> Vec<String> {
        let list = day[list].as_array().unwrap_or_else(|| panic!("no {list} in {verdict}"));
        list.iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
    };
    let count = |name: &str| day[name].as_u64().unwrap_or_else(|| panic!("no {name} in {verdict}"));
    let phases = names("phases", "phase");
    let mut entered = phases.iter();
    for wanted in COURSE {
        assert!(entered.any(|phase| phase == wanted), "{wanted} is missing, or out of order, in {phases:?}");
    }
    let auctions = names("auctions", "of");
    for call in ["opening_call", "closing_call"] {
        assert!(auctions.iter().any(|of| of == call), "no auction after {call}: {auctions:?}");
    }
    assert_eq!(day["in_order"], true, "{verdict}");
    assert!(count("volatility_calls") >= 2 && count("halts") >= 1, "{verdict}");
    assert!(
        count("extensions") >= 1 && day["trades_per_phase"]["halted"].as_u64().unwrap_or(0) == 0,
        "{verdict}"
    );
    assert!(count("orders_expired") > 0 && count("orders_carried_over") > 0, "{verdict}");
    assert!(verdict["kills"].as_u64().unwrap() >= 1, "{verdict}");
    for promise in ["lost", "duplicated", "differing"] {
        assert_eq!(verdict[promise], 0, "{promise}: {verdict}");
    }
}

#[test]
#[ignore = "all: a demonstration, of minutes; the drills and the simulator prove what it shows"]
fn without_a_timetable_the_exchange_leads_through_the_day() {
    let verdict = run(&["--day", "--day-seconds", "24", "--no-timetable"]);
    assert_eq!(verdict["day"]["by_timetable"], false, "{verdict}");
    assert_eq!(verdict["day"]["in_order"], true, "{verdict}");
}

#[test]
#[ignore = "all: a demonstration, of minutes; the drills and the simulator prove what it shows"]
fn a_broker_s_orders_and_the_exchange_s_agree_in_the_end() {
    let verdict = run(&["--broker", "--seconds", "12", "--kill-every", "2"]);
    let count = |name: &str| verdict[name].as_u64().unwrap_or_else(|| panic!("no {name} in {verdict}"));
    assert!(count("orders") > 0 && count("trades") > 0 && count("terms") > 0, "{verdict}");
    assert_eq!(count("open"), count("open_there"), "{verdict}");
    for promise in ["holds_off", "trades_off", "unknown", "held_after_cents", "money_off_cents"] {
        assert_eq!(count(promise), 0, "{promise}: {verdict}");
    }
    assert_eq!(verdict["log_verified"], true, "{verdict}");
}

/// What the pages at `address` answer, if they do: a status and JSON.
fn ask(address: &str, method: &str, path: &str, token: &str, body: &Value) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or_default()))
}

/// The answer, once there is one that is no promise of a later one. None comes when the demonstration is over.
fn answer(address: &str, method: &str, path: &str, token: &str, body: &Value) -> Value {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        match ask(address, method, path, token, body) {
            // A person is made once, and the first answer may have been lost.
            Some((200..=204 | 409, answer)) => return answer,
            // This asks again at once, and the pages may find it too eager.
            Some((429 | 503, _)) | None => std::thread::sleep(Duration::from_millis(50)),
            Some(other) => panic!("{method} {path}: {other:?}"),
        }
    }
    panic!("{method} {path}: no answer")
}

#[test]
#[ignore = "all: a demonstration, of minutes; the drills and the simulator prove what it shows"]
fn manual_order_among_broker_customers_reconciles() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pares-lab"))
        .args(["demo", "--broker", "--plain", "--seconds", "20", "--kill-every", "4"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let at = said.find_map(|line| Some(line.split_once("pages at http://")?.1.split(' ').next()?.to_owned()));
    let at = at.expect("the address of the pages");
    let ask = |method: &str, path: &str, token: &str, body: Value| answer(&at, method, path, token, &body);
    let who = json!({"name": "hand", "password": "by my own hand"});
    ask("POST", "/people", "", who.clone());
    let token = ask("POST", "/session", "", who)["token"].as_str().unwrap().to_owned();
    ask("POST", "/commands/add", &token, json!({"amount": "10000.00"}));
    let wanted = json!({"symbol": "ALF", "side": "buy", "shares": 10, "limit": "20.00"});
    let number = ask("POST", "/orders", &token, wanted)["number"].as_str().unwrap().to_owned();
    let order = loop {
        let order = ask("GET", &format!("/orders/{number}"), &token, Value::Null);
        if !["waiting", "routed"].contains(&order["state"].as_str().unwrap()) {
            break order;
        }
    };
    let rest: Vec<String> = said.collect();
    assert!(child.wait().unwrap().success(), "{order} {rest:?}");
    assert_ne!(order["state"], "refused", "{order}");
    let is_whole = |line: &String| line.split_whitespace().eq(["money", "off", "cents", "0"]);
    assert!(rest.iter().any(is_whole), "{rest:?}");
}
