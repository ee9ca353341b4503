//! One desk for many fronts: whose question is answered by which quote, and who has to see to it that a hit gets into the log.
//!
//! ```text
//!   want --the desk has it, or asks for it--> quote; the first front that is given it has the hit
//!   hit: with a front --noted--> forgotten
//!                     \--its connection ends--> with another front --noted--> ..
//! ```
//! A hit that two fronts note is noted once, since the accounts know it by its name. So a hit may be given away whenever its front is not heard of.

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::{HitName, QuoteBrought, StockQuote, StockSymbol};

use super::frames::{ToDesk, ToFront};
use crate::desk::{DeskEffect, QuoteDesk, QuoteStanding};
use crate::line::QuoteFault;

/// A front's connection; never used again.
pub type FrontNumber = u64;

/// What a desk wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedEffect {
    /// Something about a question to the quote server.
    Server(DeskEffect),
    /// Say this to that front.
    Say(FrontNumber, ToFront),
}

/// A hit that is not noted.
#[derive(Debug)]
struct Unnoted {
    quote: StockQuote,
    with: Option<FrontNumber>,
}

/// See the module.
#[derive(Debug)]
pub struct SharedDesk {
    desk: QuoteDesk,
    /// Of this life.
    number: u64,
    fronts: BTreeSet<FrontNumber>,
    waiting: BTreeMap<StockSymbol, Vec<(FrontNumber, u64)>>,
    unnoted: BTreeMap<u64, Unnoted>,
    /// Why the latest question that brought none did not.
    fault: QuoteFault,
    effects: Vec<SharedEffect>,
}

