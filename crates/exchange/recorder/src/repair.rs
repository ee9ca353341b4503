//! Rebuilding a recorder's damaged log: which record comes from where.
//!
//! Recorders interleave shards differently, so their logs differ byte by byte and nothing can be patched: what is damaged is
//! not a range of bytes but positions of shards. The obvious way, copying a peer's log, would throw away what this recorder alone has:
//! with a quorum of one that may be what a client received. So the new log is put together record by record:
//!
//! ```text
//!   own log, what is whole      0 1 2 . . 5 6 7 . .      a hole at 3 and 4: 5 was taken, so they were too
//!   peers, then venues              2 3 4 5 6 7 8        8 follows the end, like whatever lies behind it
//!   new log                     0 1 2 3 4 5 6 7 8        in order per shard, without gaps
//! ```
//! - *Its own record wins* wherever it is whole, also above what was known to be on the device: the checksum says that it is
//!   what was written, it is decided and final, and in the new log it is synced again. Whether an older sync failed does not
//!   matter to the bytes that came back.
//! - *Peers next*: what lies in a peer's log is recorded, but for what a start gave up, which the caller leaves out. *Venues
//!   last*, and only decisions of the life of the window in force, which no venue can have decided otherwise.
//! - *Promised and nowhere* is a loss: a hole below a whole record that the log had promised to keep, or an end below what
//!   the window knows to be recorded. It is named, and nothing is replaced.
//! - *Dropped* is what lies before the beginning of a log that was read without a gap from there: the new log begins at the
//!   lowest position that any recorder or venue has then.
//! - A hole below records that were *not* promised (the tail a loss of power tore) ends the shard there instead, as
//!   opening an undamaged log would have ended it.
//!
//! Only the holes are remembered, so memory follows the damage and not the log; what follows the end is read straight through.

use std::collections::BTreeMap;
use std::fmt;

use pares_types::{Position, ShardId};

/// Where a record lies that fills a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    /// Which of the other logs, as the caller numbers them.
    pub source: usize,
    /// Where in it.
    pub offset: u64,
}

/// Positions of a shard that were promised and are nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The shard.
    pub shard: ShardId,
    /// The first position that is missing.
    pub first: Position,
    /// The last.
    pub last: Position,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shard, first, last } = self;
        match first == last {
            true => write!(f, "shard {shard}: position {first}"),
            false => write!(f, "shard {shard}: positions {first} to {last}"),
        }
    }
}

/// What to do with the next record of a log that is read through to fill the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Append it.
    Take,
    /// The new log has its position.
    Known,
    /// Append the record at that place first, and ask again.
    Fill(Filling),
    /// An earlier position is nowhere: leave it.
    Apart,
}

/// Positions between two whole records of the damaged log.
#[derive(Clone, Copy, Debug)]
struct Hole {
    first: Position,
    end: Position,
    promised: bool,
}

#[derive(Debug, Default)]
struct Shard {
    holes: Vec<Hole>,
    /// The position behind the last whole record of the damaged log.
    end: Position,
    found: BTreeMap<Position, Filling>,
    /// The next position of the new log.
    next: Position,
}

impl Shard {
    fn begin(&mut self, position: Position) {
        (self.end, self.next) = (position, position);
    }
}

/// The repair of one log. Told, in this order: where logs begin ([`begins`](Repair::begins)), its own whole records ([`own`](Repair::own)), what the others have
/// ([`offer`](Repair::offer)), and then asked, record by record, what to do ([`turn`](Repair::turn)).
#[derive(Debug, Default)]
pub struct Repair {
    shards: BTreeMap<ShardId, Shard>,
}

impl Repair {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A log of a recorder, whole up to there, begins with this position of the shard: what comes before it was dropped, if
    /// nobody has it.
    pub fn begins(&mut self, id: ShardId, position: Position) {
        let told = self.shards.contains_key(&id);
        let shard = self.shards.entry(id).or_default();
        if !told || position < shard.next {
            shard.begin(position);
        }
    }

    /// The next whole record of the damaged log, in its order. `promised`: the log had promised to keep it.
    pub fn own(&mut self, shard: ShardId, position: Position, promised: bool) {
        let shard = self.shards.entry(shard).or_default();
        if position < shard.next {
            shard.begin(position);
        }
        if position > shard.end {
            shard.holes.push(Hole { first: shard.end, end: position, promised: false });
        }
        if promised {
            // Whatever lies before it was promised too.
            shard
                .holes
                .iter_mut()
                .rev()
                .take_while(|hole| !hole.promised)
                .for_each(|hole| hole.promised = true);
        }
        shard.end = shard.end.max(position.next());
    }

    /// Another log has a record. The first that fills a hole is the one.
    pub fn offer(&mut self, shard: ShardId, position: Position, place: Filling) {
        let Some(shard) = self.shards.get_mut(&shard) else { return };
        let before = shard.holes.partition_point(|hole| hole.first <= position);
        let fills = before.checked_sub(1).is_some_and(|index| position < shard.holes[index].end);
        if fills {
            shard.found.entry(position).or_insert(place);
        }
    }

