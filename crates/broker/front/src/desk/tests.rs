//! The desk's promises: one question at a time, shared answers, every hit in the log once.

use super::*;

const NOON: u64 = 1_680_000_000_000;

fn stock(letters: &str) -> StockSymbol {
    StockSymbol::new(letters).unwrap()
}

fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

fn quote(price_cents: u64, server_ms: u64) -> QuoteBrought {
    let (user, key) = ("jo".to_owned(), "k".to_owned());
    let quote = StockQuote { price_cents, symbol: stock("S"), user, server_ms, key };
    QuoteBrought { quote, hit: Some(HitName { desk: 1, count: price_cents }) }
}

fn want(desk: &mut QuoteDesk, name: &str, now_ms: u64) -> QuoteStanding {
    desk.want(stock("S"), &user(name), now_ms)
}

/// So many of what the desk wanted done so far.
fn count(desk: &QuoteDesk, is_such: fn(&&DeskEffect) -> bool) -> usize {
    desk.effects.iter().filter(is_such).count()
}

fn asks(desk: &QuoteDesk) -> usize {
    count(desk, |effect| matches!(effect, DeskEffect::Ask { .. }))
}

#[test]
fn one_question_serves_all_until_three_seconds_before_its_end() {
    let mut desk = QuoteDesk::default();
    assert_eq!(want(&mut desk, "jo", NOON), QuoteStanding::Coming);
    assert_eq!(want(&mut desk, "al", NOON + 1), QuoteStanding::Coming);
    assert_eq!(desk.claim(stock("S"), NOON), None);
    desk.arrived(1, Ok(quote(500, NOON)), NOON + 4_009);
    assert_eq!(want(&mut desk, "al", NOON + 56_999), QuoteStanding::Ready);
    assert_eq!(asks(&desk), 1);
    assert_eq!(want(&mut desk, "al", NOON + 57_000), QuoteStanding::Coming);
    assert_eq!(desk.price(stock("S"), NOON + 59_999), Some(500), "used by what has begun with it");
    assert_eq!(desk.price(stock("S"), NOON + 60_000), None);
    assert_eq!((asks(&desk), desk.hits()), (2, 2));
}

#[test]
fn a_hit_is_claimed_once_or_given_out_as_nobodys() {
    let mut desk = QuoteDesk::default();
    want(&mut desk, "jo", NOON);
    desk.arrived(1, Ok(quote(500, NOON)), NOON);
    let hits: Vec<bool> = (0..3).map(|_| desk.claim(stock("S"), NOON).unwrap().hit.is_some()).collect();
    assert_eq!(hits, [true, false, false]);
    want(&mut desk, "jo", NOON + 60_000);
    desk.arrived(2, Ok(quote(700, NOON + 60_000)), NOON + 60_000);
    desk.settle();
    desk.settle();
    let unclaimed = DeskEffect::Unclaimed { brought: quote(700, NOON + 60_000) };
    assert_eq!(desk.effects.iter().filter(|effect| **effect == unclaimed).count(), 1);
    assert!(desk.claim(stock("S"), NOON + 60_001).unwrap().hit.is_none());
}

