//! What customers do: pay in, place orders near the market, and cancel some of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pares_broker::{
    Asked, BrokerRead, BrokerReply, Customer, CustomerLimits, CustomerOrderId, OrderAsked, OrderLife,
    OrderRead, OrderReply, OrderTerms, PasswordString, PersonAsked, PersonRight, StockSymbol, TradeWay,
    UserCommand, UserName, Verb,
};
use pares_client::{Client, InstrumentStatus, List, ListRequest, Update};
use pares_flow::Random;
use pares_load::{LabError, LabResult, Worker};
use pares_routing::AccountsClient;
use pares_types::MemberId;
use pares_wice::codec::Coded as _;

/// How many.
pub(super) const CUSTOMERS: u64 = 20;
/// Each pays in so much, cents.
pub(super) const PAID_IN_CENTS: u64 = 100_000_000;
/// Shares of an order are a multiple of this.
pub(super) const LOT: u64 = 10;
/// Who only looks at prices.
const WATCHER: MemberId = MemberId(99);
/// Between two requests.
const PACE: Duration = Duration::from_millis(25);
const PRICES_EVERY: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);

/// What they have asked for so far.
#[derive(Default)]
pub(super) struct Asking {
    pub(super) placed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) cancelled: AtomicU64,
    /// The longest wait for a reply, ms.
    pub(super) slowest_ms: AtomicU64,
}

/// A thread that is all of them.
pub(super) struct Customers {
    pub(super) asking: Arc<Asking>,
    worker: Worker<LabResult>,
}

pub(super) fn customer(index: u64) -> UserName {
    UserName::new(&format!("customer{index}")).expect("letters and digits")
}

/// Who sets customers' limits: no person can sign in as him, since no password fits.
fn supervisor() -> UserName {
    UserName::new("supervisor").expect("letters")
}

/// Whether it is one of them, and not a person who signed up by the pages.
pub(super) fn is_customer(user: &UserName) -> bool {
    (0..CUSTOMERS).any(|index| customer(index) == *user)
}

impl Customers {
    pub(super) fn start(
        accounts: AccountsClient,
        gateways: Vec<SocketAddr>,
        seed: u64,
    ) -> Result<Self, LabError> {
        let asking = Arc::<Asking>::default();
        let (random, counts) = (Random::new(seed), Arc::clone(&asking));
        let run = move |stop: &Arc<AtomicBool>| {
            Crowd { accounts, gateways, asking: counts, stop, random, stocks: Vec::new() }.run()
        };
        Ok(Self { asking, worker: Worker::start("customers", run)? })
    }

    /// They ask for nothing any more.
    pub(super) fn end(self) -> LabResult {
        self.worker.finish()
    }

    pub(super) fn have_ended(&self) -> bool {
        self.worker.is_finished()
    }
}

struct Crowd<'a> {
    accounts: AccountsClient,
    gateways: Vec<SocketAddr>,
    asking: Arc<Asking>,
    stop: &'a AtomicBool,
    random: Random,
    /// Stocks and their prices, cents.
    stocks: Vec<(StockSymbol, u64)>,
}

