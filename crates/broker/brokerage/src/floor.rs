//! A site and a front in one duty cycle: what the front wants done is done, and what comes of it is told to the front.
//!
//! A request without an answer is repeated under its name, which the site executes once however often it is asked. So a front never has to know whether what
//! it asked for was lost on the way there or on the way back.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use pares_accounts::Accounts;
use pares_broker::{
    Asked, BrokerReply, HitName, QuoteBrought, StockQuote, UserCommand, UserName, WorkloadLine,
};
use pares_front::{Arrival, BrokerFront, CommandOrder, FrontEffect, QuoteFault};
use pares_os::clock;
use pares_site::config::{Place, Promise, SiteLimits};
use pares_site::protocol::Code;
use pares_site::{Process, SiteReport, SitesConfig};
use pares_wice::codec::Coded as _;
use pares_wice::{Isolation, SiteId, TransactionId};

use crate::error::{BrokerageError, failed};
use crate::quoter::Quoter;

/// The client of the site that the front gets its number by; its users' are above those who read, and below this.
const BEGINNER: u64 = 1 << 60;
/// Longest wait for something to do.
const WAIT_MAX: Duration = Duration::from_millis(1);
/// A request without an answer for so long is repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(2);
/// Until the site takes part.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);

/// A command with its reply.
pub(crate) struct Told {
    /// Its place among those that arrived at this front, from 0.
    pub(crate) arrival: u64,
    pub(crate) command: UserCommand,
    pub(crate) reply: BrokerReply,
}

/// See the [module](self).
pub(crate) struct Floor {
    site: Process<Accounts>,
    pub(crate) front: BrokerFront,
    quoter: Quoter,
    /// Requests without an answer, and when they were handed in last.
    open: HashMap<TransactionId, (Vec<u8>, Instant)>,
    /// When each question was asked.
    asked: HashMap<u64, Instant>,
    pub(crate) slowest_quote: Duration,
    /// When the latest quote came.
    pub(crate) latest_quote: Option<Instant>,
    /// Who has given a command.
    pub(crate) users: BTreeSet<UserName>,
    /// Requests so far.
    pub(crate) submitted: u64,
    looked: Instant,
    /// What was asked for under which number, and the reply: for tests, which ask an oracle the same.
    #[cfg(test)]
    pub(crate) seen: Vec<(Vec<u8>, BrokerReply)>,
}

impl Floor {
    /// A site alone in `dir`, which is empty, and a front that asks the quote server at `quotes`, and again after `hedge`.
    pub(crate) fn open(
        dir: &Path,
        durability: Promise,
        quotes: SocketAddr,
        hedge: Option<Duration>,
    ) -> Result<Self, BrokerageError> {
        let config = configuration(durability);
        config.make_directories(dir).map_err(BrokerageError::io("making the site's directory"))?;
        let mut site = Process::open(&config, SiteId::new(0, 0), dir, Accounts).map_err(failed)?;
        wait_until_certifying(&mut site)?;
        let quoter =
            Quoter::start(quotes, hedge, || ()).map_err(BrokerageError::io("starting the quoter"))?;
        let mut floor = Self {
            site,
            front: BrokerFront::new(BEGINNER),
            quoter,
            open: HashMap::new(),
            asked: HashMap::new(),
            slowest_quote: Duration::ZERO,
            latest_quote: None,
            users: BTreeSet::new(),
            submitted: 0,
            looked: Instant::now(),
            #[cfg(test)]
            seen: Vec::new(),
        };
        while floor.front.number().is_none() {
            floor.turn()?;
        }
        Ok(floor)
    }

    /// Where the site is reached.
    pub(crate) fn address(&self) -> Result<SocketAddr, BrokerageError> {
        let address =
            self.site.clients_address().map_err(BrokerageError::io("asking for the site's port"))?;
        address.ok_or_else(|| failed("the site has no port for clients"))
    }

    /// How often a question was asked again before it had its answer.
    pub(crate) fn hedges(&self) -> u64 {
        self.quoter.hedges()
    }

    pub(crate) fn report(&self) -> SiteReport {
        self.site.report()
    }

    /// A command arrives.
    pub(crate) fn arrives(&mut self, line: WorkloadLine) -> Result<(), BrokerageError> {
        let mut effects = Vec::new();
        let WorkloadLine { command, fault, .. } = line;
        let (user, order) = (command.user.clone(), CommandOrder::Arrival { name: None });
        self.users.extend(user.clone());
        let arrival = Arrival { user, order, asked: Asked::Command { command, fault } };
        self.front.arrives(arrival, now_ms(), &mut effects).map_err(failed)?;
        self.carry_out(effects, &mut Vec::new());
        Ok(())
    }

    /// No command comes any more.
    pub(crate) fn close(&mut self) {
        let mut effects = Vec::new();
        self.front.close(now_ms(), &mut effects);
        self.carry_out(effects, &mut Vec::new());
    }

