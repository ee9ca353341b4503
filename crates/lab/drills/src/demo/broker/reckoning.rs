//! The end: what the accounts say against what the exchange says, before and after its day has ended.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_broker::{
    AccountSummary, AuditPage, AuditReplay, AuditReport, BrokerRead, ORDERS_PAGE_MAX, Order, OrderListed,
    OrderRead, OrderStage, PersonRead, RouterSeat, TradeWay, UserName, UsersPage, dollars, tell_log,
};
use pares_client::{Client, ClientError, List, ListRequest, Options, Update};
use pares_load::{LabError, LabResult};
use pares_os::clock;
use pares_routing::AccountsClient;
use pares_types::{BusinessDay, Command, MemberId, Timestamp};
use pares_wice::codec::Coded as _;

use super::customers::{PAID_IN_CENTS, failed, is_customer, read_until};
use super::stage::BROKER;
use super::verdict::Verdict;
use crate::exchange::ask_exchange;

/// Within so long everything is sent and applied.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// What the exchange's stream says of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traded {
    shares: u64,
    value: u64,
}

/// See the [module](self).
pub(super) struct Reckoning {
    accounts: AccountsClient,
    gateways: Vec<SocketAddr>,
}

/// All orders of all customers.
type Orders = Vec<(UserName, u64, Order)>;

impl Reckoning {
    pub(super) fn new(accounts: AccountsClient, gateways: Vec<SocketAddr>) -> Self {
        Self { accounts, gateways }
    }

    /// Does it; `turn` keeps the rest going.
    pub(super) fn reckon(&mut self, turn: &mut dyn FnMut() -> LabResult) -> Result<Verdict, LabError> {
        let mut verdict = Verdict::default();
        let began = Instant::now();
        loop {
            let (orders, there) = (self.orders()?, self.open_there()?);
            self.compare_open(&orders, &there, &mut verdict);
            if verdict.holds_off == 0 && verdict.unknown == 0 && verdict.open == verdict.open_there {
                break;
            }
            if began.elapsed() > PATIENCE {
                break;
            }
            self.wait(turn)?;
        }
        self.end_day(turn)?;
        let ended = Instant::now();
        while self.orders()?.iter().any(|(_, _, order)| !order.has_ended()) && ended.elapsed() < PATIENCE {
            self.wait(turn)?;
        }
        self.compare_trades(&mut verdict)?;
        self.compare_money(&mut verdict)?;
        Ok(verdict)
    }

    fn wait(&mut self, turn: &mut dyn FnMut() -> LabResult) -> LabResult {
        let began = Instant::now();
        while began.elapsed() < PAUSE {
            turn()?;
        }
        Ok(())
    }

    fn read(&mut self, read: BrokerRead) -> Result<Vec<u8>, LabError> {
        let found = self.accounts.read(read, &AtomicBool::new(false)).map_err(failed)?;
        Ok(found.unwrap_or_default())
    }

    /// All who have an account: the customers, and who came by the pages.
    fn users(&mut self) -> Result<Vec<UserName>, LabError> {
        let (mut users, mut after) = (Vec::new(), None);
        loop {
            let bytes = self.read(BrokerRead::Person { read: PersonRead::Users { after } })?;
            let page = UsersPage::from_bytes(&bytes).map_err(failed)?;
            after = page.users.last().map(|user| user.name.clone());
            users.extend(
                page.users.into_iter().filter(|user| user.cash_cents.is_some()).map(|user| user.name),
            );
            if !page.has_more {
                return Ok(users);
            }
        }
    }

    fn orders(&mut self) -> Result<Orders, LabError> {
        let mut all = Vec::new();
        for user in self.users()? {
            let mut before = None;
            loop {
                let read = OrderRead::Mine { user: user.clone(), before };
                let bytes = self.read(BrokerRead::Order { read })?;
                let page = Vec::<OrderListed>::from_bytes(&bytes).map_err(failed)?;
                before = page.last().map(|listed| listed.place);
                let is_last = page.len() < ORDERS_PAGE_MAX;
                all.extend(
                    page.into_iter().map(|OrderListed { number, order, .. }| (user.clone(), number, order)),
                );
                if is_last {
                    break;
                }
            }
        }
        Ok(all)
    }

    fn connect(&self, member: MemberId, options: &Options) -> Result<Client, ClientError> {
        let mut client = Err(ClientError::Closed);
        for address in &self.gateways {
            client = client.or_else(|_| Client::connect_with(address, member, options.clone()));
        }
        client
    }

    /// Names and shares of the broker's orders that are there.
    fn open_there(&self) -> Result<BTreeMap<u64, u64>, LabError> {
        let Ok(mut client) = self.connect(BROKER, &Options::default()) else { return Ok(BTreeMap::new()) };
        client.list(&ListRequest { token: 2, list: List::Orders, instrument: None })?;
        let mut found = BTreeMap::new();
        read_until(&mut client, PATIENCE, |update| {
            if let Update::OrderStatus(status) = &update {
                found.insert(status.client_order_id.0, status.remaining.0);
            }
            matches!(update, Update::ListEnd(_))
        })?;
        Ok(found)
    }

