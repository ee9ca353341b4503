//! The names of requests a shard has executed lately.
//!
//! Gateways know every name ever used and answer repeats themselves (design section 4). But a member
//! that loses its connection may repeat a request through a second gateway in the very microseconds in which
//! the first one forwards it; only the total order can tell which came first. So each shard remembers
//! its last [`NAMES_MAX`] names and refuses a repeat. Gateways see each other's requests well within that many,
//! so nothing older can race; remembering more would only make checkpoints bigger.
//!
//! A ring gives the age, an open-addressing table (linear probing, backward-shift deletion, a fixed hash)
//! gives the look-up; both are allocated once.

use pares_types::{ClientOrderId, MemberId};

/// How many names a shard remembers.
pub const NAMES_MAX: usize = 16_384;
const TABLE: usize = NAMES_MAX * 4;
const EMPTY: u32 = u32::MAX;

type Name = (MemberId, ClientOrderId);

/// The last [`NAMES_MAX`] names.
#[derive(Clone, Debug)]
pub struct RecentNames {
    ring: Vec<Name>,
    /// Where the oldest name is, once the ring is full.
    oldest: usize,
    /// Slots of the ring, or [`EMPTY`].
    table: Vec<u32>,
}

impl RecentNames {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { ring: Vec::with_capacity(NAMES_MAX), oldest: 0, table: vec![EMPTY; TABLE] }
    }

    /// Remembers a name, forgetting the oldest if need be. Says whether it was new.
    pub fn insert(&mut self, member: MemberId, name: ClientOrderId) -> bool {
        let name = (member, name);
        if self.find(name).is_ok() {
            return false;
        }
        let slot = if self.ring.len() < NAMES_MAX {
            self.ring.push(name);
            self.ring.len() - 1
        } else {
            let slot = self.oldest;
            self.forget(self.ring[slot]);
            self.ring[slot] = name;
            self.oldest = (slot + 1) % NAMES_MAX;
            slot
        };
        let free = self.find(name).expect_err("a forgotten or new name is not in the table");
        self.table[free] = u32::try_from(slot).expect("the ring is far smaller than 2^32");
        true
    }

    /// The names remembered, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Name> + '_ {
        let (newer, older) = self.ring.split_at(self.oldest);
        (0..self.ring.len()).map(move |i| if i < older.len() { older[i] } else { newer[i - older.len()] })
    }

    /// The table slot of a name, or the free slot where it would go.
    fn find(&self, name: Name) -> Result<usize, usize> {
        let mut at = home(name);
        loop {
            match self.table[at] {
                EMPTY => return Err(at),
                slot if self.ring[slot as usize] == name => return Ok(at),
                _ => at = (at + 1) % TABLE,
            }
        }
    }

    fn forget(&mut self, name: Name) {
        let mut hole = self.find(name).expect("a name in the ring is in the table");
        let mut at = hole;
        loop {
            at = (at + 1) % TABLE;
            let slot = self.table[at];
            if slot == EMPTY {
                break;
            }
            let wants = home(self.ring[slot as usize]);
            if (at + TABLE - wants) % TABLE >= (at + TABLE - hole) % TABLE {
                self.table[hole] = slot;
                hole = at;
            }
        }
        self.table[hole] = EMPTY;
    }
}

impl Default for RecentNames {
    fn default() -> Self {
        Self::new()
    }
}

/// A multiplicative hash: fixed, so that every replica walks the same way.
fn home((member, name): Name) -> usize {
    let mixed = (name.0 ^ u64::from(member.0).rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as usize % TABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_repeat_is_not_new() {
        let mut names = RecentNames::new();
        assert!(names.insert(MemberId(1), ClientOrderId(7)));
        assert!(!names.insert(MemberId(1), ClientOrderId(7)));
        assert!(names.insert(MemberId(2), ClientOrderId(7)));
    }

    #[test]
    fn the_oldest_name_is_forgotten_first() {
        let mut names = RecentNames::new();
        for name in 0..=NAMES_MAX as u64 {
            assert!(names.insert(MemberId(1), ClientOrderId(name)));
        }
        assert!(names.insert(MemberId(1), ClientOrderId(0)));
        assert!(!names.insert(MemberId(1), ClientOrderId(2)));
        assert_eq!(names.iter().next(), Some((MemberId(1), ClientOrderId(2))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn agrees_with_a_queue(seeds in prop::collection::vec((0_u32..4, 0_u64..30_000), 40_000)) {
            let (mut names, mut model, mut set) = (RecentNames::new(), VecDeque::new(), std::collections::BTreeSet::new());
            for (member, name) in seeds {
                let name = (MemberId(member), ClientOrderId(name));
                let new = set.insert(name);
                if new {
                    model.push_back(name);
                    if model.len() > NAMES_MAX {
                        set.remove(&model.pop_front().unwrap());
                    }
                }
                prop_assert_eq!(names.insert(name.0, name.1), new);
            }
            prop_assert!(names.iter().eq(model));
        }
    }
}
