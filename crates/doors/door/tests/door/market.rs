//! Market data: requests, snapshots, and changes, each on the state that was sent before.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use pares_fix::dictionary::{FIX42, FIX44, FixDictionary};
use pares_port::{DoorConfig, Levels, MarketBook, MarketSubscription, MarketView, ProtocolDoor};
use pares_types::{InstrumentId, Price, Quantity, Symbol};

use crate::rig::{Rig, config};

/// The market as the tests have it.
#[derive(Default)]
struct Books(RefCell<BTreeMap<String, Arc<MarketBook>>>, Cell<usize>);

impl MarketView for Books {
    fn book(&self, symbol: &str) -> Option<Arc<MarketBook>> {
        self.1.set(self.1.get() + 1);
        self.0.borrow().get(symbol).cloned()
    }

    fn is_whole(&self) -> bool {
        !self.0.borrow().is_empty()
    }
}

type Side<'a> = &'a [(i64, u64)];

impl Books {
    /// The last trade has that number, and as many shares; 0: none.
    fn put(&self, symbol: &str, (bids, offers): (Side<'_>, Side<'_>), trade: u64) {
        let side =
            |side: Side<'_>| side.iter().map(|&(price, of)| (Price(price * 10_000), Quantity(of))).collect();
        let levels = Levels { bids: side(bids), offers: side(offers) };
        let trade = Some(trade).filter(|trade| *trade > 0);
        let last = trade.map(|trade| (Price(95_000), Quantity(trade)));
        let book = MarketBook { is_current: true, levels, last, trade };
        self.0.borrow_mut().insert(symbol.into(), Arc::new(book));
    }
}

fn with_market(dictionary: &'static FixDictionary) -> Rig {
    let mut config = DoorConfig { has_market: true, ..(*config()).clone() };
    config.instruments.push((InstrumentId(18), Symbol::new("TELEPHONES").expect("a symbol")));
    let mut rig = Rig::with(dictionary, Arc::new(config));
    rig.logs_on(None, Some(1));
    rig.sent();
    rig
}

impl Rig {
    fn sees(&mut self, books: &Books) -> Vec<String> {
        let at = self.at;
        self.acts(|door, sink| door.on_market(at, books, sink));
        self.sent()
    }
}

const ALL: &str = "267=3|269=0|269=1|269=2|146=1|55=ACME|";

#[test]
fn a_book_is_told_whole_and_then_what_changed_of_it() {
    for dictionary in [&FIX42, &FIX44] {
        let (mut rig, books) = (with_market(dictionary), Books::default());
        books.put("ACME", (&[(9, 5), (8, 7)], &[(10, 1)]), 0);
        rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
        assert_eq!((rig.sent(), rig.door.market_wish()), (vec![], MarketSubscription::Now));
        assert_eq!(
            rig.sees(&books),
            ["W 262=a 55=ACME 268=3 269=0 270=9 271=5 269=0 270=8 271=7 269=1 270=10 271=1"]
        );
        assert_eq!((rig.sees(&books), rig.door.market_wish()), (vec![], MarketSubscription::Changes));
        books.put("ACME", (&[(9, 4), (7, 1)], &[(10, 1)]), 3);
        assert_eq!(
            rig.sees(&books),
            [
                "X 262=a 268=4 279=2 269=0 55=ACME 270=8 279=1 269=0 55=ACME 270=9 271=4 279=0 269=0 55=ACME 270=7 271=1 \
              279=0 269=2 55=ACME 270=9.5 271=3"
            ]
        );
        rig.says("V", &format!("262=a|263=2|264=0|{ALL}"));
        books.put("ACME", (&[], &[]), 4);
        assert_eq!((rig.sees(&books), rig.door.market_wish()), (vec![], MarketSubscription::Nothing));
    }
}

/// What a subscriber holds by what it received.
#[derive(Debug, Default, PartialEq)]
struct Held(BTreeMap<(String, String), String>);