#[test]
fn a_server_that_fails_is_not_asked_again_at_once() {
    let mut desk = QuoteDesk::default();
    want(&mut desk, "jo", NOON);
    desk.arrived(1, Err(QuoteFault::Garbage), NOON + 9);
    assert_eq!(want(&mut desk, "al", NOON + 1_008), QuoteStanding::Paused);
    assert_eq!(want(&mut desk, "al", NOON + 1_009), QuoteStanding::Coming);
    desk.tick(NOON + 1_009 + QUOTE_LIMIT_MS - 1);
    assert!(!desk.effects.contains(&DeskEffect::Abandon { hit: 2 }));
    desk.tick(NOON + 1_009 + QUOTE_LIMIT_MS);
    assert!(desk.effects.contains(&DeskEffect::Abandon { hit: 2 }));
    desk.arrived(2, Ok(quote(500, NOON)), NOON + 9_000);
    assert_eq!(desk.price(stock("S"), NOON + 9_000), None, "an answer to what was given up");
    let unclaimed = |desk: &QuoteDesk| count(desk, |effect| matches!(effect, DeskEffect::Unclaimed { .. }));
    assert_eq!((asks(&desk), desk.faults(), unclaimed(&desk)), (2, 1, 1), "but the log is to have it");
    want(&mut desk, "al", NOON + 10_000);
    desk.arrived(3, Ok(quote(500, NOON + 10_000 + 60_001)), NOON + 10_000);
    let found = want(&mut desk, "al", NOON + 10_001);
    assert_eq!(found, QuoteStanding::Paused, "a stamp that would keep it usable for ever");
    want(&mut desk, "al", NOON + 70_000);
    desk.arrived(4, Ok(quote(500, NOON + 10_000)), NOON + 70_000);
    assert_eq!(want(&mut desk, "al", NOON + 70_001), QuoteStanding::Paused, "over already");
    assert_eq!((desk.faults(), unclaimed(&desk)), (1, 3));
    want(&mut desk, "al", NOON + 80_000);
    desk.arrived(5, Ok(quote(500, NOON + 20_100)), NOON + 80_000);
    let found = want(&mut desk, "al", NOON + 80_001);
    assert_eq!(found, QuoteStanding::Ready, "the server's clock may be behind");
}

#[test]
fn watched_stock_is_quoted_on_expiry_until_unwatched() {
    let mut desk = QuoteDesk::default();
    desk.watch(stock("S"), &user("jo"), NOON);
    desk.tick(NOON);
    desk.tick(NOON + 1);
    assert_eq!(asks(&desk), 1);
    desk.arrived(1, Ok(quote(500, NOON)), NOON + 9);
    desk.tick(NOON + 59_999);
    assert_eq!(asks(&desk), 1);
    desk.tick(NOON + 60_000);
    assert_eq!(asks(&desk), 2);
    desk.arrived(2, Err(QuoteFault::Closed), NOON + 60_009);
    desk.tick(NOON + 61_009);
    assert_eq!(asks(&desk), 3);
    desk.arrived(3, Ok(quote(500, NOON + 61_009)), NOON + 61_009);
    desk.unwatch(stock("S"));
    desk.tick(NOON + 200_000);
    assert_eq!(asks(&desk), 3);
}

#[test]
fn unsent_quote_request_is_free_and_pauses_its_stock() {
    let mut desk = QuoteDesk::default();
    want(&mut desk, "jo", NOON);
    desk.arrived(1, Err(QuoteFault::Unreached), NOON + 1);
    assert_eq!((desk.hits(), desk.faults()), (0, 0));
    assert_eq!(want(&mut desk, "jo", NOON + 2), QuoteStanding::Paused);
    want(&mut desk, "jo", NOON + 2_000);
    desk.arrived(2, Err(QuoteFault::Closed), NOON + 2_001);
    assert_eq!((desk.hits(), desk.faults()), (1, 1));
}

#[test]
fn what_others_have_paid_for_is_not_counted_as_brought() {
    let mut desk = QuoteDesk::default();
    let mut answer = |hit: u64, answer: Result<QuoteBrought, QuoteFault>| {
        let now_ms = NOON + hit * 100_000;
        want(&mut desk, "jo", now_ms);
        desk.arrived(
            hit,
            answer.map(|brought| QuoteBrought { quote: quote(500, now_ms).quote, ..brought }),
            now_ms,
        );
        (desk.hits(), desk.brought())
    };
    assert_eq!(answer(1, Ok(quote(500, NOON))), (1, 1));
    let found = answer(2, Ok(QuoteBrought { hit: None, ..quote(500, NOON) }));
    assert_eq!(found, (2, 1), "another front has its hit");
    assert_eq!(answer(3, Err(QuoteFault::Silent)), (3, 1));
    desk.arrived(3, Ok(quote(500, NOON)), NOON + 400_000);
    assert_eq!((desk.hits(), desk.brought()), (3, 2), "it came late, and cost all the same");
}
