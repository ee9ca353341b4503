//! The names that a shard has executed, so that it executes none of them again.
//!
//! Gateways find repeats and give the first answer. But no gateway can be relied on to know a name: one may have looked it up and then
//! stood still, or be new. Only the total order tells whether a request came before, so the shard refuses what did. To remember every
//! name would make state and checkpoints grow with the day; to remember the last ones only would execute an old request again.
//!
//! So names are numbered upwards in series, and a shard keeps its last [`NAMES_MAX`] names (fewer only in the simulator), and for each series a *floor*: one above the highest
//! number that it forgot. What is neither kept nor below the floor of its series was never executed (decision 15).
//!
//! A ring gives the age, an open-addressing table (linear probing, backward-shift deletion, a fixed hash) gives the look-up; both are
//! allocated once.

use std::collections::BTreeMap;

use pares_book::Book;
use pares_types::{ClientOrderId, MemberId, Reason};

use crate::shard::Shard;

/// How many names a shard remembers, and by how many of them requests of a series may overtake each other.
pub const NAMES_MAX: usize = 16_384;
/// How many series of members a shard knows; those of the exchange come on top.
pub const SERIES_MAX: usize = 65_536;
/// Slots of the table.
const TABLE: usize = NAMES_MAX * 4;
/// Bits of a table slot that say which slot of the ring it means, plus one. The rest are of the name's hash: they say where its home is,
/// and mostly that another name is another, without a look into the ring.
const RING_BITS: u32 = 15;
const EMPTY: u32 = 0;
const _: () = assert!(NAMES_MAX < 1 << RING_BITS && TABLE <= 1 << (u32::BITS - RING_BITS));

type Name = (MemberId, ClientOrderId);
/// A series of a member's names.
pub(crate) type Series = (MemberId, u16);

/// The last names, [`NAMES_MAX`] unless told otherwise, and what is known of all before.
#[derive(Clone, Debug)]
pub struct Names {
    /// How many are remembered.
    max: usize,
    ring: Vec<Name>,
    /// Where the oldest name is, once the ring is full.
    oldest: usize,
    /// Slots of the ring with hashes, or [`EMPTY`].
    table: Vec<u32>,
    /// Of every series that was ever used, the number below which all names count as used.
    floors: BTreeMap<Series, u64>,
    /// How many of them are members'.
    members_series: usize,
}