    /// Promised positions in holes that no log has.
    #[must_use]
    pub fn lost(&self) -> Vec<Lost> {
        let mut lost = Vec::new();
        for (&id, shard) in &self.shards {
            for hole in shard.holes.iter().filter(|hole| hole.promised) {
                let mut next = hole.first;
                for &found in shard.found.range(hole.first..hole.end).map(|(position, _)| position) {
                    lost.extend(between(id, next, found));
                    next = found.next();
                }
                lost.extend(between(id, next, hole.end));
            }
        }
        lost
    }

    /// What the new log lacks of what is known to be recorded: positions below `recorded`.
    #[must_use]
    pub fn short_of(&self, shard: ShardId, recorded: Position) -> Option<Lost> {
        between(shard, self.next(shard), recorded)
    }

    /// The next position of the new log.
    #[must_use]
    pub fn next(&self, shard: ShardId) -> Position {
        self.shards.get(&shard).map_or(Position(0), |shard| shard.next)
    }

    /// What to do when a record is met while a log is read through: the damaged one first, then the others.
    #[must_use]
    pub fn turn(&self, shard: ShardId, position: Position) -> Turn {
        let next = self.next(shard);
        if position <= next {
            return if position == next { Turn::Take } else { Turn::Known };
        }
        let found = self.shards.get(&shard).and_then(|shard| shard.found.get(&next));
        found.map_or(Turn::Apart, |&place| Turn::Fill(place))
    }

    /// A record was appended: the next of its shard.
    pub fn took(&mut self, shard: ShardId) {
        let shard = self.shards.entry(shard).or_default();
        shard.next = shard.next.next();
    }
}

