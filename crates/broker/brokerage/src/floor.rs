//! A front in its duty cycle: what it wants done is done, and it receives what comes of it.
//!
//! The accounts are a site of this process, or sites elsewhere; quotes come from the server itself, or from desks. The front does not know which, nor what is lost on the way: a request is asked for under its name until there is an answer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use pares_broker::{Asked, BrokerRead, BrokerReply, StockQuote, UserName, WorkloadLine, number_in_session};
use pares_front::{Arrival, BrokerFront, CommandOrder, DeskNews, FRONT_OPEN_MAX, FrontEffect, NotTaken};
use pares_os::clock;
use pares_site::SiteReport;
use pares_site::config::Promise;
use pares_site::protocol::Horizon;
use pares_wice::TransactionId;
use pares_wice::codec::Coded as _;

use crate::direct::DirectClients;
use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::own_site::OwnSite;
use crate::quoter::Quoter;
use crate::site_link::{SiteAnswer, SiteLink};

mod beside;
mod outcomes;
mod quoting;
mod room;

pub(crate) use outcomes::{Told, dumps};
pub(crate) use quoting::Quoting;

/// The client of the site that the front of [`Floor::alone`] gets its number by; its users' are above those who read, and below this.
const BEGINNER: u64 = 1 << 60;
/// Longest wait for something to do.
const WAIT_MAX: Duration = Duration::from_millis(1);

/// Who executes requests.
pub(crate) enum Executing {
    /// A site of this process.
    Here(Box<OwnSite>),
    /// Sites elsewhere; who has the front turns it.
    Sites(SiteLink),
}

/// See the [module](self).
pub(crate) struct Floor {
    pub(crate) executing: Executing,
    pub(crate) quoting: Quoting,
    pub(crate) front: BrokerFront,
    /// When each question was asked.
    asked: HashMap<u64, Instant>,
    /// The longest time from a question to its answer.
    pub(crate) slowest_quote: Option<Duration>,
    /// When the latest quote came.
    pub(crate) latest_quote: Option<Instant>,
    /// Dumps without a reply, and those of each user and of everything.
    dumps: usize,
    dumps_of: BTreeMap<Option<UserName>, usize>,
    /// So many of them are taken.
    pub(crate) dumps_max: usize,
    /// Whose have their reply, and are written or wait for that.
    pub(crate) dumps_written: Vec<Option<UserName>>,
    /// So many of one user are taken, with those that are written.
    pub(crate) dumps_of_max: usize,
    /// So many commands without a reply are held.
    pub(crate) open_max: usize,
    /// Whose commands of a workload arrived.
    pub(crate) users: BTreeSet<UserName>,
    /// Requests so far.
    pub(crate) submitted: u64,
    /// To be read for the front.
    looks: Vec<(u64, BrokerRead)>,
    /// Quotes that came since the last question.
    learned: Vec<StockQuote>,
    direct: DirectClients,
    /// What the next turn says.
    told: Vec<Told>,
    /// Answers to what was asked of the sites directly.
    said: Vec<(u64, Result<BrokerReply, String>)>,
    /// What was asked for under which number, and the reply: for tests, which ask an oracle the same.
    #[cfg(test)]
    pub(crate) seen: Vec<(Vec<u8>, BrokerReply)>,
    #[cfg(test)]
    open: HashMap<TransactionId, Vec<u8>>,
}

impl Floor {
    /// A site alone in `dir`, which is empty, its items in a file there or in the PostgreSQL database that the URL `store` names, and a front that
    /// asks the quote server at `quotes`, and again after `hedge`.
    pub(crate) fn alone(
        dir: &Path,
        durability: Promise,
        store: Option<&str>,
        quotes: SocketAddr,
        hedge: Option<Duration>,
    ) -> BrokerageResult<Self> {
        let site = OwnSite::open(dir, durability, store)?;
        let quoter =
            Quoter::start(quotes, hedge, || ()).map_err(BrokerageError::io("starting the quoter"))?;
        let mut floor = Self::new(Executing::Here(Box::new(site)), Quoting::Server(quoter), BEGINNER);
        // Nobody else waits: what a user has ready goes together, and his rows are read once.
        floor.front.set_window(FRONT_OPEN_MAX);
        while floor.front.number().is_none() {
            floor.turn()?;
        }
        Ok(floor)
    }

