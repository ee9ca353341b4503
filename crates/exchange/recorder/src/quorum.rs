//! When a record counts as committed: once `quorum` recorders have it (design section 4).
//!
//! Recorders do not talk to each other about it, and no one of them decides. A reader of their logs
//! counts: a record is committed when the `quorum`-th of them shows it. The reader has the record's bytes
//! in hand at that very moment, so nothing is ever kept waiting in memory; and since each log is in order,
//! committed records come out in order too.

use pares_types::{Position, RecorderId};

/// What one reader knows of one shard's records at all recorders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// Next position per recorder.
    next: Vec<Position>,
    quorum: usize,
    committed: Position,
}

impl Quorum {
    /// Nothing read yet.
    ///
    /// # Panics
    /// Unless `1 <= quorum <= recorders`.
    #[must_use]
    pub fn new(recorders: usize, quorum: usize) -> Self {
        assert!((1..=recorders).contains(&quorum), "a quorum of {quorum} among {recorders} recorders");
        Self { next: vec![Position(0); recorders], quorum, committed: Position(0) }
    }

    /// A recorder's log shows the record of `position`. Says whether that commits it: true exactly once
    /// per position, in order of positions.
    #[inline]
    pub fn on_record(&mut self, recorder: RecorderId, position: Position) -> bool {
        let next = &mut self.next[usize::from(recorder.0)];
        *next = (*next).max(position.next());
        if position != self.committed {
            return false;
        }
        let have = self.next.iter().filter(|&&next| next > position).count();
        if have >= self.quorum {
            self.committed = position.next();
        }
        have >= self.quorum
    }

    /// Whether the record of `position` follows the last one that the recorder's log showed.
    #[must_use]
    #[inline]
    pub fn is_next(&self, recorder: RecorderId, position: Position) -> bool {
        position == self.next[usize::from(recorder.0)]
    }

    /// A recorder has lost all it had. What is committed stays so; the recorder counts again from its first record on.
    pub fn forget(&mut self, recorder: RecorderId) {
        self.next[usize::from(recorder.0)] = Position(0);
    }

    /// Starts at a checkpoint: all below `position` counts as committed.
    pub fn start_at(&mut self, position: Position) {
        self.committed = self.committed.max(position);
    }

    /// Whether another reader of the same logs has come to all that this one was shown of enough recorders, whatever it was shown before it began
    /// to read. `moved` says of which recorders the other one may know another log: they count as seen here.
    #[must_use]
    pub fn is_reached_by(&self, other: &Self, moved: &[bool]) -> bool {
        let mut next = self.joined(other, moved);
        next.sort_unstable();
        let shown = next[next.len() - self.quorum];
        other.committed >= shown.max(self.committed)
    }

    /// Continues from where that other reader is: all below counts as committed.
    pub fn join(&mut self, other: &Self, moved: &[bool]) {
        assert!(self.is_reached_by(other, moved), "what a reader was shown lies below where it continues");
        self.next = self.joined(other, moved);
        self.committed = other.committed;
    }

    fn joined(&self, other: &Self, moved: &[bool]) -> Vec<Position> {
        let both = self.next.iter().zip(&other.next).zip(moved);
        both.map(|((&own, &other), &moved)| if moved { own } else { own.max(other) }).collect()
    }

    /// The next position to commit.
    #[must_use]
    #[inline]
    pub fn committed(&self) -> Position {
        self.committed
    }

    /// What every recorder has: positions below it.
    #[must_use]
    pub fn everywhere(&self) -> Position {
        self.next.iter().copied().min().expect("there is a recorder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RecorderId = RecorderId(0);
    const B: RecorderId = RecorderId(1);
    const C: RecorderId = RecorderId(2);

    #[test]
    fn with_a_quorum_of_one_the_first_recorder_commits() {
        let mut quorum = Quorum::new(2, 1);
        assert!(quorum.on_record(B, Position(0)));
        assert!(!quorum.on_record(A, Position(0)));
        assert_eq!(quorum.committed(), Position(1));
    }

    #[test]
    fn a_recorder_that_lost_its_disk_does_not_count_for_what_it_had() {
        let mut quorum = Quorum::new(3, 2);
        assert!(!quorum.on_record(A, Position(0)));
        quorum.forget(A);
        assert!(!quorum.on_record(B, Position(0)), "B is the only one left that has it");
        assert!(quorum.on_record(A, Position(0)), "filled again");
        quorum.forget(B);
        assert_eq!((quorum.committed(), quorum.everywhere()), (Position(1), Position(0)));
    }

    #[test]
    fn with_a_quorum_of_two_the_second_recorder_commits() {
        let mut quorum = Quorum::new(3, 2);
        assert!(!quorum.on_record(A, Position(0)));
        assert!(!quorum.on_record(A, Position(1)));
        assert!(quorum.on_record(C, Position(0)));
        assert!(quorum.on_record(C, Position(1)));
        assert!(!quorum.on_record(B, Position(0)));
        assert_eq!((quorum.committed(), quorum.everywhere()), (Position(2), Position(1)));
    }

    #[test]
    fn a_reader_that_began_midway_continues_from_one_that_read_all() {
        let (mut midway, mut whole) = (Quorum::new(3, 2), Quorum::new(3, 2));
        (0..7).for_each(|position| _ = whole.on_record(A, Position(position)));
        (0..5).for_each(|position| _ = whole.on_record(B, Position(position)));
        assert!(!midway.on_record(A, Position(6)) && !midway.on_record(C, Position(5)));
        assert!(!midway.is_reached_by(&whole, &[false; 3]), "5 is committed, by A and C");
        assert!(whole.on_record(B, Position(5)) && midway.is_reached_by(&whole, &[false; 3]));
        midway.join(&whole, &[false; 3]);
        assert_eq!((midway.committed(), midway.everywhere()), (Position(6), Position(6)));
        assert!(midway.on_record(B, Position(6)), "A has shown it to one of them");
    }

    #[test]
    fn a_recorder_that_is_behind_commits_nothing_twice() {
        let mut quorum = Quorum::new(2, 1);
        for position in 0..5 {
            assert!(quorum.on_record(A, Position(position)));
        }
        for position in 0..5 {
            assert!(!quorum.on_record(B, Position(position)));
        }
        assert!(quorum.on_record(B, Position(5)));
    }
}
