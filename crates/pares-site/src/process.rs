//! The duty cycle of a site.
//!
//! ```text
//!   turn:  poll sockets -> hand in messages, requests -> tick -> execute -> settle -> feed the store -> write sockets
//!   settle: flush the rules -> propose -> cycle the log (one sync for all) -> hand in what it committed -> again, until nothing is new
//! ```
//! Everything that has come is done in one turn, and one turn syncs once: the more load, the larger the batches.

mod exchange;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_cluster::{ClusterLog, Files, LogError, Replica};
use pares_link::Links;
use pares_store::{RedbStore, Snapshot, Store, StoreError, Work};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{
    AbortReason, Base, ClusterId, Command, Configuration, LogEntry, Notice, Outcome, Role, Site, SiteId,
    Stored, Term, TransactionId, Version,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::application::{Application, Failure};
use crate::applier::Applier;
use crate::config::{Config, ConfigError, number_of};
use crate::protocol::{Ask, Between, Code, Reply};
use crate::requests::{
    Answer, Answered, Asker, EXECUTIONS_MAX, Remembered, Requests, State, remembered, reply_key, reply_value,
};
use crate::view::View;

use exchange::{Arrived, Inbox, LogEvents, LogNews, Wanted};

/// Time of the log's clock; elections take 10 to 20 of it.
const TICK: Duration = Duration::from_millis(10);
/// Of which the rules get every fourth.
const TICKS_OF_RULES: u64 = 4;
/// Rules' ticks after which a forwarded request is sent again.
const FORWARD_PATIENCE_TICKS: u32 = 25;
/// Requests executed in one turn.
const EXECUTED_MAX: usize = 1_024;
/// Versions in one batch for the store.
const APPLIED_MAX: usize = 4_096;
/// Bytes of one segment of the cluster's log.
const SEGMENT_BYTES: u64 = 16 << 20;
/// How often a settled turn goes through the log at most.
const ROUNDS_MAX: usize = 8;

/// Why a site has ended.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// Its configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its store fails.
    #[error("store: {0}")]
    Store(#[from] StoreError),
    /// Its log cannot be opened.
    #[error("log: {0}")]
    Open(#[from] pares_cluster::OpenError),
    /// Its log's files cannot be opened.
    #[error("log: {0}")]
    Journal(#[from] pares_cluster::JournalError),
    /// Its log fails.
    #[error("log: {0}")]
    Log(#[from] LogError),
    /// Its connections fail.
    #[error("connections: {0}")]
    Links(#[from] pares_link::OpenError),
    /// What its log or store holds cannot be read.
    #[error("{0}: was it written by another build?")]
    Content(#[from] DecodeError),
    /// The operating system refuses something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// How a site is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which site.
    pub site: String,
    /// Takeovers, changes and the beginner of its era.
    pub era: (u32, u32, u8),
    /// The cluster that certifies.
    pub certifier: u8,
    /// Clusters that live.
    pub live: Vec<u8>,
    /// Whether this site is its cluster's delegate.
    pub delegate: bool,
    /// Whether it certifies.
    pub certifies: bool,
    /// Whether it is still reading its log.
    pub recalling: bool,
    /// The last version of its cluster.
    pub delivered: u64,
    /// The last stable version.
    pub stable: u64,
    /// The store's version.
    pub stored: u64,
    /// Requests without an answer.
    pub open: usize,
    /// What other delegates said last: cluster, era's number, delivered.
    pub heard: Vec<(u8, u32, u64)>,
    /// What it did since it started.
    pub work: Worked,
}

/// What a site did since it started: how much of its work was for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worked {
    /// Executions of requests, those of other sites that were forwarded here included.
    pub executed: u64,
    /// Of them, those that lost against a concurrent transaction.
    pub lost: u64,
    /// Requests sent on to the certifier's site.
    pub forwarded: u64,
    /// Requests done, and told to whoever asked.
    pub done: u64,
}

/// A site.
pub struct Process<A> {
    pub(crate) site: Site,
    log: Replica<Files>,
    links: Links,
    base: Box<dyn Snapshot>,
    applier: Applier,
    application: A,
    requests: Requests,
    /// Refused, or found done, on versions that are not stable: the version, and what to say then.
    waiting: BTreeMap<(Version, TransactionId), (u64, Answer)>,
    wanted: Wanted,
    inbox: Inbox,
    log_events: LogEvents,
    answered: Vec<Answered>,
    notices: Vec<Notice>,
    work: Worked,
    ticked: Instant,
    ticks: u64,
    /// The log has refused a proposal: the rules are to begin anew as a delegate.
    refused: bool,
}

impl<A: Application> Process<A> {
    /// Opens a site's log and store in `dir`, where `sites.toml` is, and listens.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn open(config: &Config, site: SiteId, dir: &Path, application: A) -> Result<Self, ProcessError> {
        let own = dir.join(format!("site-{}-{}", site.cluster.0, site.number));
        std::fs::create_dir_all(own.join("store"))?;
        std::fs::create_dir_all(own.join("log"))?;
        let links = Links::open(config.links(site, dir)?)?;
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&own.join("store"))?);
        let meta = store.meta();
        let stored = if meta.is_empty() { Stored::default() } else { Stored::from_bytes(&meta)? };
        let settings = config.settings(site);
        let base = match own.join("returning").exists() {
            true => Base::returning(&settings),
            false => {
                let clusters = settings.sites.iter().map(|site| site.cluster).collect();
                Base::first(Configuration::first(clusters, ClusterId(config.certifier)))
            }
        };
        let files = Files::open(&own.join("log"), config.durability(), SEGMENT_BYTES)?;
        let log = Replica::open(files, &config.log(site))?;
        let applier = Applier::start(Arc::clone(&store), links.waker())?;
        Ok(Self {
            site: Site::restore(settings, base, stored),
            log,
            base: store.snapshot()?,
            applier,
            links,
            application,
            requests: Requests::default(),
            waiting: BTreeMap::new(),
            wanted: Wanted::default(),
            inbox: Inbox::default(),
            log_events: LogEvents::default(),
            answered: Vec::new(),
            notices: Vec::new(),
            work: Worked::default(),
            ticked: Instant::now(),
            ticks: 0,
            refused: false,
        })
    }

    /// Does what is to be done, after waiting for something at most for `patience`.
    ///
    /// # Errors
    /// [`ProcessError`]: end the process, and start it anew.
    pub fn turn(&mut self, patience: Duration) -> Result<(), ProcessError> {
        let until_tick = TICK.saturating_sub(self.ticked.elapsed());
        let busy = !self.requests.queue.is_empty() || self.log.pending();
        self.links
            .poll(Some(if busy { Duration::ZERO } else { patience.min(until_tick) }), &mut self.inbox)?;
        self.take_in()?;
        self.tick();
        self.take_stored()?;
        self.execute()?;
        self.settle()?;
        self.feed_store();
        self.links.flush();
        Ok(())
    }

    /// Executes a request of whoever drives this process; [`Process::answered`] has the answer. The id's client must be nobody else's.
    pub fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        self.requests.arrived(id, Asker::Here, request);
    }

    /// Answers to [`Process::submit`] since it was asked last.
    pub fn answered(&mut self) -> impl Iterator<Item = Answered> {
        self.answered.drain(..)
    }

    /// What an operator would want to know, since it was asked last.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        self.notices.drain(..)
    }

    /// Where clients reach it.
    ///
    /// # Errors
    /// If the operating system does not say.
    pub fn clients_address(&self) -> std::io::Result<Option<std::net::SocketAddr>> {
        self.links.clients_address()
    }

    /// How it is.
    #[must_use]
    pub fn report(&self) -> Report {
        let configuration = self.site.configuration();
        let era = configuration.era;
        let id = self.site.id();
        let heard = self.site.statuses();
        Report {
            site: format!("{}.{}", id.cluster.0, id.number),
            era: (era.takeovers, era.number, era.by.0),
            certifier: configuration.certifier.0,
            live: configuration.live.iter().map(|cluster| cluster.0).collect(),
            delegate: self.log.role().leads,
            certifies: self.site.certifies(),
            recalling: self.site.is_recalling(),
            delivered: self.site.delivered().0,
            stable: self.site.stable().0,
            stored: self.base.version().0,
            open: self.requests.open.len(),
            heard: heard
                .map(|status| (status.site.cluster.0, status.era().number, status.delivered.0))
                .collect(),
            work: self.work,
        }
    }

    fn tick(&mut self) {
        while self.ticked.elapsed() >= TICK {
            // A process that was stopped does not make up for it.
            self.ticked =
                (self.ticked + TICK).max(Instant::now().checked_sub(TICK * 2).unwrap_or(self.ticked));
            self.log.tick();
            self.ticks += 1;
            if self.ticks.is_multiple_of(TICKS_OF_RULES) {
                self.site.tick(&mut self.wanted);
                for id in self.requests.overdue(FORWARD_PATIENCE_TICKS) {
                    self.forward(id);
                }
            }
        }
    }

    fn take_in(&mut self) -> Result<(), ProcessError> {
        for arrived in std::mem::take(&mut self.inbox.arrived) {
            match arrived {
                Arrived::Connected(site) => self.site.connected(site),
                Arrived::Frame(from, bytes) => self.frame(from, &bytes),
                Arrived::Asked(client, bytes) => match Ask::from_bytes(&bytes) {
                    Ok(ask) => self.asked(client, ask)?,
                    Err(_) => self.links.close_client(client),
                },
            }
        }
        Ok(())
    }

    /// A frame of another site. What cannot be read is as good as lost.
    fn frame(&mut self, from: SiteId, bytes: &[u8]) {
        match Between::from_bytes(bytes) {
            Ok(Between::Rules(bytes)) => {
                if let Ok(message) = Coded::from_bytes(bytes) {
                    self.site.receive(from, message, &mut self.wanted);
                }
            }
            Ok(Between::Log(bytes)) => {
                let _ = self.log.receive(from.number, bytes);
            }
            Ok(Between::Forward(id, request)) => {
                self.requests.arrived(id, Asker::Site(from), request.to_vec())
            }
            Ok(Between::Forwarded(id, code, body)) => {
                let forwarded = self
                    .requests
                    .open
                    .get(&id)
                    .is_some_and(|request| matches!(request.state, State::Forwarded { .. }));
                if forwarded {
                    self.answer(id, Answer { code, body: body.to_vec() });
                }
            }
            Err(_) => {}
        }
    }

    fn asked(&mut self, client: pares_link::ClientId, ask: Ask) -> Result<(), ProcessError> {
        let (to, answer) = match ask {
            Ask::Execute(id, request) => {
                self.requests.arrived(id, Asker::Client(client), request);
                return Ok(());
            }
            Ask::Read(tag, request) => (tag, self.read(&request)?),
            Ask::Operate(tag, command) => (tag, self.operate(command)),
            Ask::Report(tag) => {
                let body = serde_json::to_vec(&self.report()).expect("a report is JSON");
                (tag, Answer { code: Code::Done, body })
            }
        };
        self.reply(client, to, &answer);
        Ok(())
    }

    fn reply(&mut self, client: pares_link::ClientId, to: u64, answer: &Answer) {
        let reply = Reply { to, code: answer.code, body: answer.body.clone() };
        // A client that is gone asks again elsewhere.
        let _ = self.links.send_client(client, &reply.to_bytes());
    }

    /// Read-only: the stable version, without asking or waiting for anybody.
    fn read(&self, request: &[u8]) -> Result<Answer, ProcessError> {
        if self.site.is_recalling() {
            return Ok(Answer {
                code: Code::Impossible,
                body: b"this site is starting: ask another".to_vec(),
            });
        }
        let view = View::new(self.site.overlay(), &*self.base, self.site.stable());
        answer_of(self.application.read(request, &view))
    }

    fn operate(&mut self, command: Command) -> Answer {
        match self.site.command(command, &mut self.wanted) {
            Ok(()) => Answer { code: Code::Done, body: Vec::new() },
            Err(refused) => Answer { code: Code::Impossible, body: refused.to_string().into_bytes() },
        }
    }

    fn execute(&mut self) -> Result<(), ProcessError> {
        if self.site.is_recalling() {
            return Ok(());
        }
        for _ in 0..EXECUTED_MAX {
            let Some(id) = self.requests.queue.pop_front() else { break };
            self.execute_one(id)?;
        }
        Ok(())
    }

    fn execute_one(&mut self, id: TransactionId) -> Result<(), ProcessError> {
        let Some(request) = self.requests.open.get_mut(&id) else { return Ok(()) };
        let snapshot = self.site.snapshot();
        let view = View::new(self.site.overlay(), &*self.base, snapshot.version);
        let key = reply_key(id);
        match remembered(id, pares_store::Reads::get(&view, &key)?.as_ref()) {
            Remembered::Nothing => {}
            Remembered::Done(body) => {
                request.state = State::Waiting;
                self.waiting
                    .insert((snapshot.version, id), (snapshot.branch, Answer { code: Code::Done, body }));
                return Ok(());
            }
            Remembered::TooOld => {
                let body = b"more than 64 later requests of this client were done".to_vec();
                self.answer(id, Answer { code: Code::Impossible, body });
                return Ok(());
            }
        }
        request.executions += 1;
        self.work.executed += 1;
        let mut work = Work::new(view);
        match self.application.execute(&request.body, &mut work) {
            Ok(reply) => {
                work.put(&key, reply_value(id, &reply));
                let attempt = u32::from(number_of(self.site.id())) << 16 | u32::from(request.executions);
                let transaction = work.finish(id, attempt, snapshot.version);
                request.reply = reply;
                request.state = State::Submitted;
                if let Err(error) = self.site.submit(transaction, snapshot, &mut self.wanted) {
                    self.answer(id, Answer { code: Code::Impossible, body: error.to_string().into_bytes() });
                }
                Ok(())
            }
            Err(failure) => {
                request.state = State::Waiting;
                let answer = answer_of(Err(failure))?;
                self.waiting.insert((snapshot.version, id), (snapshot.branch, answer));
                Ok(())
            }
        }
    }

    /// Until nothing is new: what the rules want is done, and what the log commits is handed to the rules.
    fn settle(&mut self) -> Result<(), ProcessError> {
        for _ in 0..ROUNDS_MAX {
            self.site.flush(&mut self.wanted);
            self.carry_out();
            self.tell_waiting();
            if !self.log.pending() {
                break;
            }
            self.log.cycle(&mut self.log_events)?;
            self.take_log()?;
        }
        Ok(())
    }

    fn take_log(&mut self) -> Result<(), ProcessError> {
        for (to, bytes) in std::mem::take(&mut self.log_events.messages) {
            let peer = number_of(SiteId { number: to, ..self.site.id() });
            let _ = self.links.send(peer, &Between::Log(&bytes).to_bytes());
        }
        for news in std::mem::take(&mut self.log_events.news) {
            match news {
                LogNews::Committed(payload) => {
                    for entry in Vec::<LogEntry>::from_bytes(&payload)? {
                        self.site.committed(entry, &mut self.wanted);
                    }
                }
                LogNews::Role(role) => self.site.role(Role { term: Term(role.term), leads: role.leads }),
            }
        }
        Ok(())
    }

    fn carry_out(&mut self) {
        if std::mem::take(&mut self.refused) {
            let role = self.log.role();
            self.site.role(Role { term: Term(role.term), leads: role.leads });
        }
        let wanted = std::mem::take(&mut self.wanted);
        if !wanted.proposals.is_empty() && self.log.propose(&wanted.proposals.to_bytes()).is_err() {
            // What it proposed is lost: as if another had been delegate in between.
            self.site.role(Role { term: Term(self.log.role().term), leads: false });
            self.refused = true;
        }
        for (to, message) in wanted.messages {
            let _ = self.links.send(number_of(to), &Between::Rules(&message.to_bytes()).to_bytes());
        }
        for (id, outcome) in wanted.outcomes {
            self.outcome(id, outcome);
        }
        self.notices.extend(wanted.notices);
    }

    fn outcome(&mut self, id: TransactionId, outcome: Outcome) {
        let Some(request) = self.requests.open.get_mut(&id) else { return };
        self.work.lost += u64::from(matches!(outcome, Outcome::Aborted(_)));
        match outcome {
            Outcome::Committed { attempt, .. } => {
                let own = u32::from(number_of(self.site.id())) << 16 | u32::from(request.executions);
                if attempt == Some(own) {
                    let body = std::mem::take(&mut request.reply);
                    self.answer(id, Answer { code: Code::Done, body });
                } else {
                    self.requests.again(id); // finds the reply of the attempt that was committed
                }
            }
            Outcome::Aborted(AbortReason::Behind) => {
                self.answer(id, Answer { code: Code::Behind, body: Vec::new() })
            }
            Outcome::Aborted(_) if request.executions >= EXECUTIONS_MAX => {
                self.answer(id, Answer { code: Code::Aborted, body: Vec::new() });
            }
            Outcome::Aborted(_) if self.site.certifies() => self.requests.again(id),
            // Also what was forwarded to this site when it certified: here it would lose on and on.
            Outcome::Aborted(_) => self.forward(id),
        }
    }

    /// Lets the certifier's site execute it, on what it has just certified; here, if there is none, or if it was that site that asked.
    fn forward(&mut self, id: TransactionId) {
        let Some(request) = self.requests.open.get_mut(&id) else { return };
        match self.site.certifier() {
            Some(certifier) if certifier != self.site.id() && request.asker != Asker::Site(certifier) => {
                self.work.forwarded += u64::from(!matches!(request.state, State::Forwarded { .. }));
                request.state = State::Forwarded { ticks: 0 };
                let frame = Between::Forward(id, &request.body).to_bytes();
                let _ = self.links.send(number_of(certifier), &frame);
            }
            _ => self.requests.again(id),
        }
    }

    /// Refusals and replies found, on versions that are stable now; on versions that never were, executes again.
    fn tell_waiting(&mut self) {
        let stable = self.site.stable();
        while let Some(entry) = self.waiting.first_entry() {
            let (version, id) = *entry.key();
            if version > stable {
                break;
            }
            let (branch, answer) = entry.remove();
            if self.site.holds(pares_wice::Snapshot { version, branch }) {
                self.answer(id, answer);
            } else {
                self.requests.again(id);
            }
        }
    }

    fn answer(&mut self, id: TransactionId, answer: Answer) {
        let Some(request) = self.requests.open.remove(&id) else { return };
        self.work.done += u64::from(answer.code == Code::Done);
        match request.asker {
            Asker::Client(client) => self.reply(client, id.sequence, &answer),
            Asker::Site(site) => {
                let frame = Between::Forwarded(id, answer.code, &answer.body).to_bytes();
                let _ = self.links.send(number_of(site), &frame);
            }
            Asker::Here => self.answered.push(Answered { id, answer }),
        }
    }

    fn take_stored(&mut self) -> Result<(), ProcessError> {
        if let Some(done) = self.applier.done() {
            self.base = done?.snapshot;
            self.site.applied(self.base.version());
        }
        Ok(())
    }

    fn feed_store(&mut self) {
        if !self.applier.is_idle() || self.site.is_recalling() {
            return;
        }
        let after = self.applier.given();
        let versions = self.site.overlay().after(after, self.site.stable()).take(APPLIED_MAX);
        let versions: Vec<_> = versions.map(|(version, writes)| (version, writes.to_vec())).collect();
        if let Some((version, _)) = versions.last() {
            let stored = Stored { version: *version, position: self.site.position() };
            self.applier.give(versions, stored);
        }
    }
}

fn answer_of(result: Result<Vec<u8>, Failure>) -> Result<Answer, ProcessError> {
    match result {
        Ok(body) => Ok(Answer { code: Code::Done, body }),
        Err(Failure::Store(error) | Failure::Work(pares_store::WorkError::Store(error))) => Err(error.into()),
        Err(failure) => Ok(Answer { code: Code::Refused, body: failure.to_string().into_bytes() }),
    }
}
