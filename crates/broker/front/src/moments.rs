//! What happens without a command: a trigger fires at a quote that is good enough, a pending buy or sell lapses after its minute.
//!
//! Both are requests in their user's order, like his commands: so it is decided once whether a commit or the end of its minute came first, and the log says
//! which. If every front asked for both, all but one would ask for nothing. So a front asks at once only for what was armed or placed through it; what others armed it asks for when a look, which costs no
//! transaction, still shows it a second after they could have done it. That is only if they are gone.
//!
//! So of others' triggers a front keeps which stocks they are of, and no more: there may be any number of them. Its own, of which it keeps [`OWN_MAX`], are others' as well beyond that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pares_broker::{
    Asked, BrokerReply, BrokerRequest, RELEASED_MAX, StockSymbol, TradeWay, UserCommand, UserName, Verb,
};

use crate::front::BrokerFront;
use crate::user::{Cause, Moment};

/// So much later, ms, a front asks for what another is to ask for.
pub(crate) const LATE_MS: u64 = 1_000;
/// Most triggers armed through a front that it keeps in mind.
pub(crate) const OWN_MAX: usize = 1_000_000;

/// A trigger that was armed through this front.
#[derive(Debug)]
struct Own {
    price_cents: u64,
    /// The latest look that has shown it, or at which it cannot be missed yet.
    seen: u64,
}

/// A stock with armed triggers.
#[derive(Debug, Default)]
struct Watched {
    own: BTreeMap<(TradeWay, UserName), Own>,
    /// The latest look that has shown one of others.
    others_seen: Option<u64>,
    /// When the latest quote came, ms.
    news_ms: u64,
}

impl Watched {
    fn is_over(&self) -> bool {
        self.own.is_empty() && self.others_seen.is_none()
    }
}

/// Whose an armed trigger is that a look shows.
pub(crate) enum Shown {
    /// It was armed through this front, which has done what can be done.
    Own,
    /// Of others, and the first of its stock.
    First,
    /// Of others: they could have fired it since this time, ms.
    Others(u64),
}

/// What is to happen, as far as this front knows.
#[derive(Debug)]
pub(crate) struct Ahead {
    armed: BTreeMap<StockSymbol, Watched>,
    /// Of this front's own, in all.
    count: usize,
    pub(crate) own_max: usize,
    pending: Pendings,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { armed: BTreeMap::new(), count: 0, own_max: OWN_MAX, pending: Pendings::default() }
    }
}

impl Ahead {
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.pending.ends.first().map(|end| end.0)
    }

    /// Stocks that are watched, and this front's own triggers.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.armed.len(), self.count)
    }

    /// The `look`-th look shows a trigger.
    pub(crate) fn shown(
        &mut self,
        symbol: StockSymbol,
        whose: &(TradeWay, UserName),
        price_cents: u64,
        (look, now_ms): (u64, u64),
    ) -> Shown {
        let is_new = !self.armed.contains_key(&symbol);
        let watched = self.armed.entry(symbol).or_default();
        if let Some(own) = watched.own.get_mut(whose) {
            assert!(own.seen <= look + 1, "a trigger was armed before the next look at the latest");
            // What was armed here since the look began is not what it shows.
            if own.seen <= look {
                (own.price_cents, own.seen) = (price_cents, look);
            }
            return Shown::Own;
        }
        watched.others_seen = watched.others_seen.max(Some(look));
        if is_new {
            watched.news_ms = now_ms;
            return Shown::First;
        }
        Shown::Others(watched.news_ms)
    }

    /// A trigger was armed through this front. Beyond what it keeps in mind it is left to looks.
    fn arm(&mut self, symbol: StockSymbol, whose: (TradeWay, UserName), price_cents: u64, seen: u64) {
        let watched = self.armed.entry(symbol).or_default();
        if self.count >= self.own_max && !watched.own.contains_key(&whose) {
            watched.others_seen = watched.others_seen.max(Some(seen));
            return;
        }
        self.count += usize::from(watched.own.insert(whose, Own { price_cents, seen }).is_none());
        assert!(watched.own.len() <= self.count, "a trigger that is kept is counted");
    }

    /// Forgets what neither this look nor the one before has shown; gives stocks of which nothing is left.
    pub(crate) fn forget_unseen(&mut self, look: u64) -> Vec<StockSymbol> {
        for watched in self.armed.values_mut() {
            watched.own.retain(|_, own| own.seen + 1 >= look);
            watched.others_seen.take_if(|seen| *seen + 1 < look);
        }
        self.count = self.armed.values().map(|watched| watched.own.len()).sum();
        self.armed.extract_if(.., |_, watched| watched.is_over()).map(|(symbol, _)| symbol).collect()
    }

    /// It is armed no more, or not as far as this front can say; whether nothing else is of this stock.
    fn disarm(&mut self, symbol: StockSymbol, whose: &(TradeWay, UserName)) -> bool {
        let Some(watched) = self.armed.get_mut(&symbol) else { return false };
        assert!(watched.own.len() <= self.count, "a trigger that is kept is counted");
        self.count -= usize::from(watched.own.remove(whose).is_some());
        let is_last = watched.is_over();
        if is_last {
            self.armed.remove(&symbol);
        }
        is_last
    }
}

