//! What orderers say to each other.
//!
//! ```text
//!   | 0 | a message of the replicated log |
//!   | 1 | at_least u64 |                                                       a state of that place or later is asked for
//!   | 2 | index u64 | term u64 | members u16, their bytes | what is ordered |     little endian
//!   | 3 | shard u16 | position u64 | shard u16 | position u64 | ...               up to where each shard is recorded
//!   | 4 | incarnation u64 |                                                    the sender's disk is in that life: let it vote
//! ```
//! What is recorded is recorded for all, so who leads believes the host that knows most: its own venues may be down.
//!
//! A member whom the others have let go of what it lacks takes a copy of what is ordered from one of them, and begins its log again behind it.

use pares_cluster::{Beginning, Incarnation, Members};
use pares_types::{Position, ShardId};

use crate::ordered::{Ordered, take_u16, take_u64};

/// Bytes of a shard and a position.
const MARK_BYTES: usize = 10;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrdererMessage<'a> {
    /// Of the replicated log.
    Log(&'a [u8]),
    /// A copy of what is ordered is asked for, of that place of the log or later.
    StateAsked {
        /// The place.
        at_least: u64,
    },
    /// It.
    State {
        /// The place it was taken at.
        beginning: Beginning,
        /// What was ordered there.
        ordered: Ordered,
    },
    /// All positions below are recorded.
    Recorded(Vec<(ShardId, Position)>),
    /// The sender has a copy, and asks who leads to let it vote under that name.
    AdmitMe {
        /// Which life of its disk.
        incarnation: Incarnation,
    },
}

impl<'a> OrdererMessage<'a> {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Log(message) => [&[0], *message].concat(),
            Self::StateAsked { at_least } => [&[1][..], &at_least.to_le_bytes()].concat(),
            Self::State { beginning, ordered } => {
                let mut bytes = vec![2];
                put_state(&mut bytes, beginning, ordered);
                bytes
            }
            Self::AdmitMe { incarnation } => [&[4][..], &incarnation.0.to_le_bytes()].concat(),
            Self::Recorded(marks) => {
                let mark = |&(shard, below): &(ShardId, Position)| {
                    shard.0.to_le_bytes().into_iter().chain(below.0.to_le_bytes())
                };
                std::iter::once(3).chain(marks.iter().flat_map(mark)).collect()
            }
        }
    }

    /// The message in `bytes`; none if it is of another version.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        match kind {
            0 => Some(Self::Log(rest)),
            1 => {
                take_u64(&mut rest).filter(|_| rest.is_empty()).map(|at_least| Self::StateAsked { at_least })
            }
            2 => take_state(rest).map(|(beginning, ordered)| Self::State { beginning, ordered }),
            3 => {
                let mut marks = Vec::with_capacity(rest.len() / MARK_BYTES);
                while !rest.is_empty() {
                    marks.push((ShardId(take_u16(&mut rest)?), Position(take_u64(&mut rest)?)));
                }
                Some(Self::Recorded(marks))
            }
            4 => take_u64(&mut rest)
                .filter(|life| rest.is_empty() && (1..Incarnation::END).contains(life))
                .map(|life| Self::AdmitMe { incarnation: Incarnation(life) }),
            _ => None,
        }
    }
}

/// Writes what is ordered, and the place of the log it was taken at.
pub fn put_state(bytes: &mut Vec<u8>, beginning: &Beginning, ordered: &Ordered) {
    let members = beginning.members.to_bytes();
    bytes.extend(beginning.index.to_le_bytes());
    bytes.extend(beginning.term.to_le_bytes());
    bytes.extend(u16::try_from(members.len()).expect("at most nine members").to_le_bytes());
    bytes.extend(members);
    bytes.extend(ordered.to_bytes());
}

/// What [`put_state`] wrote; none if it is nothing that it writes.
#[must_use]
pub fn take_state(mut bytes: &[u8]) -> Option<(Beginning, Ordered)> {
    let (index, term) = (take_u64(&mut bytes)?, take_u64(&mut bytes)?);
    let length = take_u16(&mut bytes)?;
    let (members, ordered) = bytes.split_at_checked(length.into())?;
    let members = Members::from_bytes(members)?;
    Some((Beginning { index, term, members }, Ordered::from_bytes(ordered)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_none(kind in 0..6_u8, rest in proptest::collection::vec(any::<u8>(), 0..80)) {
            let bytes = [&[kind][..], &rest].concat();
            if let Some(message) = OrdererMessage::from_bytes(&bytes) {
                let again = message.to_bytes();
                prop_assert_eq!(OrdererMessage::from_bytes(&again), Some(message));
            }
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written_and_nothing_else() {
        let beginning = Beginning { index: 7, term: 2, members: Members::first(3) };
        let state = OrdererMessage::State { beginning, ordered: Ordered::new([ShardId(1)]) };
        let recorded = OrdererMessage::Recorded(vec![(ShardId(1), Position(7))]);
        assert_eq!(recorded.to_bytes(), [3, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(OrdererMessage::from_bytes(&recorded.to_bytes()), Some(recorded));
        let admit = OrdererMessage::AdmitMe { incarnation: Incarnation(7) };
        for message in [OrdererMessage::StateAsked { at_least: 9 }, state, admit] {
            let bytes = message.to_bytes();
            assert_eq!(OrdererMessage::from_bytes(&bytes), Some(message));
            assert!((0..bytes.len()).all(|length| OrdererMessage::from_bytes(&bytes[..length]).is_none()));
            assert_eq!(OrdererMessage::from_bytes(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!(OrdererMessage::from_bytes(&[0, 5]), Some(OrdererMessage::Log(&[5])));
        let first_life = [4, 0, 0, 0, 0, 0, 0, 0, 0];
        for bytes in [&[5][..], &[3, 1], &first_life] {
            assert_eq!(OrdererMessage::from_bytes(bytes), None);
        }
    }
}
