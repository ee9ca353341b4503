//! Versions that are installed and not yet in the store.
//!
//! The paper installs versions in the database before they are stable, and keeps clients from seeing them by delaying commits. Then a
//! database that must give a version up again (a cluster that returns after it was declared lost) has no way to, and one who reads it
//! past the replication sees what may never have been. Here a version waits in memory until it is stable; the store is always a
//! stable prefix, and to give up a version is to forget it.
//!
//! ```text
//!   versions    1 ........ applied ........ stable ......... delivered ....... proposed
//!   kept in     the store  |  overlay       |  overlay       |  overlay of the certifier
//!   read by                   read-only       update transactions
//! ```
//! The changes are kept as they were made: what an addition comes to is found by adding, when it is read.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Bound;

use crate::entry::held_bytes;
use crate::ids::Version;
use crate::item::{Change, Key, KeyRange, Value, Write};

/// What the overlay knows of an item at some version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: as in the store.
    Nothing,
    /// This value; without one, it was deleted.
    Value(Option<Value>),
    /// This much more than in the store.
    Added(i128),
}

impl Found {
    /// The item's value, where the store has `base`.
    ///
    /// # Panics
    /// If something was added to what is no counter; `Work::add` of the interface to the store refuses that.
    #[must_use]
    pub fn over(self, base: impl FnOnce() -> Option<Value>) -> Option<Value> {
        match self {
            Self::Nothing => base(),
            Self::Value(value) => value,
            Self::Added(total) => Some(Value::counter(counted(base().as_ref()) + total)),
        }
    }
}

/// A counter's total; 0 where it is absent.
fn counted(value: Option<&Value>) -> i128 {
    value.and_then(Value::as_counter).unwrap_or(0) // a peer may add to what is no counter: the store refuses that
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Installed {
    version: Version,
    writes: Vec<Write>,
    bytes: usize,
}

/// An item's changes, in order of versions.
type Changes = VecDeque<(Version, Change)>;

/// Changes by item and version, from the store's version on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Overlay {
    items: BTreeMap<Key, Changes>,
    /// In order.
    installed: VecDeque<Installed>,
    applied: Version,
    top: Version,
    /// Versions up to this one are stable.
    settled: Version,
    /// What all versions take, and those above `settled`.
    bytes: usize,
    unsettled_bytes: usize,
}

impl Overlay {
    /// Nothing above what the store has.
    #[must_use]
    pub fn new(applied: Version) -> Self {
        let (items, installed) = (BTreeMap::new(), VecDeque::new());
        Self { items, installed, applied, top: applied, settled: applied, bytes: 0, unsettled_bytes: 0 }
    }

    /// The store's version, as far as is known here.
    #[must_use]
    pub fn applied(&self) -> Version {
        self.applied
    }

    /// The newest version.
    #[must_use]
    pub fn top(&self) -> Version {
        self.top
    }

