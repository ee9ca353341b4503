//! What the market traded: asked for, and as it happens.

use serde_json::{Value, json};
use tungstenite::Message;

use super::socket::{Socket, next, open};
use super::support::{Asker, Web};
use crate::common::eventually;
use crate::common::exchange::{Exchange, small, with_feed};
use crate::sign_on::done;

/// An exchange with a feed, in a business day, and a server that has received it; a member's asker, and the first instrument's path.
fn received() -> (Exchange, Web, Asker, String) {
    let exchange = Exchange::start(&with_feed(small(1)));
    done(&exchange, "day begin 2026-11-23");
    let web = Web::start(exchange.layout().root());
    let mut asker = Asker::open(&web.address, 7);
    let path = format!("/v1/instruments/{}", asker.symbol());
    eventually("the market is received", || asker.ask("GET", &format!("{path}/ticker"), "").status == 200);
    (exchange, web, asker, path)
}

/// Trades `quantities` at `prices`, one after the other; names from `first` on.
fn trade(asker: &mut Asker, first: u64, trades: &[(u64, &str)]) {
    for (at, (quantity, price)) in (0..).zip(trades) {
        assert_eq!(asker.limit(first + 2 * at, "sell", *quantity, price).status, 201);
        assert_eq!(asker.limit(first + 2 * at + 1, "buy", *quantity, price).status, 201);
    }
}

fn trades_of(asker: &mut Asker, path: &str) -> Vec<Value> {
    asker.ask("GET", &format!("{path}/trades"), "").json()["trades"].as_array().unwrap().clone()
}

fn subscribe(socket: &mut Socket, channel: &str, path: &str, more: &Value) {
    let symbol = path.rsplit('/').next().unwrap();
    let mut wish = json!({ "op": "subscribe", "channel": channel, "symbol": symbol });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    socket.send(Message::text(wish.to_string())).unwrap();
}

#[test]
fn trades_candles_and_the_ticker_say_what_was_traded() {
    let (_exchange, _web, mut asker, path) = received();
    trade(&mut asker, 1, &[(10, "5"), (20, "7"), (30, "4")]);
    assert_eq!(asker.limit(90, "buy", 40, "3.5").status, 201);
    eventually("all of it is received", || {
        let ticker = asker.ask("GET", &format!("{path}/ticker"), "").json();
        ticker["bid"]["price"] == "3.5" && ticker["last"] == "4"
    });
    let trades = trades_of(&mut asker, &path);
    let told: Vec<_> = trades.iter().map(|one| (&one["price"], &one["quantity"], &one["taker"])).collect();
    let buy = &json!("buy");
    let expected =
        [("4", "30"), ("7", "20"), ("5", "10")].map(|(price, shares)| (json!(price), json!(shares)));
    assert_eq!(told, expected.iter().map(|(price, shares)| (price, shares, buy)).collect::<Vec<_>>());
    assert_eq!(trades[0]["previous"], trades[1]["number"]);
    // A member finds its own fills in it.
    let fill = &asker.ask("GET", "/v1/fills", "").json()["fills"][0];
    let number = |fill: &Value| {
        fill["position"].as_str().unwrap().parse::<u64>().unwrap() * 65_536 + fill["index"].as_u64().unwrap()
    };
    assert_eq!(trades[2]["number"], json!(number(fill).to_string()));

    let ticker = asker.ask("GET", &format!("{path}/ticker"), "").json();
    let day = &ticker["traded"];
    let figures =
        ["open", "high", "low", "close", "volume", "trades"].map(|name| day[name].as_str().unwrap());
    assert_eq!(figures, ["5", "7", "4", "4", "60", "3"]);
    assert_eq!((&ticker["phase"], &ticker["bid"]["quantity"]), (&json!("continuous"), &json!("40")));
    assert_eq!(ticker["offer"], Value::Null);
    let candles = asker.ask("GET", &format!("{path}/candles?interval=1d"), "").json();
    let volumes = candles["candles"].as_array().unwrap().iter().map(|one| one["volume"].as_str().unwrap());
    assert_eq!(volumes.map(|text| text.parse::<u64>().unwrap()).sum::<u64>(), 60);
    for wrong in ["candles?interval=2m", "candles?limit=0", "trades?limit=1001"] {
        assert_eq!(asker.ask("GET", &format!("{path}/{wrong}"), "").reason(), "bad-form", "{wrong}");
    }
}

#[test]
fn a_socket_is_told_each_trade_once_from_wherever_it_stood() {
    let (_exchange, web, mut asker, path) = received();
    let mut socket = open(&web, &asker);
    subscribe(&mut socket, "trades", &path, &json!({}));
    assert_eq!(next(&mut socket)["channel"], "trades_live");
    trade(&mut asker, 1, &[(10, "5"), (20, "7"), (30, "4")]);
    let told: Vec<Value> = (0..3).map(|_| next(&mut socket)).collect();
    let shares: Vec<_> = told.iter().map(|one| one["quantity"].as_str().unwrap()).collect();
    assert_eq!(shares, ["10", "20", "30"]);
    for pair in told.windows(2) {
        assert_eq!(pair[1]["previous"], pair[0]["number"]);
    }
    let mut late = open(&web, &asker);
    subscribe(&mut late, "trades", &path, &json!({ "after": told[0]["number"] }));
    let live = next(&mut late);
    assert_eq!((&live["channel"], &live["last"]), (&json!("trades_live"), &told[0]["number"]));
    assert_eq!([next(&mut late), next(&mut late)], told[1..]);
    let mut lost = open(&web, &asker);
    subscribe(&mut lost, "trades", &path, &json!({ "after": "1" }));
    assert_eq!(next(&mut lost)["reason"], "not_kept");
}

#[test]
fn a_socket_is_told_tickers_and_candles_as_they_are_now() {
    let (_exchange, web, mut asker, path) = received();
    let (mut ticker, mut candles) = (open(&web, &asker), open(&web, &asker));
    subscribe(&mut ticker, "ticker", &path, &json!({}));
    assert_eq!(next(&mut ticker)["last"], Value::Null);
    subscribe(&mut candles, "candles", &path, &json!({ "interval": "1d" }));
    trade(&mut asker, 1, &[(10, "5"), (20, "7")]);
    // However many are left out: what comes last is how it is.
    eventually("both trades are in it", || next(&mut ticker)["traded"]["volume"] == "30");
    eventually("the last price is in it", || next(&mut candles)["candle"]["close"] == "7");
    subscribe(&mut candles, "ticker", "none", &json!({}));
    assert_eq!(next(&mut candles)["channel"], "ticker_not");
}

#[test]
fn late_server_has_business_day_from_first_trade() {
    let (exchange, web, mut asker, path) = received();
    trade(&mut asker, 1, &[(10, "5"), (20, "7")]);
    eventually("both trades are received", || {
        asker.ask("GET", &format!("{path}/ticker"), "").json()["traded"]["volume"] == "30"
    });
    let before = asker.ask("GET", &format!("{path}/trades"), "").body;
    drop(web);
    let web = Web::start(exchange.layout().root());
    let mut asker = Asker::open(&web.address, 7);
    eventually("they are received again", || asker.ask("GET", &format!("{path}/trades"), "").body == before);
    let ticker = asker.ask("GET", &format!("{path}/ticker"), "").json();
    assert_eq!((&ticker["is_whole_day"], &ticker["day"]), (&json!(true), &json!("2026-11-23")));
}