impl Held {
    fn take(&mut self, message: &str) {
        let mut entry = (String::from("0"), String::new(), String::new());
        let fields = message.split(' ').chain(["269=end"]);
        for (tag, value) in fields.filter_map(|field| field.split_once('=')) {
            match tag {
                "269" | "279" if !entry.2.is_empty() => {
                    let (action, kind, price) = std::mem::take(&mut entry);
                    if action == "2" {
                        assert!(self.0.remove(&(kind, price)).is_some(), "{message}: it was there");
                    }
                }
                _ => {}
            }
            match tag {
                "279" => entry.0 = value.into(),
                "269" => entry.1 = value.into(),
                "270" => entry.2 = value.into(),
                "271" => {
                    let was_there = self.0.insert((entry.1.clone(), entry.2.clone()), value.into()).is_some();
                    assert_eq!(was_there, entry.0 == "1", "{message}: new or changed");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn what_a_slow_reader_missed_is_told_as_one_difference() {
    let books = Books::default();
    books.put("ACME", (&[(9, 5)], &[(10, 1)]), 0);
    let [mut fast, mut slow] = [with_market(&FIX44), with_market(&FIX44)];
    let mut held = [Held::default(), Held::default()];
    for (rig, held) in [&mut fast, &mut slow].into_iter().zip(&mut held) {
        rig.says("V", "262=a|263=1|264=2|265=1|267=2|269=0|269=1|146=1|55=ACME|");
        rig.sees(&books).iter().for_each(|message| held.take(message));
    }
    for step in 1..40 {
        let bids: Vec<(i64, u64)> =
            (0..step % 4).map(|at| (20 - (step * 7 + at) % 5 - at, 1 + step as u64 % 3)).collect();
        let mut bids: Vec<_> = bids.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect();
        bids.reverse();
        books.put("ACME", (&bids, &[(30 + step % 2, 1)]), 0);
        fast.sees(&books).iter().for_each(|message| held[0].take(message));
    }
    let told = slow.sees(&books);
    assert!(told.len() <= 1, "one difference, whatever lies between: {told:?}");
    told.iter().for_each(|message| held[1].take(message));
    assert_eq!(held[0], held[1], "both hold the market's book");
}

#[test]
fn a_question_is_answered_once_or_refused_with_the_reason() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    books.put("ACME", (&[(9, 5), (8, 7)], &[(10, 1)]), 2);
    rig.says("V", "262=a|263=0|264=1|267=2|269=0|269=2|146=1|55=X|48=17|22=8|");
    assert_eq!(rig.sees(&books), ["W 262=a 55=ACME 268=2 269=0 270=9 271=5 269=2 270=9.5 271=2"]);
    assert_eq!(rig.door.market_wish(), MarketSubscription::Nothing);
    let refused = [
        ("262=b|263=0|264=0|267=1|269=0|146=1|55=NONE|", "0"),
        ("262=b|263=0|264=51|267=1|269=0|146=1|55=ACME|", "5"),
        ("262=b|263=1|264=0|267=1|269=0|146=1|55=ACME|", "6"),
        ("262=b|263=0|264=0|266=N|267=1|269=0|146=1|55=ACME|", "7"),
        ("262=b|263=0|264=0|267=1|269=4|146=1|55=ACME|", "8"),
    ];
    for (question, reason) in refused {
        rig.says("V", question);
        let told = rig.sees(&books);
        assert!(told.len() == 1 && told[0].starts_with(&format!("Y 262=b 281={reason} 58=")), "{told:?}");
    }
    let none = "146=0|";
    rig.says("V", &format!("262=b|263=0|264=0|267=1|269=0|{none}"));
    assert!(rig.sent()[0].starts_with("Y 262=b 58="), "no symbol");
    for (id, expected) in [("c", None), ("c", Some("Y 262=c 281=1 ")), ("d", None)] {
        rig.says("V", &format!("262={id}|263=1|264=0|265=1|{ALL}"));
        let told = rig.sees(&books);
        assert!(told[0].starts_with(expected.unwrap_or("W ")), "{told:?}");
    }
    rig.says("V", &format!("262=x|263=2|264=0|{ALL}"));
    assert!(rig.sent()[0].starts_with("Y 262=x 58=no subscription"), "nobody asked for that");
    let many: String = (0..255).map(|at| format!("55=S{at}|")).collect();
    rig.says("V", &format!("262=e|263=0|264=0|267=1|269=0|146=255|{many}"));
    assert!(rig.sent()[0].starts_with("Y 262=e 281=2 "), "too many");
}

#[test]
fn request_without_market_data_is_refused_or_times_out() {
    let mut rig = Rig::logged_on();
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
    assert_eq!(rig.sent(), ["Y 262=a 281=0 58=the exchange publishes no market data"]);
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
    assert_eq!(rig.sees(&books), Vec::<String>::new());
    rig.waits(4_000_000_000);
    assert_eq!(rig.sent(), Vec::<String>::new());
    rig.waits(1_000_000_000);
    assert_eq!(rig.sent(), ["Y 262=a 281=2 58=market data are not available now: try again"]);
    books.put("OTHER", (&[], &[]), 0);
    rig.says("V", "262=b|263=0|264=0|267=1|269=0|146=1|55=ACME|");
    assert_eq!(rig.sees(&books), ["W 262=b 55=ACME 268=0"], "it is there, and nothing was ever told of it");
    assert_eq!(rig.door.market_wish(), MarketSubscription::Nothing);
}

#[test]
fn a_book_that_is_not_current_shows_nothing_until_it_is() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    books.put("ACME", (&[(9, 5)], &[]), 0);
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
    rig.says("V", &format!("262=b|263=1|264=0|265=0|{ALL}"));
    assert_eq!(rig.sees(&books).len(), 2);
    let missing = MarketBook { is_current: false, ..(*books.book("ACME").unwrap()).clone() };
    books.0.borrow_mut().insert("ACME".into(), Arc::new(missing));
    assert_eq!(rig.sees(&books), ["X 262=a 268=1 279=2 269=0 55=ACME 270=9", "W 262=b 55=ACME 268=0"]);
    books.put("ACME", (&[(9, 5)], &[]), 0);
    assert_eq!(
        rig.sees(&books),
        ["X 262=a 268=1 279=0 269=0 55=ACME 270=9 271=5", "W 262=b 55=ACME 268=1 269=0 270=9 271=5"]
    );
}

#[test]
fn market_data_are_gap_filled_not_resent() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    books.put("ACME", (&[(9, 5)], &[]), 0);
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
    rig.says("H", "11=x|55=ACME|54=1|");
    assert_eq!(rig.sees(&books).len(), 2, "the answer to H, and W");
    rig.says("2", "7=1|16=0|");
    let sent = rig.sent_with(&["8", "9", "10", "35", "49", "52", "56", "60", "6", "122"]);
    let kinds: Vec<&str> = sent.iter().map(|message| &message[..1]).collect();
    assert!(!kinds.contains(&"W") && kinds.contains(&"8") && kinds.last() == Some(&"4"), "{sent:?}");
}

#[test]
fn large_price_change_is_split_into_messages() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    let side = |from: i64| (0..60).map(|at| (from - at, 1_000_000)).collect::<Vec<_>>();
    books.put("ACME", (&side(200_000), &[]), 0);
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
    let told = rig.sees(&books);
    assert_eq!(told[0].matches("269=0").count(), 50, "no deeper");
    books.put("ACME", (&side(100_000), &side(214_000).into_iter().rev().collect::<Vec<_>>()), 0);
    let at = rig.at;
    rig.acts(|door, sink| door.on_market(at, &books, sink));
    assert!(rig.sent.split(|byte| *byte == b'8').all(|part| part.len() < 8_192));
    let told = rig.sent();
    assert_eq!(told.iter().map(|message| message.matches("279=").count()).collect::<Vec<_>>(), [100, 50]);
}

#[test]
fn a_trade_is_told_once_also_when_books_begin_anew() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    books.put("ACME", (&[(9, 5)], &[]), 7);
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
    assert_eq!(rig.sees(&books), ["W 262=a 55=ACME 268=2 269=0 270=9 271=5 269=2 270=9.5 271=7"]);
    // A snapshot between two looks: the last trade is known, and not which one it is.
    let snapshot = MarketBook { trade: None, ..(*books.book("ACME").unwrap()).clone() };
    books.0.borrow_mut().insert("ACME".into(), Arc::new(snapshot));
    assert_eq!(rig.sees(&books), Vec::<String>::new());
    books.put("ACME", (&[(9, 5)], &[]), 8);
    assert_eq!(rig.sees(&books), ["X 262=a 268=1 279=0 269=2 55=ACME 270=9.5 271=8"]);
}

