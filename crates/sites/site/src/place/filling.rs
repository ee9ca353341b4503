//! Taking a copy: pieces of a store, asked of one site after the other, until one has given all of it.
//!
//! ```text
//!   ask --HEAD--> task that empties the store
//!    ^    PIECE--> batch --> and writes --(last)--> sealed, on the disk
//!    |      |                  |
//!    |      |                  +-- as long as much waits for it, no more is asked for
//!    |      +-- lost: asked again from the last key
//!    +-- silent for long: another site
//! ```
//! The store counts for nothing until the last piece has been written, and says so if it is opened before. It is emptied when nobody writes it any more: the task of a copy that
//! was given up ends behind the batch that it writes, and until then no other copy is asked for.
//!
//! A store that does not take its copy would not take the next one either, at once. So that ends nothing: the site says why, and asks another site after a pause that
//! grows ([`Failures`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use pares_store::{Mark, Store, StoreError, item_bytes};
use pares_wice::codec::Coded;
use pares_wice::{KEY_BYTES_MAX, Key, SiteId, VALUE_BYTES_MAX, Value};

use super::failures::Failures;
use super::giving::{KEPT_TICKS, PIECE_BYTES};
use super::loading::{Ending, Loading};
use super::standing::{Head, Lack, Member, Piece, Request, Role, Standing, Word};
use crate::error::ProcessError;
use crate::protocol::WantedPieces;
use crate::world::World;

/// Pieces under way at a time: 8 MiB, if none of their items is large. A far site sends them within one round trip.
const WINDOW: u32 = 64;
/// Bytes loaded into the store at once: a commit of the store costs the same for many.
const LOAD_BYTES: usize = 8 << 20;
/// Bytes that may wait to be written while more is asked for.
const AHEAD_BYTES: usize = 2 * LOAD_BYTES;
/// Ticks after which what was asked is asked again, and after which another site is asked.
const AGAIN_TICKS: u32 = 20;
const SILENT_TICKS: u32 = 500;
const _: () = assert!(AGAIN_TICKS < SILENT_TICKS, "a site is asked again before it is given up");
const _: () = assert!((SILENT_TICKS as u64) < KEPT_TICKS, "a copy is kept until its taker gives it up");

/// A copy that is being taken.
pub(crate) struct Filling<T> {
    own: SiteId,
    lack: Lack,
    others: BTreeMap<SiteId, Standing>,
    /// The sites that are asked, and those that have failed.
    from: Option<SiteId>,
    tried: Vec<SiteId>,
    head: Option<Head>,
    loading: Option<Loading<T>>,
    /// The task of a copy that was given up, until it has ended.
    ending: Option<Ending<T>>,
    /// What it has filled.
    store: Option<Arc<dyn Store>>,
    next: u32,
    /// Up to which piece was asked for.
    asked: u32,
    after: Key,
    pending: Vec<(Key, Value)>,
    pending_bytes: usize,
    silent_ticks: u32,
    bytes: u64,
    failures: Failures,
}

impl<T> Filling<T> {
    pub(crate) fn new(own: SiteId, lack: Lack) -> Self {
        Self {
            own,
            lack,
            others: BTreeMap::new(),
            from: None,
            tried: Vec::new(),
            head: None,
            loading: None,
            ending: None,
            store: None,
            next: 0,
            asked: 0,
            after: Key::new([]),
            pending: Vec::new(),
            pending_bytes: 0,
            silent_ticks: 0,
            bytes: 0,
            failures: Failures::default(),
        }
    }

    /// From which place on the cluster's log will be needed.
    pub(crate) fn role(&self) -> Role {
        let log = self.head.as_ref().and_then(|head| head.log.as_ref());
        Role::Filling(log.map_or(u64::MAX, |(behind, _)| behind.0.index))
    }

    /// Another site says what it is.
    pub(crate) fn heard(&mut self, from: SiteId, standing: Standing) {
        self.others.insert(from, standing);
    }

    /// A tick has passed: what to say to whom.
    pub(crate) fn tick(&mut self) -> Option<(SiteId, Word)> {
        if self.failures.pauses() || self.has_all_asked() {
            self.silent_ticks = 0; // the disk has its turn
            return None;
        }
        self.silent_ticks += 1;
        if self.from.is_none() || self.silent_ticks >= SILENT_TICKS {
            self.ask_another();
        }
        assert!(self.silent_ticks < SILENT_TICKS, "a silent site is given up");
        let again = self.ending.is_none() && self.silent_ticks.is_multiple_of(AGAIN_TICKS);
        again.then(|| self.request()).flatten()
    }

