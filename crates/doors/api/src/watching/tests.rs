//! What a socket receives of the market, and how often it is written.

use pares_port::Levels;
use pares_resources::tape::{KEPT_MAX, MarketTrade, TapeNews};
use pares_types::{BusinessDay, Phase, Price, Quantity, Timestamp};
use serde_json::Value;

use super::*;
use crate::books::BookTold;
use crate::market::MarketTold;

/// Trades of these numbers, each at its number, a minute after the one before.
fn tell(market: &ReceivedMarket, numbers: std::ops::Range<u64>) {
    let trade = |number: u64| {
        let (at, price) = (Timestamp(number * 60_000_000_000), Price(number.cast_signed() * 10_000));
        TapeNews::Trade(MarketTrade { number, at, price, quantity: Quantity(1), taker: None })
    };
    let (book, phase) = (BookTold::default(), Some(Phase::Continuous));
    let news = numbers.map(trade).collect();
    market.tell("ABC", &MarketTold { instrument: 1, book, phase, day: BusinessDay(1), is_whole: true, news });
}

fn watching(market: &ReceivedMarket, name: &str) -> (Watching, Vec<Value>) {
    let mut watching = Watching::default();
    let channel = MarketChannel::of(name, None).unwrap();
    let texts = watching.begin(Some(market), &Watched { channel, symbol: "ABC".into() }, None).unwrap();
    (watching, values(&texts))
}

fn values(texts: &[Utf8Bytes]) -> Vec<Value> {
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn told(watching: &mut Watching, market: &ReceivedMarket, field: &str) -> Vec<String> {
    let texts = watching.look(market).unwrap();
    let told = values(&texts);
    told.iter().map(|one| one.pointer(field).unwrap().as_str().unwrap().to_owned()).collect()
}

#[test]
fn slow_trade_reader_gets_each_once_until_dropped() {
    let market = ReceivedMarket::default();
    tell(&market, 1..3);
    let (mut watching, first) = watching(&market, "trades");
    assert_eq!(first[0]["last"], "2");
    let few = TRADES_AT_ONCE as u64;
    tell(&market, 3..13 + few);
    let numbers = |from, to| (from..to).map(|number: u64| number.to_string()).collect::<Vec<_>>();
    assert_eq!(told(&mut watching, &market, "/number"), numbers(3, 3 + few), "a turn's");
    assert_eq!(told(&mut watching, &market, "/number"), numbers(3 + few, 13 + few));
    let (next, most) = (13 + few, KEPT_MAX as u64);
    tell(&market, next..next + most);
    tell(&market, next + most..next + most + 1);
    assert_eq!(watching.look(&market), Err(TooSlow));
}

#[test]
fn a_symbol_is_that_of_its_newest_instrument() {
    let market = ReceivedMarket::default();
    tell(&market, 5..6);
    let trades = |instrument, numbers: std::ops::Range<u64>| {
        let at = |number: u64| (Timestamp(number), Price(10_000), Quantity(1));
        let trade = |number| {
            let (at, price, quantity) = at(number);
            TapeNews::Trade(MarketTrade { number, at, price, quantity, taker: None })
        };
        let (book, news) = (BookTold::default(), numbers.map(trade).collect());
        market.tell(
            "ABC",
            &MarketTold { instrument, book, phase: None, day: BusinessDay(1), is_whole: true, news },
        );
    };
    let (mut watching, _) = watching(&market, "trades");
    trades(9, 2..3);
    trades(1, 7..8);
    assert_eq!(told(&mut watching, &market, "/type"), ["gap", "trade"], "from its beginning");
    let last = market.of("ABC", |shelf| shelf.tape.last().map(|trade| trade.number));
    assert_eq!(last, Some(Some(2)), "of instrument 9, whose shard has lower numbers");
}

#[test]
fn slow_ticker_reader_gets_last_candles_all_changes() {
    let market = ReceivedMarket::default();
    tell(&market, 1..2);
    let (mut ticker, first) = watching(&market, "ticker");
    assert_eq!(first[0]["last"], "1");
    let (mut candles, first) = watching(&market, "candles");
    assert_eq!(first[0]["candle"]["close"], "1");
    tell(&market, 2..4);
    tell(&market, 4..5);
    assert_eq!(told(&mut ticker, &market, "/last"), ["4"]);
    assert_eq!(told(&mut candles, &market, "/candle/close"), ["2", "3", "4"]);
    assert_eq!(ticker.look(&market).unwrap().len() + candles.look(&market).unwrap().len(), 0);
}

#[test]
fn updates_are_written_once_for_all_watchers() {
    let market = ReceivedMarket::default();
    let book = |price: i64| {
        let levels = Levels { bids: vec![(Price(price), Quantity(1))], offers: Vec::new() };
        let book = BookTold { number: 1, is_current: true, levels };
        let (phase, news) = (Some(Phase::Continuous), Vec::new());
        let told = MarketTold { instrument: 1, book, phase, day: BusinessDay(1), is_whole: true, news };
        market.tell("ABC", &told);
    };
    let steps = || market.of("ABC", |shelf| shelf.book.steps()).unwrap();
    book(1);
    let (mut ticker, mut other) = (watching(&market, "ticker").0, watching(&market, "ticker").0);
    book(2);
    assert_eq!(steps(), 0, "of books nobody wants to hear");
    let [text, same] = [&mut ticker, &mut other].map(|one| one.look(&market).unwrap().remove(0));
    assert_eq!(text.as_ptr(), same.as_ptr());
    let (mut looking, _) = watching(&market, "book");
    (3..5).for_each(book);
    assert_eq!((steps(), looking.look(&market).unwrap().len()), (2, 2));
    drop(looking);
    book(5);
    assert_eq!(steps(), 0, "nobody looks any more");
}

#[test]
fn what_is_not_there_is_said() {
    let market = ReceivedMarket::default();
    let wanted = Watched { channel: MarketChannel::of("candles", None).unwrap(), symbol: "ABC".into() };
    assert_eq!(
        Watching::default().begin(Some(&market), &wanted, None),
        None,
        "whether it is listed is asked"
    );
    let texts = Watching::default().begin(None, &wanted, None).unwrap();
    let first = values(&texts);
    assert_eq!(
        (&first[0]["channel"], &first[0]["reason"]),
        (&"candles_not".into(), &"no_market_data".into())
    );
    assert!(MarketChannel::of("orders", None).is_err() && MarketChannel::of("book", Some("1m")).is_err());
}
