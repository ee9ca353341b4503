//! What happens without a command: a trigger fires at a quote that is good enough, a pending buy or sell lapses after its minute.
//!
//! Both are requests in their user's order, like his commands: so it is decided once whether a commit or the end of its minute came first, and the log says
//! which. Every front asks for both, and what was done is not done again. But the front through which something was armed or placed is first: the others wait for a second, so that they
//! hardly ever ask for the same at once.

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::{
    Asked, BrokerReply, BrokerRequest, RELEASED_MAX, StockSymbol, TradeWay, UserCommand, UserName, Verb,
};

use crate::effect::FrontEffect;
use crate::front::BrokerFront;
use crate::user::{Cause, Moment};

/// So much later, ms, a front asks for what another is to ask for.
pub(crate) const LATE_MS: u64 = 1_000;
/// Most triggers that a front watches; those of the last stocks are left to others beyond that.
const WATCHED_MAX: usize = 1_000_000;

/// A trigger that is armed.
#[derive(Debug)]
struct Watched {
    price_cents: u64,
    /// It was armed through this front.
    is_own: bool,
    /// The latest look that has shown it, or at which it cannot be missed yet.
    seen: u64,
}

type Watch = BTreeMap<(TradeWay, UserName), Watched>;

/// What is to happen, as far as this front knows.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    armed: BTreeMap<StockSymbol, Watch>,
    count: usize,
    /// When something pending comes to its end.
    ends: BTreeSet<(u64, UserName, TradeWay)>,
    /// When to look whether what others armed is still there, and its price good enough.
    later: BTreeSet<(u64, StockSymbol)>,
}

impl Ahead {
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let [ends, later] = [self.ends.first().map(|end| end.0), self.later.first().map(|later| later.0)];
        ends.into_iter().chain(later).min()
    }

    pub(crate) fn ends_at(&mut self, due_ms: u64, user: UserName, way: TradeWay) {
        self.ends.insert((due_ms, user, way));
    }

    pub(crate) fn look_later(&mut self, symbol: StockSymbol, now_ms: u64) {
        self.later.insert((now_ms + LATE_MS, symbol));
    }

    /// A trigger was found at the `look`-th look; whether it is new.
    pub(crate) fn learn(
        &mut self,
        symbol: StockSymbol,
        whose: (TradeWay, UserName),
        price_cents: u64,
        look: u64,
    ) -> bool {
        let watch = self.armed.entry(symbol).or_default();
        if let Some(known) = watch.get_mut(&whose) {
            // What was armed here since the look began is not what it shows.
            if known.seen <= look {
                (known.price_cents, known.seen) = (price_cents, look);
            }
            return false;
        }
        if self.count >= WATCHED_MAX {
            return false;
        }
        self.count += 1;
        watch.insert(whose, Watched { price_cents, is_own: false, seen: look });
        true
    }

    /// Forgets what neither this look nor the one before has shown; gives stocks of which nothing is left.
    pub(crate) fn forget_unseen(&mut self, look: u64) -> Vec<StockSymbol> {
        for watch in self.armed.values_mut() {
            watch.retain(|_, watched| watched.seen + 1 >= look);
        }
        self.count = self.armed.values().map(BTreeMap::len).sum();
        self.armed.extract_if(.., |_, watch| watch.is_empty()).map(|(symbol, _)| symbol).collect()
    }

    /// It is armed no more; whether nothing else is of this stock.
    fn disarm(&mut self, symbol: StockSymbol, whose: &(TradeWay, UserName)) -> bool {
        let Some(watch) = self.armed.get_mut(&symbol) else { return false };
        self.count -= usize::from(watch.remove(whose).is_some());
        let is_last = watch.is_empty();
        if is_last {
            self.armed.remove(&symbol);
        }
        is_last
    }
}

impl BrokerFront {
    /// The ends of pending buys and sells that have come, and triggers of others that nobody has fired.
    pub(crate) fn happen_what_is_due(&mut self, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        while self.ahead.ends.first().is_some_and(|(due_ms, ..)| *due_ms <= now_ms)
            && let Some((_, user, way)) = self.ahead.ends.pop_first()
        {
            self.happens(&user, Moment::Lapse(way), now_ms, effects);
        }
        while self.ahead.later.first().is_some_and(|(due_ms, _)| *due_ms <= now_ms)
            && let Some((_, symbol)) = self.ahead.later.pop_first()
        {
            self.fire_what_is_good(symbol, false, now_ms, effects);
        }
    }

    fn happens(&mut self, user: &UserName, moment: Moment, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        let at = self.part_of(Some(user));
        self.parts[at].note(moment);
        self.advance(at, now_ms, effects);
    }

