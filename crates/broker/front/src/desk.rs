//! The quote desk: one question for each stock at a time, and its answer shared for as long as it may be used.
//!
//! Every question costs money, moves the price and takes up to four seconds. So the first who wants a stock's quote has it asked for, and the others
//! share the answer. A server that fails is not asked again at once: a command that wants that stock meanwhile gets no quote.
//!
//! ```text
//!   want --none usable--> Ask .. arrived --quote--> kept until its stamp and 60 s --> claim (the first one's log shows the hit)
//!                           \-- fault, or too late --> pause of a second
//! ```
//! Stocks with armed triggers are *watched*: asked for again when their quote ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_broker::{HitName, QuoteBrought, StockQuote, StockSymbol, UserName, WINDOW_MS};

use crate::line::QuoteFault;

/// After so long without an answer a question is given up, ms: longer than the server's longest delay.
pub const QUOTE_LIMIT_MS: u64 = 6_000;
/// What a question costs, thousandths of a dollar.
pub const HIT_MILLS: u64 = 50;
/// A quote with less than this left is not begun with, ms.
const LEFT_MS: u64 = 3_000;
/// After a fault a stock is not asked for so long, ms.
const PAUSE_MS: u64 = 1_000;

/// What the desk wants done, or says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskEffect {
    /// Ask the server.
    Ask {
        /// The question's number.
        hit: u64,
        /// For which stock.
        symbol: StockSymbol,
        /// For which user.
        user: UserName,
    },
    /// Close the connection of a question: it is not waited for any more.
    Abandon {
        /// The question's number.
        hit: u64,
    },
    /// A question has ended: who waits for this stock looks again.
    News {
        /// Which stock.
        symbol: StockSymbol,
    },
    /// A quote that no command used: the log has to show it all the same.
    Unclaimed {
        /// The quote.
        brought: QuoteBrought,
    },
}

/// How it stands with a stock's quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuoteStanding {
    /// There is one, and it can be used for some seconds more.
    Ready,
    /// The server was asked.
    Coming,
    /// The server failed a moment ago.
    Paused,
}

#[derive(Debug)]
struct Kept {
    quote: StockQuote,
    arrived_ms: u64,
    /// The hit, until a command takes it into its log.
    hit: Option<HitName>,
}

impl Kept {
    /// Whether a command may begin with it. One that has just come may, however little is left: the server's clock may be behind, and asking again would bring no other.
    fn is_fresh(&self, now_ms: u64) -> bool {
        let has_just_come = now_ms < self.arrived_ms + PAUSE_MS;
        now_ms + if has_just_come { 0 } else { LEFT_MS } < ends(&self.quote)
    }
}

#[derive(Debug, Default)]
struct Stock {
    kept: Option<Kept>,
    coming: Option<u64>,
    paused_until_ms: u64,
    watched_for: Option<UserName>,
}

impl Stock {
    /// A pause that ends later than one that begins now was made by a clock that was ahead, and is none any more.
    fn is_paused(&self, now_ms: u64) -> bool {
        (now_ms + 1..=now_ms + PAUSE_MS).contains(&self.paused_until_ms)
    }
}

/// The stocks whose quotes are wanted, asked for, or known.
#[derive(Debug, Default)]
pub struct QuoteDesk {
    stocks: BTreeMap<StockSymbol, Stock>,
    /// Questions without an answer.
    open: BTreeMap<u64, StockSymbol>,
    /// When each question was asked, in order; answered ones among them.
    asked: VecDeque<(u64, u64)>,
    /// When a quote ends, or a watched stock is to be asked for again.
    again: BTreeSet<(u64, StockSymbol)>,
    /// The number of the latest question.
    latest: u64,
    /// Those of them that did not reach the server.
    unsent: u64,
    faults: u64,
    /// Answers that named a hit.
    brought: u64,
    effects: Vec<DeskEffect>,
}

impl QuoteDesk {
    /// What is to be done, in this order: all of it since this was taken last.
    pub fn take_effects(&mut self) -> Vec<DeskEffect> {
        core::mem::take(&mut self.effects)
    }

    /// Questions so far, but for those that did not reach the server.
    #[must_use]
    pub fn hits(&self) -> u64 {
        assert!(self.unsent <= self.latest, "what did not reach the server was a question");
        self.latest - self.unsent
    }

    /// Those of them that brought no quote.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Answers that came with a hit, which the log is to have from here: of desks that many ask, those whose price is on this one's bill.
    #[must_use]
    pub fn brought(&self) -> u64 {
        self.brought
    }

