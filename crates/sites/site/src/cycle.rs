//! The duty cycle of a site.
//!
//! ```text
//!   turn:  poll sockets -> hand in messages, requests -> tick -> replies of readers -> execute -> settle -> feed the store -> write sockets
//!   settle: flush the rules -> propose -> cycle the log (one sync for all) -> hand in what it committed -> again, until nothing is new
//! ```
//! Everything that has come is done in one turn, and one turn syncs once: the more load, the larger the batches.

mod admission;
mod backups;
mod beginning;
mod comparing;
mod effects;
mod members;
mod membership_messages;
mod proposing;
mod reading;
mod reporting;
mod serving;
#[cfg(test)]
mod tests;
mod transactions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pares_cluster::ClusterLog;
use pares_store::{Store, StoreSnapshot};
use pares_wice::codec::Coded;
use pares_wice::{LogRole, Notice, Site, SiteId, Stored, Term, TransactionId, Version, Wanted, Write};

use crate::application::Application;
use crate::applier::{Applier, in_one_batch};
use crate::checkpoint::Bases;
use crate::comparison::Comparison;
use crate::config::number_of;
use crate::error::ProcessError;
use crate::inbox::{Arrived, Inbox};
use crate::moments::Moments;
use crate::place::filling::Filling;
use crate::place::giving::Giving;
use crate::place::standing::{Lack, Word};
use crate::place::{Place, note_lack};
use crate::protocol::{Ask, Between};
use crate::reads::Readers;
use crate::report::{ToldNo, Worked};
use crate::requests::{Answer, Answered, Asker, Requests};
use crate::setup::Bounds;
use crate::turned_away::RejectedConnections;
use crate::world::{Connections, World};

use effects::{LogEvents, LogNews};
use members::Heard;
use membership_messages::Holds;
use proposing::Proposals;
use reading::Barrier;
use transactions::Transactions;

/// Time of the log's clock; elections take 10 to 20 of it.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// Of which the rules get every fourth.
const TICKS_OF_RULES: u64 = 4;
/// Between two times that a site shows how it is.
pub(crate) const SHOWN_TICKS: u64 = 10;
/// Rules' ticks after which a forwarded request is sent again.
const FORWARD_PATIENCE_TICKS: u32 = 25;
/// How often a settled turn goes through the log at most.
const ROUNDS_MAX: usize = 8;
/// Bytes of the log after which it goes through it no more: a site that comes back has much to take, and the others wait for its acknowledgements.
const TAKEN_BYTES_MAX: usize = 1 << 18;

/// A site's duty cycle.
pub(crate) struct Cycle<W: World, A> {
    pub(crate) world: W,
    /// Tells its database from others to clients.
    database: u32,
    bounds: Bounds,
    /// The version at which its database began.
    begins: Version,
    /// All sites, and what the others have said of themselves.
    sites: Vec<SiteId>,
    heard: Heard,
    place: Place,
    site: Site,
    log: W::Log,
    pub(crate) links: W::Links,
    store: Arc<dyn Store>,
    base: Box<dyn StoreSnapshot>,
    applier: Applier<W::Task>,
    readers: Readers<W::Task>,
    barrier: Option<Barrier>,
    application: Arc<A>,
    requests: Requests,
    /// Found done or refused, on versions that are not stable: the version, and what to say then.
    waiting: BTreeMap<(Version, TransactionId), (u64, Answer)>,
    transactions: Transactions,
    wanted: Wanted,
    inbox: Inbox,
    log_events: LogEvents,
    bases: Bases,
    answered: Vec<Answered>,
    notices: Vec<Notice>,
    pub(crate) turned_away: RejectedConnections,
    /// Copies that others get, the log that is kept for them, and the copy that this site's store is to become.
    giving: Giving,
    /// Whether it shows all that it has ever answered; if that cannot be known, from when on it shows what it has.
    shows_all: bool,
    shows_from: Duration,
    holds: Holds,
    filling: Option<Filling<W::Task>>,
    comparison: Comparison,
    moments: Moments,
    work: Worked,
    told: ToldNo,
    ticked: Duration,
    ticks: u64,
    /// For how long the log has had no delegate.
    unled_ticks: u64,
    /// Its log has named it as a member since it began.
    was_member: bool,
    /// Counts this site's starts.
    life: u16,
    proposals: Proposals,
}

