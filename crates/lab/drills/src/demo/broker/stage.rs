//! The exchange, the broker, and who kills what.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_broker::{BrokerRead, OrderRead, RouterSeat};
use pares_config::InstrumentConfig;
use pares_flow::FlowInstrument;
use pares_load::{LabError, LabResult, Load, LoadPlan, Rate, ScratchSystem, Venues};
use pares_node::{NodeId, SystemConfig};
use pares_routing::AccountsClient;
use pares_text::grouped;
use pares_types::{GatewayId, InstrumentId, MemberId, Price, Quantity};
use pares_wice::SiteId;
use pares_wice::codec::Coded as _;
use rustix::process::Signal;

use super::customers::{Customers, LOT, failed};
use super::parts::{Broker, SITES, Victim};
use super::reckoning::Reckoning;
use super::verdict::{Kills, Verdict};
use crate::demo::face;
use crate::demo::lines::clock;
use crate::demo::{Args, scene};

/// The broker, as the exchange knows it.
pub(super) const BROKER: MemberId = MemberId(50);
const SYMBOLS: [&str; 4] = ["ALF", "BRV", "CHL", "DLT"];
/// Where their prices start, cents.
const STARTS_CENTS: [i64; 4] = [1_825, 842, 997, 3_164];
/// Half a cent: so that some trades are at prices that are no cents.
const TICK: i64 = 50;
/// Requests a second of the others, unless told.
const RATE: u64 = 200;
const OTHERS: u32 = 5;
const SECONDS: u64 = 20;
const TURN: Duration = Duration::from_millis(5);

/// A demonstration under way.
pub(super) struct Stage {
    system: ScratchSystem,
    venues: Venues,
    load: Option<Load>,
    customers: Option<Customers>,
    broker: Broker,
    gateways: Vec<SocketAddr>,
    /// Reads.
    accounts: AccountsClient,
    kill_every: Duration,
    /// None: until Ctrl-C.
    lasts: Option<Duration>,
    is_silent: bool,
    begun: Instant,
    kills: Kills,
}

impl Stage {
    /// Starts all of it.
    ///
    /// # Errors
    /// If a part does not start.
    pub(super) fn set(args: &Args) -> Result<Self, LabError> {
        let system = ScratchSystem::start(&config(), args.dir.clone())?;
        let gateways = system.addresses()?;
        let broker = Broker::start(&gateways, BROKER, args.seed)?;
        let load = Load::start(market(args, &system, gateways.clone()))?;
        let customers = Customers::start(broker.accounts()?, gateways.clone(), args.seed)?;
        Ok(Self {
            venues: Venues::new(system.supervisor.layout(), system.supervisor.config()),
            load: Some(load),
            accounts: broker.accounts()?,
            kill_every: args.kill_every,
            lasts: (!args.stay).then(|| Duration::from_secs(args.seconds.unwrap_or(SECONDS))),
            is_silent: args.json,
            begun: Instant::now(),
            kills: Kills::default(),
            customers: Some(customers),
            system,
            broker,
            gateways,
        })
    }

