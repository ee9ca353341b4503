//! A front in its duty cycle: what it wants done is done, and what comes of it is told to it.
//!
//! The accounts are a site of this process, or sites elsewhere; quotes come from the server itself, or from desks. The front does not know which: it never has to know whether what
//! it asked for was lost on the way there or on the way back, since a request is asked for under its name until there is an answer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use pares_broker::{BrokerReply, UserCommand, WorkloadLine};
use pares_front::{BrokerFront, FrontEffect};
use pares_os::clock;
use pares_site::SiteReport;
use pares_site::config::Promise;
use pares_wice::TransactionId;
use pares_wice::codec::Coded as _;

use crate::desk::{DeskLinks, DeskNews};
use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::own_site::OwnSite;
use crate::quoter::Quoter;
use crate::site_link::{SiteAnswer, SiteLink};

/// Longest wait for something to do.
const WAIT_MAX: Duration = Duration::from_millis(1);

/// A command with its reply.
pub(crate) struct Told {
    /// Its place among those that arrived at this front, from 0.
    pub(crate) arrival: u64,
    pub(crate) command: UserCommand,
    pub(crate) reply: BrokerReply,
}

/// Who executes requests.
pub(crate) enum Executing {
    /// A site of this process.
    Here(Box<OwnSite>),
    /// Sites elsewhere; who has the front turns it.
    Sites(SiteLink),
}

/// Who has quotes.
pub(crate) enum Quoting {
    /// The server itself.
    Server(Quoter),
    /// Desks; who has the front turns them.
    Desks(DeskLinks),
}

/// See the [module](self).
pub(crate) struct Floor {
    pub(crate) executing: Executing,
    pub(crate) quoting: Quoting,
    pub(crate) front: BrokerFront,
    /// When each question was asked.
    asked: HashMap<u64, Instant>,
    pub(crate) slowest_quote: Duration,
    /// Requests so far.
    pub(crate) submitted: u64,
    arrived: u64,
    number: u64,
    sessions: u64,
    /// What was asked for under which number, and the reply: for tests, which ask an oracle the same.
    #[cfg(test)]
    pub(crate) seen: Vec<(Vec<u8>, BrokerReply)>,
    #[cfg(test)]
    open: HashMap<TransactionId, Vec<u8>>,
}

impl Floor {
    /// A site alone in `dir`, which is empty, and a front that asks the quote server at `quotes`.
    pub(crate) fn alone(dir: &Path, durability: Promise, quotes: SocketAddr) -> Result<Self, BrokerageError> {
        let site = OwnSite::open(dir, durability)?;
        let quoter = Quoter::start(quotes, || ()).map_err(BrokerageError::io("starting the quoter"))?;
        Ok(Self::new(Executing::Here(Box::new(site)), Quoting::Server(quoter), 1))
    }

    /// The front of that number, which no other has or had.
    pub(crate) fn new(executing: Executing, quoting: Quoting, front: u64) -> Self {
        Self {
            executing,
            quoting,
            front: BrokerFront::new(front << 18, front << 42),
            asked: HashMap::new(),
            slowest_quote: Duration::ZERO,
            submitted: 0,
            arrived: 0,
            number: front,
            sessions: 0,
            #[cfg(test)]
            seen: Vec::new(),
            #[cfg(test)]
            open: HashMap::new(),
        }
    }

    /// Where the site of this process is reached.
    pub(crate) fn address(&self) -> Result<SocketAddr, BrokerageError> {
        self.own_site()?.address()
    }

    /// How the site of this process is.
    pub(crate) fn report(&self) -> Result<SiteReport, BrokerageError> {
        Ok(self.own_site()?.report())
    }

    fn own_site(&self) -> Result<&OwnSite, BrokerageError> {
        match &self.executing {
            Executing::Here(site) => Ok(site),
            Executing::Sites(_) => Err(failed("the sites are elsewhere")),
        }
    }

    /// A command arrives; its place among those that have.
    pub(crate) fn arrives(&mut self, line: WorkloadLine) -> u64 {
        let arrival = self.arrived;
        self.arrived += 1;
        let mut effects = Vec::new();
        self.front.arrives(line, now_ms(), &mut effects);
        self.carry_out(effects, &mut Vec::new());
        arrival
    }

    /// A session for commands from outside; none as long as the front has no number.
    pub(crate) fn open_session(&mut self) -> Option<u64> {
        self.sessions += 1;
        Some(self.number << 18 | self.sessions)
    }