impl SharedDesk {
    /// A desk whose hits are those of `number`, which no other desk has or had.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self {
            desk: QuoteDesk::default(),
            number,
            fronts: BTreeSet::new(),
            waiting: BTreeMap::new(),
            unnoted: BTreeMap::new(),
            fault: QuoteFault::Closed,
            effects: Vec::new(),
        }
    }

    /// What is to be done, in this order: all of it since this was taken last.
    pub fn take_effects(&mut self) -> Vec<SharedEffect> {
        core::mem::take(&mut self.effects)
    }

    /// The desk that asks.
    #[must_use]
    pub fn desk(&self) -> &QuoteDesk {
        &self.desk
    }

    /// Hits that are not noted yet, as far as it has heard.
    #[must_use]
    pub fn unnoted(&self) -> usize {
        self.unnoted.len()
    }

    /// A front has connected.
    pub fn come(&mut self, front: FrontNumber) {
        let is_new = self.fronts.insert(front);
        assert!(is_new, "the number of a connection is never used again");
        self.effects.push(SharedEffect::Say(front, ToFront::Desk { number: self.number }));
        for (count, unnoted) in self.unnoted.iter_mut().filter(|(_, unnoted)| unnoted.with.is_none()) {
            unnoted.with = Some(front);
            let quote = unnoted.quote.clone();
            self.effects.push(SharedEffect::Say(front, ToFront::Hit { count: *count, quote }));
        }
    }

    /// A front's connection has ended.
    pub fn gone(&mut self, front: FrontNumber) {
        self.fronts.remove(&front);
        self.waiting.values_mut().for_each(|waiting| waiting.retain(|(other, _)| *other != front));
        let next = self.fronts.first().copied();
        for (count, unnoted) in self.unnoted.iter_mut().filter(|(_, unnoted)| unnoted.with == Some(front)) {
            unnoted.with = next;
            let quote = unnoted.quote.clone();
            self.effects
                .extend(next.map(|next| SharedEffect::Say(next, ToFront::Hit { count: *count, quote })));
        }
    }

    /// A front says something.
    pub fn heard(&mut self, front: FrontNumber, word: ToDesk, now_ms: u64) {
        match word {
            ToDesk::AreYouThere => self.effects.push(SharedEffect::Say(front, ToFront::Here)),
            ToDesk::Noted { count } => drop(self.unnoted.remove(&count)),
            ToDesk::Want { question, symbol, user } => {
                match self.desk.want(symbol, &user, now_ms) {
                    QuoteStanding::Coming => {
                        self.waiting.entry(symbol).or_default().push((front, question));
                    }
                    _ => self.answer(front, question, symbol, now_ms),
                }
                self.follow(now_ms);
            }
        }
    }

    /// The quote server has answered, or will not.
    pub fn quoted(&mut self, hit: u64, answer: Result<StockQuote, QuoteFault>, now_ms: u64) {
        self.fault = answer.as_ref().err().copied().unwrap_or(QuoteFault::Old);
        let name = HitName { desk: self.number, count: hit };
        let answer = answer.map(|quote| QuoteBrought { quote, hit: Some(name) });
        self.desk.arrived(hit, answer, now_ms);
        self.follow(now_ms);
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ms: u64) {
        self.fault = QuoteFault::Silent;
        self.desk.tick(now_ms);
        self.follow(now_ms);
    }

    fn follow(&mut self, now_ms: u64) {
        for said in self.desk.take_effects() {
            match said {
                DeskEffect::News { symbol } => {
                    for (front, question) in self.waiting.remove(&symbol).unwrap_or_default() {
                        self.answer(front, question, symbol, now_ms);
                    }
                    // Who asked has gone.
                    self.desk.settle();
                    self.follow(now_ms);
                }
                DeskEffect::Unclaimed { brought } => {
                    let with = self.fronts.first().copied();
                    let Some(count) = self.keep(&brought, with) else { continue };
                    let word = ToFront::Hit { count, quote: brought.quote };
                    self.effects.extend(with.map(|front| SharedEffect::Say(front, word)));
                }
                other => self.effects.push(SharedEffect::Server(other)),
            }
        }
    }

    /// Keeps a hit until it is noted, if there is one; its count.
    fn keep(&mut self, brought: &QuoteBrought, with: Option<FrontNumber>) -> Option<u64> {
        let count = brought.hit?.count;
        assert!(brought.hit.is_some_and(|hit| hit.desk == self.number), "a desk keeps its own hits");
        self.unnoted.insert(count, Unnoted { quote: brought.quote.clone(), with });
        Some(count)
    }

    fn answer(&mut self, front: FrontNumber, question: u64, symbol: StockSymbol, now_ms: u64) {
        assert!(self.fronts.contains(&front), "who is answered is connected");
        let word = match self.desk.claim(symbol, now_ms) {
            None => ToFront::None { question, fault: self.fault },
            Some(brought) => {
                let count = self.keep(&brought, Some(front));
                ToFront::Quote { question, quote: brought.quote, count }
            }
        };
        self.effects.push(SharedEffect::Say(front, word));
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::UserName;

    use super::*;

    const NOON_MS: u64 = 1_800_000_000_000;

    fn with_fronts(fronts: &[FrontNumber]) -> SharedDesk {
        let mut desk = SharedDesk::new(77);
        fronts.iter().for_each(|front| desk.come(*front));
        desk.effects.clear();
        desk
    }

    fn want(desk: &mut SharedDesk, front: FrontNumber, question: u64) {
        let (symbol, user) = (StockSymbol::new("S").unwrap(), UserName::new("jo").unwrap());
        desk.heard(front, ToDesk::Want { question, symbol, user }, NOON_MS);
    }

    fn quote() -> StockQuote {
        let (symbol, user) = (StockSymbol::new("S").unwrap(), "jo".to_owned());
        StockQuote { price_cents: 500, symbol, user, server_ms: NOON_MS, key: "key".into() }
    }

    fn say(front: FrontNumber, word: ToFront) -> SharedEffect {
        SharedEffect::Say(front, word)
    }

    #[test]
    fn many_fronts_share_one_question_and_one_of_them_has_the_hit() {
        let mut desk = with_fronts(&[1, 2]);
        want(&mut desk, 1, 10);
        want(&mut desk, 2, 20);
        assert_eq!(desk.take_effects().len(), 1, "one question");
        desk.quoted(1, Ok(quote()), NOON_MS);
        want(&mut desk, 2, 21);
        let quote = quote();
        let told = |question, count| ToFront::Quote { question, quote: quote.clone(), count };
        let expected = [say(1, told(10, Some(1))), say(2, told(20, None)), say(2, told(21, None))];
        assert_eq!(desk.take_effects(), expected);
    }

    #[test]
    fn a_hit_goes_to_another_front_until_one_has_noted_it() {
        let mut desk = with_fronts(&[1, 2]);
        want(&mut desk, 1, 10);
        desk.quoted(1, Ok(quote()), NOON_MS);
        desk.take_effects();
        let hit = ToFront::Hit { count: 1, quote: quote() };
        desk.gone(1);
        assert_eq!(desk.take_effects(), [say(2, hit.clone())]);
        desk.gone(2);
        assert!(desk.take_effects().is_empty(), "nobody is there");
        desk.come(3);
        assert_eq!(desk.take_effects(), [say(3, ToFront::Desk { number: 77 }), say(3, hit)]);
        desk.heard(3, ToDesk::Noted { count: 1 }, NOON_MS);
        desk.gone(3);
        desk.come(4);
        assert_eq!(desk.take_effects(), [say(4, ToFront::Desk { number: 77 })]);
    }

    #[test]
    fn a_hit_whose_front_went_before_the_answer_is_given_to_another() {
        let mut desk = with_fronts(&[1, 2]);
        want(&mut desk, 1, 10);
        desk.take_effects();
        desk.gone(1);
        desk.quoted(1, Ok(quote()), NOON_MS);
        assert_eq!(desk.take_effects(), [say(2, ToFront::Hit { count: 1, quote: quote() })]);
    }

    #[test]
    fn a_question_without_an_answer_is_told_to_all_who_wait() {
        let mut desk = with_fronts(&[1, 2]);
        want(&mut desk, 1, 10);
        want(&mut desk, 2, 20);
        desk.take_effects();
        desk.quoted(1, Err(QuoteFault::Garbage), NOON_MS);
        want(&mut desk, 2, 21);
        let none = |question| ToFront::None { question, fault: QuoteFault::Garbage };
        assert_eq!(desk.take_effects(), [say(1, none(10)), say(2, none(20)), say(2, none(21))]);
        assert_eq!((desk.desk().hits(), desk.desk().faults()), (1, 1));
    }
}