/// What was placed through this front, and not committed or cancelled through it.
#[derive(Debug, Default)]
struct Pendings {
    /// When each comes to its end, the oldest first.
    of: BTreeMap<(UserName, TradeWay), VecDeque<u64>>,
    /// The first of each.
    ends: BTreeSet<(u64, UserName, TradeWay)>,
}

impl Pendings {
    fn placed(&mut self, user: UserName, way: TradeWay, due_ms: u64) {
        let dues = self.of.entry((user.clone(), way)).or_default();
        if dues.is_empty() {
            self.ends.insert((due_ms, user, way));
        }
        dues.push_back(due_ms);
        assert_eq!(self.ends.len(), self.of.len(), "of what a user has pending one end is the next");
    }

    /// The newest is pending no more. If that was another front's, a look finds what is forgotten here.
    fn settled(&mut self, user: UserName, way: TradeWay) {
        let whose = (user, way);
        let Some(dues) = self.of.get_mut(&whose) else { return };
        let newest = dues.pop_back();
        if let Some(due_ms) = newest.filter(|_| dues.is_empty()) {
            self.of.remove(&whose);
            self.ends.remove(&(due_ms, whose.0, way));
        }
        assert_eq!(self.ends.len(), self.of.len(), "of what a user has pending one end is the next");
    }

    /// Whose oldest has come to its end.
    fn next_due(&mut self, now_ms: u64) -> Option<(UserName, TradeWay)> {
        assert_eq!(self.ends.len(), self.of.len(), "of what a user has pending one end is the next");
        let (_, user, way) = self.ends.first().filter(|(due_ms, ..)| *due_ms <= now_ms)?.clone();
        self.ends.pop_first();
        let whose = (user, way);
        if let Some(dues) = self.of.get_mut(&whose) {
            while dues.pop_front_if(|due_ms| *due_ms <= now_ms).is_some() {}
            match dues.front() {
                Some(due_ms) => drop(self.ends.replace((*due_ms, whose.0.clone(), way))),
                None => drop(self.of.remove(&whose)),
            }
        }
        Some(whose)
    }
}

impl BrokerFront {
    /// The ends of pending buys and sells that have come.
    pub(crate) fn happen_what_is_due(&mut self, now_ms: u64) {
        while let Some((user, way)) = self.ahead.pending.next_due(now_ms) {
            self.happens(&user, Moment::Lapse(way), now_ms);
        }
    }