    /// A user wants a stock's quote.
    pub fn want(&mut self, symbol: StockSymbol, user: &UserName, now_ms: u64) -> QuoteStanding {
        let stock = self.stocks.entry(symbol).or_default();
        if stock.kept.as_ref().is_some_and(|kept| kept.is_fresh(now_ms)) {
            return QuoteStanding::Ready;
        }
        if stock.coming.is_none() {
            if stock.is_paused(now_ms) {
                return QuoteStanding::Paused;
            }
            self.ask(symbol, user, now_ms);
        }
        QuoteStanding::Coming
    }

    /// The stock to be asked for only to see the server's stamp: the next one behind `last`, in a round, without a quote that can be used, since a desk that has one answers with that. If all have one, the next one.
    pub(crate) fn for_stamp(&self, last: Option<StockSymbol>, now_ms: u64) -> Option<StockSymbol> {
        let behind = |symbol: &StockSymbol| last.is_none_or(|last| *symbol > last);
        let round = self.stocks.iter().filter(|(symbol, _)| behind(symbol)).chain(&self.stocks);
        let free = round.filter(|(_, stock)| stock.coming.is_none() && !stock.is_paused(now_ms));
        let mut without = free.clone().filter(|(symbol, _)| self.price(**symbol, now_ms).is_none());
        without.next().or_else(|| free.clone().next()).map(|(symbol, _)| *symbol)
    }

    /// Asks the server, whatever is kept of the stock. None of its questions may be open.
    pub(crate) fn ask(&mut self, symbol: StockSymbol, user: &UserName, now_ms: u64) {
        self.latest += 1;
        let hit = self.latest;
        assert!(
            self.asked.back().is_none_or(|(_, last)| *last < hit),
            "questions are numbered in their order"
        );
        let before = self.stocks.entry(symbol).or_default().coming.replace(hit);
        assert!(before.is_none(), "of a stock one question is open at a time");
        self.open.insert(hit, symbol);
        self.asked.push_back((now_ms, hit));
        assert!(self.open.len() <= self.asked.len(), "a question that is open was asked");
        self.effects.push(DeskEffect::Ask { hit, symbol, user: user.clone() });
    }

    /// The quote, if there is one that can be used now. Who is given it first has the hit in his log.
    pub fn claim(&mut self, symbol: StockSymbol, now_ms: u64) -> Option<QuoteBrought> {
        let kept = self.stocks.get_mut(&symbol)?.kept.as_mut()?;
        if now_ms >= ends(&kept.quote) {
            return None;
        }
        Some(QuoteBrought { quote: kept.quote.clone(), hit: kept.hit.take() })
    }

    /// A stock's price, if its quote can be used now.
    #[must_use]
    pub fn price(&self, symbol: StockSymbol, now_ms: u64) -> Option<u64> {
        let quote = &self.stocks.get(&symbol)?.kept.as_ref()?.quote;
        (now_ms < ends(quote)).then_some(quote.price_cents)
    }

    /// A question was answered, or will not be. The answer names its hit, if the log is to have it from here: also of an answer to one that was given up, and of one that cannot be used.
    pub fn arrived(&mut self, hit: u64, answer: Result<QuoteBrought, QuoteFault>, now_ms: u64) {
        self.brought += u64::from(answer.as_ref().is_ok_and(|brought| brought.hit.is_some()));
        let Some(symbol) = self.open.remove(&hit) else { return self.late(answer) };
        let stock = self.stocks.entry(symbol).or_default();
        assert_eq!(stock.coming, Some(hit), "the question of a stock that is open is the one that is coming");
        stock.coming = None;
        let is_unsent = answer == Err(QuoteFault::Unreached);
        self.unsent += u64::from(is_unsent);
        match checked(answer, now_ms) {
            Ok(QuoteBrought { quote, hit }) => {
                self.again.insert((ends(&quote), symbol));
                let before = stock.kept.replace(Kept { quote, arrived_ms: now_ms, hit });
                self.effects.extend(before.and_then(|mut before| unclaimed(&mut before)));
            }
            Err(brought) => {
                self.faults += u64::from(brought.is_none() && !is_unsent);
                self.effects.extend(brought.map(|brought| DeskEffect::Unclaimed { brought }));
                stock.paused_until_ms = now_ms + PAUSE_MS;
                if stock.watched_for.is_some() {
                    self.again.insert((now_ms + PAUSE_MS, symbol));
                }
            }
        }
        self.effects.push(DeskEffect::News { symbol });
    }

