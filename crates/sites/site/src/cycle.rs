//! The duty cycle of a site.
//!
//! ```text
//!   turn:  poll sockets -> hand in messages, requests -> tick -> execute -> settle -> feed the store -> write sockets
//!   settle: flush the rules -> propose -> cycle the log (one sync for all) -> hand in what it committed -> again, until nothing is new
//! ```
//! Everything that has come is done in one turn, and one turn syncs once: the more load, the larger the batches.

mod beginning;
mod inbox;
mod refused;
mod serving;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pares_cluster::{ClusterLog, ProposeError};
use pares_store::{Store, StoreSnapshot};
use pares_wice::codec::{Coded, DecodeError, FORMAT};
use pares_wice::{LogEntry, LogRole, Notice, Site, SiteId, Stored, Term, TransactionId, Version};

use crate::application::Application;
use crate::applier::Applier;
use crate::checkpoint::{Bases, state_of, stored_of};
use crate::config::number_of;
use crate::error::ProcessError;
use crate::protocol::{Ask, Between};
use crate::report::{SiteReport, Worked};
use crate::requests::{Answer, Answered, Asker, Requests, State};
use crate::setup::Bounds;
use crate::world::{Connections, World};

pub use beginning::RETURNING;
use inbox::{Arrived, Inbox, LogEvents, LogNews, Wanted};

/// Time of the log's clock; elections take 10 to 20 of it.
const TICK: Duration = Duration::from_millis(10);
/// Of which the rules get every fourth.
const TICKS_OF_RULES: u64 = 4;
/// Rules' ticks after which a forwarded request is sent again.
const FORWARD_PATIENCE_TICKS: u32 = 25;
/// A payload of the log ends with the entry that fills it so far: with the largest transaction it is a record at most.
const PAYLOAD_BYTES: usize = 128 << 10;
/// Refusals that are remembered.
const REFUSED_MAX: usize = 1_024;
/// How often a settled turn goes through the log at most.
const ROUNDS_MAX: usize = 8;

/// A site's duty cycle.
pub struct Cycle<W: World, A> {
    world: W,
    bounds: Bounds,
    site: Site,
    log: W::Log,
    pub(crate) links: W::Links,
    store: Arc<dyn Store>,
    base: Box<dyn StoreSnapshot>,
    applier: Applier<W::Task>,
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
    /// Who is refused, and why.
    turned_away: BTreeMap<Result<SiteId, IpAddr>, String>,
    turned_away_new: Vec<String>,
    work: Worked,
    ticked: Duration,
    ticks: u64,
    /// Counts this site's starts.
    life: u16,
    /// The log has refused a proposal and goes on as it was: only another term helps.
    refused: Option<ProposeError>,
    /// What was proposed in this term and has not been committed, in order.
    proposed: VecDeque<(Vec<u8>, Vec<LogEntry>)>,
}

impl<W: World, A: Application> Cycle<W, A> {
    /// Does what is to be done, after waiting for something at most for `patience`.
    ///
    /// # Errors
    /// [`ProcessError`]: end the process, and start it anew.
    pub fn turn(&mut self, patience: Duration) -> Result<(), ProcessError> {
        let until_tick = TICK.saturating_sub(self.world.now().saturating_sub(self.ticked));
        let busy = (!self.requests.queue.is_empty() && self.may_execute()) || self.log.pending();
        self.links.poll(if busy { Duration::ZERO } else { patience.min(until_tick) }, &mut self.inbox)?;
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

    /// Executes a request of this process's driver; [`Cycle::answered`] has the answer. The id's client must be nobody else's.
    pub fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        self.requests.arrived(id, Asker::Here, request);
    }

    /// Answers to [`Cycle::submit`] since it was asked last.
    pub fn answered(&mut self) -> impl Iterator<Item = Answered> {
        self.answered.drain(..)
    }

    /// What an operator would want to know, since it was asked last.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        self.notices.drain(..)
    }

    /// Who was refused and why, each once, since it was asked last.
    pub fn refusals(&mut self) -> impl Iterator<Item = String> {
        self.turned_away_new.drain(..)
    }

    /// The rules' state, to be looked at.
    pub fn rules(&self) -> &Site {
        &self.site
    }

    /// How it is.
    #[must_use]
    pub fn report(&self) -> SiteReport {
        let configuration = self.site.configuration();
        let era = configuration.era;
        let id = self.site.id();
        let heard = self.site.statuses();
        SiteReport {
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
            refused: self.refused(),
            heard: heard
                .map(|status| (status.site.cluster.0, status.era().number, status.delivered.0))
                .collect(),
            work: self.work,
        }
    }

    fn tick(&mut self) {
        let now = self.world.now();
        while now.saturating_sub(self.ticked) >= TICK {
            // A process that was stopped does not make up for it.
            self.ticked = (self.ticked + TICK).max(now.saturating_sub(TICK * 2));
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
        self.note_refusals();
        for arrived in std::mem::take(&mut self.inbox.arrived) {
            match arrived {
                Arrived::Connected(site) => {
                    self.turned_away.remove(&Ok(site));
                    self.site.connected(site);
                }
                Arrived::Frame(from, bytes) => self.frame(from, &bytes),
                Arrived::Asked(client, rights, bytes) => match Ask::from_bytes(&bytes) {
                    Ok(ask) => self.asked(client, rights, ask)?,
                    Err(_) => self.links.close_client(client),
                },
            }
        }
        Ok(())
    }

    /// Each is told once for the same reason, as long as there are not too many of them.
    fn note_refusals(&mut self) {
        for (who, why) in std::mem::take(&mut self.inbox.refused) {
            if self.turned_away.get(&who) == Some(&why) {
                continue;
            }
            if self.turned_away.len() >= REFUSED_MAX {
                self.turned_away.retain(|who, _| who.is_ok());
            }
            self.turned_away_new.push(match &who {
                Ok(site) => told(site, &why),
                Err(address) => told(address, &why),
            });
            self.turned_away.insert(who, why);
        }
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
                    self.site.role(LogRole { term: Term(role.term), leads: role.leads });
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
                self.site.role(LogRole { term: Term(self.log.role().term), leads: false });
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
                && let Some(before) = self.bases.flushed(flushed, &self.world)?
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
        let versions = self.site.overlay().after(after, self.site.stable()).take(self.bounds.applied_max);
        let versions: Vec<_> = versions.map(|(version, writes)| (version, writes.to_vec())).collect();
        if let Some((version, _)) = versions.last() {
            let stored = Stored { version: *version, position: self.site.position() };
            self.applier.give(versions, stored, self.world.now());
        }
    }
}

fn told(who: &impl Display, why: &str) -> String {
    format!("{who} is refused: {why}")
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
