//! What happens without a command: a trigger fires at a quote that is good enough, a pending buy or sell lapses after its minute.
//!
//! Both are requests in their user's order, like his commands: so it is decided once whether a commit or the end of its minute came first, and the log says
//! which. A front that forgets them loses nothing: another asks for the same, and what was done is not done again.

use pares_broker::{Asked, BrokerReply, StockSymbol, TradeWay, UserCommand, UserName, Verb};

use crate::front::{BrokerFront, FrontEffect};
use crate::session::{Cause, Moment};

/// So many at once are released by one request: there may be more.
const RELEASED_MAX: u64 = 64;

impl BrokerFront {
    /// The ends of pending buys and sells that have come.
    pub(crate) fn end_what_is_due(&mut self, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        while let Some(&(due_ms, at, way)) = self.ends.first()
            && due_ms <= now_ms
        {
            self.ends.pop_first();
            self.sessions[at].note(Moment::Expire(way));
            self.advance(at, now_ms, effects);
        }
    }

    /// A stock has another quote: armed triggers whose price it reaches.
    pub(crate) fn fire_what_is_good(
        &mut self,
        symbol: StockSymbol,
        now_ms: u64,
        effects: &mut Vec<FrontEffect>,
    ) {
        let Some(price) = self.desk.price(symbol, now_ms) else { return };
        let armed = self.armed.range((symbol, TradeWay::Buy, 0)..=(symbol, TradeWay::Sell, usize::MAX));
        let good = armed.filter(|((_, way, _), limit)| is_good(*way, price, **limit));
        for (way, at) in good.map(|((_, way, at), _)| (*way, *at)).collect::<Vec<_>>() {
            self.sessions[at].note(Moment::Fire(way, symbol));
            self.advance(at, now_ms, effects);
        }
    }

    pub(crate) fn submit_moment(
        &mut self,
        at: usize,
        moment: Moment,
        now_ms: u64,
        effects: &mut Vec<FrontEffect>,
    ) {
        let user = self.sessions[at].user.clone();
        let (asked, quote) = match (&moment, user) {
            (Moment::Fire(way, symbol), Some(user)) => {
                let quote = self.desk.claim(*symbol, now_ms);
                (Asked::Fire { way: *way, user, symbol: *symbol }, quote)
            }
            (Moment::Expire(way), Some(user)) => (Asked::Expire { way: *way, user }, None),
            (Moment::Hit(brought), _) => (Asked::Hit, Some(brought.clone())),
            (_, None) => return,
        };
        let request = self.request(at, asked, quote, now_ms);
        self.submit(at, request, Cause::Moment(moment), effects);
    }

    pub(crate) fn moment_answered(&mut self, at: usize, moment: &Moment, reply: &BrokerReply) {
        match (moment, reply) {
            (Moment::Fire(way, symbol), BrokerReply::Settled { .. }) => self.disarm(at, *way, *symbol),
            (Moment::Expire(way), BrokerReply::Expired { count: RELEASED_MAX.. }) => {
                self.sessions[at].note(Moment::Expire(*way));
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
        match (reply, command) {
            (BrokerReply::Refused { .. }, _) => {}
            (BrokerReply::Held { until_ms, .. }, _) => drop(self.ends.insert((until_ms + 1, at, way))),
            (
                BrokerReply::Armed { .. },
                UserCommand { user: Some(user), symbol: Some(symbol), cents: Some(limit), .. },
            ) => self.arm(at, way, *symbol, *limit, user, now_ms),
            (_, UserCommand { symbol: Some(symbol), .. }) => self.disarm(at, way, *symbol),
            _ => {}
        }
    }

    fn arm(
        &mut self,
        at: usize,
        way: TradeWay,
        symbol: StockSymbol,
        limit: u64,
        user: &UserName,
        now_ms: u64,
    ) {
        self.armed.insert((symbol, way, at), limit);
        self.desk.watch(symbol, user, now_ms);
        // A quote may have come while it was being armed.
        if self.desk.price(symbol, now_ms).is_some_and(|price| is_good(way, price, limit)) {
            self.sessions[at].note(Moment::Fire(way, symbol));
        }
    }

    fn disarm(&mut self, at: usize, way: TradeWay, symbol: StockSymbol) {
        self.armed.remove(&(symbol, way, at));
        let all = (symbol, TradeWay::Buy, 0)..=(symbol, TradeWay::Sell, usize::MAX);
        if self.armed.range(all).next().is_none() {
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