    /// Bytes that all its versions take, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes
    }

    /// Of them, those of versions that are not stable: they cannot be written away.
    #[must_use]
    pub fn unsettled_bytes(&self) -> usize {
        self.unsettled_bytes
    }

    /// Versions up to `stable` are stable, installed or not.
    pub fn settle(&mut self, stable: Version) {
        let first = self.installed.partition_point(|installed| installed.version <= self.settled);
        let settled = self.installed.range(first..).take_while(|installed| installed.version <= stable);
        self.unsettled_bytes -= settled.map(|installed| installed.bytes).sum::<usize>();
        self.settled = self.settled.max(stable);
    }

    /// Installs the next version. Without writes it is an era's beginning.
    ///
    /// # Panics
    /// Unless it is the next.
    pub fn install(&mut self, version: Version, writes: &[Write]) {
        assert_eq!(version, self.top.next(), "versions are installed in order");
        for write in writes {
            // Most items are changed once before the store has them.
            let changes = self.items.entry(write.key.clone()).or_insert_with(|| Changes::with_capacity(1));
            changes.push_back((version, write.change.clone()));
        }
        let bytes = held_bytes(writes);
        self.bytes += bytes;
        if version > self.settled {
            self.unsettled_bytes += bytes;
        }
        self.installed.push_back(Installed { version, writes: writes.to_vec(), bytes });
        self.top = version;
    }

    /// What is known of `key` at `snapshot`. The asker reads the store at a version from [`applied`](Self::applied) to `snapshot`.
    #[must_use]
    pub fn get(&self, key: &Key, snapshot: Version) -> Found {
        self.items.get(key).map_or(Found::Nothing, |changes| seen(changes, snapshot))
    }

    /// What is known of the items in `range` at `snapshot`, in order of keys; [`Found::Nothing`] is left out.
    pub fn range<'a>(
        &'a self,
        range: &'a KeyRange,
        snapshot: Version,
    ) -> impl Iterator<Item = (&'a Key, Found)> + 'a {
        let to = match &range.to {
            Some(to) => Bound::Excluded(to.max(&range.from)),
            None => Bound::Unbounded,
        };
        let inside = self.items.range((Bound::Included(&range.from), to));
        inside
            .map(move |(key, changes)| (key, seen(changes, snapshot)))
            .filter(|(_, found)| *found != Found::Nothing)
    }

    /// The versions after `after`, up to `to`, with their writes, in order: what the store is to apply next.
    pub fn after(&self, after: Version, to: Version) -> impl Iterator<Item = (Version, &[Write])> {
        let first = self.installed.partition_point(|installed| installed.version <= after);
        let wanted = self.installed.range(first..).take_while(move |installed| installed.version <= to);
        wanted.map(|installed| (installed.version, installed.writes.as_slice()))
    }

    /// The store has everything up to `applied`, and nobody reads an older state of it any more.
    ///
    /// # Panics
    /// If that is more than was installed.
    pub fn forget(&mut self, applied: Version) {
        assert!(applied <= self.top, "the store has {applied}, and {} is the newest", self.top);
        self.settle(applied);
        while let Some(oldest) = self.installed.pop_front_if(|oldest| oldest.version <= applied) {
            self.bytes -= oldest.bytes;
            for write in oldest.writes {
                self.give_up(write.key, |changes| changes.pop_front_if(|(version, _)| *version <= applied));
            }
        }
        self.applied = self.applied.max(applied);
    }

    /// Versions above `keep` never were.
    ///
    /// # Panics
    /// If the store has any of them.
    pub fn truncate(&mut self, keep: Version) {
        assert!(
            keep >= self.applied,
            "version {} is in the store and cannot be discarded down to {keep}",
            self.applied
        );
        while let Some(newest) = self.installed.pop_back_if(|newest| newest.version > keep) {
            self.bytes -= newest.bytes;
            if newest.version > self.settled {
                self.unsettled_bytes -= newest.bytes;
            }
            for write in newest.writes {
                self.give_up(write.key, |changes| changes.pop_back_if(|(version, _)| *version > keep));
            }
        }
        self.top = self.top.min(keep);
    }

    /// Takes an item's changes away while `next` finds one, and with the last one the item.
    fn give_up(&mut self, key: Key, next: impl Fn(&mut Changes) -> Option<(Version, Change)>) {
        let Entry::Occupied(mut item) = self.items.entry(key) else { return };
        while next(item.get_mut()).is_some() {}
        if item.get().is_empty() {
            item.remove();
        }
    }
}