impl Names {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        let (ring, table) = (Vec::with_capacity(NAMES_MAX), vec![EMPTY; TABLE]);
        Self { max: NAMES_MAX, ring, oldest: 0, table, floors: BTreeMap::new(), members_series: 0 }
    }

    /// The same, remembering the last `max` only.
    ///
    /// # Panics
    /// Unless `max` is from 1 to [`NAMES_MAX`].
    #[must_use]
    pub fn with_max(self, max: usize) -> Self {
        assert!((1..=NAMES_MAX).contains(&max), "{max} names");
        let mut names = Self { max, ..Self::new() };
        self.floors().for_each(|(series, floor)| names.put_floor(series, floor));
        self.iter().for_each(|name| names.keep(name));
        names
    }

    /// Remembers a name, forgetting the oldest if need be.
    ///
    /// # Errors
    /// Why the request under it must not be executed: [`Reason::DuplicateRequest`], [`Reason::TooOld`] or [`Reason::TooManySeries`]. Nothing
    /// has changed.
    pub fn insert(&mut self, member: MemberId, name: ClientOrderId) -> Result<(), Reason> {
        let series = (member, name.series());
        if self.find((member, name)).is_ok() {
            return Err(Reason::DuplicateRequest);
        }
        match self.floors.get(&series) {
            Some(floor) if name.number() < *floor => return Err(Reason::TooOld),
            Some(_) => {}
            None if self.has_room_for(series) => self.put_floor(series, 0),
            None => return Err(Reason::TooManySeries),
        }
        self.keep((member, name));
        Ok(())
    }

    fn keep(&mut self, name: Name) {
        let slot = if self.ring.len() < self.max {
            self.ring.push(name);
            self.ring.len() - 1
        } else {
            let slot = self.oldest;
            self.forget(self.ring[slot]);
            self.ring[slot] = name;
            self.oldest = (slot + 1) % self.max;
            slot
        };
        let free = self.find(name).expect_err("a forgotten or new name is not in the table");
        self.table[free] = hash(name) | u32::try_from(slot + 1).expect("the ring is far smaller than 2^32");
    }

    fn has_room_for(&self, (member, _): Series) -> bool {
        member == MemberId(0) || self.members_series < SERIES_MAX
    }

    fn put_floor(&mut self, series: Series, floor: u64) {
        let is_new = self.floors.insert(series, floor).is_none();
        self.members_series += usize::from(is_new && series.0 != MemberId(0));
    }

    /// The names remembered, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Name> + '_ {
        let (newer, older) = self.ring.split_at(self.oldest);
        (0..self.ring.len()).map(move |i| if i < older.len() { older[i] } else { newer[i - older.len()] })
    }

    /// All series with their floors, in order.
    pub(crate) fn floors(&self) -> impl ExactSizeIterator<Item = (Series, u64)> + '_ {
        self.floors.iter().map(|(series, floor)| (*series, *floor))
    }

    /// What a checkpoint holds, each in the order in which [`floors`](Self::floors) and [`iter`](Self::iter) give it; `None` if no shard has those.
    pub(crate) fn restore(floors: &[(Series, u64)], kept: &[Name]) -> Option<Self> {
        let mut names = Self::new();
        for &(series, floor) in floors {
            let rises = names.floors.last_key_value().is_none_or(|(last, _)| *last < series);
            (rises && names.has_room_for(series)).then(|| names.put_floor(series, floor))?;
        }
        let of_known = |name: &Name| names.floors.contains_key(&(name.0, name.1.series()));
        if kept.len() > NAMES_MAX || !kept.iter().all(of_known) {
            return None;
        }
        // One that came late may lie below its floor: those above it were forgotten first.
        for &name in kept {
            names.find(name).is_err().then(|| names.keep(name))?;
        }
        Some(names)
    }

    /// The table slot of a name, or the free slot where it would go.
    fn find(&self, name: Name) -> Result<usize, usize> {
        let hash = hash(name);
        let mut at = home(hash);
        loop {
            match self.table[at] {
                EMPTY => return Err(at),
                slot if slot >> RING_BITS == hash >> RING_BITS && self.ring[place(slot)] == name => {
                    return Ok(at);
                }
                _ => at = (at + 1) % TABLE,
            }
        }
    }

    fn forget(&mut self, name: Name) {
        let floor = self.floors.get_mut(&(name.0, name.1.series())).expect("a name's series is known");
        *floor = (*floor).max(name.1.number() + 1);
        let mut hole = self.find(name).expect("a name in the ring is in the table");
        let mut at = hole;
        loop {
            at = (at + 1) % TABLE;
            let slot = self.table[at];
            if slot == EMPTY {
                break;
            }
            let wants = home(slot);
            if (at + TABLE - wants) % TABLE >= (at + TABLE - hole) % TABLE {
                self.table[hole] = slot;
                hole = at;
            }
        }
        self.table[hole] = EMPTY;
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

/// A multiplicative hash in the upper bits of a slot: fixed, so that every replica walks the same way.
fn hash((member, name): Name) -> u32 {
    let mixed = (name.0 ^ u64::from(member.0).rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 32) as u32 >> RING_BITS) << RING_BITS
}

/// Where in the table a name with that hash goes, if it can.
fn home(slot: u32) -> usize {
    (slot >> RING_BITS) as usize % TABLE
}

/// Which slot of the ring a slot of the table means.
fn place(slot: u32) -> usize {
    (slot & ((1 << RING_BITS) - 1)) as usize - 1
}

impl<B: Book> Shard<B> {
    /// The same, remembering the last `max` names only: equal for all replicas.
    ///
    /// # Panics
    /// As [`Names::with_max`].
    #[must_use]
    pub fn with_names_max(mut self, max: usize) -> Self {
        self.notes.names = self.notes.names.with_max(max);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, VecDeque};

    const A: MemberId = MemberId(1);
    const FULL: u64 = NAMES_MAX as u64;

    const fn name(series: u64, number: u64) -> ClientOrderId {
        ClientOrderId(series << 48 | number)
    }

    /// Names of a series of another member, as many as a shard remembers.
    fn forget_all(names: &mut Names, first: u64) {
        (first..first + FULL).for_each(|number| names.insert(MemberId(9), name(0, number)).unwrap());
    }

    #[test]
    fn a_repeat_is_not_new() {
        let mut names = Names::new();
        assert_eq!(names.insert(A, name(0, 7)), Ok(()));
        assert_eq!(names.insert(A, name(0, 7)), Err(Reason::DuplicateRequest));
        assert_eq!(names.insert(MemberId(2), name(0, 7)), Ok(()));
        assert_eq!(names.insert(A, name(1, 7)), Ok(()));
    }

    #[test]
    fn the_oldest_name_is_forgotten_first_and_not_executed_again() {
        let mut names = Names::new();
        (0..=FULL).for_each(|number| names.insert(A, name(0, number)).unwrap());
        assert_eq!(names.insert(A, name(0, 0)), Err(Reason::TooOld));
        assert_eq!(names.insert(A, name(0, 1)), Err(Reason::DuplicateRequest));
        assert_eq!(names.iter().next(), Some((A, name(0, 1))));
    }

