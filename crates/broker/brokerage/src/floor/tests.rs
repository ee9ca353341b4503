//! A front over a quote server that does what it likes: each fault is one question, and a refusal for all who wait.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pares_broker::Refusal;

use super::*;

/// A server that answers every question by `says`, and counts them.
fn server(says: impl Fn(&mut TcpStream, &str) + Send + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, hits) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&hits);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut line) = (stream.unwrap(), String::new());
            // A connection on which nothing was asked costs nothing.
            if BufReader::new(&stream).read_line(&mut line).unwrap_or_default() > 0 {
                counted.fetch_add(1, Ordering::Relaxed);
                says(&mut stream, line.trim());
            }
        }
    });
    (address, hits)
}

/// What three commands that wait for the same quote come to, and how often it was asked for.
fn replies(says: impl Fn(&mut TcpStream, &str) + Send + 'static) -> (Vec<BrokerReply>, usize) {
    let (address, hits) = server(says);
    let dir = tempfile::tempdir().unwrap();
    let mut floor = Floor::alone(dir.path(), Promise::Os, None, address, None).unwrap();
    for line in ["[1] ADD,jo,1000.00", "[2] BUY,jo,S,100.00", "[3] QUOTE,al,S", "[4] QUOTE,bo,S"] {
        floor.arrives(WorkloadLine::parse(line.as_bytes()).unwrap()).unwrap();
    }
    let mut told = Vec::new();
    while told.len() < 4 {
        told.extend(floor.turn().unwrap());
    }
    told.sort_by_key(|told| told.arrival);
    (told.into_iter().skip(1).filter_map(|told| told.reply).collect(), hits.load(Ordering::Relaxed))
}

fn is_refused_by_one_hit(what: &str, says: impl Fn(&mut TcpStream, &str) + Send + 'static) {
    let none = BrokerReply::Refused { refusal: Refusal::NoQuote };
    assert_eq!(replies(says), (vec![none.clone(), none.clone(), none], 1), "{what}");
}

const HOUR_MS: u64 = 3_600_000;

/// What is said to a question.
type Answer = fn(&str) -> String;

#[test]
fn invalid_quote_answers_cost_one_hit_and_a_refusal() {
    is_refused_by_one_hit("an end without a word", |_, _| ());
    let answers: [(&str, Answer); 9] = [
        ("garbage", |_| "<html>502 Bad Gateway</html>\n".into()),
        ("control characters", |_| "\0\u{1b}[2J\u{7f}\n".into()),
        ("no end", |_| "1.00,S,jo,1,".repeat(1_000)),
        ("no price", |asked| format!("0.00,{asked},{},key\n", now_ms())),
        ("too much", |asked| format!("1{:030},{asked},{},key\n", 0, now_ms())),
        ("another stock", |_| format!("1.00,T,jo,{},key\n", now_ms())),
        ("another user", |_| format!("1.00,S,NA,{},key\n", now_ms())),
        ("a time to come", |asked| format!("1.00,{asked},{},key\n", now_ms() + HOUR_MS)),
        ("a time long gone", |asked| format!("1.00,{asked},{},key\n", now_ms() - HOUR_MS)),
    ];
    for (what, answer) in answers {
        // Who has heard enough closes before it has all.
        is_refused_by_one_hit(what, move |stream, asked| drop(stream.write_all(answer(asked).as_bytes())));
    }
}

#[test]
fn server_stuck_mid_quote_is_given_up_after_one_hit() {
    is_refused_by_one_hit("half a quote", |stream, _| {
        stream.write_all(b"1.00,S,j").unwrap();
        // It stays open, until the front has had enough.
        let _ = std::io::Read::read(stream, &mut [0]);
    });
}

#[test]
fn a_server_that_is_slow_and_says_a_byte_at_a_time_is_heard_out() {
    let (replies, hits) = replies(|stream, asked| {
        for byte in format!("10.00,{asked},{},key\n", now_ms()).bytes() {
            stream.write_all(&[byte]).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(hits, 1);
    assert!(matches!(replies[0], BrokerReply::Held { shares: 10, price_cents: 1_000, .. }), "{replies:?}");
    assert!(replies[1..].iter().all(|reply| matches!(reply, BrokerReply::Price { price_cents: 1_000, .. })));
}

#[test]
fn command_refused_for_wrong_clock_still_asks_for_stamp() {
    let (address, hits) = server(|stream, asked| {
        let back_ms = if asked.starts_with("T,") { 0 } else { HOUR_MS };
        drop(writeln!(stream, "1.00,{asked},{},key", now_ms() - back_ms));
    });
    let dir = tempfile::tempdir().unwrap();
    let mut floor = Floor::alone(dir.path(), Promise::Os, None, address, None).unwrap();
    for line in ["[1] QUOTE,al,T", "[2] QUOTE,al,S", "[3] QUOTE,al,U", "[4] QUOTE,al,V"] {
        floor.arrives(WorkloadLine::parse(line.as_bytes()).unwrap()).unwrap();
        while floor.turn().unwrap().is_empty() {}
    }
    let line = WorkloadLine::parse(b"[5] ADD,jo,1.00").unwrap();
    let refused = floor.arrives_as(0, line, CommandOrder::Arrival { name: None });
    assert_eq!(refused, Err(NotTaken::Clock));
    let deadline = Instant::now() + std::time::Duration::from_secs(60);
    while hits.load(Ordering::Relaxed) < 5 {
        assert!(Instant::now() < deadline, "the server is asked for a stamp");
        floor.turn().unwrap();
    }
}
