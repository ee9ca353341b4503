//! The duty cycle of a site.
//!
//! ```text
//!   turn:  poll sockets -> hand in messages, requests -> tick -> execute -> settle -> feed the store -> write sockets
//!   settle: flush the rules -> propose -> cycle the log (one sync for all) -> hand in what it committed -> again, until nothing is new
//! ```
//! Everything that has come is done in one turn, and one turn syncs once: the more load, the larger the batches.

mod exchange;
mod serving;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_cluster::{ClusterLog, Files, LogError, ProposeError, Replica};
use pares_link::Links;
use pares_store::{RedbStore, Snapshot, Store, StoreError};
use pares_wice::codec::{Coded, DecodeError, FORMAT};
use pares_wice::{
    Base, ClusterId, Configuration, Era, LogEntry, Notice, Role, Site, SiteId, Stored, Term, TransactionId,
    Version,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::application::Application;
use crate::applier::Applier;
use crate::checkpoint::{Bases, state_of, stored_of, take_state};
use crate::config::{Config, ConfigError, number_of};
use crate::protocol::{Ask, Between};
use crate::requests::{Answer, Answered, Asker, Requests, State};

use exchange::{Arrived, Inbox, LogEvents, LogNews, Wanted};

/// Time of the log's clock; elections take 10 to 20 of it.
const TICK: Duration = Duration::from_millis(10);
/// Of which the rules get every fourth.
const TICKS_OF_RULES: u64 = 4;
/// Rules' ticks after which a forwarded request is sent again.
const FORWARD_PATIENCE_TICKS: u32 = 25;
/// Requests of clients without an answer; more are turned away.
const OPEN_REQUESTS_MAX: usize = 1 << 16;
/// Requests executed in one turn.
const EXECUTED_MAX: usize = 1_024;
/// A payload of the log ends with the entry that fills it so far: with the largest transaction it is a record at most.
const PAYLOAD_BYTES: usize = 128 << 10;
/// Versions that may be in memory and not in the store; beyond, requests wait until it has caught up.
const UNSTORED_MAX: u64 = 1 << 17;
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
    /// The mark of a cluster that has lost its disks says nothing.
    #[error(
        "the file `returning` says {0:?}: it needs the era of those who went on, three numbers (`pares site status` shows them)"
    )]
    Returning(String),
    /// The log begins behind what the store holds.
    #[error(
        "the store holds version {stored}, and the log begins at {base}: the store was lost; remove this site's directory only if the \
             rest of its cluster lives, and let its log's owner restore both from a copy"
    )]
    Gap {
        /// The store's version.
        stored: Version,
        /// The log's beginning.
        base: Version,
    },
    /// Its log takes no more.
    #[error("log: {0}; start this site again")]
    Refused(ProposeError),
    /// It cannot certify any more in its term, and there is nobody to take its office.
    #[error("this site has to begin another term: start it again")]
    Spent,
    /// This site was so far behind that it got another's state.
    #[error("this site was far behind and has been sent a state: start it again, and it goes on from there")]
    Replaced,
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
    store: Arc<dyn Store>,
    base: Box<dyn Snapshot>,
    applier: Applier,
    application: A,
    requests: Requests,
    /// Found done or refused, on versions that are not stable: the version, and what to say then.
    waiting: BTreeMap<(Version, TransactionId), (u64, Answer)>,
    wanted: Wanted,
    inbox: Inbox,
    log_events: LogEvents,
    bases: Bases,
    answered: Vec<Answered>,
    notices: Vec<Notice>,
    work: Worked,
    ticked: Instant,
    ticks: u64,
    /// Counts this site's starts.
    life: u16,
    /// The log has refused a proposal and goes on as it was: only another term helps.
    refused: Option<ProposeError>,
    /// What was proposed in this term and has not been committed, in order.
    proposed: VecDeque<(Vec<u8>, Vec<LogEntry>)>,
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
        let mut bases = Bases::open(&own)?;
        let files = Files::open(&own.join("log"), config.durability(), SEGMENT_BYTES)?;
        let applied = bases.written().map_or(0, |(index, _)| *index);
        let mut log = Replica::open(files, &pares_cluster::Config { applied, ..config.log(site) })?;
        let mut log_events = LogEvents::default();
        log.cycle(&mut log_events)?;
        if let Some((index, state)) = log_events.state.take() {
            let (base, _) = take_state(&state, &own.join("store"))?;
            bases.taken((index, base))?;
        }
        let store: Arc<dyn Store> = Arc::new(RedbStore::open(&own.join("store"))?);
        let stored = stored_of(&store.meta())?;
        let settings = config.settings(site);
        let base = match (bases.written(), returning_to(&own)?) {
            (Some((_, base)), _) => base.clone(),
            (None, Some(era)) => Base::returning(&settings, era),
            (None, None) => {
                let clusters = settings.sites.iter().map(|site| site.cluster).collect();
                Base::first(Configuration::first(clusters, ClusterId(config.certifier)))
            }
        };
        if stored.version < base.delivered {
            return Err(ProcessError::Gap { stored: stored.version, base: base.delivered });
        }
        let applier = Applier::start(Arc::clone(&store), links.waker())?;
        Ok(Self {
            site: Site::restore(settings, base, stored),
            log,
            base: store.snapshot()?,
            store,
            applier,
            links,
            application,
            requests: Requests::default(),
            waiting: BTreeMap::new(),
            wanted: Wanted::default(),
            inbox: Inbox::default(),
            log_events,
            bases,
            answered: Vec::new(),
            notices: Vec::new(),
            work: Worked::default(),
            ticked: Instant::now(),
            ticks: 0,
            life: next_life(&own)?,
            refused: None,
            proposed: VecDeque::new(),
        })
    }

    /// Does what is to be done, after waiting for something at most for `patience`.
    ///
    /// # Errors
    /// [`ProcessError`]: end the process, and start it anew.
    pub fn turn(&mut self, patience: Duration) -> Result<(), ProcessError> {
        let until_tick = TICK.saturating_sub(self.ticked.elapsed());
        let busy = (!self.requests.queue.is_empty() && self.may_execute()) || self.log.pending();
        self.links
            .poll(Some(if busy { Duration::ZERO } else { patience.min(until_tick) }), &mut self.inbox)?;
        self.take_in()?;
        self.tick();
        self.take_stored()?;
        self.execute()?;
        self.settle()?;
        self.leave_office()?;
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

    /// Until nothing is new: what the rules want is done, and what the log commits is handed to the rules.
    fn settle(&mut self) -> Result<(), ProcessError> {
        for _ in 0..ROUNDS_MAX {
            self.site.flush(&mut self.wanted);
            self.carry_out();
            self.tell_waiting();
            if !self.log.pending() && self.log_events.news.is_empty() {
                break;
            }
            self.log.cycle(&mut self.log_events)?;
            self.take_log()?;
        }
        Ok(())
    }

    /// Where the rules cannot go on in this term: another site leads, or, where there is none, this one after a new start.
    fn leave_office(&mut self) -> Result<(), ProcessError> {
        if let Some(error) = self.refused.take() {
            return Err(ProcessError::Refused(error));
        }
        if self.site.wants_another_term() && self.log.role().leads && self.log.resign().is_none() {
            return Err(ProcessError::Spent);
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
                LogNews::Committed(index, payload) => {
                    for entry in self.entries_of(&payload)? {
                        self.site.committed(entry, &mut self.wanted);
                    }
                    self.bases.handed_out(index, payload.len(), || self.site.base());
                }
                LogNews::Role(role) => {
                    self.proposed.clear();
                    self.site.role(Role { term: Term(role.term), leads: role.leads });
                }
            }
        }
        if self.log_events.state.take().is_some() {
            return Err(ProcessError::Replaced);
        }
        match self.log_events.state_wanted.take() {
            Some(at_least) => self.provide_state(at_least),
            None => Ok(()),
        }
    }

    /// What a payload holds; what was proposed here need not be read again.
    fn entries_of(&mut self, payload: &[u8]) -> Result<Vec<LogEntry>, DecodeError> {
        match self.proposed.pop_front_if(|(proposed, _)| proposed == payload) {
            Some((_, entries)) => Ok(entries),
            None => Vec::from_bytes(payload),
        }
    }

    /// Another member lacks what this one's log has let go of.
    fn provide_state(&mut self, at_least: u64) -> Result<(), ProcessError> {
        let Some((index, base)) = self.bases.written().filter(|(index, _)| *index >= at_least) else {
            return Ok(());
        };
        let snapshot = self.store.snapshot()?;
        let state = state_of(base, stored_of(snapshot.meta())?, snapshot)?;
        if self.log.provide_snapshot(*index, &state).is_err() {
            self.notices.push(Notice::NeedsCopy(self.site.id().cluster)); // too large: a member stays behind
        }
        Ok(())
    }

    fn carry_out(&mut self) {
        let wanted = std::mem::take(&mut self.wanted);
        for (payload, entries) in payloads(wanted.proposals) {
            if let Err(error) = self.log.propose(&payload) {
                // What it proposed is lost, and its office with it: the log will say so, and in which term somebody leads again.
                self.site.role(Role { term: Term(self.log.role().term), leads: false });
                if !matches!(error, ProposeError::NotDelegate { .. }) {
                    self.refused = Some(error);
                }
                break;
            }
            self.proposed.push_back((payload, entries));
        }
        for (to, message) in wanted.messages {
            let _ = self.links.send(number_of(to), &Between::Rules(&message.to_bytes()).to_bytes());
        }
        for (id, outcome) in wanted.outcomes {
            self.outcome(id, outcome);
        }
        self.notices.extend(wanted.notices);
    }

    fn take_stored(&mut self) -> Result<(), ProcessError> {
        if let Some(done) = self.applier.done() {
            let done = done?;
            self.base = done.snapshot;
            self.site.applied(self.base.version());
            if let Some(flushed) = done.flushed
                && let Some(before) = self.bases.flushed(flushed)?
            {
                self.log.compact(before);
            }
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

/// Entries for the log, a list of them in each payload.
fn payloads(proposals: Vec<LogEntry>) -> Vec<(Vec<u8>, Vec<LogEntry>)> {
    let mut payloads = Vec::new();
    let (mut entries, mut bytes) = (Vec::new(), Vec::new());
    let mut rest = proposals.into_iter().peekable();
    while let Some(entry) = rest.next() {
        entry.encode(&mut bytes);
        entries.push(entry);
        if bytes.len() >= PAYLOAD_BYTES || rest.peek().is_none() {
            let count = u32::try_from(entries.len()).expect("fewer than bytes");
            let mut payload = Vec::with_capacity(bytes.len() + 5);
            (FORMAT, count).encode(&mut payload);
            payload.append(&mut bytes);
            payloads.push((payload, std::mem::take(&mut entries)));
        }
    }
    payloads
}

/// Marks, in a site's own directory, that its cluster has lost its disks: the era of those who went on, as three numbers.
pub const RETURNING: &str = "returning";

/// Counts the starts of the site whose directory is `own`, from 1, and begins again after many.
fn next_life(own: &Path) -> std::io::Result<u16> {
    let file = own.join("life");
    let last = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u16>().ok());
    let life = last.unwrap_or(0).wrapping_add(1);
    std::fs::write(file, format!("{life}\n"))?;
    Ok(life)
}

fn returning_to(own: &Path) -> Result<Option<Era>, ProcessError> {
    let text = match std::fs::read_to_string(own.join(RETURNING)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let numbers: Vec<u32> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [takeovers, number, by @ 0..64] => Ok(Some(Era { takeovers, number, by: ClusterId(by as u8) })),
        _ => Err(ProcessError::Returning(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc as Shared;

    use pares_wice::{Body, Entry, Write};

    use super::*;

    #[test]
    fn payloads_hold_all_entries_in_order_and_fit_a_record() {
        let entry = |version: u64| {
            let writes =
                vec![Write::put(pares_wice::Key::from("k"), pares_wice::Value::new(vec![0; 100_000]))];
            let id = TransactionId { client: 1, sequence: version };
            let body = Body::Update { id, attempt: 1, writes };
            let entry = Entry { version: Version(version), era: Era::default(), body };
            LogEntry::Stream { era: Era::default(), entry: Shared::new(entry) }
        };
        let entries: Vec<LogEntry> = (1..6).map(entry).collect();
        let payloads = payloads(entries.clone());
        assert_eq!(payloads.len(), 3);
        assert!(payloads.iter().flat_map(|(_, entries)| entries).eq(&entries));
        let read: Vec<LogEntry> =
            payloads.iter().flat_map(|(payload, _)| Vec::<LogEntry>::from_bytes(payload).unwrap()).collect();
        assert_eq!(read, entries);
        assert!(super::payloads(Vec::new()).is_empty());
    }
}