    /// Every hold is an order that is there, and the other way round.
    fn compare_open(&self, orders: &Orders, there: &BTreeMap<u64, u64>, verdict: &mut Verdict) {
        let open = |order: &&(UserName, u64, Order)| !order.2.has_ended();
        let held: BTreeMap<u64, u64> =
            orders.iter().filter(open).map(|(_, _, order)| (order.name, order.left)).collect();
        verdict.orders = orders.len() as u64;
        verdict.open = orders.iter().filter(open).count() as u64;
        verdict.open_there = there.len() as u64;
        verdict.holds_off = held.iter().filter(|(name, left)| there.get(name) != Some(left)).count() as u64;
        verdict.unknown = there.keys().filter(|name| !held.contains_key(name)).count() as u64;
    }

    /// The exchange ends its day: orders for the day expire.
    fn end_day(&self, turn: &mut dyn FnMut() -> LabResult) -> LabResult {
        let day = BusinessDay::of(Timestamp(clock::now_ns()));
        let name = 1 << 47;
        for (name, command) in [(name, Command::BeginDay { day }), (name + 1, Command::EndDay { day })] {
            ask_exchange(name, command, |member, options| {
                turn()?;
                Ok(self.connect(member, options))
            })?;
        }
        Ok(())
    }

    /// What the broker received, from the first message on.
    fn told(&self) -> Result<(BTreeMap<u64, Traded>, u64), LabError> {
        let mut client = self.connect(BROKER, &Options { resumes: true, ..Options::default() })?;
        client.resume(None, 1)?;
        let (mut traded, mut count, mut resumed) = (BTreeMap::<u64, Traded>::new(), 0, 0);
        read_until(&mut client, PATIENCE, |update| {
            match update {
                Update::Trade(trade) => {
                    let sum = traded.entry(trade.client_order_id.0).or_default();
                    sum.shares += trade.quantity.0;
                    sum.value += trade.quantity.0 * u64::try_from(trade.price.0).unwrap_or_default();
                    count += 1;
                }
                Update::Resumed { .. } => resumed += 1,
                _ => {}
            }
            resumed >= super::stage::shards()
        })?;
        Ok((traded, count))
    }

    fn compare_trades(&mut self, verdict: &mut Verdict) -> LabResult {
        let (mut traded, count) = self.told()?;
        verdict.trades = count;
        verdict.value = dollars(traded.values().map(|sum| sum.value / 100).sum());
        for (_, _, order) in self.orders()? {
            let there = traded.remove(&order.name).unwrap_or_default();
            let here = Traded { shares: order.filled, value: order.value };
            verdict.trades_off += u64::from(there != here);
            match order.state {
                OrderStage::Filled => verdict.filled += 1,
                OrderStage::Cancelled => verdict.cancelled += 1,
                OrderStage::Expired => verdict.expired += 1,
                OrderStage::Refused => verdict.turned_away += 1,
                _ => {}
            }
            verdict.held_after_cents += order.held_cents();
        }
        verdict.unknown += traded.len() as u64;
        let bytes = self.read(BrokerRead::Order { read: OrderRead::Router })?;
        let seat = Option::<RouterSeat>::from_bytes(&bytes).map_err(failed)?;
        verdict.terms = seat.map_or(0, |seat| seat.term);
        Ok(())
    }

    /// Each customer has what he paid in, less what he paid and with what he received, by the orders; and all users have what the log alone says.
    fn compare_money(&mut self, verdict: &mut Verdict) -> LabResult {
        let report = self.replayed()?;
        verdict.log_verified = true;
        let orders = self.orders()?;
        for user in self.users()? {
            let bytes = self.read(BrokerRead::Summary { user: user.clone() })?;
            let has = Option::<AccountSummary>::from_bytes(&bytes).map_err(failed)?.unwrap_or_default();
            let replayed = report.accounts.get(user.as_str());
            verdict.log_verified &= replayed.is_some_and(|replayed| replayed.is(&has));
            if !is_customer(&user) {
                continue;
            }
            let mut expected = i128::from(PAID_IN_CENTS);
            for (_, _, order) in orders.iter().filter(|(of, _, _)| *of == user) {
                let cents = i128::from(order.charge(order.value));
                expected += if order.terms.way == TradeWay::Buy { -cents } else { cents };
                expected -= i128::from(order.held_cents());
            }
            let off = (i128::from(has.account.cash_cents) - expected).unsigned_abs();
            verdict.money_off_cents += u64::try_from(off).unwrap_or(u64::MAX);
        }
        Ok(())
    }

    fn replayed(&mut self) -> Result<AuditReport, LabError> {
        let mut replay = AuditReplay::default();
        let page = |from| {
            let bytes = self.read(BrokerRead::Log { user: None, from })?;
            AuditPage::from_bytes(&bytes).map_err(failed)
        };
        tell_log(page, |text| replay.text(text).map_err(failed))?;
        replay.finish().map_err(failed)
    }
}
