//! A front, its sites, the quote server and an exchange in one: the rules over a map in memory. For tests, and to work on pages. Nothing of it outlives the process.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // tests use what the example does not
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pares_broker::{
    ArmedPage, Asked, AuditPage, BrokerRead, BrokerReply, BrokerRequest, CommandName, CustomerOrderId,
    HitName, LapsingPage, Order, OrderAsked, OrderEvent, OrderLife, OrderRead, OrderReply, PersonAsked,
    QuoteBrought, Refusal, Settlement, StockQuote, StockSymbol, TradeWay, UserName, answer, execute,
    number_in_session, session_of_front,
};
use pares_web::{Broker, BrokerAnswer, Costs, Unavailable, WebClock};
use pares_wice::codec::Coded;
use pares_wice::{Key, Value};
use tokio::sync::broadcast;

/// A quote that has less left is asked for again, ms.
const LEFT_MS: u64 = 3_000;
const HIT_CENTS: u64 = 5;
/// So much of an order trades at a time.
const TRADED_MAX: u64 = 100;
/// The exchange's codes of why shares are cancelled.
const REQUESTED: u8 = 1;
const REMAINDER: u8 = 3;

/// See the [module](self).
#[derive(Clone)]
pub struct MemoryBroker {
    inner: Arc<Mutex<Inner>>,
    quotes: broadcast::Sender<StockQuote>,
    clock: WebClock,
    /// Refuses who tries to sign in.
    is_clock_off: bool,
}

#[derive(Default)]
struct Inner {
    items: BTreeMap<Key, Value>,
    latest: BTreeMap<UserName, u64>,
    count: u64,
    quotes: BTreeMap<StockSymbol, StockQuote>,
    hits: u64,
    looks: u64,
    /// Messages of the exchange so far.
    told: u64,
    /// What everything is answered instead.
    failure: Option<Unavailable>,
    /// Sites answer reads alone.
    commits_nothing: bool,
    /// What was asked since, and waits.
    left: u64,
}

impl MemoryBroker {
    /// Nobody is known to it, and nothing was asked.
    pub fn new(clock: WebClock) -> Self {
        Self { inner: Arc::default(), quotes: broadcast::channel(1_024).0, clock, is_clock_off: false }
    }

    /// The same by a front whose clock is off.
    pub fn with_clock_off(&self) -> Self {
        Self { is_clock_off: true, ..self.clone() }
    }

    /// From now on no site answers, or all do.
    pub fn set_away(&self, is_away: bool) {
        self.fail(is_away.then(|| Unavailable::Silent("away".into())));
    }

    /// From now on this is all that is answered, or nothing of it.
    pub fn fail(&self, failure: Option<Unavailable>) {
        self.inner().failure = failure;
    }

    /// From now on no site certifies: requests wait for ever, and are counted; reads are answered.
    pub fn commit_nothing(&self) {
        self.inner().commits_nothing = true;
    }

    /// So much waits.
    pub fn left(&self) -> u64 {
        self.inner().left
    }

    /// How often a log was read and had something.
    pub fn looks(&self) -> u64 {
        self.inner().looks
    }

    /// Fires what the latest quotes fire, asks again where something is armed, and releases what has lapsed; and the exchange does something with each order.
    pub fn tick(&self) {
        let (now_ms, mut inner) = ((self.clock)(), self.inner());
        let armed =
            ArmedPage::from_bytes(&answer(&BrokerRead::Armed { from: None }, &inner.items).unwrap()).unwrap();
        for trigger in armed.triggers {
            let quote = self.fresh(&mut inner, trigger.symbol, &trigger.user, now_ms);
            let (way, user, symbol) = (trigger.way, trigger.user, trigger.symbol);
            inner.run(0, None, now_ms, Some(quote), Asked::Fire { way, user, symbol });
        }
        let read = BrokerRead::Lapsing { from: None };
        let lapsing = LapsingPage::from_bytes(&answer(&read, &inner.items).unwrap()).unwrap();
        for stack in lapsing.stacks {
            inner.run(0, None, now_ms, None, Asked::Lapse { way: stack.way, user: stack.user });
        }
        inner.exchange(now_ms);
    }

