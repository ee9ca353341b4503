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

#[derive(Default)]
struct Asked {
    desk: QuoteDesk,
    effects: Vec<DeskEffect>,
}

impl Asked {
    fn want(&mut self, name: &str, now_ms: u64) -> QuoteStanding {
        self.desk.want(stock("S"), &user(name), now_ms, &mut self.effects)
    }
    fn arrived(&mut self, hit: u64, answer: Result<QuoteBrought, QuoteFault>, now_ms: u64) {
        self.desk.arrived(hit, answer, now_ms, &mut self.effects);
    }
    fn tick(&mut self, now_ms: u64) {
        self.desk.tick(now_ms, &mut self.effects);
    }
    fn asks(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, DeskEffect::Ask { .. })).count()
    }
}

#[test]
fn one_question_serves_all_until_three_seconds_before_its_end() {
    let mut at = Asked::default();
    assert_eq!(at.want("jo", NOON), QuoteStanding::Coming);
    assert_eq!(at.want("al", NOON + 1), QuoteStanding::Coming);
    assert_eq!(at.desk.claim(stock("S"), NOON), None);
    at.arrived(1, Ok(quote(500, NOON)), NOON + 4_009);
    assert_eq!(at.want("al", NOON + 56_999), QuoteStanding::Ready);
    assert_eq!(at.asks(), 1);
    assert_eq!(at.want("al", NOON + 57_000), QuoteStanding::Coming);
    assert_eq!(at.desk.price(stock("S"), NOON + 59_999), Some(500), "used by what has begun with it");
    assert_eq!(at.desk.price(stock("S"), NOON + 60_000), None);
    assert_eq!((at.asks(), at.desk.hits()), (2, 2));
}

#[test]
fn a_hit_is_claimed_once_or_given_out_as_nobodys() {
    let mut at = Asked::default();
    at.want("jo", NOON);
    at.arrived(1, Ok(quote(500, NOON)), NOON);
    let hits: Vec<bool> = (0..3).map(|_| at.desk.claim(stock("S"), NOON).unwrap().hit.is_some()).collect();
    assert_eq!(hits, [true, false, false]);
    at.want("jo", NOON + 60_000);
    at.arrived(2, Ok(quote(700, NOON + 60_000)), NOON + 60_000);
    at.desk.settle(&mut at.effects);
    at.desk.settle(&mut at.effects);
    let unclaimed = DeskEffect::Unclaimed { brought: quote(700, NOON + 60_000) };
    assert_eq!(at.effects.iter().filter(|effect| **effect == unclaimed).count(), 1);
    assert!(at.desk.claim(stock("S"), NOON + 60_001).unwrap().hit.is_none());
}

#[test]
fn a_server_that_fails_is_not_asked_again_at_once() {
    let mut at = Asked::default();
    at.want("jo", NOON);
    at.arrived(1, Err(QuoteFault::Garbage), NOON + 9);
    assert_eq!(at.want("al", NOON + 1_008), QuoteStanding::Paused);
    assert_eq!(at.want("al", NOON + 1_009), QuoteStanding::Coming);
    at.tick(NOON + 1_009 + QUOTE_LIMIT_MS - 1);
    assert!(!at.effects.contains(&DeskEffect::Abandon { hit: 2 }));
    at.tick(NOON + 1_009 + QUOTE_LIMIT_MS);
    assert!(at.effects.contains(&DeskEffect::Abandon { hit: 2 }));
    at.arrived(2, Ok(quote(500, NOON)), NOON + 9_000);
    assert_eq!(at.desk.price(stock("S"), NOON + 9_000), None, "an answer to what was given up");
    let unclaimed = |at: &Asked| {
        at.effects.iter().filter(|effect| matches!(effect, DeskEffect::Unclaimed { .. })).count()
    };
    assert_eq!((at.asks(), at.desk.faults(), unclaimed(&at)), (2, 1, 1), "but the log is to have it");
    at.want("al", NOON + 10_000);
    at.arrived(3, Ok(quote(500, NOON + 10_000 + 60_001)), NOON + 10_000);
    assert_eq!(
        at.want("al", NOON + 10_001),
        QuoteStanding::Paused,
        "a stamp that would keep it usable for ever"
    );
    at.want("al", NOON + 70_000);
    at.arrived(4, Ok(quote(500, NOON + 10_000)), NOON + 70_000);
    assert_eq!(at.want("al", NOON + 70_001), QuoteStanding::Paused, "over already");
    assert_eq!((at.desk.faults(), unclaimed(&at)), (1, 3));
    at.want("al", NOON + 80_000);
    at.arrived(5, Ok(quote(500, NOON + 20_100)), NOON + 80_000);
    assert_eq!(at.want("al", NOON + 80_001), QuoteStanding::Ready, "the server's clock may be behind");
}

#[test]
fn watched_stock_is_quoted_on_expiry_until_unwatched() {
    let mut at = Asked::default();
    at.desk.watch(stock("S"), &user("jo"), NOON);
    at.tick(NOON);
    at.tick(NOON + 1);
    assert_eq!(at.asks(), 1);
    at.arrived(1, Ok(quote(500, NOON)), NOON + 9);
    at.tick(NOON + 59_999);
    assert_eq!(at.asks(), 1);
    at.tick(NOON + 60_000);
    assert_eq!(at.asks(), 2);
    at.arrived(2, Err(QuoteFault::Closed), NOON + 60_009);
    at.tick(NOON + 61_009);
    assert_eq!(at.asks(), 3);
    at.arrived(3, Ok(quote(500, NOON + 61_009)), NOON + 61_009);
    at.desk.unwatch(stock("S"));
    at.tick(NOON + 200_000);
    assert_eq!(at.asks(), 3);
}

#[test]
fn unsent_quote_request_is_free_and_pauses_its_stock() {
    let mut at = Asked::default();
    at.want("jo", NOON);
    at.arrived(1, Err(QuoteFault::Unreached), NOON + 1);
    assert_eq!((at.desk.hits(), at.desk.faults()), (0, 0));
    assert_eq!(at.want("jo", NOON + 2), QuoteStanding::Paused);
    at.want("jo", NOON + 2_000);
    at.arrived(2, Err(QuoteFault::Closed), NOON + 2_001);
    assert_eq!((at.desk.hits(), at.desk.faults()), (1, 1));
}

#[test]
fn what_others_have_paid_for_is_not_counted_as_brought() {
    let mut at = Asked::default();
    let mut answer = |hit: u64, answer: Result<QuoteBrought, QuoteFault>| {
        let now_ms = NOON + hit * 100_000;
        at.want("jo", now_ms);
        at.arrived(
            hit,
            answer.map(|brought| QuoteBrought { quote: quote(500, now_ms).quote, ..brought }),
            now_ms,
        );
        (at.desk.hits(), at.desk.brought())
    };
    assert_eq!(answer(1, Ok(quote(500, NOON))), (1, 1));
    assert_eq!(
        answer(2, Ok(QuoteBrought { hit: None, ..quote(500, NOON) })),
        (2, 1),
        "another front has its hit"
    );
    assert_eq!(answer(3, Err(QuoteFault::Silent)), (3, 1));
    at.arrived(3, Ok(quote(500, NOON)), NOON + 400_000);
    assert_eq!((at.desk.hits(), at.desk.brought()), (3, 2), "it came late, and cost all the same");
}
