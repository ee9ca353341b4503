//! The names that a shard has executed, so that it executes none of them again.
//!
//! Gateways find repeats and give the first answer. But no gateway can be relied on to know a name: one may have looked it up and then
//! stood still, or be new. Only the total order tells whether a request came before, so the shard refuses what did. To remember every
//! name would make state and checkpoints grow with the day; to remember the last ones only would execute an old request again.
//!
//! So names are numbered upwards in series, and a shard keeps its last [`NAMES_MAX`] names (fewer only in the simulator), and for each series a *floor*: one above the highest
//! number that it forgot. What is neither kept nor below the floor of its series was never executed (decision 15).
//!
//! Floors have a bound that all members share. When it is reached, the member with most series gives its lowest one back: from then on all its names up to
//! there count as used, which takes no room.
//!
//! A ring gives the age, an open-addressing table (linear probing, backward-shift deletion, a fixed hash) gives the look-up; both are
//! allocated once.

use std::collections::{BTreeMap, BTreeSet};

use pares_book::Book;
use pares_table::SharedPlaces;
use pares_types::{ClientOrderId, MemberId, Reason, Request};

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
/// In a floor as it is written: the member's names of all lower series count as used. Numbers have 48 bits.
const LOWER_USED: u64 = 1 << 63;

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
    /// Of every series that was used and not given back, the number below which all names count as used.
    floors: BTreeMap<Series, u64>,
    /// How many of them each member has; the exchange's do not count.
    shares: SharedPlaces<MemberId>,
    /// Members that gave series back: all their names below the lowest series that they have count as used.
    gave_back: BTreeSet<MemberId>,
}

impl Names {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        let (ring, table) = (Vec::with_capacity(NAMES_MAX), vec![EMPTY; TABLE]);
        let (floors, shares, gave_back) = (BTreeMap::new(), SharedPlaces::default(), BTreeSet::new());
        Self { max: NAMES_MAX, ring, oldest: 0, table, floors, shares, gave_back }
    }

    /// The same, remembering the last `max` only.
    ///
    /// # Panics
    /// Unless `max` is from 1 to [`NAMES_MAX`].
    #[must_use]
    pub fn with_max(self, max: usize) -> Self {
        assert!((1..=NAMES_MAX).contains(&max), "{max} names");
        let mut names = Self { max, gave_back: self.gave_back.clone(), ..Self::new() };
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
            None if self.is_given_back(series) => return Err(Reason::TooOld),
            None => {
                self.make_room_for(series)?;
                self.put_floor(series, 0);
            }
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
        member == MemberId(0) || self.shares.total() < SERIES_MAX
    }

    /// Whether the series is one more than there may be, so that it needs another's place.
    fn is_full_for(&self, series: Series) -> bool {
        !self.floors.contains_key(&series) && !self.has_room_for(series)
    }

    /// The member that has most series gives one back, if there are as many as there may be.
    fn make_room_for(&mut self, series: Series) -> Result<(), Reason> {
        if self.has_room_for(series) {
            return Ok(());
        }
        let giver = self.shares.giver(series.0).ok_or(Reason::TooManySeries)?;
        let lowest = self.lowest(giver).expect("who gives a series has one");
        // It would lie below what its own member gives for it.
        if giver == series.0 && series.1 < lowest {
            return Err(Reason::TooManySeries);
        }
        self.floors.remove(&(giver, lowest));
        self.shares.remove(giver);
        self.gave_back.insert(giver);
        Ok(())
    }

    fn lowest(&self, member: MemberId) -> Option<u16> {
        self.floors.range((member, 0)..=(member, u16::MAX)).next().map(|((_, series), _)| *series)
    }

    /// Whether the series, which is not known, counts as used.
    fn is_given_back(&self, (member, series): Series) -> bool {
        self.gave_back.contains(&member) && self.lowest(member).is_none_or(|lowest| series < lowest)
    }

    fn put_floor(&mut self, series: Series, floor: u64) {
        let is_new = self.floors.insert(series, floor).is_none();
        if is_new && series.0 != MemberId(0) {
            self.shares.add(series.0);
        }
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

    /// Whether a member gave series back: a floor as it is written has [`LOWER_USED`] then.
    pub(crate) fn has_given_back(&self) -> bool {
        !self.gave_back.is_empty()
    }

    /// The same as a checkpoint holds them: a floor also says whether its member gave lower series back.
    pub(crate) fn written_floors(&self) -> impl ExactSizeIterator<Item = (Series, u64)> + '_ {
        let mut before = None;
        self.floors().map(move |(series, floor)| {
            let is_lowest = before.replace(series.0) != Some(series.0);
            let gave_back = is_lowest && self.gave_back.contains(&series.0);
            (series, if gave_back { floor | LOWER_USED } else { floor })
        })
    }

    /// What a checkpoint holds, each in the order in which [`written_floors`](Self::written_floors) and [`iter`](Self::iter) give it; `None` if no
    /// shard has those.
    pub(crate) fn restore(floors: &[(Series, u64)], kept: &[Name]) -> Option<Self> {
        let mut names = Self::new();
        for &(series, floor) in floors {
            let rises = names.floors.last_key_value().is_none_or(|(last, _)| *last < series);
            let gave_back = floor & LOWER_USED != 0;
            let is_right =
                rises && names.has_room_for(series) && !(gave_back && names.lowest(series.0).is_some());
            is_right.then(|| names.put_floor(series, floor & !LOWER_USED))?;
            names.gave_back.extend(gave_back.then_some(series.0));
        }
        let of_known = |&(member, name): &Name| {
            let series = (member, name.series());
            names.floors.contains_key(&series) || names.is_given_back(series)
        };
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
        let series = (name.0, name.1.series());
        match self.floors.get_mut(&series) {
            Some(floor) => *floor = (*floor).max(name.1.number() + 1),
            None => {
                assert!(self.is_given_back(series), "a name's series is known, or all of it counts as used")
            }
        }
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

    /// Why the request is not executed, if it is no new one, or void. `settled` is what the order says of it: earlier builds refused series for
    /// which members make room now, and what they recorded stays so where there was no room.
    pub(crate) fn refusal(&mut self, request: &Request, settled: Reason) -> Option<Reason> {
        let series = (request.member, request.client_order_id.series());
        if settled == Reason::TooManySeries && self.notes.names.is_full_for(series) {
            return Some(settled);
        }
        // Hearing one again is harmless.
        if !request.command.is_repeatable()
            && let Err(reason) = self.notes.names.insert(request.member, request.client_order_id)
        {
            return Some(reason);
        }
        let is_void = settled == Reason::Void;
        if is_void {
            self.notes.quarantine.enter(request.instrument);
        }
        is_void.then_some(settled)
    }
}

#[cfg(test)]
mod tests;
