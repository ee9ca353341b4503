//! Web traders: the same stream and the same books, as JSON.

use std::net::TcpStream;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use pares_desk::view::{BookView, ViewLevel};
use pares_member::MemberConfig;
use pares_member::sources::{MarketNews, MarketState};
use pares_types::{Price, Quantity, ShardId};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use crate::rig::{PATIENCE, Rig};

struct WebTrader(WebSocket<MaybeTlsStream<TcpStream>>);

impl WebTrader {
    fn sign_on(rig: &Rig, server: usize, trader: u32, books: bool) -> Self {
        let address = rig.addresses()[server];
        let (socket, _) = tungstenite::connect(format!("ws://{address}/")).unwrap();
        let mut trader_end = Self(socket);
        trader_end.say(&json!({ "type": "sign_on", "trader": trader, "next": 0, "books": books }));
        trader_end
    }

    fn say(&mut self, value: &Value) {
        self.0.send(Message::text(value.to_string())).unwrap();
    }

    /// The next of that type.
    fn next(&mut self, wanted: &str) -> Value {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "no {wanted} came");
            if let Message::Text(text) = self.0.read().unwrap() {
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["type"] == wanted {
                    return value;
                }
            }
        }
    }
}

#[test]
fn a_web_trader_and_a_program_read_one_stream() {
    let rig = Rig::new(MemberConfig::local(2));
    let mut program = rig.trader(1, 0);
    program.say("from a program");
    program.settle();
    let mut web = WebTrader::sign_on(&rig, 1, 2, false);
    assert_eq!(web.next("signed_on")["trader"], 2);
    assert_eq!(web.next("item")["text"], "from a program");
    web.say(&json!({ "type": "submit", "number": 1, "kind": "message", "to": 1, "text": "from the web" }));
    let item = web.next("item");
    assert_eq!((&item["position"], &item["trader"]), (&json!(1), &json!(2)));
    web.say(&json!({ "type": "submit", "number": 1, "kind": "message", "text": "again" }));
    assert_eq!(web.next("placed")["position"], 1);
    web.say(&json!({ "type": "submit", "number": 0, "kind": "message", "text": "?" }));
    assert_eq!(web.next("refused")["why"], "number");
    web.say(&json!({ "type": "nonsense" }));
    assert_eq!(web.next("error")["type"], "error");
    assert!(web.next("alive")["told"].as_u64() >= Some(2));
    program.until(|program| program.told.len() >= 2);
}

fn view(bid: i64) -> BookView {
    let level = |price| ViewLevel { price: Price(price), quantity: Quantity(5), orders: 1 };
    let bids = vec![level(bid), level(90_000)];
    BookView { symbol: "ALFA".into(), state: b'T', bids, ..BookView::default() }
}

fn show(market: &SyncSender<MarketNews>, bid: i64) {
    market.send(MarketNews::Book { shard: ShardId(0), locate: 1, view: view(bid) }).unwrap();
}

#[test]
fn web_trader_gets_snapshot_then_checked_changes() {
    let (rig, market) = Rig::with_market(MemberConfig::local(1));
    market.send(MarketNews::State { shard: ShardId(0), state: MarketState::Current }).unwrap();
    show(&market, 100_000);
    let mut web = WebTrader::sign_on(&rig, 0, 2, true);
    let book = web.next("book");
    assert_eq!((&book["snapshot"], &book["sequence"]), (&json!(true), &json!(1)));
    assert_eq!(book["bids"], json!([["10.0000", 5, 1], ["9.0000", 5, 1]]));
    assert_eq!(web.next("feed")["state"], "current", "once it has been shown what is");
    show(&market, 110_000);
    let change = web.next("book");
    assert_eq!((&change["snapshot"], &change["sequence"]), (&json!(false), &json!(2)));
    assert_eq!(change["bids"], json!([["11.0000", 5, 1], ["10.0000", 0, 0]]));
    assert_eq!(change["checksum"], view(110_000).checksum());
}

#[test]
fn only_configured_page_origins_are_admitted() {
    let config = MemberConfig { web_origins: vec!["http://desk".into()], ..MemberConfig::local(1) };
    let rig = Rig::new(config);
    let connect = |origin: &str| {
        let mut request = format!("ws://{}/", rig.addresses()[0]).into_client_request().unwrap();
        request.headers_mut().insert("Origin", origin.parse().unwrap());
        tungstenite::connect(request)
    };
    assert!(connect("http://elsewhere").is_err());
    assert!(connect("http://desk").is_ok());
}
