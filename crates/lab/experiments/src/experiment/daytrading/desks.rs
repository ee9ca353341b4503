//! Figure 6.2: how many quote desks, and how questions are divided among them; in virtual time.
//!
//! The paper's managers take questions from one queue, and hear of each other's quotes. While an answer takes seconds, the others are asked for the same stock, and ask
//! too. Here a stock has one desk.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pares_broker::{QuoteBrought, StockQuote, StockSymbol, UserName};
use pares_front::{DeskEffect, HIT_MILLS, QuoteDesk, StandIn, StandInSettings, StandInWords, ask_line};
use pares_text::grouped;
use serde::Serialize;

use super::super::report::Grid;

const DESKS: [usize; 5] = [1, 2, 3, 4, 8];
/// Commands that arrive in a millisecond: the paper's loading, 28,800 a second.
const ARRIVE_PER_MS: usize = 29;
/// A manager hears another's quote after this, ms.
const HEARD_MS: u64 = 1;
/// Longer than any answer takes, ms.
const LAST_MS: u64 = 5_000;

/// How a question finds its desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Division {
    /// Each stock has a desk.
    ByStock,
    /// The next desk takes the next question, and hears what the others received.
    InTurn,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DeskPoint {
    pub(super) desks: usize,
    pub(super) division: Division,
    pub(super) hits: u64,
    dollars: f64,
    /// When the last stock had its first quote.
    all_quotes_ms: u64,
}

/// All numbers of desks, divided both ways.
pub(super) fn run(needed: &[Option<StockSymbol>]) -> Vec<DeskPoint> {
    let divisions = [Division::ByStock, Division::InTurn];
    let points = divisions.iter().flat_map(|&division| DESKS.map(|desks| (desks, division)));
    points.map(|(desks, division)| Model::new(desks, division).run(needed)).collect()
}

struct Model {
    division: Division,
    desks: Vec<QuoteDesk>,
    /// From when on each desk knows of a quote that another was given.
    heard: Vec<BTreeMap<StockSymbol, u64>>,
    server: StandIn,
    user: UserName,
    /// Answers on their way: when, to which desk's question.
    answers: BinaryHeap<Reverse<(u64, usize, u64)>>,
    quotes: BTreeMap<(usize, u64), StockQuote>,
    /// When each stock had its first quote.
    known: BTreeMap<StockSymbol, u64>,
}

impl Model {
    fn new(desks: usize, division: Division) -> Self {
        Self {
            division,
            desks: (0..desks).map(|_| QuoteDesk::default()).collect(),
            heard: vec![BTreeMap::new(); desks],
            server: StandIn::new(StandInSettings { seed: 1, ..StandInSettings::default() }),
            user: UserName::new("jo").expect("two letters"),
            answers: BinaryHeap::new(),
            quotes: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    fn run(mut self, needed: &[Option<StockSymbol>]) -> DeskPoint {
        let arrivals = needed.chunks(ARRIVE_PER_MS).chain(std::iter::repeat(&[][..]));
        let until_ms = needed.len() as u64 / ARRIVE_PER_MS as u64 + LAST_MS;
        let mut turn = 0;
        for (now_ms, arrivals) in (0..until_ms).zip(arrivals) {
            self.answer(now_ms);
            for symbol in arrivals.iter().flatten() {
                turn += 1;
                self.want(turn, *symbol, now_ms);
            }
        }
        let hits = self.desks.iter().map(QuoteDesk::hits).sum();
        DeskPoint {
            desks: self.desks.len(),
            division: self.division,
            hits,
            dollars: (hits * HIT_MILLS) as f64 / 1e3,
            all_quotes_ms: self.known.values().copied().max().unwrap_or_default(),
        }
    }

    fn want(&mut self, turn: usize, symbol: StockSymbol, now_ms: u64) {
        let letters = symbol.as_str().bytes().fold(7, |sum: usize, letter| sum * 31 + usize::from(letter));
        let desk = match self.division {
            Division::ByStock => letters % self.desks.len(),
            Division::InTurn => turn % self.desks.len(),
        };
        if self.heard[desk].get(&symbol).is_some_and(|from| *from <= now_ms) {
            return;
        }
        self.desks[desk].want(symbol, &self.user, now_ms);
        for effect in self.desks[desk].take_effects() {
            let DeskEffect::Ask { hit, symbol, user } = effect else { continue };
            let line = ask_line(symbol, &user);
            let answer = self.server.answer(line.trim_end().as_bytes(), now_ms);
            let StandInWords::Quote(quote) = answer.words else { continue };
            self.quotes.insert((desk, hit), quote);
            self.answers.push(Reverse((now_ms + answer.delay_ms, desk, hit)));
        }
    }

    fn answer(&mut self, now_ms: u64) {
        while let Some(&Reverse((at, desk, hit))) = self.answers.peek()
            && at <= now_ms
        {
            self.answers.pop();
            let Some(quote) = self.quotes.remove(&(desk, hit)) else { continue };
            let symbol = quote.symbol;
            self.known.entry(symbol).or_insert(now_ms);
            let brought = QuoteBrought { quote, hit: None };
            self.desks[desk].arrived(hit, Ok(brought), now_ms);
            for (other, heard) in self.heard.iter_mut().enumerate() {
                if self.division == Division::InTurn && other != desk {
                    heard.entry(symbol).or_insert(now_ms + HEARD_MS);
                }
            }
        }
    }
}

/// Both divisions, side by side.
pub(super) fn table(points: &[DeskPoint]) -> Grid {
    let (by_stock, in_turn): (Vec<_>, Vec<_>) =
        points.iter().partition(|point| point.division == Division::ByStock);
    let row = |(ours, theirs): (&DeskPoint, &DeskPoint)| {
        let cells = |point: &DeskPoint| {
            [grouped(point.hits), format!("{:.2}", point.dollars), grouped(point.all_quotes_ms)]
        };
        let ours_and_theirs = cells(ours).into_iter().chain(cells(theirs));
        std::iter::once(ours.desks.to_string()).chain(ours_and_theirs).collect()
    };
    let head = vec![
        ">quote desks",
        ">a desk for each stock: questions",
        ">$",
        ">all quotes after, ms",
        ">in turn, hearing each other (the paper): questions",
        ">$",
        ">all quotes after, ms",
    ];
    Grid { head, rows: by_stock.into_iter().zip(in_turn).map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_with_desk_is_asked_once_however_many_desks() {
        let stock = |number: usize| StockSymbol::new(["A", "B", "C", "D", "E", "F", "G", "H"][number % 8]);
        let needed: Vec<_> = (0..40_000).map(stock).collect();
        let points = run(&needed);
        let (ours, theirs): (Vec<_>, Vec<_>) =
            points.into_iter().partition(|point| point.division == Division::ByStock);
        assert!(ours.iter().all(|point| point.hits == 8), "{ours:?}");
        assert_eq!(theirs[0].hits, 8);
        // Three: as eight stocks come in turn too, eight desks would have one each.
        assert!(theirs[2].hits > 8, "{theirs:?}");
    }
}