    /// The one that is asked is given up, and the next one begins from the beginning.
    fn ask_another(&mut self) {
        self.tried.extend(self.from.take());
        let mut candidates: Vec<(bool, bool, SiteId)> =
            self.others.iter().filter_map(|(site, standing)| self.candidate(*site, standing)).collect();
        candidates.sort_unstable();
        if candidates.iter().all(|(.., site)| self.tried.contains(site)) {
            self.tried.clear();
        }
        self.from = candidates.iter().map(|(.., site)| *site).find(|site| !self.tried.contains(site));
        self.forget();
    }

    /// The copy that was begun counts for nothing, and its store is to be closed.
    fn forget(&mut self) {
        if let Some(loading) = self.loading.take() {
            assert!(self.ending.is_none(), "no copy is begun before the last one has ended");
            self.ending = Some(loading.stop());
        }
        (self.head, self.store) = (None, None);
        (self.next, self.asked, self.after) = (0, 0, Key::new([]));
        self.pending.clear();
        (self.pending_bytes, self.silent_ticks, self.bytes) = (0, 0, 0);
    }

    /// Whether nothing is to come that was asked for.
    fn has_all_asked(&self) -> bool {
        self.ending.is_some()
            || self.loading.as_ref().is_some_and(|loading| loading.is_last_given || self.next >= self.asked)
    }

    /// One of the own cluster that does not lead is asked first, one of another cluster last.
    fn candidate(&self, site: SiteId, standing: &Standing) -> Option<(bool, bool, SiteId)> {
        let is_far = site.cluster != self.own.cluster;
        let Role::Member(Member { gives: true, leads, .. }) = standing.role else { return None };
        (!is_far || matches!(self.lack, Lack::Items(_))).then_some((is_far, leads, site))
    }

    /// What to ask for: the first time the copy, then pieces up to the last that was asked for already. Who gives takes a request that asks for no
    /// more than one before as a sign that pieces were lost.
    fn request(&self) -> Option<(SiteId, Word)> {
        let (to, copy) = (self.from?, self.head.as_ref().map_or(0, |head| head.copy));
        let until = if copy == 0 { WINDOW } else { self.asked };
        let pieces = WantedPieces { copy, next: self.next, after: self.after.clone(), until };
        Some((to, Word::Lack(Request { lack: self.lack, pieces })))
    }

    /// Asks for more, if half of what was asked for has come and there is room for it.
    fn request_more(&mut self) -> Option<(SiteId, Word)> {
        let loading = self.loading.as_ref().filter(|loading| !loading.is_last_given)?;
        let waiting_bytes = self.pending_bytes + loading.under_way_bytes;
        if self.next + WINDOW / 2 < self.asked || waiting_bytes >= AHEAD_BYTES {
            return None;
        }
        let until = self.next + WINDOW;
        assert!(self.asked < until, "each request for more asks for more than the one before");
        self.asked = until;
        self.request()
    }

    /// A copy begins. While an earlier one is still being written it does not, and is asked for again.
    ///
    /// # Errors
    /// If there is no room for another thread.
    pub(crate) fn begins<W: World<Task = T>>(
        &mut self,
        from: SiteId,
        head: Head,
        world: &mut W,
        links: &W::Links,
    ) -> Result<(), ProcessError> {
        let is_known = self.head.as_ref().is_some_and(|known| known.copy == head.copy);
        if self.from != Some(from) || is_known || !self.is_enough(&head) {
            return Ok(());
        }
        self.forget(); // closed before it is emptied
        if !self.has_ended() {
            return Ok(());
        }
        assert_eq!(self.next, 0, "a copy begins with its first piece");
        let (loading, loader) = Loading::new(world.emptying());
        self.loading = Some(loading.run_by(world.start_loader(loader, links)?));
        (self.head, self.asked) = (Some(head), WINDOW);
        Ok(())
    }

    /// Whether that copy has what is lacking.
    fn is_enough(&self, head: &Head) -> bool {
        match (self.lack, &head.log) {
            (Lack::Log(at_least), Some((behind, _))) => behind.0.index >= at_least,
            (Lack::Items(stored), None) => {
                head.stored.version >= stored.version && head.stored.position >= stored.position
            }
            _ => false,
        }
    }