/// An item's changes up to `snapshot`, taken together.
fn seen(changes: &Changes, snapshot: Version) -> Found {
    let mut added = None;
    let known = changes.iter().rev().skip_while(|(version, _)| *version > snapshot);
    for (_, change) in known {
        let value = match change {
            Change::Add(delta) => {
                added = Some(added.unwrap_or(0) + i128::from(*delta));
                continue;
            }
            Change::Put(value) => Some(value.clone()),
            Change::Delete => None,
        };
        return Found::Value(match added {
            None => value,
            Some(total) => Some(Value::counter(counted(value.as_ref()) + total)),
        });
    }
    added.map_or(Found::Nothing, Found::Added)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlay(versions: &[&[Write]]) -> Overlay {
        let mut overlay = Overlay::new(Version(0));
        for writes in versions {
            overlay.install(overlay.top().next(), writes);
        }
        overlay
    }

    fn at(overlay: &Overlay, snapshot: u64) -> Found {
        overlay.get(&Key::from("a"), Version(snapshot))
    }

    fn value(text: &str) -> Found {
        Found::Value(Some(Value::from(text)))
    }

    #[test]
    fn a_snapshot_stays_what_it_was() {
        let overlay = overlay(&[&[Write::put("a", "1")], &[Write::delete("a")], &[Write::put("a", "3")]]);
        let seen: Vec<Found> = (0..=3).map(|snapshot| at(&overlay, snapshot)).collect();
        assert_eq!(seen, [Found::Nothing, value("1"), Found::Value(None), value("3")]);
    }

    #[test]
    fn additions_come_to_a_sum_over_whatever_lies_below() {
        let mut overlay = overlay(&[&[Write::add("a", 2)], &[Write::add("a", 3)]]);
        assert_eq!(at(&overlay, 2), Found::Added(5));
        assert_eq!(at(&overlay, 2).over(|| Some(Value::counter(10))), Some(Value::counter(15)));
        overlay.install(Version(3), &[Write::put("a", Value::counter(100))]);
        overlay.install(Version(4), &[Write::add("a", -1)]);
        assert_eq!(at(&overlay, 4), Found::Value(Some(Value::counter(99))));
    }

    #[test]
    fn what_the_store_has_is_forgotten_here() {
        let mut overlay = overlay(&[&[Write::add("a", 2)], &[Write::add("a", 3), Write::put("b", "x")]]);
        overlay.forget(Version(1));
        assert_eq!(at(&overlay, 2), Found::Added(3));
        let next: Vec<Version> = overlay.after(Version(1), Version(2)).map(|(version, _)| version).collect();
        assert_eq!(next, [Version(2)]);
        overlay.forget(Version(2));
        assert!(overlay.items.is_empty());
    }

    #[test]
    fn what_never_was_leaves_no_trace() {
        let kept = overlay(&[&[Write::put("a", "1")]]);
        let mut returned = overlay(&[&[Write::put("a", "1")], &[Write::delete("a"), Write::put("b", "2")]]);
        returned.truncate(Version(1));
        assert_eq!(returned, kept);
    }

    #[test]
    fn what_it_takes_is_counted_until_it_is_gone() {
        let put = [Write::put("a", "x".repeat(1000).as_str())];
        let mut overlay = overlay(&[&put, &put, &put]);
        let one = overlay.held_bytes() / 3;
        assert!((1_000..2_000).contains(&one));
        overlay.settle(Version(1));
        assert_eq!(overlay.unsettled_bytes(), 2 * one);
        overlay.truncate(Version(2));
        assert_eq!((overlay.held_bytes(), overlay.unsettled_bytes()), (2 * one, one));
        overlay.forget(Version(1));
        assert_eq!((overlay.held_bytes(), overlay.unsettled_bytes()), (one, one));
        overlay.settle(Version(3));
        overlay.install(Version(3), &put);
        assert_eq!((overlay.held_bytes(), overlay.unsettled_bytes()), (2 * one, 0));
        overlay.forget(Version(3));
        assert_eq!(overlay, Overlay { settled: Version(3), ..Overlay::new(Version(3)) });
    }

    #[test]
    #[should_panic(expected = "is in the store")]
    fn what_the_store_has_cannot_be_discarded() {
        let mut overlay = overlay(&[&[], &[]]);
        overlay.forget(Version(2));
        overlay.truncate(Version(1));
    }

    #[test]
    fn a_range_is_in_order_of_keys() {
        let overlay = overlay(&[&[Write::put("a2", "x"), Write::put("b", "x")], &[Write::put("a1", "x")]]);
        let range = KeyRange::prefix(b"a");
        let keys = |snapshot| {
            overlay.range(&range, Version(snapshot)).map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        assert_eq!(keys(2), [Key::from("a1"), Key::from("a2")]);
        assert_eq!(keys(1), [Key::from("a2")]);
    }
}
