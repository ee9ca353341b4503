//! Market data by FIX, in bytes made by hand: the gateway sends a book whole, and then what changes, each on what it sent before.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;

use pares_node::SystemConfig;
use pares_types::{GatewayId, Side};

use crate::common::exchange::{Exchange, small, with_feed};
use crate::common::{eventually, limit};
use crate::sign_on::done;
use crate::tap::{dial, fix_of, read_some};

/// Prices and shares by type of entry, as the receiver holds them.
type Book = BTreeMap<(String, String), String>;

fn take(book: &mut Book, message: &str) {
    let (mut action, mut kind, mut price) = (String::from("0"), String::new(), String::new());
    for (tag, value) in message.split('|').filter_map(|field| field.split_once('=')) {
        match tag {
            "279" => value.clone_into(&mut action),
            "269" => value.clone_into(&mut kind),
            "270" if action == "2" => {
                assert!(book.remove(&(kind.clone(), value.into())).is_some(), "{message}")
            }
            "270" => value.clone_into(&mut price),
            "271" => drop(book.insert((kind.clone(), price.clone()), value.into())),
            _ => {}
        }
    }
}

pub(crate) struct Engine {
    stream: TcpStream,
    heard: Vec<u8>,
    number: u32,
    sender: &'static str,
}

impl Engine {
    /// One that has logged on as that session.
    pub(crate) fn start(exchange: &Exchange, sender: &'static str) -> Self {
        Self::at(GatewayId(0), exchange, sender)
    }

    fn at(gateway: GatewayId, exchange: &Exchange, sender: &'static str) -> Self {
        let stream = dial(&exchange.layout().fix_address(gateway));
        let mut engine = Self { stream, heard: Vec::new(), number: 0, sender };
        engine.say("A", "98=0|108=30|141=Y|");
        engine.hear("A");
        engine
    }

    pub(crate) fn say(&mut self, kind: &str, fields: &str) {
        self.number += 1;
        self.stream.write_all(&fix_of(self.sender, kind, self.number, fields)).unwrap();
    }

    /// The next message.
    fn next(&mut self) -> String {
        let mut buffer = [0; 4_096];
        loop {
            let end = self.heard.windows(4).position(|window| window == b"\x0110=").map(|at| at + 8);
            if let Some(end) = end.filter(|end| *end <= self.heard.len()) {
                let message: Vec<u8> = self.heard.drain(..end).collect();
                return String::from_utf8(message).unwrap().replace('\x01', "|");
            }
            let read = read_some(&mut self.stream, &mut buffer);
            assert!(read > 0, "the end: {}", self.heard.escape_ascii());
            self.heard.extend_from_slice(&buffer[..read]);
        }
    }

    /// The next message of that type.
    pub(crate) fn hear(&mut self, kind: &str) -> String {
        std::iter::repeat_with(|| self.next())
            .find(|message| message.contains(&format!("|35={kind}|")))
            .unwrap()
    }

    /// Asks for the last trade until it receives a whole book.
    fn last_trade(&mut self) -> String {
        loop {
            self.say("V", "262=a|263=0|264=1|267=1|269=2|146=1|55=ALFA|");
            let told = self.next();
            if told.contains("|35=W|") {
                return told;
            }
            assert!(told.contains("|262=a|281=2|"), "market data are not at hand yet: {told}");
        }
    }

    /// Takes what comes until the book is that one.
    fn until(&mut self, book: &mut Book, expected: &[(&str, &str, &str)]) {
        let held = |&(kind, price, size): &(&str, &str, &str)| ((kind.into(), price.into()), size.into());
        let expected: Book = expected.iter().map(held).collect();
        while *book != expected {
            let told = self.hear("X");
            assert!(told.contains("|262=a|"), "{told}");
            // A trade is news each time.
            book.retain(|(kind, _), _| kind != "2");
            take(book, &told);
        }
    }
}

#[test]
fn a_book_is_told_by_fix_and_then_what_changes_of_it() {
    let config = with_feed(small(1));
    let exchange = Exchange::start(&SystemConfig { fix: config.gateways.clone(), ..config });
    let mut trader = exchange.client(0, 7);
    let mut names = 1..;
    let mut order = |side, shares, price| {
        trader.submit_and_wait(&limit(names.next().unwrap(), 1, side, shares, price)).unwrap();
    };
    order(Side::Buy, 10, 50_000);
    let mut engine = Engine::start(&exchange, "M9");
    let all = "264=0|265=1|267=3|269=0|269=1|269=2|146=1|55=ALFA|";
    engine.say("V", &format!("262=a|263=1|{all}"));
    let whole = engine.hear("W");
    assert!(whole.contains("|262=a|55=ALFA|268="), "{whole}");
    let mut book = Book::new();
    take(&mut book, &whole);
    engine.until(&mut book, &[("0", "5", "10")]);
    order(Side::Buy, 20, 45_000);
    order(Side::Sell, 30, 60_000);
    engine.until(&mut book, &[("0", "5", "10"), ("0", "4.5", "20"), ("1", "6", "30")]);
    order(Side::Sell, 4, 50_000);
    engine.until(&mut book, &[("0", "5", "6"), ("0", "4.5", "20"), ("1", "6", "30"), ("2", "5", "4")]);
    engine.say("V", &format!("262=b|263=0|{}", all.replace("ALFA", "NONE")));
    let refused = engine.hear("Y");
    assert!(refused.contains("|262=b|281=0|"), "{refused}");
    engine.say("V", &format!("262=a|263=2|{all}"));
    engine.say("1", "112=END|");
    engine.hear("0");
    order(Side::Buy, 1, 10_000);
    engine.say("V", &format!("262=c|263=0|{all}"));
    let next = engine.next();
    assert!(
        next.contains("|35=W|") && next.contains("|262=c|"),
        "nobody is told of changes any more: {next}"
    );
}

#[test]
fn first_full_book_has_last_trade_from_before() {
    const TRADE: &str = "|268=1|269=2|270=5|271=10|";
    let mut config = with_feed(small(2));
    // One replayer tells both gateways: what one of them has been told, the other one can be.
    config.feed.as_mut().unwrap().replayers.truncate(1);
    let exchange = Exchange::start(&SystemConfig { fix: config.gateways.clone(), ..config });
    done(&exchange, "day begin 2026-11-23");
    let mut trader = exchange.client(0, 7);
    for (name, side) in [(1, Side::Buy), (2, Side::Sell)] {
        trader.submit_and_wait(&limit(name, 1, side, 10, 50_000)).unwrap();
    }
    let mut early = Engine::at(GatewayId(1), &exchange, "M9");
    eventually("the trade is told", || early.last_trade().contains(TRADE));
    // Nobody has asked this gateway, so it has followed nothing.
    let first = Engine::at(GatewayId(0), &exchange, "M8").last_trade();
    assert!(first.contains(TRADE), "{first}");
}
