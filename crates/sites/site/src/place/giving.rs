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

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow;

    use pares_store::{Reads, Visit};
    use pares_wice::{Era, Key, KeyRange, Stored, Value, Version};

    use super::*;
    use crate::place::standing::Lack;

    const ITEM_BYTES: usize = 512 << 10;
    const TO: SiteId = SiteId::new(0, 1);

    /// A store of so many items, of which none is anywhere before it is read.
    struct Endless(u64);

    impl Reads for Endless {
        fn get(&self, _key: &Key) -> Result<Option<Value>, StoreError> {
            unreachable!("a copy reads ranges")
        }

        fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
            let from = range.from.as_bytes();
            let first = from.first_chunk::<8>().map_or(0, |number| u64::from_be_bytes(*number));
            let first = first + u64::from(from.len() > 8); // behind that one
            for number in first..self.0 {
                let value = Value::new(vec![number as u8; ITEM_BYTES - 1]);
                if let ControlFlow::Break(()) = visit(Key::new(number.to_be_bytes()), value) {
                    break;
                }
            }
            Ok(())
        }
    }

    impl StoreSnapshot for Endless {
        fn version(&self) -> Version {
            Version(7)
        }
        fn meta(&self) -> &[u8] {
            &[]
        }
    }

    fn request(next: u32, after: &Key) -> Request {
        Request { lack: Lack::Log(0), copy: 5, next, after: after.clone(), until: next + 24 }
    }

    /// Takes a copy of so many items, of which every so-many-th piece is lost; how many items came, each once and in order.
    fn taken(items: u64, lost_every: u64) -> u64 {
        let stored = Stored { version: Version(7), position: 1, era: Era::default(), digest: 0 };
        let mut giving = Giving::default();
        giving.begin(TO, &Head { copy: 5, log: None, stored }, Box::new(Endless(items)), 24, 0);
        let (mut next, mut after, mut came, mut sent) = (0, Key::new([]), 0, 0);
        loop {
            let pieces = giving.pieces().unwrap();
            assert!(pieces.len() <= 1, "one taker, one piece");
            for (_, piece) in pieces {
                sent += 1;
                assert!(piece.items.len() == 1, "an item that is larger than a piece is one");
                if piece.number != next || sent % lost_every == 0 {
                    continue;
                }
                for (key, _) in piece.items {
                    assert_eq!(key, Key::new(u64::to_be_bytes(came)));
                    (came, after) = (came + 1, key);
                }
                next += 1;
                if piece.is_last {
                    return came;
                }
            }
            if !giving.is_due() {
                assert!(giving.goes_on(TO, &request(next, &after), 1));
            }
        }
    }

    #[test]
    fn ten_gigabytes_come_in_pieces_and_no_more_than_a_piece_is_in_memory() {
        let items = (10 << 30) / ITEM_BYTES as u64;
        assert_eq!(taken(items, u64::MAX), items);
    }

    #[test]
    fn a_piece_that_is_lost_is_given_again_from_the_key_before_it() {
        assert_eq!(taken(300, 7), 300);
        assert_eq!(taken(300, 25), 300);
    }

    #[test]
    fn a_copy_that_nobody_asks_of_is_let_go() {
        let stored = Stored { version: Version(7), position: 1, era: Era::default(), digest: 0 };
        let mut giving = Giving::default();
        giving.begin(TO, &Head { copy: 5, log: None, stored }, Box::new(Endless(3)), 24, 0);
        giving.tick(KEPT_TICKS - 1);
        assert!(giving.goes_on(TO, &request(0, &Key::new([])), KEPT_TICKS - 1));
        giving.tick(KEPT_TICKS * 2 - 1);
        assert!(!giving.goes_on(TO, &request(0, &Key::new([])), KEPT_TICKS * 2));
    }
}
