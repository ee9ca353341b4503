//! Who belongs to a cluster's log.
//!
//! A member that has forgotten what it promised can vote a second time in one term, and acknowledges entries that only its old disk had. The
//! obvious way, to let the site of that number continue with an empty disk, therefore loses what is committed. Here a member is a site
//! **with one life of its disk**: a disk that is empty begins another life, under another name, and that name has no vote
//! until the log itself says so. The name that was lost is removed first, so that it counts for nothing any more.
//!
//! ```text
//!   disk lost        old name removed     new name learns        new name votes
//!   (a new life) ->  (an entry)       ->  (an entry; no vote) -> (an entry; it has caught up)
//! ```
//! One change at a time (Raft thesis, 4.1 and 4.2.1): a majority before and one after it have a member in common.

use std::collections::BTreeSet;

use raft::eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState};

/// Which of the lives of a site's disk: drawn at random when it begins, below 2^56. What is drawn twice in a life of a cluster would be
/// taken for one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The first number that is none.
    pub const END: u64 = 1 << 56;

    /// One made of random bits.
    #[must_use]
    pub fn drawn(random: u64) -> Incarnation {
        Incarnation(random % Self::END)
    }
}

/// A member of a cluster's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// Its number in the cluster, 0 to 8: where it is reached.
    pub number: u8,
    /// Which life of its disk.
    pub incarnation: Incarnation,
}

impl MemberId {
    /// Raft's name for it, never 0: the life in the upper seven bytes, the number plus one in the lowest.
    #[must_use]
    pub fn raft_id(self) -> u64 {
        self.incarnation.0 << 8 | (u64::from(self.number) + 1)
    }

    /// Who is called so; none for Raft's "nobody".
    #[must_use]
    pub fn of_raft(id: u64) -> Option<MemberId> {
        let number = (id as u8).checked_sub(1)?;
        Some(MemberId { number, incarnation: Incarnation(id >> 8) })
    }
}

/// The members at one place of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Those whose acknowledgements and votes count.
    pub voters: BTreeSet<MemberId>,
    /// Those that are given the log and count for nothing.
    pub learners: BTreeSet<MemberId>,
}

impl Members {
    /// So many members, all voting, each in the life 0 of its disk: for logs that are made as a whole.
    #[must_use]
    pub fn first(count: u8) -> Members {
        let member = |number| MemberId { number, incarnation: Incarnation(0) };
        Members { voters: (0..count).map(member).collect(), learners: BTreeSet::new() }
    }

    /// Whether it is one of them, voting or not.
    #[must_use]
    pub fn contains(&self, id: MemberId) -> bool {
        self.voters.contains(&id) || self.learners.contains(&id)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = MemberId> {
        self.voters.iter().chain(&self.learners).copied()
    }

    /// What to change next, so that `id` learns and no other life of its disk belongs to the log; none if that is so.
    pub(crate) fn towards(&self, id: MemberId) -> Option<Change> {
        let stale = self.all().find(|other| other.number == id.number && *other != id);
        match stale {
            Some(other) => Some(Change::Remove(other)),
            None => (!self.contains(id)).then_some(Change::Learn(id)),
        }
    }

    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Vote(id) => {
                self.learners.remove(&id);
                self.voters.insert(id);
            }
            Change::Learn(id) => drop(self.learners.insert(id)),
            Change::Remove(id) => {
                self.voters.remove(&id);
                self.learners.remove(&id);
            }
        }
    }

    pub(crate) fn to_raft(&self) -> ConfState {
        let ids = |members: &BTreeSet<MemberId>| members.iter().map(|id| id.raft_id()).collect();
        ConfState { voters: ids(&self.voters), learners: ids(&self.learners), ..ConfState::default() }
    }

    /// ```text
    ///   | voters u8 | id u64 of each | id u64 of each learner, to the end |     little endian
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::try_from(self.voters.len()).expect("at most nine")];
        bytes.extend(self.all().flat_map(|id| id.raft_id().to_le_bytes()));
        bytes
    }

    /// The members in `bytes`; none if there are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Members> {
        let (&voters, ids) = bytes.split_first()?;
        let (ids, rest) = ids.as_chunks::<8>();
        let ids: Option<Vec<MemberId>> =
            ids.iter().map(|id| MemberId::of_raft(u64::from_le_bytes(*id))).collect();
        let (ids, voters) = (ids?, usize::from(voters));
        let complete = rest.is_empty() && voters <= ids.len();
        complete.then(|| Members {
            voters: ids[..voters].iter().copied().collect(),
            learners: ids[voters..].iter().copied().collect(),
        })
    }
}

/// A change of the members: an entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Vote(MemberId),
    Learn(MemberId),
    Remove(MemberId),
}

impl Change {
    /// What it is in bytes and to Raft, and whom it concerns.
    fn parts(self) -> (u8, ConfChangeType, MemberId) {
        match self {
            Change::Vote(id) => (1, ConfChangeType::AddNode, id),
            Change::Learn(id) => (2, ConfChangeType::AddLearnerNode, id),
            Change::Remove(id) => (3, ConfChangeType::RemoveNode, id),
        }
    }

    pub(crate) fn to_raft(self) -> ConfChangeV2 {
        let (_, kind, id) = self.parts();
        let mut single = ConfChangeSingle { node_id: id.raft_id(), ..ConfChangeSingle::default() };
        single.set_change_type(kind);
        ConfChangeV2 { changes: vec![single].into(), ..ConfChangeV2::default() }
    }

    /// ```text
    ///   | 1 votes, 2 learns, 3 removed | id u64 |     little endian
    /// ```
    pub(crate) fn to_bytes(self) -> [u8; 9] {
        let (kind, _, id) = self.parts();
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&id.raft_id().to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Change> {
        let (&[kind], id) = bytes.split_first_chunk::<1>()?;
        let id = MemberId::of_raft(u64::from_le_bytes(id.try_into().ok()?))?;
        match kind {
            1 => Some(Change::Vote(id)),
            2 => Some(Change::Learn(id)),
            3 => Some(Change::Remove(id)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8, incarnation: u64) -> MemberId {
        MemberId { number, incarnation: Incarnation(incarnation) }
    }

    #[test]
    fn names_members_and_changes_are_read_as_they_were_written() {
        let last = id(8, Incarnation::END - 1);
        assert_eq!((MemberId::of_raft(last.raft_id()), MemberId::of_raft(0)), (Some(last), None));
        let mut members = Members::first(3);
        members.learners.insert(last);
        let bytes = members.to_bytes();
        assert_eq!(Members::from_bytes(&bytes), Some(members));
        (0..bytes.len())
            .filter(|len| len % 8 != 1)
            .for_each(|len| assert_eq!(Members::from_bytes(&bytes[..len]), None));
        assert_eq!(Members::from_bytes(&bytes[..1]), None);
        for change in [Change::Vote(last), Change::Learn(last), Change::Remove(last)] {
            assert_eq!(Change::from_bytes(&change.to_bytes()), Some(change));
        }
        assert_eq!(Change::from_bytes(&[4, 1, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn empty_disk_replaces_old_member_in_two_changes() {
        let (mut members, new) = (Members::first(3), id(1, 77));
        let first = members.towards(new).unwrap();
        assert_eq!(first, Change::Remove(id(1, 0)));
        members.apply(first);
        let second = members.towards(new).unwrap();
        assert_eq!(second, Change::Learn(new));
        members.apply(second);
        assert_eq!(members.towards(new), None);
        assert!(members.contains(new) && !members.voters.contains(&new));
        members.apply(Change::Vote(new));
        assert_eq!(members.voters.len(), 3);
    }
}