    /// Kills until time is over.
    ///
    /// # Errors
    /// If a part fails.
    pub(super) fn play(&mut self, stop: &AtomicBool) -> LabResult {
        let (mut killed, mut said) = (Instant::now(), 0);
        self.say(&self.invitation());
        while !self.is_over() && !stop.load(Ordering::Relaxed) {
            self.turn()?;
            if !self.kill_every.is_zero() && killed.elapsed() >= self.kill_every && self.broker.is_whole() {
                killed = Instant::now();
                self.kill()?;
            }
            if self.begun.elapsed().as_secs() > said {
                said += 1;
                self.say(&self.second());
            }
            if self.customers.as_ref().is_some_and(Customers::have_ended) {
                break;
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.lasts.is_some_and(|lasts| self.begun.elapsed() >= lasts)
    }

    /// How to participate.
    fn invitation(&self) -> String {
        let stocks = SYMBOLS
            .iter()
            .zip(STARTS_CENTS)
            .map(|(symbol, cents)| format!("{symbol} near ${}", pares_broker::dollars(cents.unsigned_abs())));
        let until = if self.lasts.is_none() { "until Ctrl-C" } else { "with --stay until Ctrl-C" };
        format!(
            "pages at http://{} ({until}): sign up, add cash, and trade under Orders, {LOT} shares or a multiple: {}",
            self.broker.pages(),
            stocks.collect::<Vec<_>>().join(", ")
        )
    }

    /// Keeps alive what is to live.
    fn turn(&mut self) -> LabResult {
        self.system.supervisor.tick();
        self.broker.keep()?;
        std::thread::sleep(TURN);
        Ok(())
    }

    fn kill(&mut self) -> LabResult {
        let count = self.kills.all();
        let what = match Victim::after(count) {
            Victim::Router => self.kill_router()?,
            Victim::Venue => {
                let venue = self.venues.leading();
                self.system.supervisor.signal(NodeId::Venue(venue), Signal::KILL)?;
                self.kills.venues += 1;
                format!("venue-{venue}, which led")
            }
            Victim::Gateway => {
                let gateway = GatewayId((count / 4 % self.gateways.len()) as u16);
                self.system.supervisor.signal(NodeId::Gateway(gateway), Signal::KILL)?;
                self.kills.gateways += 1;
                format!("gateway-{gateway}")
            }
            Victim::Site => {
                let site = SiteId::new(0, (count / 4 % usize::from(SITES)) as u8);
                self.broker.kill_site(site);
                self.kills.sites += 1;
                format!("site {}.{}", site.cluster.0, site.number)
            }
        };
        self.say(&format!("{}  kill -9 of {what}", clock(self.begun.elapsed())));
        Ok(())
    }

    /// The active one.
    fn kill_router(&mut self) -> Result<String, LabError> {
        let read = BrokerRead::Order { read: OrderRead::Router };
        let bytes = self.accounts.read(read, &AtomicBool::new(false)).map_err(failed)?.unwrap_or_default();
        let seat = Option::<RouterSeat>::from_bytes(&bytes).map_err(failed)?;
        self.kills.routers += 1;
        Ok(match seat {
            Some(seat) if self.broker.kill_router(seat.router)? => {
                format!("the active router, in term {}", seat.term)
            }
            _ => "no router: none is active".into(),
        })
    }

    fn second(&self) -> String {
        let Some(customers) = &self.customers else { return String::new() };
        let count = |counter: &std::sync::atomic::AtomicU64| grouped(counter.load(Ordering::Relaxed));
        let asking = &customers.asking;
        format!(
            "{}  orders placed {}  refused {}  cancels {}  slowest reply {} ms  kills {}",
            clock(self.begun.elapsed()),
            count(&asking.placed),
            count(&asking.refused),
            count(&asking.cancelled),
            count(&asking.slowest_ms),
            self.kills.all(),
        )
    }

    fn say(&self, line: &str) {
        if !self.is_silent {
            // Nobody reads any more: the verdict says so too.
            let _ = face::say(line);
        }
    }

    /// Ends what customers and others do, and reckons.
    ///
    /// # Errors
    /// If a part fails, or what is to come to an end does not.
    pub(super) fn finish(mut self) -> Result<Verdict, LabError> {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.broker.close_pages();
        let asking = match self.customers.take() {
            Some(customers) => {
                let asking = std::sync::Arc::clone(&customers.asking);
                customers.end()?;
                asking
            }
            None => std::sync::Arc::default(),
        };
        if let Some(load) = self.load.take() {
            load.finish()?;
        }
        let gateways = self.gateways.clone();
        let accounts = self.broker.accounts()?;
        let mut reckoning = Reckoning::new(accounts, gateways);
        let verdict = reckoning.reckon(&mut || self.turn())?;
        Ok(Verdict {
            seconds,
            kills: self.kills,
            refused: asking.refused.load(Ordering::Relaxed),
            slowest_reply_ms: asking.slowest_ms.load(Ordering::Relaxed),
            ..verdict
        })
    }
}

fn config() -> SystemConfig {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let instruments = (1..).zip(SYMBOLS).map(|(id, symbol)| InstrumentConfig {
        tick: TICK,
        lot: LOT,
        ..InstrumentConfig::new(id, symbol)
    });
    let instruments = instruments.collect();
    SystemConfig { gateways: vec![any, any], instruments, ..SystemConfig::default() }
}

/// What the others do: they make the market.
fn market(args: &Args, system: &ScratchSystem, gateways: Vec<SocketAddr>) -> LoadPlan {
    let config = system.supervisor.config();
    let rate = args.rate.unwrap_or(RATE);
    let plan = LoadPlan::new(config, gateways, Rate::PerSecond(rate));
    let instruments = config.instruments.iter().zip(STARTS_CENTS);
    LoadPlan {
        members: OTHERS,
        seed: args.seed,
        resume: true,
        resting_orders: 100,
        first_client_order_id: scene::first_client_order_id(args),
        instruments: instruments
            .map(|(instrument, cents)| FlowInstrument {
                id: InstrumentId(instrument.id),
                tick: Price(instrument.tick),
                lot: Quantity(instrument.lot),
                start: Price(cents * 100),
            })
            .collect(),
        ..plan
    }
}

/// How many shards the exchange has: one for each instrument.
pub(super) fn shards() -> usize {
    SYMBOLS.len()
}
