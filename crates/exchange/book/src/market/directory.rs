//! Where an instrument's book is: a table by id for the ids people use, a search for the rest.
//!
//! A search among 10,000 ids is fourteen steps and as many branches that cannot be foretold; the table is one load. But an id
//! may be any number up to 2^32, so ids from [`DIRECT_MAX`] on are searched for.

use pares_types::InstrumentId;

/// Ids below this stand in the table: four bytes each up to the highest in use.
const DIRECT_MAX: u32 = 1 << 20;
const NOWHERE: u32 = u32::MAX;

/// The places of books in a list ordered by instrument id.
#[derive(Debug)]
pub(super) struct Directory {
    /// In ascending order.
    ids: Vec<InstrumentId>,
    /// By id: the place in `ids`, or [`NOWHERE`]. As long as the highest id of those below [`DIRECT_MAX`] needs.
    direct: Vec<u32>,
}

impl Directory {
    /// `ids` are in ascending order.
    pub(super) fn new(ids: Vec<InstrumentId>) -> Self {
        let mut directory = Self { ids, direct: Vec::new() };
        directory.point_from(0);
        directory
    }

    #[inline]
    pub(super) fn find(&self, id: InstrumentId) -> Option<usize> {
        match self.direct.get(id.0 as usize) {
            Some(&NOWHERE) => None,
            Some(&at) => Some(at as usize),
            None if id.0 < DIRECT_MAX => None,
            None => self.ids.binary_search(&id).ok(),
        }
    }

    /// Takes in an id that is not there and says at which place; those behind it move up by one.
    pub(super) fn insert(&mut self, id: InstrumentId) -> usize {
        let at = self.ids.binary_search(&id).expect_err("the id is not there");
        self.ids.insert(at, id);
        self.point_from(at);
        at
    }

    /// Gives up the id at that place; those behind it move down by one.
    pub(super) fn remove(&mut self, at: usize) {
        let id = self.ids.remove(at);
        if let Some(entry) = self.direct.get_mut(id.0 as usize) {
            *entry = NOWHERE;
        }
        self.point_from(at);
    }

    /// Writes the table's entries of the ids from that place on.
    fn point_from(&mut self, from: usize) {
        for (at, id) in self.ids.iter().enumerate().skip(from) {
            if id.0 >= DIRECT_MAX {
                return;
            }
            let entry = id.0 as usize;
            if entry >= self.direct.len() {
                self.direct.resize(entry + 1, NOWHERE);
            }
            self.direct[entry] = u32::try_from(at).expect("far fewer instruments than 2^32");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn finds_what_a_sorted_set_holds(
            steps in prop::collection::vec((0_usize..12, any::<bool>()), 1..60)
        ) {
            let known = [1, 2, 3, 9, 700, DIRECT_MAX - 1, DIRECT_MAX, DIRECT_MAX + 1, 5_000_000, u32::MAX, 4, 8];
            let (mut directory, mut model) = (Directory::new(Vec::new()), BTreeSet::new());
            for (id, comes) in steps {
                let id = InstrumentId(known[id]);
                match (directory.find(id), comes) {
                    (None, true) => {
                        directory.insert(id);
                        model.insert(id);
                    }
                    (Some(at), false) => {
                        directory.remove(at);
                        model.remove(&id);
                    }
                    _ => {}
                }
                for id in known.map(InstrumentId) {
                    prop_assert_eq!(directory.find(id), model.iter().position(|other| *other == id));
                }
                prop_assert_eq!(directory.find(InstrumentId(0)), None);
            }
        }
    }
}