    /// A command of a session arrives, behind another of its user's; its place among those that have arrived.
    pub(crate) fn arrives_in(&mut self, _session: u64, _after: u64, line: WorkloadLine) -> u64 {
        self.arrives(line)
    }

    /// Has hits noted that no command used.
    pub(crate) fn note_unclaimed(&mut self) {}

    /// Whether all of them are.
    pub(crate) fn has_noted(&self) -> bool {
        self.front.is_idle()
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
        let mut effects = Vec::new();
        self.front.close(now_ms(), &mut effects);
        self.carry_out(effects, &mut Vec::new());
    }

    /// Does what is to be done, and says which commands have their reply.
    pub(crate) fn turn(&mut self) -> Result<Vec<Told>, BrokerageError> {
        let mut told = Vec::new();
        let mut effects = Vec::new();
        self.front.tick(now_ms(), &mut effects);
        for news in self.quotes() {
            self.quoted(news, &mut effects);
        }
        self.carry_out(effects, &mut told);
        for answer in self.answers()? {
            self.answered(answer, &mut told)?;
        }
        Ok(told)
    }

    /// Lets the site of this process go on while the front does nothing that needs it.
    pub(crate) fn turn_site(&mut self) -> Result<(), BrokerageError> {
        for answer in self.answers()? {
            self.answered(answer, &mut Vec::new())?;
        }
        Ok(())
    }

    fn quotes(&mut self) -> Vec<DeskNews> {
        match &mut self.quoting {
            Quoting::Server(quoter) => {
                let answers = quoter.answers();
                answers.map(|(hit, answer)| DeskNews::Answer(hit, answer.map(|quote| (quote, None)))).collect()
            }
            Quoting::Desks(desks) => desks.turn(),
        }
    }

    fn answers(&mut self) -> Result<Vec<SiteAnswer>, BrokerageError> {
        match &mut self.executing {
            Executing::Here(site) => site.turn(WAIT_MAX),
            Executing::Sites(link) => Ok(link.turn()),
        }
    }

    fn quoted(&mut self, news: DeskNews, effects: &mut Vec<FrontEffect>) {
        match news {
            DeskNews::Answer(hit, answer) => {
                if let Some(asked) = self.asked.remove(&hit) {
                    self.slowest_quote = self.slowest_quote.max(asked.elapsed());
                }
                let answer = answer.map(|(quote, _)| quote);
                self.front.quote(hit, answer, now_ms(), effects);
            }
            DeskNews::Hit(..) => {}
        }
    }

    fn carry_out(&mut self, effects: Vec<FrontEffect>, told: &mut Vec<Told>) {
        for effect in effects {
            match effect {
                FrontEffect::Ask { hit, symbol, user } => {
                    self.asked.insert(hit, Instant::now());
                    match &mut self.quoting {
                        Quoting::Server(quoter) => quoter.ask(hit, symbol, user),
                        Quoting::Desks(desks) => desks.ask(hit, symbol, user),
                    }
                }
                FrontEffect::Abandon { hit } => {
                    self.asked.remove(&hit);
                    match &mut self.quoting {
                        Quoting::Server(quoter) => quoter.abandon(hit),
                        Quoting::Desks(desks) => desks.abandon(hit),
                    }
                }
                FrontEffect::Submit { id, request } => self.submit(id, request.to_bytes()),
                FrontEffect::Told { arrival, command, reply } => {
                    told.push(Told { arrival, command, reply });
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

    fn answered(&mut self, answer: SiteAnswer, told: &mut Vec<Told>) -> Result<(), BrokerageError> {
        let SiteAnswer { id, reply } = answer;
        let bytes = match reply {
            Ok(bytes) => bytes,
            Err(why) => return self.not_taken(&why),
        };
        let reply = BrokerReply::from_bytes(&bytes).map_err(failed)?;
        #[cfg(test)]
        if let Some(request) = self.open.remove(&id) {
            self.seen.push((request, reply.clone()));
        }
        let mut effects = Vec::new();
        self.front.answered(id, reply, now_ms(), &mut effects);
        self.carry_out(effects, told);
        Ok(())
    }

    /// The accounts do not take a request: something is damaged. A run ends; a front goes on for all others, and that user's commands wait.
    fn not_taken(&self, why: &str) -> BrokerageResult {
        let what = format!("the accounts do not take a request of this front: {why}");
        match self.executing {
            Executing::Here(_) => Err(failed(what)),
            Executing::Sites(_) => {
                pares_text::tell!("{what}");
                Ok(())
            }
        }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    clock::now_ns() / 1_000_000
}
