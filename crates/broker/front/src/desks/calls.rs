//! A front's end: which desk is asked, and what becomes of a question whose desk has gone.
//!
//! A desk whose connection has ended is as good as dead: its questions go to the next one. The quote server may then be asked twice, which costs five cents and is never wrong. With no desk at
//! all questions wait: a desk that is started again finds them.
//!
//! A desk is believed no more than the server: what it gives out as a quote is one, and of the stock that was asked for, or the question has failed.

use std::collections::BTreeMap;

use pares_broker::{HitName, QuoteBrought, StockQuote, StockSymbol, UserName};

use super::frames::{ToDesk, ToFront};
use crate::line::{QuoteFault, read_reply, reply_line};

/// What desks say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskNews {
    /// The answer to a question of this front's, with the hit if this front is to note it.
    Answer(u64, Result<QuoteBrought, QuoteFault>),
    /// A hit to be noted, which no question of this front waits for.
    Hit(QuoteBrought),
}

/// What a front's end wants done, or says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskCall {
    /// Say this to that desk, which is connected.
    Say(usize, ToDesk),
    /// A desk has said this.
    News(DeskNews),
}

#[derive(Debug)]
struct Question {
    symbol: StockSymbol,
    user: UserName,
    /// The desk that was asked.
    at: Option<usize>,
}

#[derive(Debug)]
struct Desk {
    /// What it is ranked by.
    name: u64,
    /// Of its life, once it has said so: it is connected.
    number: Option<u64>,
}

/// See the module. Desks are known by their place in the list.
#[derive(Debug, Default)]
pub struct DeskCalls {
    desks: Vec<Desk>,
    open: BTreeMap<u64, Question>,
    calls: Vec<DeskCall>,
}

impl DeskCalls {
    /// To desks of these names, the same at every front. None is connected.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = u64>) -> Self {
        let desks = names.into_iter().map(|name| Desk { name, number: None }).collect();
        Self { desks, open: BTreeMap::new(), calls: Vec::new() }
    }

    /// What is to be done, in this order: all of it since this was taken last.
    pub fn take_calls(&mut self) -> Vec<DeskCall> {
        core::mem::take(&mut self.calls)
    }

    /// Asks the stock's desk, as soon as one is connected.
    pub fn ask(&mut self, question: u64, symbol: StockSymbol, user: UserName) {
        let before = self.open.insert(question, Question { symbol, user, at: None });
        assert!(before.is_none(), "the number of a question is given once");
        self.send_what_waits();
    }

    /// The question is not waited for any more.
    pub fn abandon(&mut self, question: u64) {
        self.open.remove(&question);
    }

    /// A hit is in the log.
    pub fn noted(&mut self, hit: HitName) {
        // Of a life that is over nobody keeps hits.
        let at = self.desks.iter().position(|desk| desk.number == Some(hit.desk));
        self.calls.extend(at.map(|at| DeskCall::Say(at, ToDesk::Noted { count: hit.count })));
    }

    /// A desk says something. Its first word is its number.
    pub fn heard(&mut self, at: usize, word: ToFront) {
        let Some(desk) = self.desks.get_mut(at) else { return };
        let life = desk.number;
        let name = |count: u64| life.map(|desk| HitName { desk, count });
        let news = match word {
            ToFront::Desk { number } => {
                desk.number = Some(number);
                return self.send_what_waits();
            }
            ToFront::Here => None,
            ToFront::Hit { count, quote } => {
                let is_one = fault_of(&quote, quote.symbol).is_none();
                is_one.then(|| DeskNews::Hit(QuoteBrought { quote, hit: name(count) }))
            }
            ToFront::None { question, fault } => {
                self.open.remove(&question).map(|_| DeskNews::Answer(question, Err(fault)))
            }
            ToFront::Quote { question, quote, count } => {
                let asked = self.open.remove(&question);
                let fault = fault_of(&quote, asked.as_ref().map_or(quote.symbol, |asked| asked.symbol));
                let brought = QuoteBrought { quote, hit: count.and_then(name) };
                match asked {
                    Some(_) => Some(DeskNews::Answer(question, fault.map_or(Ok(brought), Err))),
                    None => (brought.hit.is_some() && fault.is_none()).then_some(DeskNews::Hit(brought)),
                }
            }
        };
        self.calls.extend(news.map(DeskCall::News));
    }

    /// The connection to a desk has ended: its questions go to the next.
    pub fn lost(&mut self, at: usize) {
        if let Some(desk) = self.desks.get_mut(at) {
            desk.number = None;
        }
        let asked = self.open.values_mut().filter(|question| question.at == Some(at));
        asked.for_each(|question| question.at = None);
        self.send_what_waits();
    }

    fn send_what_waits(&mut self) {
        for (number, question) in self.open.iter_mut().filter(|(_, question)| question.at.is_none()) {
            let living = self.desks.iter().enumerate().filter(|(_, desk)| desk.number.is_some());
            let first = living.max_by_key(|(_, desk)| rank(question.symbol, desk.name));
            let Some((at, _)) = first else { return };
            let (symbol, user) = (question.symbol, question.user.clone());
            self.calls.push(DeskCall::Say(at, ToDesk::Want { question: *number, symbol, user }));
            question.at = Some(at);
        }
    }
}