impl Crowd<'_> {
    fn run(&mut self) -> LabResult {
        let (name, password) = (supervisor(), PasswordString(String::new()));
        let rights = vec![PersonRight::Supervisor];
        let asked = PersonAsked::Add { name, password, rights, takes_account: false };
        self.execute(Asked::Person { asked })?;
        for index in 0..CUSTOMERS {
            self.pay_in(&customer(index))?;
        }
        let mut looked: Option<Instant> = None;
        while !self.stop.load(Ordering::Relaxed) {
            if looked.is_none_or(|at| at.elapsed() > PRICES_EVERY) {
                self.look_at_prices();
                looked = Some(Instant::now());
            }
            self.ask_something()?;
            std::thread::sleep(PACE);
        }
        Ok(())
    }

    fn execute(&mut self, asked: Asked) -> Result<Option<BrokerReply>, LabError> {
        let began = Instant::now();
        let reply = self.accounts.execute(asked, self.stop).map_err(failed)?;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.asking.slowest_ms.fetch_max(ms, Ordering::Relaxed);
        Ok(reply)
    }

    fn pay_in(&mut self, user: &UserName) -> LabResult {
        let cents = Some(PAID_IN_CENTS);
        let command = UserCommand { user: Some(user.clone()), cents, ..UserCommand::of(Verb::Add) };
        self.execute(Asked::Command { command, fault: None })?;
        let limits = CustomerLimits { open_max: 20, ..CustomerLimits::default() };
        self.execute(Asked::Order {
            asked: OrderAsked::Limit { by: supervisor(), user: user.clone(), limits },
        })?;
        Ok(())
    }

    /// Where the market is. A gateway that is down is asked the next time.
    fn look_at_prices(&mut self) {
        let at = self.random.below(self.gateways.len() as u64) as usize;
        let Ok(mut client) = Client::connect(self.gateways[at], WATCHER) else { return };
        if let Ok(found) = instruments(&mut client) {
            let price = |status: &InstrumentStatus| Some((status.last.or(status.reference)?.0 / 100) as u64);
            let stock = |status: &InstrumentStatus| {
                let symbol = StockSymbol::new(status.symbol.as_str())?;
                Some((symbol, price(status)?))
            };
            self.stocks = found.iter().filter_map(stock).collect();
        }
    }

    fn ask_something(&mut self) -> LabResult {
        if self.stocks.is_empty() {
            return Ok(());
        }
        let user = customer(self.random.below(CUSTOMERS));
        if self.random.below(5) == 0 { self.cancel(user) } else { self.place(user) }
    }

    fn cancel(&mut self, user: UserName) -> LabResult {
        let read = BrokerRead::Order { read: OrderRead::Customer { user: user.clone() } };
        let Some(bytes) = self.accounts.read(read, self.stop).map_err(failed)? else { return Ok(()) };
        let open = Customer::from_bytes(&bytes).map_err(failed)?.open;
        let Some(number) = open.first().copied() else { return Ok(()) };
        let asked = OrderAsked::Cancel { of: CustomerOrderId { user, number } };
        self.execute(Asked::Order { asked })?;
        self.asking.cancelled.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn place(&mut self, user: UserName) -> LabResult {
        let (symbol, price) = self.stocks[self.random.below(self.stocks.len() as u64) as usize];
        let way = if self.random.below(2) == 0 { TradeWay::Buy } else { TradeWay::Sell };
        let life = if self.random.below(4) == 0 { OrderLife::Immediate } else { OrderLife::Day };
        let limit_cents = (price + self.random.below(9)).saturating_sub(4).max(1);
        let shares = LOT * (1 + self.random.below(20));
        let terms = OrderTerms { symbol, way, shares, limit_cents, life };
        match self.execute(Asked::Order { asked: OrderAsked::Place { user, terms } })? {
            Some(BrokerReply::Order { reply: OrderReply::Placed { .. } }) => &self.asking.placed,
            Some(BrokerReply::Refused { .. }) => &self.asking.refused,
            _ => return Ok(()),
        }
        .fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// What a gateway lists.
fn instruments(client: &mut Client) -> Result<Vec<InstrumentStatus>, LabError> {
    client.list(&ListRequest { token: 1, list: List::Instruments, instrument: None })?;
    let mut found = Vec::new();
    read_until(client, PATIENCE, |update| match update {
        Update::Instrument(status) => {
            found.push(status);
            false
        }
        update => matches!(update, Update::ListEnd(_)),
    })?;
    Ok(found)
}

/// Reads what a gateway sends, until `is_over` holds for an update or so much time is over.
pub(super) fn read_until(
    client: &mut Client,
    patience: Duration,
    mut is_over: impl FnMut(Update) -> bool,
) -> LabResult {
    let (mut ended, began) = (false, Instant::now());
    while !ended && began.elapsed() < patience {
        client.flush()?;
        client.wait(Duration::from_millis(100))?;
        client.poll(|update| ended |= is_over(update))?;
    }
    Ok(())
}

pub(super) fn failed(error: impl ToString) -> LabError {
    LabError::Failed(error.to_string())
}