fn between(shard: ShardId, first: Position, end: Position) -> Option<Lost> {
    (first < end).then(|| Lost { shard, first, last: Position(end.0 - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: ShardId = ShardId(0);

    fn place(source: usize, position: u64) -> Filling {
        Filling { source, offset: 1_000 * source as u64 + position }
    }

    /// A log that promised what is below `promised`, of which that much is whole.
    fn damaged(positions: &[u64], promised: u64) -> Repair {
        let mut repair = Repair::new();
        positions.iter().for_each(|&p| repair.own(S, Position(p), p < promised));
        repair
    }

    fn offer(repair: &mut Repair, source: usize, positions: impl IntoIterator<Item = u64>) {
        positions.into_iter().for_each(|p| repair.offer(S, Position(p), place(source, p)));
    }

    fn lost(repair: &Repair) -> Vec<String> {
        repair.lost().iter().map(Lost::to_string).collect()
    }

    /// Writes the new log: `(source, position)`, 0 being the damaged log itself. The others are read until they bring nothing
    /// more, as the caller does: one may need what comes later in the next.
    fn write(repair: &mut Repair, own: &[u64], others: &[&[u64]]) -> Vec<(usize, u64)> {
        let mut new = written(repair, 0, own);
        loop {
            let before = new.len();
            others
                .iter()
                .enumerate()
                .for_each(|(index, positions)| new.extend(written(repair, index + 1, positions)));
            if new.len() == before {
                return new;
            }
        }
    }

    fn written(repair: &mut Repair, source: usize, positions: &[u64]) -> Vec<(usize, u64)> {
        let mut new = Vec::new();
        for &position in positions {
            loop {
                let next = repair.next(S).0;
                match repair.turn(S, Position(position)) {
                    Turn::Take => new.push((source, position)),
                    Turn::Fill(place) => new.push((place.source, next)),
                    Turn::Known | Turn::Apart => break,
                }
                repair.took(S);
            }
        }
        new
    }

    #[test]
    fn holes_filled_by_first_owner_rest_is_own() {
        let own = [0, 1, 4, 5];
        let mut repair = damaged(&own, 9);
        offer(&mut repair, 1, [0, 1, 2]);
        offer(&mut repair, 2, [1, 2, 3, 4, 5, 6]);
        assert!(lost(&repair).is_empty());
        let new = write(&mut repair, &own, &[&[0, 1, 2], &[1, 2, 3, 4, 5, 6]]);
        assert_eq!(new, [(0, 0), (0, 1), (1, 2), (2, 3), (0, 4), (0, 5), (2, 6)]);
    }

    #[test]
    fn the_beginning_may_be_a_hole_too() {
        let mut repair = damaged(&[3], 9);
        offer(&mut repair, 1, 0..3);
        assert_eq!(write(&mut repair, &[3], &[]), [(1, 0), (1, 1), (1, 2), (0, 3)]);
    }

    #[test]
    fn dropped_records_are_not_missed_in_new_log() {
        for (begins, own, other, new) in [
            (vec![7], vec![9], 7..9, vec![(1, 7), (1, 8), (0, 9)]),
            (vec![7, 5], vec![7, 9], 5..9, vec![(1, 5), (1, 6), (0, 7), (1, 8), (0, 9)]),
            (vec![7], vec![5, 7], 6..8, vec![(0, 5), (1, 6), (0, 7)]),
            (vec![7, 9], vec![], 7..9, vec![(1, 7), (1, 8)]),
        ] {
            let mut repair = Repair::new();
            begins.into_iter().for_each(|position| repair.begins(S, Position(position)));
            own.iter().for_each(|&position| repair.own(S, Position(position), true));
            offer(&mut repair, 1, other.clone());
            assert_eq!(lost(&repair), [] as [&str; 0]);
            assert_eq!(write(&mut repair, &own, &[&other.collect::<Vec<_>>()]), new);
        }
        let mut repair = Repair::new();
        repair.begins(S, Position(5));
        repair.own(S, Position(9), true);
        assert_eq!(lost(&repair), ["shard 0: positions 5 to 8"]);
    }

    #[test]
    fn what_was_promised_and_is_nowhere_is_named() {
        let mut repair = damaged(&[0, 1, 5, 9], 10);
        offer(&mut repair, 1, [3, 7, 8]);
        assert_eq!(lost(&repair), ["shard 0: position 2", "shard 0: position 4", "shard 0: position 6"]);
        let untouched = damaged(&[0, 4], 5);
        assert_eq!(lost(&untouched), ["shard 0: positions 1 to 3"]);
    }

    #[test]
    fn a_tear_in_what_was_never_promised_ends_the_shard_there() {
        let own = [0, 1, 3, 5];
        let mut repair = damaged(&own, 1);
        assert!(lost(&repair).is_empty());
        assert_eq!(write(&mut repair, &own, &[]), [(0, 0), (0, 1)]);
        let mut repair = damaged(&own, 1);
        offer(&mut repair, 1, [2]);
        assert_eq!(write(&mut repair, &own, &[&[2]]), [(0, 0), (0, 1), (1, 2), (0, 3)]);
    }

    #[test]
    fn a_hole_before_something_promised_was_promised_itself() {
        // 5 was not; 2 and 4 lie before 6, which was.
        let mut repair = Repair::new();
        for (position, promised) in [(0, true), (3, false), (5, false), (6, true), (8, false)] {
            repair.own(S, Position(position), promised);
        }
        assert_eq!(lost(&repair), ["shard 0: positions 1 to 2", "shard 0: position 4"]);
    }

    #[test]
    fn an_end_below_what_is_known_to_be_recorded_is_a_loss() {
        let mut repair = damaged(&[0, 1], 9);
        write(&mut repair, &[0, 1], &[]);
        assert_eq!(repair.short_of(S, Position(2)), None);
        let lost = repair.short_of(S, Position(4)).unwrap();
        assert_eq!((lost.first, lost.last), (Position(2), Position(3)));
        assert!(repair.short_of(ShardId(7), Position(1)).is_some(), "a shard nobody has anything of");
    }

    #[test]
    fn a_shard_of_which_nothing_is_left_comes_from_the_others() {
        let mut repair = Repair::new();
        assert_eq!(write(&mut repair, &[], &[&[1, 2], &[0, 1], &[1, 2]]), [(2, 0), (2, 1), (3, 2)]);
    }

    proptest! {
        #[test]
        fn new_log_is_gapless_prefers_own_and_reaches_furthest(
            own in prop::collection::btree_set(0..60_u64, 0..60),
            others in prop::collection::vec(prop::collection::btree_set(0..70_u64, 0..70), 0..3),
            promised in 0..60_u64,
        ) {
            let own: Vec<u64> = own.into_iter().collect();
            let others: Vec<Vec<u64>> = others.into_iter().map(|set| set.into_iter().collect()).collect();
            let mut repair = damaged(&own, promised);
            for (index, positions) in others.iter().enumerate() {
                offer(&mut repair, index + 1, positions.iter().copied());
            }
            let has = |p: u64| own.contains(&p) || others.iter().any(|other| other.contains(&p));
            let lost: Vec<u64> = repair.lost().iter().flat_map(|lost| lost.first.0..=lost.last.0).collect();
            let last = own.iter().copied().filter(|&p| p < promised).max();
            let missing: Vec<u64> = (0..last.unwrap_or(0)).filter(|&p| !has(p)).collect();
            prop_assert_eq!(&lost, &missing);
            let others: Vec<&[u64]> = others.iter().map(Vec::as_slice).collect();
            let new = write(&mut repair, &own, &others);
            let positions: Vec<u64> = new.iter().map(|&(_, position)| position).collect();
            prop_assert_eq!(&positions, &(0..new.len() as u64).collect::<Vec<_>>());
            prop_assert!(new.iter().all(|&(source, p)| (source == 0) == own.contains(&p)));
            prop_assert!(!has(new.len() as u64) || !lost.is_empty() || own.iter().any(|&p| p > new.len() as u64));
        }
    }
}