    /// Ticks, four times a second.
    pub async fn live(self) {
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            self.tick();
        }
    }

    /// A quote comes at this price.
    pub fn set_price(&self, symbol: &str, price_cents: u64) {
        let symbol = StockSymbol::new(symbol).unwrap();
        let (user, key) = ("desk".to_owned(), "key".to_owned());
        self.learn(
            &mut self.inner(),
            StockQuote { price_cents, symbol, user, server_ms: (self.clock)(), key },
        );
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, inner: &mut Inner, quote: StockQuote) {
        inner.quotes.insert(quote.symbol, quote.clone());
        let _ = self.quotes.send(quote);
    }

    fn fresh(&self, inner: &mut Inner, symbol: StockSymbol, user: &UserName, now_ms: u64) -> QuoteBrought {
        let usable = pares_broker::WINDOW_MS - LEFT_MS;
        if let Some(quote) = inner.quotes.get(&symbol).filter(|quote| now_ms < quote.server_ms + usable) {
            return QuoteBrought { quote: quote.clone(), hit: None };
        }
        inner.hits += 1;
        let before = inner.quotes.get(&symbol).map(|quote| quote.price_cents);
        let drawn = (inner.hits * 2_654_435_761) % 1_000;
        let price_cents =
            before.map_or(1_000 + drawn * 20, |price| (price * (700 + drawn) / 1_000).clamp(101, 499_900));
        let (user, key) = (user.to_string(), format!("key{}", inner.hits));
        let quote = StockQuote { price_cents, symbol, user, server_ms: now_ms, key };
        self.learn(inner, quote.clone());
        QuoteBrought { quote, hit: Some(HitName { desk: 1, count: inner.hits }) }
    }
}

impl Inner {
    fn reachable(&self) -> Result<(), Unavailable> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn run(
        &mut self,
        after: u64,
        name: Option<CommandName>,
        time_ms: u64,
        quote: Option<QuoteBrought>,
        asked: Asked,
    ) -> BrokerReply {
        self.count += 1;
        let number = number_in_session(session_of_front(1, 1), self.count);
        let request = BrokerRequest { number, after, name, time_ms, quote, asked };
        execute(&request, &mut self.items).expect("the map is always there")
    }

    /// An exchange without other members: it accepts orders that wait, cancels those that are not wanted, and fills at its limit, a hundred shares at a time, each
    /// that is good enough for the latest quote.
    fn exchange(&mut self, now_ms: u64) {
        let waiting: Vec<(CustomerOrderId, Order)> = self.orders(OrderRead::Waiting { after: None });
        let open: Vec<(CustomerOrderId, Order)> = self.orders(OrderRead::Open { from: 0 });
        if waiting.is_empty() && open.is_empty() {
            return;
        }
        let claimed = self.order(now_ms, OrderAsked::Claim { router: 1, member: 1, seen: 0 });
        let BrokerReply::Order { reply: OrderReply::Claimed { term } } = claimed else { return };
        for (of, order) in open {
            if let Some(event) = self.next_event(&order) {
                self.settle(now_ms, term, of, event);
            }
        }
        let orders: Vec<CustomerOrderId> = waiting.into_iter().map(|(of, _)| of).collect();
        self.order(now_ms, OrderAsked::Name { term, orders: orders.clone() });
        for of in orders {
            self.settle(now_ms, term, of, OrderEvent::Accepted);
        }
    }

    fn next_event(&self, order: &Order) -> Option<OrderEvent> {
        let (limit, shares) = (order.terms.limit_cents, order.left);
        let is_good = |quote: &StockQuote| match order.terms.way {
            TradeWay::Buy => quote.price_cents <= limit,
            TradeWay::Sell => quote.price_cents >= limit,
        };
        if order.is_unwanted {
            Some(OrderEvent::Cancelled { cause: REQUESTED, shares })
        } else if self.quotes.get(&order.terms.symbol).is_some_and(is_good) {
            Some(OrderEvent::Traded { price: limit * 100, shares: shares.min(TRADED_MAX) })
        } else if order.terms.life == OrderLife::Immediate {
            Some(OrderEvent::Cancelled { cause: REMAINDER, shares })
        } else {
            None
        }
    }