#[test]
fn a_symbol_that_is_named_twice_is_told_once() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    books.put("ACME", (&[(9, 5)], &[]), 0);
    rig.says("V", "262=a|263=1|264=0|265=1|267=1|269=0|146=3|55=ACME|55=X|48=17|22=8|55=ACME|");
    assert_eq!(rig.sees(&books), ["W 262=a 55=ACME 268=1 269=0 270=9 271=5"]);
    books.put("ACME", (&[(9, 5), (8, 1)], &[]), 0);
    assert_eq!(rig.sees(&books), ["X 262=a 268=1 279=0 269=0 55=ACME 270=8 271=1"]);
}

#[test]
fn instrument_number_must_be_the_exchanges_own() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    books.put("ACME", (&[(9, 5)], &[]), 0);
    let acme = "W 262=a 55=ACME 268=1 269=0 270=9 271=5";
    let none = "Y 262=a 281=0 58=no instrument has that Symbol (55) or SecurityID (48)";
    for (named, told) in [
        ("55=X|48=17|22=8", acme),
        ("55=X|48=17|22=1", none),
        ("55=X|48=17", none),
        ("55=ACME|48=17|22=1", acme),
        ("55=ACME|48=99|22=8", none),
    ] {
        rig.says("V", &format!("262=a|263=0|264=0|267=1|269=0|146=1|{named}|"));
        let mut said = rig.sent();
        said.extend(rig.sees(&books));
        assert_eq!(said, [told], "{named}");
    }
}

#[test]
fn listed_but_silent_symbol_is_refused_not_empty() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    books.put("ACME", (&[(9, 5)], &[]), 0);
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{}", ALL.replace("ACME", "TELEPHONES")));
    let why = "market data cover only a Symbol (55) of up to 8 characters";
    assert_eq!(rig.sent(), [format!("Y 262=a 281=0 58={why}")]);
    assert_eq!(rig.sees(&books), Vec::<String>::new());
}

#[test]
fn only_watched_books_are_looked_up_once() {
    let (mut rig, books) = (with_market(&FIX44), Books::default());
    ["ACME", "OTHER"].iter().for_each(|symbol| books.put(symbol, (&[(9, 5)], &[]), 0));
    let asked = |rig: &mut Rig| {
        books.1.set(0);
        rig.sees(&books);
        books.1.get()
    };
    assert_eq!(asked(&mut rig), 0, "nobody watches");
    rig.says("V", &format!("262=a|263=1|264=0|265=1|{ALL}"));
    asked(&mut rig);
    assert_eq!(asked(&mut rig), 1);
    rig.says("V", &format!("262=a|263=2|264=0|{ALL}"));
    assert_eq!(asked(&mut rig), 0);
}