    /// Does what is to be done, and says which commands have their reply.
    pub(crate) fn turn(&mut self) -> Result<Vec<Told>, BrokerageError> {
        let mut told = Vec::new();
        let mut effects = Vec::new();
        self.front.tick(now_ms(), &mut effects);
        for (hit, answer) in self.quoter.answers().collect::<Vec<_>>() {
            self.quoted(hit, answer, &mut effects);
        }
        self.carry_out(effects, &mut told);
        self.turn_site()?;
        for answered in self.site.answered().collect::<Vec<_>>() {
            self.answered(answered, &mut told)?;
        }
        self.repeat_what_is_late();
        Ok(told)
    }

    /// Lets the site go on, and nothing else.
    pub(crate) fn turn_site(&mut self) -> Result<(), BrokerageError> {
        self.site.turn(WAIT_MAX).map_err(failed)
    }

    fn quoted(&mut self, hit: u64, answer: Result<StockQuote, QuoteFault>, effects: &mut Vec<FrontEffect>) {
        if let Some(asked) = self.asked.remove(&hit) {
            self.slowest_quote = self.slowest_quote.max(asked.elapsed());
        }
        if answer.is_ok() {
            self.latest_quote = Some(Instant::now());
        }
        let name = HitName { desk: self.front.number().unwrap_or_default(), count: hit };
        let answer = answer.map(|quote| QuoteBrought { quote, hit: Some(name) });
        self.front.quote(hit, answer, now_ms(), effects);
    }

    fn carry_out(&mut self, effects: Vec<FrontEffect>, told: &mut Vec<Told>) {
        for effect in effects {
            match effect {
                FrontEffect::Ask { hit, symbol, user } => {
                    self.asked.insert(hit, Instant::now());
                    self.quoter.ask(hit, symbol, user);
                }
                FrontEffect::Abandon { hit } => {
                    self.asked.remove(&hit);
                    self.quoter.abandon(hit);
                }
                FrontEffect::Submit { id, request } => {
                    let bytes = request.to_bytes();
                    self.submitted += 1;
                    self.open.insert(id, (bytes.clone(), Instant::now()));
                    self.site.submit(id, bytes);
                }
                FrontEffect::Told {
                    arrival,
                    asked: Asked::Command { command, .. },
                    reply: Some(reply),
                    ..
                } => {
                    told.push(Told { arrival, command, reply });
                }
                // The accounts began empty, and this is their only front: it forgets nothing, and gives nothing up.
                FrontEffect::Look { .. } | FrontEffect::Noted { .. } | FrontEffect::Told { .. } => {}
            }
        }
    }

    fn answered(
        &mut self,
        answered: pares_site::Answered,
        told: &mut Vec<Told>,
    ) -> Result<(), BrokerageError> {
        let pares_site::Answered { id, answer } = answered;
        match answer.code {
            Code::Done => {
                let Some((_request, _)) = self.open.remove(&id) else { return Ok(()) };
                let reply = BrokerReply::from_bytes(&answer.body).map_err(failed)?;
                #[cfg(test)]
                self.seen.push((_request, reply.clone()));
                let mut effects = Vec::new();
                self.front.answered(id, reply, now_ms(), &mut effects);
                self.carry_out(effects, told);
                Ok(())
            }
            Code::Refused => {
                let why = String::from_utf8_lossy(&answer.body).into_owned();
                Err(failed(format!("the accounts do not take a request of this front: {why}")))
            }
            // Nothing was done, or nobody knows: it is repeated.
            _ => Ok(()),
        }
    }

    fn repeat_what_is_late(&mut self) {
        if self.looked.elapsed() < REPEAT_AFTER {
            return;
        }
        self.looked = Instant::now();
        for (id, (bytes, since)) in &mut self.open {
            if since.elapsed() >= REPEAT_AFTER {
                *since = Instant::now();
                self.site.submit(*id, bytes.clone());
            }
        }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    clock::now_ns() / 1_000_000
}

fn configuration(durability: Promise) -> SitesConfig {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    SitesConfig {
        system: "broker".into(),
        identity: SitesConfig::draw_identity(),
        durability,
        isolation: Isolation::Snapshot,
        certifier: 0,
        begins: 0,
        tls: None,
        store: None,
        plain: false,
        witness: None,
        limits: SiteLimits::default(),
        sites: vec![Place::new(0, 0, any, any)],
    }
}

fn wait_until_certifying(site: &mut Process<Accounts>) -> Result<(), BrokerageError> {
    let began = Instant::now();
    let mut report = site.report();
    while report.recalling || report.heard.is_empty() {
        if began.elapsed() >= BEGINS_WITHIN {
            let why = report.apart.unwrap_or_else(|| "nobody certifies".into());
            return Err(failed(format!("the site did not begin within {BEGINS_WITHIN:?}: {why}")));
        }
        site.turn(Duration::from_millis(10)).map_err(failed)?;
        report = site.report();
    }
    Ok(())
}