    fn settle(&mut self, now_ms: u64, term: u64, of: CustomerOrderId, event: OrderEvent) {
        self.told += 1;
        let settlement = Settlement { term, shard: 0, number: self.told, of, event };
        let reply = self.order(now_ms, OrderAsked::Settle { settlement });
        assert!(matches!(reply, BrokerReply::Order { .. }), "{reply:?}");
    }

    fn order(&mut self, now_ms: u64, asked: OrderAsked) -> BrokerReply {
        self.run(0, None, now_ms, None, Asked::Order { asked })
    }

    fn orders(&self, read: OrderRead) -> Vec<(CustomerOrderId, Order)> {
        Coded::from_bytes(&answer(&BrokerRead::Order { read }, &self.items).unwrap()).unwrap()
    }

    /// The number of the user's command before.
    fn after(&self, user: &UserName) -> u64 {
        let first = number_in_session(session_of_front(1, 1), 0);
        self.latest.get(user).copied().unwrap_or(first)
    }
}

impl MemoryBroker {
    fn answer(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> Result<BrokerReply, Unavailable> {
        let (now_ms, mut inner) = ((self.clock)(), self.inner());
        inner.reachable()?;
        let (command, fault) = match &asked {
            Asked::Command { command, fault } => (command, *fault),
            Asked::Settle { command, .. } => (command, None),
            _ => return Ok(inner.run(0, name, now_ms, None, asked)),
        };
        let Some(user) = &user else { return Ok(inner.run(0, name, now_ms, None, asked)) };
        let is_good = fault.is_none() && command.check().is_ok();
        let quote = match command.symbol.filter(|_| is_good) {
            Some(symbol) if command.verb.needs_quote() => Some(self.fresh(&mut inner, symbol, user, now_ms)),
            Some(symbol) => {
                inner.quotes.get(&symbol).map(|quote| QuoteBrought { quote: quote.clone(), hit: None })
            }
            None => None,
        };
        let after = inner.after(user);
        let reply = inner.run(after, name, now_ms, quote, asked.clone());
        let latest = number_in_session(session_of_front(1, 1), inner.count);
        inner.latest.insert(user.clone(), latest);
        Ok(reply)
    }

    fn page(&self, read: BrokerRead) -> Result<Vec<u8>, Unavailable> {
        let mut inner = self.inner();
        inner.reachable()?;
        let bytes = answer(&read, &inner.items).expect("the map is always there");
        let is_news = || !AuditPage::from_bytes(&bytes).unwrap().entries.is_empty();
        if matches!(read, BrokerRead::Log { .. }) && is_news() {
            inner.looks += 1;
        }
        Ok(bytes)
    }
}

impl Broker for MemoryBroker {
    fn ask(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> BrokerAnswer<'_, BrokerReply> {
        if self.is_clock_off && matches!(asked, Asked::Person { asked: PersonAsked::Try { .. } }) {
            return Box::pin(async { Ok(BrokerReply::Refused { refusal: Refusal::ClockOff }) });
        }
        let mut inner = self.inner();
        if inner.commits_nothing {
            inner.left += 1;
            return Box::pin(std::future::pending());
        }
        drop(inner);
        Box::pin(std::future::ready(self.answer(user, name, asked)))
    }

    fn read_bytes(&self, read: BrokerRead) -> BrokerAnswer<'_, Vec<u8>> {
        Box::pin(std::future::ready(self.page(read)))
    }

    fn quote(&self, symbol: StockSymbol) -> Option<StockQuote> {
        self.inner().quotes.get(&symbol).cloned()
    }

    fn quotes(&self) -> broadcast::Receiver<StockQuote> {
        self.quotes.subscribe()
    }

    fn costs(&self) -> Costs {
        let hits = self.inner().hits;
        Costs { hits, cents: hits * HIT_CENTS, clock_ahead_ms: 0 }
    }
}