    /// A front that gets its number as this client of sites, which no other is or was.
    pub(crate) fn new(executing: Executing, quoting: Quoting, client: u64) -> Self {
        Self {
            executing,
            quoting,
            front: BrokerFront::new(client),
            asked: HashMap::new(),
            slowest_quote: None,
            latest_quote: None,
            dumps: 0,
            dumps_of: BTreeMap::new(),
            dumps_max: usize::MAX,
            dumps_written: Vec::new(),
            dumps_of_max: usize::MAX,
            open_max: FRONT_OPEN_MAX,
            users: BTreeSet::new(),
            submitted: 0,
            looks: Vec::new(),
            learned: Vec::new(),
            direct: DirectClients::new(client + (1 << 40)),
            told: Vec::new(),
            said: Vec::new(),
            #[cfg(test)]
            seen: Vec::new(),
            #[cfg(test)]
            open: HashMap::new(),
        }
    }

    /// Where the site of this process is reached.
    pub(crate) fn address(&self) -> BrokerageResult<SocketAddr> {
        Ok(self.own_site()?.address())
    }

    /// How the site of this process is.
    pub(crate) fn report(&self) -> BrokerageResult<SiteReport> {
        self.own_site()?.report()
    }

    fn own_site(&self) -> BrokerageResult<&OwnSite> {
        match &self.executing {
            Executing::Here(site) => Ok(site),
            Executing::Sites(_) => Err(failed("the sites are elsewhere")),
        }
    }

    /// A command of a workload arrives, behind what arrived before of its user; its place among all that did.
    pub(crate) fn arrives(&mut self, line: WorkloadLine) -> BrokerageResult<u64> {
        self.users.extend(line.command.user.clone());
        self.arrives_as(0, line, CommandOrder::Arrival { name: None }).map_err(failed)
    }

    /// A command of a session arrives, by the connection of that number, the `after`-th one of which was its user's before; its place among all that did. The session is one that there is.
    pub(crate) fn arrives_in(
        &mut self,
        sender: u64,
        session: u64,
        after: u64,
        line: WorkloadLine,
    ) -> Result<u64, NotTaken> {
        let numbered = |count| number_in_session(session, count);
        let order = CommandOrder::Session { number: numbered(line.number), after: numbered(after) };
        self.arrives_as(sender, line, order)
    }

    fn arrives_as(&mut self, sender: u64, line: WorkloadLine, order: CommandOrder) -> Result<u64, NotTaken> {
        let WorkloadLine { command, fault, .. } = line;
        let user = command.user.clone();
        self.take(Arrival { sender, user, order, asked: Asked::Command { command, fault } })
    }

    /// Whatever arrives.
    pub(crate) fn take(&mut self, arrival: Arrival) -> Result<u64, NotTaken> {
        let dump = outcomes::dumps(&arrival.asked);
        let dump_of = dump.map(|dump| dump.user.clone());
        if dump.is_some_and(|dump| !self.has_room_for(dump)) {
            return Err(NotTaken::Dumps);
        }
        if !self.has_room() {
            return Err(NotTaken::Busy);
        }
        let arrived = self.front.arrives(arrival, now_ms());
        if let (Ok(_), Some(user)) = (&arrived, dump_of) {
            self.dump_begins(user);
        }
        self.carry_out();
        arrived
    }

    /// Quotes that desks have given since it was asked last.
    pub(crate) fn learned(&mut self) -> Vec<StockQuote> {
        std::mem::take(&mut self.learned)
    }

    /// What the front wants read, each with its number; [`Self::looked`] then.
    pub(crate) fn looks(&mut self) -> Vec<(u64, BrokerRead)> {
        std::mem::take(&mut self.looks)
    }

    /// What was read; none if no site has answered.
    pub(crate) fn looked(&mut self, number: u64, answer: Option<&[u8]>) {
        self.front.looked(number, answer, now_ms());
        self.carry_out();
    }

    /// How far this front has seen: who reads on its account is shown nothing older.
    pub(crate) fn horizon(&self) -> Horizon {
        match &self.executing {
            Executing::Here(_) => Horizon::default(),
            Executing::Sites(link) => link.horizon(),
        }
    }

    /// Something has happened to a connection to a site, or to a desk.
    pub(crate) fn wake(&mut self, is_site: bool, number: u64) {
        match (&mut self.executing, &mut self.quoting) {
            (Executing::Sites(link), _) if is_site => link.wake(number),
            (_, Quoting::Desks(desks)) => desks.wake(number),
            _ => {}
        }
    }

    /// Hands sockets what is to go.
    pub(crate) fn flush(&mut self) {
        if let Executing::Sites(link) = &mut self.executing {
            link.flush();
        }
        if let Quoting::Desks(desks) = &mut self.quoting {
            desks.flush();
        }
    }

