//! Row locks of one site, under snapshot isolation as PostgreSQL 8.0 has it (paper section 4.1).
//!
//! Rows that are read are not locked; rows that are written are, until the writer has committed or aborted. A transaction
//! that wants a locked row waits: if the holder commits, the waiter has lost (*first updater wins*), and if it aborts, the
//! waiter continues. A transaction takes all its locks at once, at its beginning: which rows it will write is known here,
//! and nobody can deadlock. Updates from other sites come first: they take rows from their holders (paper section 2.1,
//! `db_update`).

use std::collections::HashMap; // looked up only, never iterated

use crate::item::Item;

/// A transaction being executed.
pub(crate) type Holder = u64;

#[derive(Debug, Default)]
struct Row {
    holder: Option<Holder>,
    /// Updates from other sites being applied to it.
    updates: u32,
    waiting: Vec<Holder>,
}

/// The locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    rows: HashMap<Item, Row>,
}

impl Locks {
    /// Takes all of `items` for `holder`, or none and lets it wait for those that are taken.
    pub(crate) fn take(&mut self, holder: Holder, items: impl Iterator<Item = Item> + Clone) -> bool {
        let mut free = true;
        for item in items.clone() {
            if let Some(row) = self.rows.get_mut(&item) {
                row.waiting.push(holder);
                free = false;
            }
        }
        if free {
            for item in items {
                self.rows.insert(item, Row { holder: Some(holder), ..Row::default() });
            }
        }
        free
    }

    /// Gives up all that `holder` has of `items`; says who waited for them, in the order they came, some more than once.
    pub(crate) fn give(&mut self, holder: Holder, items: impl Iterator<Item = Item>) -> Vec<Holder> {
        let mut waited = Vec::new();
        for item in items {
            if let Some(row) = self.rows.get_mut(&item)
                && row.holder == Some(holder)
            {
                row.holder = None;
                waited.append(&mut row.waiting);
                self.forget(item);
            }
        }
        waited
    }

    /// An update from elsewhere begins with `item`; says who holds it.
    pub(crate) fn begin_update(&mut self, item: Item) -> Option<Holder> {
        let row = self.rows.entry(item).or_default();
        row.updates += 1;
        row.holder
    }

    /// An update has been applied to `item`; says who waited for it.
    pub(crate) fn end_update(&mut self, item: Item) -> Vec<Holder> {
        let row = self.rows.get_mut(&item).expect("updates end after they began");
        row.updates -= 1;
        let waited = std::mem::take(&mut row.waiting);
        self.forget(item);
        waited
    }

    fn forget(&mut self, item: Item) {
        let row = &self.rows[&item];
        if row.holder.is_none() && row.updates == 0 && row.waiting.is_empty() {
            self.rows.remove(&item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Table;

    fn item(row: u32) -> Item {
        Item::new(Table::Stock, 0, 0, row)
    }

    #[test]
    fn all_or_nothing_and_who_waited_is_told() {
        let mut locks = Locks::default();
        assert!(locks.take(1, [item(1), item(2)].into_iter()));
        assert!(!locks.take(2, [item(2), item(3)].into_iter()));
        assert!(locks.take(3, [item(3)].into_iter()), "who waits holds nothing");
        assert_eq!(locks.give(1, [item(1), item(2)].into_iter()), [2]);
    }

    #[test]
    fn remote_update_finds_holder_and_excludes_others() {
        let mut locks = Locks::default();
        assert!(locks.take(1, [item(1)].into_iter()));
        assert_eq!(locks.begin_update(item(1)), Some(1));
        assert_eq!(locks.give(1, [item(1)].into_iter()), []);
        assert!(!locks.take(2, [item(1)].into_iter()));
        assert_eq!(locks.end_update(item(1)), [2]);
        assert!(locks.take(2, [item(1)].into_iter()));
    }
}
