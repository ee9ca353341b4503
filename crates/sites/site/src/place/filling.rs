//! Taking a copy: pieces of a store, asked of one site after the other, until one has given all of it.
//!
//! ```text
//!   ask --HEAD--> empty the store --PIECE--> load --(last)--> sealed, on the disk
//!    ^                                 |
//!    +-- silent for long: another site +-- lost: asked again from the last key
//! ```
//! The store counts for nothing until the last piece has come, and says so if it is opened before.

use std::collections::BTreeMap;
use std::sync::Arc;

use pares_store::{Mark, Store};
use pares_wice::codec::Coded;
use pares_wice::{KEY_BYTES_MAX, Key, SiteId, VALUE_BYTES_MAX, Value};

use super::giving::PIECE_BYTES;
use super::standing::{Head, Lack, Member, Piece, Request, Role, Standing, Word};
use crate::error::ProcessError;
use crate::protocol::WantedPieces;
use crate::world::World;

/// Pieces under way at a time.
const WINDOW: u32 = 24;
/// Bytes loaded into the store at once: a commit of the store costs the same for many.
const LOAD_BYTES: usize = 4 << 20;
/// Ticks after which what was asked is asked again, and after which another site is asked.
const AGAIN_TICKS: u32 = 20;
const SILENT_TICKS: u32 = 500;

/// A copy that is being taken.
pub(crate) struct Filling {
    own: SiteId,
    lack: Lack,
    others: BTreeMap<SiteId, Standing>,
    /// Who is asked, and who was in vain.
    from: Option<SiteId>,
    tried: Vec<SiteId>,
    head: Option<Head>,
    store: Option<Arc<dyn Store>>,
    next: u32,
    /// Up to which piece was asked for.
    asked: u32,
    after: Key,
    pending: Vec<(Key, Value)>,
    pending_bytes: usize,
    silent_ticks: u32,
    bytes: u64,
}

impl Filling {
    pub(crate) fn new(own: SiteId, lack: Lack) -> Self {
        Self {
            own,
            lack,
            others: BTreeMap::new(),
            from: None,
            tried: Vec::new(),
            head: None,
            store: None,
            next: 0,
            asked: 0,
            after: Key::new([]),
            pending: Vec::new(),
            pending_bytes: 0,
            silent_ticks: 0,
            bytes: 0,
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
        self.silent_ticks += 1;
        if self.from.is_none() || self.silent_ticks >= SILENT_TICKS {
            self.ask_another();
        }
        let again = self.silent_ticks.is_multiple_of(AGAIN_TICKS);
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
        (self.head, self.store, self.silent_ticks) = (None, None, 0);
    }

    /// One of the own cluster that does not lead is asked first, one of another cluster last.
    fn candidate(&self, site: SiteId, standing: &Standing) -> Option<(bool, bool, SiteId)> {
        let is_far = site.cluster != self.own.cluster;
        let Role::Member(Member { gives: true, leads, .. }) = standing.role else { return None };
        (!is_far || matches!(self.lack, Lack::Items(_))).then_some((is_far, leads, site))
    }

    fn request(&mut self) -> Option<(SiteId, Word)> {
        let (to, copy) = (self.from?, self.head.as_ref().map_or(0, |head| head.copy));
        let next = if copy == 0 { 0 } else { self.next };
        self.asked = next + WINDOW;
        let pieces = WantedPieces { copy, next, after: self.after.clone(), until: self.asked };
        Some((to, Word::Lack(Request { lack: self.lack, pieces })))
    }

    /// A copy begins.
    ///
    /// # Errors
    /// If the store cannot be emptied.
    pub(crate) fn begins(
        &mut self,
        from: SiteId,
        head: Head,
        world: &mut impl World,
    ) -> Result<(), ProcessError> {
        let is_known = self.head.as_ref().is_some_and(|known| known.copy == head.copy);
        let is_enough = match (self.lack, &head.log) {
            (Lack::Log(at_least), Some((behind, _))) => behind.0.index >= at_least,
            (Lack::Items(stored), None) => {
                head.stored.version >= stored.version && head.stored.position >= stored.position
            }
            _ => false,
        };
        if self.from != Some(from) || is_known || !is_enough {
            return Ok(());
        }
        self.store = None; // closed before it is emptied
        world.clear_store()?;
        self.store = Some(world.open_store()?);
        self.head = Some(head);
        (self.next, self.asked, self.after) = (0, WINDOW, Key::new([]));
        self.pending.clear();
        (self.pending_bytes, self.silent_ticks, self.bytes) = (0, 0, 0);
        Ok(())
    }

    /// A piece has come; what to ask for then. [`Filling::is_done`] says whether it was the last.
    ///
    /// # Errors
    /// If the store does not take it.
    pub(crate) fn piece(
        &mut self,
        from: SiteId,
        piece: Piece,
    ) -> Result<Option<(SiteId, Word)>, ProcessError> {
        let is_next =
            self.head.as_ref().is_some_and(|head| head.copy == piece.copy) && piece.number == self.next;
        if self.from != Some(from) || !is_next || self.store.is_none() {
            return Ok(None);
        }
        self.silent_ticks = 0;
        self.next += 1;
        if let Some((last, _)) = piece.items.last() {
            self.after = last.clone();
        }
        self.pending_bytes += piece
            .items
            .iter()
            .map(|(key, value)| key.as_bytes().len() + value.as_bytes().len())
            .sum::<usize>();
        self.pending.extend(piece.items);
        self.load(piece.is_last)?;
        let half = !piece.is_last && self.next + WINDOW / 2 >= self.asked;
        Ok(half.then(|| self.request()).flatten())
    }

    fn load(&mut self, is_last: bool) -> Result<(), ProcessError> {
        if !is_last && self.pending_bytes < LOAD_BYTES {
            return Ok(());
        }
        let (Some(store), Some(head)) = (&self.store, &self.head) else { return Ok(()) };
        let stored = head.stored;
        let seal = is_last.then(|| Mark { whole: true, version: stored.version, meta: stored.to_bytes() });
        store.load(&self.pending, seal.as_ref())?;
        if is_last {
            store.flush()?;
            self.store = None;
        }
        self.pending.clear();
        self.bytes += std::mem::take(&mut self.pending_bytes) as u64;
        Ok(())
    }

    /// What was taken, if all of it has come.
    pub(crate) fn is_done(&self) -> Option<&Head> {
        self.head.as_ref().filter(|_| self.store.is_none())
    }

    /// How far it is, for people.
    pub(crate) fn progress(&self) -> String {
        match (self.from, &self.head) {
            (Some(from), Some(head)) => format!(
                "is being filled by {}.{}: {} MiB of version {} so far",
                from.cluster.0,
                from.number,
                (self.bytes as usize + self.pending_bytes) >> 20,
                head.stored.version
            ),
            (Some(from), None) => format!("asks {}.{} for a copy", from.cluster.0, from.number),
            (None, _) => "waits for a site that can give it a copy".to_owned(),
        }
    }
}

/// What all that a piece may hold comes to: it travels in one frame.
const _: () = assert!(PIECE_BYTES + VALUE_BYTES_MAX + KEY_BYTES_MAX < 8 << 20);