    /// With a clock that is off it is left to other fronts.
    fn happens(&mut self, user: &UserName, moment: Moment, now_ms: u64) {
        if self.clock.is_off() {
            return;
        }
        let at = self.part_of(Some(user));
        self.parts[at].note(moment);
        self.advance(at, now_ms);
    }

    /// The same, unless it is asked for already.
    fn happens_once(&mut self, user: &UserName, moment: Moment, now_ms: u64) {
        let at = self.part_of(Some(user));
        if !self.parts[at].is_asking(&moment) {
            self.happens(user, moment, now_ms);
        }
    }

    /// A look shows that it has not happened, though others could have asked for it: this front does. If too much waits already, the next look shows it again.
    pub(crate) fn happens_after_all(&mut self, user: &UserName, moment: Moment, now_ms: u64) {
        if self.turns.has_room_for_moments() {
            self.happens_once(user, moment, now_ms);
        }
    }

    /// A quote has come: triggers that were armed here and whose price it reaches.
    pub(crate) fn fire_what_is_good(&mut self, symbol: StockSymbol, now_ms: u64) {
        let Some(price) = self.desk.price(symbol, now_ms) else { return };
        let Some(watched) = self.ahead.armed.get_mut(&symbol) else { return };
        watched.news_ms = now_ms;
        let good = watched.own.iter().filter(|((way, _), own)| is_good(*way, price, own.price_cents));
        for (way, user) in good.map(|(whose, _)| whose.clone()).collect::<Vec<_>>() {
            self.happens_once(&user, Moment::Fire(way, symbol), now_ms);
        }
    }

    pub(crate) fn submit_moment(&mut self, at: usize, moment: Moment, time_ms: u64) {
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
        self.submit(at, request, Cause::Moment(moment));
    }

    pub(crate) fn moment_answered(&mut self, at: usize, moment: &Moment, reply: &BrokerReply) {
        match (moment, reply, self.parts[at].user.clone()) {
            // If there was nothing to fire, another front has, or a look shows it again.
            (Moment::Fire(way, symbol), BrokerReply::Settled { .. } | BrokerReply::Unchanged, Some(user)) => {
                self.disarm(*symbol, *way, user)
            }
            (Moment::Lapse(way), BrokerReply::Lapsed { count: RELEASED_MAX.. }, _)
                if !self.clock.is_off() =>
            {
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
            Verb::Buy
            | Verb::CommitBuy
            | Verb::CancelBuy
            | Verb::SetBuyAmount
            | Verb::SetBuyTrigger
            | Verb::CancelSetBuy => TradeWay::Buy,
            Verb::Sell
            | Verb::CommitSell
            | Verb::CancelSell
            | Verb::SetSellAmount
            | Verb::SetSellTrigger
            | Verb::CancelSetSell => TradeWay::Sell,
            _ => return,
        };
        let Some(user) = command.user.clone() else { return };
        match (reply, command.symbol, command.cents) {
            (BrokerReply::Held { until_ms, .. }, ..) => {
                self.ahead.pending.placed(user, way, until_ms + 1);
            }
            (BrokerReply::Settled { .. }, None, _) => self.ahead.pending.settled(user, way),
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
        self.ahead.arm(symbol, whose, price_cents, self.looks.done + 1);
        // A quote may have come while it was being armed.
        let is_good = self.desk.price(symbol, now_ms).is_some_and(|price| is_good(way, price, price_cents));
        if is_good && !self.clock.is_off() {
            self.parts[at].note(Moment::Fire(way, symbol));
        }
    }

    fn disarm(&mut self, symbol: StockSymbol, way: TradeWay, user: UserName) {
        if self.ahead.disarm(symbol, &(way, user)) {
            self.desk.unwatch(symbol);
        }
    }
}

/// Whether a price fires a trigger of this limit.
pub(crate) fn is_good(way: TradeWay, price: u64, limit: u64) -> bool {
    match way {
        TradeWay::Buy => price <= limit,
        TradeWay::Sell => price >= limit,
    }
}