/// Why this is no quote of that stock, if it is none. Its time is looked at where it is used.
fn fault_of(quote: &StockQuote, symbol: StockSymbol) -> Option<QuoteFault> {
    let Some(user) = UserName::new(&quote.user) else { return Some(QuoteFault::OtherUser) };
    read_reply(reply_line(quote).as_bytes(), symbol, &user).err()
}

/// How a desk ranks for a stock: the same at every front (splitmix64 over both).
fn rank(symbol: StockSymbol, desk: u64) -> u64 {
    let mut rank = desk;
    for byte in symbol.padded() {
        rank = (rank ^ u64::from(byte)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        rank = (rank ^ (rank >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        rank = (rank ^ (rank >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        rank ^= rank >> 31;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As addresses are names.
    const NAMES: [u64; 4] = [0x7f00_0001_1194, 0x7f00_0001_1195, 0x7f00_0001_1196, 0x7f00_0001_1197];

    fn first(symbol: StockSymbol, desks: &[u64]) -> u64 {
        *desks.iter().max_by_key(|desk| rank(symbol, **desk)).unwrap()
    }

    #[test]
    fn dead_desk_moves_only_its_own_stocks() {
        let symbols = (b'A'..=b'Z').flat_map(|a| (b'A'..=b'Z').map(move |b| [a, b]));
        let symbols: Vec<_> =
            symbols.map(|letters| StockSymbol::new(str::from_utf8(&letters).unwrap()).unwrap()).collect();
        for desk in &NAMES {
            let count = symbols.iter().filter(|symbol| first(**symbol, &NAMES) == *desk).count();
            assert!((symbols.len() / 8..symbols.len() / 2).contains(&count), "{count} of {desk}");
        }
        for symbol in symbols {
            let before = first(symbol, &NAMES);
            let after = first(symbol, &NAMES[1..]);
            assert!(before == NAMES[0] || before == after);
        }
    }

    #[test]
    fn quote_request_moves_to_next_desk_on_loss() {
        let (symbol, user) = (StockSymbol::new("S").unwrap(), UserName::new("jo").unwrap());
        let mut calls = DeskCalls::new([1, 2]);
        calls.ask(7, symbol, user.clone());
        assert_eq!(calls.take_calls(), []);
        let want = |at| DeskCall::Say(at, ToDesk::Want { question: 7, symbol, user: user.clone() });
        calls.heard(0, ToFront::Desk { number: 70 });
        calls.heard(1, ToFront::Desk { number: 71 });
        calls.lost(0);
        assert_eq!(calls.take_calls(), [want(0), want(1)]);
        let none = ToFront::None { question: 7, fault: QuoteFault::Closed };
        calls.heard(1, none.clone());
        calls.heard(1, none);
        assert_eq!(calls.take_calls(), [DeskCall::News(DeskNews::Answer(7, Err(QuoteFault::Closed)))]);
        calls.noted(HitName { desk: 70, count: 1 });
        calls.noted(HitName { desk: 71, count: 2 });
        assert_eq!(
            calls.take_calls(),
            [DeskCall::Say(1, ToDesk::Noted { count: 2 })],
            "nobody keeps those of a life that is over"
        );
    }
}