    /// Armed triggers whose price a stock's quote reaches: those armed here, and later those of others.
    pub(crate) fn fire_what_is_good(
        &mut self,
        symbol: StockSymbol,
        is_own: bool,
        now_ms: u64,
        effects: &mut Vec<FrontEffect>,
    ) {
        let Some(price) = self.desk.price(symbol, now_ms) else { return };
        let Some(watch) = self.ahead.armed.get(&symbol) else { return };
        let good = watch.iter().filter(|((way, _), watched)| is_good(*way, price, watched.price_cents));
        let (own, others): (Vec<_>, Vec<_>) = good.partition(|(_, watched)| watched.is_own);
        let now = if is_own { &own } else { &others };
        let now: Vec<_> = now.iter().map(|(whose, _)| (*whose).clone()).collect();
        if is_own && !others.is_empty() {
            self.ahead.look_later(symbol, now_ms);
        }
        for (way, user) in now {
            self.happens(&user, Moment::Fire(way, symbol), now_ms, effects);
        }
    }

    pub(crate) fn submit_moment(
        &mut self,
        at: usize,
        moment: Moment,
        time_ms: u64,
        effects: &mut Vec<FrontEffect>,
    ) {
        let user = self.parts[at].user.clone();
        let (asked, quote) = match (&moment, user) {
            (Moment::Fire(way, symbol), Some(user)) => {
                let quote = self.desk.claim(*symbol, time_ms);
                (Asked::Fire { way: *way, user, symbol: *symbol }, quote)
            }
            (Moment::Lapse(way), Some(user)) => (Asked::Lapse { way: *way, user }, None),
            (Moment::Hit(brought), _) => (Asked::Hit, Some(brought.clone())),
            (_, None) => return,
        };
        let Some(number) = self.numbers.next_own() else { return };
        let request = BrokerRequest { number, after: 0, name: None, time_ms, quote, asked };
        self.submit(at, request, Cause::Moment(moment), effects);
    }

    pub(crate) fn moment_answered(&mut self, at: usize, moment: &Moment, reply: &BrokerReply) {
        match (moment, reply, self.parts[at].user.clone()) {
            (Moment::Fire(way, symbol), BrokerReply::Settled { .. }, Some(user)) => {
                self.disarm(*symbol, *way, user);
            }
            (Moment::Lapse(way), BrokerReply::Lapsed { count: RELEASED_MAX.. }, _) => {
                self.parts[at].note(Moment::Lapse(*way));
            }
            _ => {}
        }
    }

    /// What a command's reply means for what is to happen later.
    pub(crate) fn command_answered(
        &mut self,
        at: usize,
        command: &UserCommand,
        reply: &BrokerReply,
        now_ms: u64,
    ) {
        let way = match command.verb {
            Verb::Buy | Verb::SetBuyAmount | Verb::SetBuyTrigger | Verb::CancelSetBuy => TradeWay::Buy,
            Verb::Sell | Verb::SetSellAmount | Verb::SetSellTrigger | Verb::CancelSetSell => TradeWay::Sell,
            _ => return,
        };
        let Some(user) = command.user.clone() else { return };
        match (reply, command.symbol, command.cents) {
            (BrokerReply::Held { until_ms, .. }, ..) => self.ahead.ends_at(until_ms + 1, user, way),
            (BrokerReply::Armed { .. }, Some(symbol), Some(limit)) => {
                self.arm(at, symbol, (way, user), limit, now_ms);
            }
            (BrokerReply::Done | BrokerReply::Cash { .. } | BrokerReply::Settled { .. }, Some(symbol), _) => {
                self.disarm(symbol, way, user)
            }
            _ => {}
        }
    }

    fn arm(
        &mut self,
        at: usize,
        symbol: StockSymbol,
        whose: (TradeWay, UserName),
        price_cents: u64,
        now_ms: u64,
    ) {
        let way = whose.0;
        self.desk.watch(symbol, &whose.1, now_ms);
        let watched = Watched { price_cents, is_own: true, seen: self.looks.done + 1 };
        let before = self.ahead.armed.entry(symbol).or_default().insert(whose, watched);
        self.ahead.count += usize::from(before.is_none());
        // A quote may have come while it was being armed.
        if self.desk.price(symbol, now_ms).is_some_and(|price| is_good(way, price, price_cents)) {
            self.parts[at].note(Moment::Fire(way, symbol));
        }
    }

    fn disarm(&mut self, symbol: StockSymbol, way: TradeWay, user: UserName) {
        if self.ahead.disarm(symbol, &(way, user)) {
            self.desk.unwatch(symbol);
        }
    }
}

fn is_good(way: TradeWay, price: u64, limit: u64) -> bool {
    match way {
        TradeWay::Buy => price <= limit,
        TradeWay::Sell => price >= limit,
    }
}
