//! Giving copies: a snapshot of the store in pieces, one piece a turn, as many as were asked for.
//!
//! The snapshot holds still while the store goes on. A copy is kept for a while after its taker's last word, so that a broken connection
//! costs the pieces under way and no more; after that the taker begins with another.

use std::collections::BTreeMap;

use pares_store::{Export, StoreError, StoreSnapshot};
use pares_wice::SiteId;

use super::standing::{Head, Piece, Request};

/// Bytes of a piece, about: what one turn reads of the store for another site.
pub(crate) const PIECE_BYTES: usize = 128 << 10;
/// Copies given at a time.
const COPIES_MAX: usize = 4;
/// Ticks after which a copy that nobody asks of is let go.
const KEPT_TICKS: u64 = 1_000;

struct Copy {
    id: u64,
    pieces: Export<Box<dyn StoreSnapshot>>,
    /// The next piece to send, and the first that is not to be sent yet.
    next: u32,
    until: u32,
    asked_tick: u64,
}

/// The copies that a site gives.
#[derive(Default)]
pub(crate) struct Giving {
    copies: BTreeMap<SiteId, Copy>,
}

impl Giving {
    /// Whether `to` has that copy; then its request is noted.
    pub(crate) fn goes_on(&mut self, to: SiteId, request: &Request, tick: u64) -> bool {
        let Some(copy) = self.copies.get_mut(&to).filter(|copy| copy.id == request.copy) else {
            return false;
        };
        if request.next != copy.next {
            copy.pieces.seek(request.next, &request.after);
            copy.next = request.next;
        }
        (copy.until, copy.asked_tick) = (request.until.max(copy.next), tick);
        true
    }

    /// Whether there is room for another.
    pub(crate) fn has_room(&self, to: SiteId) -> bool {
        self.copies.len() < COPIES_MAX || self.copies.contains_key(&to)
    }

    /// Begins a copy for `to`, in place of any other of its.
    pub(crate) fn begin(
        &mut self,
        to: SiteId,
        head: &Head,
        snapshot: Box<dyn StoreSnapshot>,
        until: u32,
        tick: u64,
    ) {
        let pieces = Export::new(snapshot, PIECE_BYTES);
        self.copies.insert(to, Copy { id: head.copy, pieces, next: 0, until, asked_tick: tick });
    }

    /// Whether a piece can be sent.
    pub(crate) fn is_due(&self) -> bool {
        self.copies.values().any(Copy::is_due)
    }

    /// One piece for each that wants one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn pieces(&mut self) -> Result<Vec<(SiteId, Piece)>, StoreError> {
        let mut pieces = Vec::new();
        for (to, copy) in self.copies.iter_mut().filter(|(_, copy)| copy.is_due()) {
            let Some(chunk) = copy.pieces.next() else {
                copy.until = copy.next; // all are sent
                continue;
            };
            let chunk = chunk?;
            copy.next += 1;
            let (is_last, number) = (chunk.meta.is_some(), chunk.number);
            pieces.push((*to, Piece { copy: copy.id, number, items: chunk.items, is_last }));
        }
        Ok(pieces)
    }

    /// A tick has passed.
    pub(crate) fn tick(&mut self, tick: u64) {
        self.copies.retain(|_, copy| tick - copy.asked_tick < KEPT_TICKS);
    }
}

impl Copy {
    fn is_due(&self) -> bool {
        self.next < self.until
    }
}
