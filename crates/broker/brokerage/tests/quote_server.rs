//! The stand-in on a socket: it answers each connection once, and none waits for another.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use pares_broker::{StockQuote, StockSymbol, UserName};
use pares_brokerage::quote_server::QuoteServer;
use pares_front::{StandInSettings, read_reply};

fn start(bad_per_mille: u64) -> QuoteServer {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    QuoteServer::start(any, StandInSettings { seed: 4, is_instant: true, bad_per_mille }).unwrap()
}

/// What the server says to `question`, until it closes.
fn asked(server: &QuoteServer, question: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(question).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn a_quote_has_a_key_that_only_fits_what_was_quoted() {
    let server = start(0);
    let (symbol, user) = (StockSymbol::new("S").unwrap(), UserName::new("jo").unwrap());
    let quote = read_reply(&asked(&server, b"s,jo\n"), symbol, &user).unwrap();
    assert!(server.gave(&quote));
    assert!(!server.gave(&StockQuote { price_cents: quote.price_cents + 1, ..quote.clone() }));
    assert!(!server.gave(&StockQuote { server_ms: quote.server_ms + 1, ..quote.clone() }));
    assert!(!server.gave(&StockQuote { user: "al".into(), ..quote }));
    assert_eq!(server.hits(), 1);
}

#[test]
fn nobody_waits_for_a_caller_that_says_nothing_or_too_much() {
    let server = start(0);
    let mut silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    silent.iter_mut().step_by(2).for_each(|stream| stream.write_all(b"S,j").unwrap());
    for question in [&b"\n"[..], b"S\n", &[b'x'; 300], b"\xff,\xff\n"] {
        let answer = asked(&server, question);
        assert!(answer.starts_with(b"0.00,NA,NA,"), "{}", answer.escape_ascii());
    }
    drop(silent);
    assert_eq!(server.hits(), 4, "who has not asked is not counted");
}