    /// Decision 6 let this request be executed a second time.
    #[test]
    fn what_others_have_pushed_out_is_too_old_for_ever() {
        let mut names = Names::new();
        names.insert(A, name(3, 5)).unwrap();
        forget_all(&mut names, 0);
        forget_all(&mut names, FULL);
        assert_eq!(names.insert(A, name(3, 5)), Err(Reason::TooOld));
        assert_eq!(names.insert(A, name(3, 4)), Err(Reason::TooOld));
        assert_eq!(names.insert(A, name(3, 6)), Ok(()));
        assert_eq!(names.insert(A, name(2, 1)), Ok(()), "another series");
    }

    #[test]
    fn requests_may_overtake_each_other_while_they_are_remembered() {
        let mut names = Names::new();
        names.insert(A, name(0, 1_000_000)).unwrap();
        assert_eq!(names.insert(A, name(0, 1)), Ok(()), "late, and new");
    }

    #[test]
    fn beyond_so_many_series_only_the_exchange_has_room() {
        let mut names = Names::new();
        for member in 1..=SERIES_MAX as u32 {
            names.insert(MemberId(member), name(0, 1)).unwrap();
        }
        assert_eq!(names.insert(A, name(1, 1)), Err(Reason::TooManySeries));
        assert_eq!(names.insert(A, name(0, 2)), Ok(()), "a series that is known");
        assert_eq!(names.insert(MemberId(0), name(9, 1)), Ok(()));
    }

    fn restored(names: &Names) -> Option<Names> {
        Names::restore(&names.floors().collect::<Vec<_>>(), &names.iter().collect::<Vec<_>>())
    }

    #[test]
    fn what_is_restored_refuses_the_same() {
        let mut names = Names::new();
        names.insert(A, name(3, 5)).unwrap();
        forget_all(&mut names, 0);
        let mut restored = restored(&names).unwrap();
        for one in [name(3, 5), name(3, 6)] {
            assert_eq!(restored.insert(A, one), names.insert(A, one));
        }
        assert!(restored.iter().eq(names.iter()) && restored.floors().eq(names.floors()));
    }

    #[test]
    fn who_remembers_fewer_forgets_the_oldest_behind_their_floors() {
        let mut names = Names::new();
        (0..5).for_each(|number| names.insert(A, name(0, number)).unwrap());
        let mut few = names.with_max(2);
        assert!(few.iter().eq([(A, name(0, 3)), (A, name(0, 4))]));
        assert_eq!(few.insert(A, name(0, 2)), Err(Reason::TooOld));
        assert_eq!(few.insert(A, name(0, 3)), Err(Reason::DuplicateRequest));
        few.insert(A, name(0, 9)).unwrap();
        assert_eq!(few.insert(A, name(0, 3)), Err(Reason::TooOld));
        assert_eq!(few.insert(A, name(0, 4)), Err(Reason::DuplicateRequest));
    }

    #[test]
    fn late_name_above_floor_is_restored() {
        let mut names = Names::new();
        names.insert(A, name(0, 1_000_000)).unwrap();
        names.insert(A, name(0, 1)).unwrap();
        (0..FULL - 1).for_each(|number| names.insert(MemberId(9), name(0, number)).unwrap());
        assert_eq!(names.iter().next(), Some((A, name(0, 1))), "the higher one was forgotten first");
        let mut restored = restored(&names).unwrap();
        assert!(restored.iter().eq(names.iter()) && restored.floors().eq(names.floors()));
        assert_eq!(restored.insert(A, name(0, 1)), Err(Reason::DuplicateRequest));
    }

    #[test]
    fn no_shard_has_names_without_their_series() {
        let kept = [(A, name(0, 1))];
        assert!(Names::restore(&[], &kept).is_none());
        assert!(Names::restore(&[((A, 0), 0)], &[kept[0], kept[0]]).is_none(), "twice");
        assert!(Names::restore(&[((A, 1), 0), ((A, 0), 0)], &kept).is_none(), "out of order");
        assert!(Names::restore(&[((A, 0), 0)], &kept).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// Whatever comes in whatever order: nothing is executed twice, and a number above all of its series always is.
        #[test]
        fn nothing_is_new_twice(seeds in prop::collection::vec((0_u32..3, 0_u64..2, 0_u64..30_000), 40_000)) {
            let (mut names, mut used) = (Names::new(), BTreeSet::new());
            let mut kept = VecDeque::new();
            for (member, series, number) in seeds {
                let (member, name) = (MemberId(member), name(series, number));
                let above = used.range((member, name)..).next().is_none_or(|(m, n): &(MemberId, ClientOrderId)| *m != member || n.series() != name.series());
                match names.insert(member, name) {
                    Ok(()) => {
                        prop_assert!(used.insert((member, name)));
                        kept.push_back((member, name));
                        kept.drain(..kept.len().saturating_sub(NAMES_MAX));
                    }
                    Err(reason) => prop_assert!(!above && (reason == Reason::TooOld || used.contains(&(member, name)))),
                }
            }
            prop_assert!(names.iter().eq(kept));
            let restored = restored(&names).unwrap();
            prop_assert!(restored.iter().eq(names.iter()) && restored.floors().eq(names.floors()));
        }
    }
}