    /// What comes so late is used by nobody; the question has brought a quote all the same.
    fn late(&mut self, answer: Result<QuoteBrought, QuoteFault>) {
        if let Some(brought) = answer.ok().filter(|brought| brought.hit.is_some()) {
            self.faults = self.faults.saturating_sub(1);
            self.effects.push(DeskEffect::Unclaimed { brought });
        }
    }

    /// A trigger of a user's is armed: the stock's quote is kept fresh.
    pub fn watch(&mut self, symbol: StockSymbol, user: &UserName, now_ms: u64) {
        let stock = self.stocks.entry(symbol).or_default();
        if stock.watched_for.is_none() {
            stock.watched_for = Some(user.clone());
            let kept = stock.kept.as_ref().map_or(now_ms, |kept| ends(&kept.quote));
            self.again.insert((kept.max(now_ms), symbol));
        }
    }

    /// No trigger is armed any more.
    pub(crate) fn unwatch(&mut self, symbol: StockSymbol) {
        if let Some(stock) = self.stocks.get_mut(&symbol) {
            stock.watched_for = None;
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ms: u64) {
        while let Some(&(asked_ms, hit)) = self.asked.front()
            && (now_ms.abs_diff(asked_ms) >= QUOTE_LIMIT_MS || !self.open.contains_key(&hit))
        {
            self.asked.pop_front();
            if self.open.contains_key(&hit) {
                self.effects.push(DeskEffect::Abandon { hit });
                self.arrived(hit, Err(QuoteFault::Silent), now_ms);
            }
        }
        while let Some(&(due_ms, symbol)) = self.again.first()
            && due_ms <= now_ms
        {
            self.again.pop_first();
            self.refresh(symbol, now_ms);
        }
    }

    /// A quote has ended: nobody uses its hit any more, and a watched stock is asked for again.
    fn refresh(&mut self, symbol: StockSymbol, now_ms: u64) {
        let Some(stock) = self.stocks.get_mut(&symbol) else { return };
        if stock.kept.as_ref().is_some_and(|kept| now_ms < ends(&kept.quote)) {
            return;
        }
        self.effects.extend(stock.kept.as_mut().and_then(unclaimed));
        if let Some(user) = stock.watched_for.clone()
            && stock.coming.is_none()
        {
            self.ask(symbol, &user, now_ms);
        }
    }

    /// When [`QuoteDesk::tick`] has something to do, ms, if nothing else happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let silent = self.asked.front().map(|(asked_ms, _)| asked_ms + QUOTE_LIMIT_MS);
        silent.into_iter().chain(self.again.first().map(|(due_ms, _)| *due_ms)).min()
    }

    /// Whether this question has no answer yet.
    pub(crate) fn awaits(&self, hit: u64) -> bool {
        self.open.contains_key(&hit)
    }

    /// Whether no question is open.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Nothing is watched any more.
    pub fn close(&mut self) {
        self.again.clear();
        self.stocks.values_mut().for_each(|stock| stock.watched_for = None);
    }

    /// Whether there is a hit that no command has claimed.
    #[must_use]
    pub(crate) fn has_unclaimed(&self) -> bool {
        self.stocks.values().filter_map(|stock| stock.kept.as_ref()).any(|kept| kept.hit.is_some())
    }

    /// Gives out what no command has claimed.
    pub fn settle(&mut self) {
        for stock in self.stocks.values_mut() {
            self.effects.extend(stock.kept.as_mut().and_then(unclaimed));
        }
    }
}

/// From when on a quote may not be used, ms.
fn ends(quote: &StockQuote) -> u64 {
    quote.server_ms.saturating_add(WINDOW_MS)
}

/// The quote, if it can be used now; else the quote with the hit that the log is to have, if there is one.
fn checked(
    answer: Result<QuoteBrought, QuoteFault>,
    now_ms: u64,
) -> Result<QuoteBrought, Option<QuoteBrought>> {
    let brought = answer.map_err(|_| None)?;
    let is_ahead = brought.quote.server_ms > now_ms.saturating_add(WINDOW_MS);
    if is_ahead || now_ms >= ends(&brought.quote) {
        return Err(Some(brought).filter(|brought| brought.hit.is_some()));
    }
    Ok(brought)
}

/// A hit that no command has taken, to be noted as nobody's.
fn unclaimed(kept: &mut Kept) -> Option<DeskEffect> {
    let hit = kept.hit.take();
    hit.map(|_| DeskEffect::Unclaimed { brought: QuoteBrought { quote: kept.quote.clone(), hit } })
}

#[cfg(test)]
mod tests;