impl<W: World, A: Application> Cycle<W, A> {
    /// Does what is to be done, after waiting for something at most for `patience`.
    ///
    /// # Errors
    /// [`ProcessError`]: end the process, and start it again.
    pub(crate) fn turn(&mut self, patience: Duration) -> Result<(), ProcessError> {
        let until_tick = TICK.saturating_sub(self.world.now().saturating_sub(self.ticked));
        let busy = (!self.requests.queue.is_empty() && self.may_execute())
            || self.log.pending()
            || self.giving.is_due();
        self.links.poll(if busy { Duration::ZERO } else { patience.min(until_tick) }, &mut self.inbox)?;
        self.take_in()?;
        self.tick()?;
        self.go_on_with_filling()?;
        self.take_stored()?;
        self.shows_all |= self.site.has_caught_up() || self.world.now() >= self.shows_from;
        self.take_transactions()?;
        self.go_on_with_reads()?;
        self.execute()?;
        self.settle()?;
        self.leave_office()?;
        self.feed_store();
        self.give()?;
        self.links.flush();
        Ok(())
    }

    /// Executes a request of this process's driver; [`Cycle::answered`] has the answer. The id's client must be nobody else's.
    pub(crate) fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        self.requests.arrived(id, Asker::Here, Version(0), request);
    }

    /// Answers to [`Cycle::submit`] since it was asked last.
    pub(crate) fn answered(&mut self) -> impl Iterator<Item = Answered> {
        self.answered.drain(..)
    }

    /// What an operator would want to know, since it was asked last.
    pub(crate) fn notices(&mut self) -> impl Iterator<Item = Notice> {
        self.notices.drain(..)
    }

    /// The rules' state, to be looked at.
    pub(crate) fn rules(&self) -> &Site {
        &self.site
    }

    pub(crate) fn into_world(self) -> W {
        self.world
    }

    fn tick(&mut self) -> Result<(), ProcessError> {
        let now = self.world.now();
        while now.saturating_sub(self.ticked) >= TICK {
            // A process that was stopped does not make up for it.
            self.ticked = (self.ticked + TICK).max(now.saturating_sub(TICK * 2));
            assert!(self.ticked <= now, "no tick is of a time to come");
            self.log.tick();
            self.ticks += 1;
            self.tick_words()?;
            self.tick_comparison()?;
            if self.ticks.is_multiple_of(SHOWN_TICKS) {
                self.world.show(&self.report());
            }
            if self.ticks.is_multiple_of(TICKS_OF_RULES) {
                self.site.tick(&mut self.wanted);
                self.tick_requests();
            }
        }
        Ok(())
    }

    fn take_in(&mut self) -> Result<(), ProcessError> {
        for (who, why) in std::mem::take(&mut self.inbox.refused) {
            self.turned_away.note(who, why, self.world.now());
        }
        for arrived in std::mem::take(&mut self.inbox.arrived) {
            match arrived {
                Arrived::Connected(site) => {
                    self.turned_away.got_in(site);
                    self.site.connected(site);
                    self.comparison.connected(site);
                    self.say(site, &Word::Standing(self.standing(true, true)));
                }
                Arrived::Lost(site) if site.cluster == self.site.id().cluster => self.log.lost(site.number),
                Arrived::Lost(_) => {}
                Arrived::Frame(from, bytes) => self.frame(from, &bytes)?,
                Arrived::Asked(client, rights, bytes) => match Ask::from_bytes(&bytes) {
                    Ok(ask) => self.asked(client, rights, ask)?,
                    Err(_) => self.links.close_client(client),
                },
                Arrived::Gone(client) => {
                    self.readers.forget(client);
                    self.giving.forget(client);
                }
            }
        }
        Ok(())
    }

    /// A frame of another site. What cannot be read is as good as lost.
    fn frame(&mut self, from: SiteId, bytes: &[u8]) -> Result<(), ProcessError> {
        match Between::from_bytes(bytes) {
            Ok(Between::Rules(bytes)) => {
                if let Ok(message) = Coded::from_bytes(bytes) {
                    self.site.receive(from, message, &mut self.wanted);
                }
            }
            Ok(Between::Log(bytes)) if from.cluster == self.site.id().cluster => {
                let _ = self.log.receive(from.number, bytes);
            }
            Ok(Between::Log(_)) => {}
            Ok(Between::Forward(id, least, request)) => self.forwarded_here(from, id, least, request),
            Ok(Between::Forwarded(id, code, version, body)) => self.forwarded_back(id, code, version, body),
            Err(_) => {
                if let Ok(word) = Word::from_bytes(bytes) {
                    self.word(from, word)?;
                }
            }
        }
        Ok(())
    }

    /// Until nothing is new: what the rules want is done, and what the log commits is handed to the rules.
    fn settle(&mut self) -> Result<(), ProcessError> {
        let mut taken_bytes = 0;
        for _ in 0..ROUNDS_MAX {
            self.site.flush(&mut self.wanted);
            self.note_first()?;
            self.carry_out();
            self.tell_waiting();
            let has_news = self.log.pending() || !self.log_events.news.is_empty();
            // What a delegate takes it has proposed itself, and a turn that ends early would only execute more before it syncs.
            let has_enough = taken_bytes >= TAKEN_BYTES_MAX && !self.log.role().leads;
            if !has_news || has_enough {
                break;
            }
            self.log.cycle(&mut self.log_events)?;
            taken_bytes += self.take_log()?;
        }
        Ok(())
    }

    /// A client may see a version from now on, and count on it: so this database is not one that begins.
    fn note_first(&mut self) -> Result<(), ProcessError> {
        if self.place.has_shown || self.site.stable() <= self.begins {
            return Ok(());
        }
        self.place.has_shown = true;
        self.place.write(self.world.notes())
    }

    /// How many bytes that were.
    fn take_log(&mut self) -> Result<usize, ProcessError> {
        let mut taken_bytes = 0;
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
                    taken_bytes += payload.len();
                }
                LogNews::Role(role) => {
                    self.proposals.begin_again();
                    self.site.role(LogRole { term: Term(role.term), leads: role.leads });
                }
            }
        }
        self.write_base()?;
        let lack = match (self.log_events.lacks.take(), self.site.lacking()) {
            (Some(at_least), _) => Lack::Log(at_least),
            (None, Some(stored)) => Lack::Items(stored),
            (None, None) => return Ok(taken_bytes),
        };
        note_lack(self.world.notes(), &lack)?;
        Err(ProcessError::Again)
    }

    fn take_stored(&mut self) -> Result<(), ProcessError> {
        if let Some(done) = self.applier.done() {
            let done = done?;
            self.work.batches += 1;
            self.work.stored += done.digests.len() as u64;
            self.work.flushes += u64::from(done.flushed.is_some());
            assert!(self.work.batches <= self.work.stored, "a batch has a version at least");
            assert!(done.snapshot.version() >= self.base.version(), "a store only moves on");
            self.base = done.snapshot;
            self.site.applied(self.base.version());
            self.comparison.applied(&done.digests);
            self.moments.note(self.base.version(), self.world.now());
            if let Some(flushed) = done.flushed {
                assert!(flushed <= self.base.version(), "what is on the disk was written before");
                self.bases.flushed(flushed);
                self.write_base()?;
            }
        }
        Ok(())
    }

    fn write_base(&mut self) -> Result<(), ProcessError> {
        if let Some(before) = self.bases.write(self.world.notes())? {
            self.work.bases += 1;
            let limit = self.holds.limit(before, self.ticks);
            assert!(limit <= before, "the log is let go of up to the base before the last, at most");
            self.log.compact(limit);
        }
        Ok(())
    }

    fn feed_store(&mut self) {
        if !self.applier.is_idle() || self.site.is_recalling() {
            return;
        }
        let after = self.applier.given;
        assert!(after >= self.base.version(), "nothing is in the store that was not given to it");
        let mut room = self.bounds.applied_bytes_max;
        let fits = |(_, writes): &(Version, &[Write])| {
            let had_room = room > 0;
            room = room.saturating_sub(writes.iter().map(Write::held_bytes).sum());
            had_room
        };
        let versions = self.site.overlay().after(after, self.site.stable()).take(self.bounds.applied_max);
        let versions = versions.take_while(fits).map(|(version, writes)| (version, writes.to_vec()));
        let mut versions: Vec<_> = versions.collect();
        in_one_batch(&mut versions);
        if let Some((version, _)) = versions.last() {
            assert!(*version <= self.site.stable(), "the store holds a stable prefix");
            let era = self.site.era_at(*version).expect("what is stable is of an era that is kept");
            let stored = Stored { version: *version, position: self.site.position(), era, digest: 0 };
            let due = self.bases.wait_for(*version);
            self.applier.give(versions, stored, self.world.now(), due);
        }
    }
}