    /// Whether nobody writes a copy that was given up.
    fn has_ended(&mut self) -> bool {
        drop(self.ending.take_if(|ending| ending.is_over()));
        self.ending.is_none()
    }

    /// A piece has come; what to ask for then.
    pub(crate) fn piece(&mut self, from: SiteId, piece: Piece) -> Option<(SiteId, Word)> {
        let is_next =
            self.head.as_ref().is_some_and(|head| head.copy == piece.copy) && piece.number == self.next;
        let is_awaited = self.loading.as_ref().is_some_and(|loading| !loading.is_last_given);
        if self.from != Some(from) || !is_next || !is_awaited {
            return None;
        }
        self.silent_ticks = 0;
        self.next += 1;
        if let Some((last, _)) = piece.items.last() {
            self.after = last.clone();
        }
        self.pending_bytes += piece.items.iter().map(item_bytes).sum::<usize>();
        self.pending.extend(piece.items);
        self.load(piece.is_last);
        self.request_more()
    }

    fn load(&mut self, is_last: bool) {
        if !is_last && self.pending_bytes < LOAD_BYTES {
            return;
        }
        let (Some(loading), Some(head)) = (&mut self.loading, &self.head) else { return };
        let stored = head.stored;
        let seal = is_last.then(|| Mark { whole: true, version: stored.version, meta: stored.to_bytes() });
        loading.give(std::mem::take(&mut self.pending), std::mem::take(&mut self.pending_bytes), seal);
    }

    /// What has been written since it was asked last; what to ask for then. [`Filling::done`] says whether it was all.
    ///
    /// # Errors
    /// If the store is another's.
    pub(crate) fn go_on(&mut self) -> Result<Option<(SiteId, Word)>, ProcessError> {
        if !self.has_ended() {
            return Ok(None);
        }
        match self.take_written() {
            Ok(()) => Ok(self.request_more()),
            Err(error) => self.fails(error).map(|()| None),
        }
    }

    fn take_written(&mut self) -> Result<(), StoreError> {
        while let Some(loading) = &mut self.loading {
            let Some(loaded) = loading.written()? else { break };
            assert!(
                loaded.whole.is_none() || loading.is_last_given,
                "a store is whole behind its last piece"
            );
            self.bytes += loaded.bytes as u64;
            if loaded.whole.is_some() {
                (self.store, self.loading) = (loaded.whole, None);
            }
        }
        Ok(())
    }

    /// The copy is given up, and another is begun after a pause. A store that is another's is left alone.
    fn fails(&mut self, error: StoreError) -> Result<(), ProcessError> {
        if matches!(error, StoreError::Owned(_) | StoreError::Form { .. }) {
            return Err(error.into());
        }
        self.failures.note(self.from, &error);
        self.tried.extend(self.from.take());
        self.forget();
        Ok(())
    }

    /// How often no copy could be written, since the process began.
    pub(crate) fn failed_times(&self) -> u32 {
        self.failures.times
    }

    /// What was taken, if all of it is on the disk, and the store that holds it.
    pub(crate) fn done(&mut self) -> Option<(Head, Arc<dyn Store>)> {
        let store = self.store.take()?;
        assert!(
            self.loading.is_none() && self.pending.is_empty(),
            "nothing is to be written into a store that is whole"
        );
        Some((self.head.take().expect("a store is filled with a copy"), store))
    }

    /// How far it is, for people.
    pub(crate) fn progress(&self) -> String {
        let now = match (self.from, &self.head) {
            _ if self.failures.pauses_now() => return self.failures.told(),
            (Some(from), Some(head)) => format!(
                "is being filled by {}.{}: {} MiB of version {} so far",
                from.cluster.0,
                from.number,
                (self.bytes as usize + self.pending_bytes) >> 20,
                head.stored.version
            ),
            (Some(from), None) => format!("asks {}.{} for a copy", from.cluster.0, from.number),
            (None, _) => "waits for a site that can send it a copy".to_owned(),
        };
        match self.failures.times {
            0 => now,
            _ => format!("{now}; before it {}", self.failures.told()),
        }
    }
}

/// What all that a piece may hold comes to: it travels in one frame.
const _: () = assert!(PIECE_BYTES + VALUE_BYTES_MAX + KEY_BYTES_MAX < 8 << 20, "a piece fits into one frame");

#[cfg(test)]
mod tests;
