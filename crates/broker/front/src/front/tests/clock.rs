//! A front whose clock is off, as the quote server's stamps say: what it still takes, and how it continues.

use pares_broker::{CustomerLimits, CustomerOrderId, OrderAsked, PersonAsked, SessionDigest};

use super::*;
use crate::{SharedDesk, SharedEffect, ToDesk, ToFront};

const HOUR_MS: u64 = 3_600_000;

/// After three stamps of S that are far off. A quote of T was there, and has ended.
fn off(server_ms: impl Fn(u64) -> u64) -> At {
    let mut at = At::new();
    at.line("QUOTE,al,T");
    at.quote(1, "T", 100);
    for hit in 2..=4 {
        at.tick(120_000);
        at.looks.clear();
        at.line("QUOTE,al,S");
        at.quote_of(hit, "S", 100, server_ms(at.now_ms));
    }
    assert_eq!(at.arrives("ADD,jo,1.00", ARRIVAL), Err(NotTaken::Clock));
    at.asked.clear();
    at.submitted.clear();
    at
}

/// What continues: a cancel, limits, the kill switch, of this customer.
fn urgent(user: &UserName) -> [OrderAsked; 3] {
    let (user, by) = (user.clone(), UserName::new("boss").unwrap());
    let of = CustomerOrderId { user: user.clone(), number: 7 };
    let limits = CustomerLimits::default();
    [
        OrderAsked::Cancel { of },
        OrderAsked::Limit { user: user.clone(), limits, by: by.clone() },
        OrderAsked::Block { user, is_blocked: true, by },
    ]
}

const ARRIVAL: CommandOrder = CommandOrder::Arrival { name: None };

#[test]
fn cancels_and_limits_use_earlier_clock_when_off() {
    for (mut at, back_ms) in
        [(off(|now_ms| now_ms - HOUR_MS), HOUR_MS - 6_000), (off(|now_ms| now_ms + HOUR_MS), 0)]
    {
        let user = UserName::new("jo").unwrap();
        assert_eq!(at.arrives("ADD,jo,1.00", ARRIVAL), Err(NotTaken::Clock));
        for asked in urgent(&user) {
            let asked = Asked::Order { asked };
            at.asks(Some(user.clone()), ARRIVAL, asked.clone()).unwrap();
            let request = at.answer(BrokerReply::Done);
            assert_eq!((request.asked, request.time_ms), (asked, at.now_ms - back_ms));
        }
        assert_eq!(at.told.len(), 3);
    }
}

#[test]
fn cancel_behind_quote_is_sent_when_clock_is_off() {
    let mut at = At::new();
    let user = UserName::new("jo").unwrap();
    for (hit, symbol) in [(1, "S"), (2, "T")] {
        at.line(&format!("QUOTE,al,{symbol}"));
        at.quote_of(hit, symbol, 100, at.now_ms - HOUR_MS);
    }
    at.line("BUY,jo,U,5.00");
    at.line("BUY,jo,V,5.00");
    let [cancel, ..] = urgent(&user).map(|asked| Asked::Order { asked });
    at.asks(Some(user), ARRIVAL, cancel.clone()).unwrap();
    at.submitted.clear();
    at.quote_of(3, "U", 100, at.now_ms - HOUR_MS);
    assert_eq!(at.clock_off, [3, 2], "the buys");
    let handed_on: Vec<_> = at.submitted.iter().map(|(_, request)| &request.asked).collect();
    assert!(handed_on.contains(&&cancel), "{handed_on:?}");
}

/// A refused command has this stock asked for.
fn asked_for(at: &mut At) -> (u64, &'static str) {
    assert_eq!(at.arrives("ADD,jo,1.00", ARRIVAL), Err(NotTaken::Clock));
    let (hit, symbol) = at.asked.pop().expect("a question");
    (hit, if symbol == StockSymbol::new("S").unwrap() { "S" } else { "T" })
}

#[test]
fn corrected_clock_requests_missing_quote_and_continues() {
    // What an hour ahead made: no quote could be used, and all stocks pause for that long.
    for ahead_ms in [50_000, HOUR_MS] {
        let mut at = off(|now_ms| now_ms - ahead_ms);
        // The question of `off` itself has no answer.
        at.tick(crate::QUOTE_LIMIT_MS);
        at.now_ms -= ahead_ms;
        at.tick(11_000);
        let symbol = StockSymbol::new("S").unwrap();
        assert_eq!(at.front.desk.price(symbol, at.now_ms).is_some(), ahead_ms == 50_000);
        let (hit, asked) = asked_for(&mut at);
        assert!(asked == "T" || ahead_ms == HOUR_MS, "{asked}");
        at.quote(hit, asked, 100);
        assert_eq!(at.front.clock_ahead_ms(), 0);
        at.line("ADD,jo,1.00");
    }
}

/// Its question is answered with what the desk has got for another front a moment ago, so the hit is that one's.
fn second_front_was_first(at: &mut At, question: u64) {
    let (symbol, user) = (StockSymbol::new("S").unwrap(), UserName::new("jo").unwrap());
    let mut desk = SharedDesk::new(77);
    for (front, question) in [(1, 1), (2, question)] {
        desk.come(front);
        desk.heard(front, ToDesk::Want { question, symbol, user: user.clone() }, at.now_ms);
    }
    let (user, key) = (user.to_string(), "k".to_owned());
    let quote = StockQuote { price_cents: 100, symbol, user, server_ms: at.now_ms - 4_000, key };
    desk.quoted(1, Ok(quote), at.now_ms);
    let answer = desk.take_effects().into_iter().find_map(|effect| match effect {
        SharedEffect::Say(2, ToFront::Quote { quote, count, .. }) => Some((quote, count)),
        _ => None,
    });
    let (quote, count) = answer.expect("an answer");
    assert_eq!(count, None);
    at.brought(question, QuoteBrought { quote, hit: None });
}

#[test]
fn young_quote_of_second_request_ends_fast_clock_only() {
    let mut at = off(|now_ms| now_ms - HOUR_MS);
    second_front_was_first(&mut at, 0);
    assert_eq!(at.front.clock_ahead_ms(), 0);
    at.line("ADD,jo,1.00");
    let mut at = off(|now_ms| now_ms + 50_000);
    second_front_was_first(&mut at, 0);
    assert_eq!(at.front.clock_ahead_ms(), -50_000);
    at.tick(11_000);
    let (hit, asked) = asked_for(&mut at);
    at.quote(hit, asked, 100);
    assert_eq!(at.front.clock_ahead_ms(), 0);
}

#[test]
fn sign_in_with_wrong_clock_requests_a_stamp() {
    let session = SessionDigest([1; 32]);
    let seen = PersonAsked::Seen { session };
    let tries = PersonAsked::Try { name: UserName::new("jo").unwrap() };
    let misleads = |at: &mut At, asked: &PersonAsked| {
        let is_so = at.front.misleads(asked, at.now_ms);
        at.take();
        is_so
    };
    let mut at = off(|now_ms| now_ms - HOUR_MS);
    at.tick(11_000);
    at.asked.clear();
    assert!(misleads(&mut at, &seen) && !misleads(&mut at, &PersonAsked::SignOut { session }));
    assert!(at.asked.is_empty() && misleads(&mut at, &tries));
    let (hit, symbol) = at.asked.pop().expect("a question");
    at.quote(hit, symbol.as_str(), 100);
    assert!(!misleads(&mut at, &tries) && !misleads(&mut at, &seen));
}