    /// No command comes any more.
    pub(crate) fn close(&mut self) {
        self.front.close(now_ms());
        self.carry_out();
    }

    /// Does what is to be done, and says which commands have their reply since the last turn.
    pub(crate) fn turn(&mut self) -> BrokerageResult<Vec<Told>> {
        self.front.tick(now_ms());
        for news in self.quoting.turn(self.front.number().unwrap_or_default()) {
            self.quoted(news);
        }
        self.carry_out();
        self.turn_site()?;
        Ok(std::mem::take(&mut self.told))
    }

    /// Lets the site of this process continue while the front does nothing that needs it.
    pub(crate) fn turn_site(&mut self) -> BrokerageResult {
        for answer in self.answers()? {
            self.answered(answer)?;
        }
        Ok(())
    }

    fn answers(&mut self) -> BrokerageResult<Vec<SiteAnswer>> {
        match &mut self.executing {
            Executing::Here(site) => site.turn(WAIT_MAX),
            Executing::Sites(link) => Ok(link.turn()),
        }
    }

    fn quoted(&mut self, news: DeskNews) {
        match news {
            DeskNews::Answer(hit, answer) => {
                if let Some(asked) = self.asked.remove(&hit) {
                    self.slowest_quote = self.slowest_quote.max(Some(asked.elapsed()));
                }
                if answer.is_ok() {
                    self.latest_quote = Some(Instant::now());
                }
                if matches!(self.quoting, Quoting::Desks(_)) {
                    self.learned.extend(answer.iter().map(|brought| brought.quote.clone()));
                }
                self.front.quote(hit, answer, now_ms());
            }
            DeskNews::Hit(brought) => self.front.take_hit(brought, now_ms()),
        }
    }

    fn carry_out(&mut self) {
        for effect in self.front.take_effects() {
            match effect {
                FrontEffect::Ask { hit, symbol, user } => {
                    self.asked.insert(hit, Instant::now());
                    self.quoting.ask(hit, symbol, user);
                }
                FrontEffect::Abandon { hit } => {
                    self.asked.remove(&hit);
                    self.quoting.abandon(hit);
                }
                FrontEffect::Submit { id, request } => self.submit(id, request.to_bytes()),
                FrontEffect::Look { number, read } => self.looks.push((number, read)),
                FrontEffect::Noted { hit } => {
                    if let Quoting::Desks(desks) = &mut self.quoting {
                        desks.noted(hit);
                    }
                }
                FrontEffect::Told { arrival, asked, reply, .. } => {
                    if let Some(dump) = outcomes::dumps(&asked) {
                        self.dump_is_told(&dump.user);
                    }
                    self.told.push(Told { arrival, asked, reply, is_unwritten: false });
                }
            }
        }
    }

    fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        self.submitted += 1;
        #[cfg(test)]
        self.open.insert(id, request.clone());
        match &mut self.executing {
            Executing::Here(site) => site.submit(id, request),
            Executing::Sites(link) => link.submit(id, request),
        }
    }

    fn answered(&mut self, answer: SiteAnswer) -> BrokerageResult {
        let SiteAnswer { id, reply } = answer;
        if let Some(number) = self.direct.end(id) {
            let read = |bytes: Vec<u8>| BrokerReply::from_bytes(&bytes).map_err(|why| why.to_string());
            self.said.push((number, reply.and_then(read)));
            return Ok(());
        }
        let bytes = match reply {
            Ok(bytes) => bytes,
            Err(why) => return self.not_taken(id, &why),
        };
        let reply = BrokerReply::from_bytes(&bytes).map_err(failed)?;
        #[cfg(test)]
        if let Some(request) = self.open.remove(&id) {
            self.seen.push((request, reply.clone()));
        }
        self.front.answered(id, reply, now_ms());
        self.carry_out();
        Ok(())
    }

    /// The accounts do not take a request: something is damaged. A run ends; a front gives its command up, with those that wait for it, and continues.
    fn not_taken(&mut self, id: TransactionId, why: &str) -> BrokerageResult {
        let what = format!("the accounts reject a request of this front: {why}");
        if matches!(self.executing, Executing::Here(_)) {
            return Err(failed(what));
        }
        pares_text::tell!("{what}");
        self.front.not_taken(id, now_ms());
        self.carry_out();
        Ok(())
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    clock::now_ns() / 1_000_000
}

#[cfg(test)]
mod tests;
