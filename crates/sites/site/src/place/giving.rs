//! Giving copies: a snapshot of the store in pieces, one piece a turn, as many as were asked for.
//!
//! The snapshot holds still while the store continues, and keeps on the disk what was replaced since. So a copy is kept only for a while after its taker
//! has come further: a broken connection between sites costs the pieces under way and no more; after that the taker begins with another. Sites
//! that are filled and backups are given copies in the same way; neither take the other's places.

use std::collections::BTreeMap;

use pares_link::ClientId;
use pares_store::{Export, StoreError, StoreSnapshot};
use pares_wice::SiteId;

use super::standing::Piece;
use crate::protocol::WantedPieces;

/// Bytes of a piece, about: what one turn reads of the store for another site, or for a backup.
pub(crate) const PIECE_BYTES: usize = 128 << 10;
/// Copies given at a time to sites, and for backups.
const SITES_MAX: usize = 4;
const BACKUPS_MAX: usize = 2;
/// Ticks after which a copy whose taker has come no further is let go.
pub(crate) const KEPT_TICKS: u64 = 1_000;

/// Whom a copy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taker {
    /// A site that is filled.
    Site(SiteId),
    /// A backup: its connection, and the tag of its question.
    Backup(ClientId, u64),
}

impl Taker {
    fn is_site(self) -> bool {
        matches!(self, Self::Site(_))
    }
}

struct Copy {
    id: u64,
    pieces: Export<Box<dyn StoreSnapshot>>,
    /// The next piece to send, and the first that is not to be sent yet.
    next: u32,
    until: u32,
    /// Whether the last of all was sent.
    is_over: bool,
    /// The piece that was asked for last of all, and when that was new.
    reached: u32,
    reached_tick: u64,
}

/// The copies that a site gives.
#[derive(Default)]
pub(crate) struct Giving {
    copies: BTreeMap<Taker, Copy>,
}

impl Giving {
    /// Whether `to` has that copy; then its request is noted.
    pub(crate) fn goes_on(&mut self, to: Taker, wanted: &WantedPieces, tick: u64) -> bool {
        let Some(copy) = self.copies.get_mut(&to).filter(|copy| copy.id == wanted.copy) else {
            return false;
        };
        // To a backup nothing is lost on its one connection: what it has not got is under way. A site that asks for more has what it has not got under way,
        // too; one that asks for no more than before has waited for it without success.
        if to.is_site() && wanted.until <= copy.until && wanted.next != copy.next {
            copy.pieces.seek(wanted.next, &wanted.after);
            (copy.next, copy.is_over) = (wanted.next, false);
        }
        copy.until = wanted.until.max(copy.next);
        if wanted.next > copy.reached {
            (copy.reached, copy.reached_tick) = (wanted.next, tick);
        }
        true
    }

    /// Whether there is room for another.
    pub(crate) fn has_room(&self, to: Taker) -> bool {
        let most = if to.is_site() { SITES_MAX } else { BACKUPS_MAX };
        let alike = self.copies.keys().filter(|taker| taker.is_site() == to.is_site());
        alike.count() < most || self.copies.contains_key(&to)
    }

    /// Begins copy `id` for `to`, in place of any other of its.
    pub(crate) fn begin(
        &mut self,
        to: Taker,
        id: u64,
        snapshot: Box<dyn StoreSnapshot>,
        until: u32,
        tick: u64,
    ) {
        assert!(self.has_room(to), "a copy is begun where there is room for one");
        assert!(id > 0, "copies have numbers from 1 on: 0 asks for another");
        let pieces = Export::new(snapshot, PIECE_BYTES);
        let copy = Copy { id, pieces, next: 0, until, is_over: false, reached: 0, reached_tick: tick };
        self.copies.insert(to, copy);
        assert!(self.copies.len() <= SITES_MAX + BACKUPS_MAX, "few copies are given at a time");
    }

    /// An application's connection is gone, and its backup with it.
    pub(crate) fn forget(&mut self, gone: ClientId) {
        self.copies.retain(|taker, _| !matches!(taker, Taker::Backup(client, _) if *client == gone));
    }

    /// Whether a piece can be sent.
    pub(crate) fn is_due(&self) -> bool {
        self.copies.values().any(Copy::is_due)
    }

    /// One piece for each that wants one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn pieces(&mut self) -> Result<Vec<(Taker, Piece)>, StoreError> {
        let mut pieces = Vec::new();
        for (to, copy) in self.copies.iter_mut().filter(|(_, copy)| copy.is_due()) {
            let Some(chunk) = copy.pieces.next() else {
                copy.is_over = true;
                continue;
            };
            let chunk = chunk?;
            copy.next += 1;
            assert!(copy.next <= copy.until, "no piece is sent that was not asked for");
            let (is_last, number) = (chunk.meta.is_some(), chunk.number);
            assert_eq!(number + 1, copy.next, "pieces are numbered as they are sent");
            copy.is_over = is_last;
            pieces.push((*to, Piece { copy: copy.id, number, items: chunk.items, is_last }));
        }
        Ok(pieces)
    }

    /// A tick has passed.
    pub(crate) fn tick(&mut self, tick: u64) {
        self.copies.retain(|_, copy| {
            assert!(copy.reached_tick <= tick, "ticks are only counted up");
            tick - copy.reached_tick < KEPT_TICKS
        });
    }
}

impl Copy {
    fn is_due(&self) -> bool {
        self.next < self.until && !self.is_over
    }
}

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow;

    use pares_store::{Mark, Reads, Visit};
    use pares_wice::{Key, KeyRange, Value, Version};

    use super::*;

    const ITEM_BYTES: usize = 512 << 10;
    const TO: Taker = Taker::Site(SiteId::new(0, 1));

    /// A store of so many items, of which none is anywhere before it is read.
    struct Endless(u64, Mark);

    fn endless(items: u64) -> Box<Endless> {
        Box::new(Endless(items, Mark { version: Version(7), ..Mark::default() }))
    }

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
        fn mark(&self) -> &Mark {
            &self.1
        }
    }

    fn wanted(next: u32, after: &Key, until: u32) -> WantedPieces {
        WantedPieces { copy: 5, next, after: after.clone(), until }
    }

    /// Takes a copy of so many items, of whose pieces some are lost, by the number of those sent before, over a line on which all that may be is under way at a time. How many items
    /// came, each once and in order, and how many pieces were sent.
    fn taken(items: u64, is_lost: impl Fn(u64) -> bool) -> (u64, u64) {
        let mut giving = Giving::default();
        giving.begin(TO, 5, endless(items), 24, 0);
        let (mut next, mut asked, mut after, mut came, mut sent) = (0, 24, Key::new([]), 0, 0);
        loop {
            let mut under_way = Vec::new();
            while giving.is_due() {
                let pieces = giving.pieces().unwrap();
                assert!(pieces.len() <= 1, "one taker, one piece");
                under_way.extend(pieces);
            }
            let before = next;
            for (_, piece) in under_way {
                sent += 1;
                assert!(piece.items.len() == 1, "an item that is larger than a piece is one");
                if piece.number != next || is_lost(sent) {
                    continue;
                }
                for (key, _) in piece.items {
                    assert_eq!(key, Key::new(u64::to_be_bytes(came)));
                    (came, after) = (came + 1, key);
                }
                next += 1;
                if piece.is_last {
                    return (came, sent);
                }
                if next + 12 >= asked {
                    asked = next + 24;
                    assert!(giving.goes_on(TO, &wanted(next, &after, asked), 1));
                }
            }
            if next == before {
                assert!(giving.goes_on(TO, &wanted(next, &after, asked), 1));
            }
        }
    }

    #[test]
    fn ten_gigabytes_arrive_in_single_piece_memory() {
        let items = (10 << 30) / ITEM_BYTES as u64;
        assert_eq!(taken(items, |_| false), (items, items), "none is sent twice");
    }

    #[test]
    fn a_piece_that_is_lost_is_given_again_from_the_key_before_it() {
        // Most of them; and the last one of all.
        assert_eq!(taken(60, |sent| sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 != 0).0, 60);
        assert_eq!(taken(20, |sent| sent == 20), (20, 21));
    }

    #[test]
    fn a_copy_that_nobody_asks_of_is_let_go() {
        let mut giving = Giving::default();
        giving.begin(TO, 5, endless(3), 24, 0);
        giving.tick(KEPT_TICKS - 1);
        assert!(giving.goes_on(TO, &wanted(1, &Key::from("a"), 25), KEPT_TICKS - 1));
        giving.tick(KEPT_TICKS * 2 - 2);
        assert!(
            giving.goes_on(TO, &wanted(1, &Key::from("a"), 25), KEPT_TICKS * 2 - 2),
            "it has come further"
        );
        giving.tick(KEPT_TICKS * 2 - 1);
        assert!(!giving.goes_on(TO, &wanted(2, &Key::from("a"), 26), KEPT_TICKS * 2), "asking is not taking");
    }

    #[test]
    fn backups_are_few_and_leave_sites_their_copies() {
        let mut giving = Giving::default();
        let backup = |client| Taker::Backup(ClientId(client), 1);
        for client in 0..2 {
            assert!(giving.has_room(backup(client)));
            giving.begin(backup(client), 5, endless(3), 24, 0);
        }
        assert!(!giving.has_room(backup(2)) && giving.has_room(backup(1)) && giving.has_room(TO));
        giving.forget(ClientId(0));
        assert!(giving.has_room(backup(2)));
    }
}
