//! The database at some version: what is in memory over what is in the store.

use core::ops::ControlFlow;

use pares_store::{Reads, StoreError, StoreSnapshot};
use pares_wice::overlay::{Found, Overlay};
use pares_wice::{Key, KeyRange, Value, Version};

/// Reads the versions up to one. The store's snapshot is at the overlay's own beginning or later, and not later than that version.
#[derive(Clone, Copy)]
pub struct View<'a> {
    overlay: &'a Overlay,
    base: &'a dyn StoreSnapshot,
    version: Version,
}

impl<'a> View<'a> {
    /// # Panics
    /// If the snapshot does not lie between the overlay's beginning and `version`.
    pub(crate) fn new(overlay: &'a Overlay, base: &'a dyn StoreSnapshot, version: Version) -> Self {
        let stored = base.version();
        assert!(
            overlay.applied() <= stored && stored <= version,
            "a store at {stored} below a view of {version}"
        );
        Self { overlay, base, version }
    }

    /// The version it shows.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Reads for View<'_> {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        match self.overlay.get(key, self.version) {
            Found::Value(value) => Ok(value),
            Found::Nothing => self.base.get(key),
            added @ Found::Added(_) => {
                let base = self.base.get(key)?;
                Ok(added.over(|| base))
            }
        }
    }

    fn range(&self, range: &KeyRange, visit: &mut pares_store::Visit<'_>) -> Result<(), StoreError> {
        let mut above = self.overlay.range(range, self.version).peekable();
        let mut wants_more = true;
        self.base.range(range, &mut |key, value| {
            while let Some((other, found)) = above.next_if(|(other, _)| **other < key) {
                wants_more = show(other, found, None, visit);
                if !wants_more {
                    return ControlFlow::Break(());
                }
            }
            let found = above.next_if(|(other, _)| **other == key).map_or(Found::Nothing, |(_, found)| found);
            wants_more = show(&key, found, Some(value), visit);
            if wants_more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        while wants_more && let Some((key, found)) = above.next() {
            wants_more = show(key, found, None, visit);
        }
        Ok(())
    }
}

/// Shows an item, if it exists. Whether another is wanted.
fn show(key: &Key, found: Found, base: Option<Value>, visit: &mut pares_store::Visit<'_>) -> bool {
    match found.over(|| base) {
        Some(value) => visit(key.clone(), value).is_continue(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use pares_store::{Applied, Memory, Store};
    use pares_wice::Write;

    use super::*;

    fn pair(key: &str, value: &str) -> (Key, Value) {
        (Key::from(key), Value::from(value))
    }

    #[test]
    fn a_range_merges_what_is_in_memory_and_what_is_stored() {
        let store = Memory::default();
        let stored = ["b", "c", "e"].map(|key| (Key::from(key), Some(Value::from("old"))));
        store.apply(&[Applied { version: Version(1), writes: stored.to_vec() }], None).unwrap();
        let mut overlay = Overlay::new(Version(1));
        let writes = [("a", "new"), ("c", "new"), ("f", "new")]
            .map(|(key, value)| Write::put(Key::from(key), Value::from(value)));
        overlay.install(Version(2), &writes);
        overlay.install(Version(3), &[Write::delete(Key::from("e")), Write::delete(Key::from("f"))]);
        let base = store.snapshot().unwrap();
        let all = KeyRange::prefix(b"");
        let at = |version| View::new(&overlay, &*base, Version(version)).first(&all, 9).unwrap();
        assert_eq!(at(1), [pair("b", "old"), pair("c", "old"), pair("e", "old")]);
        assert_eq!(
            at(2),
            [pair("a", "new"), pair("b", "old"), pair("c", "new"), pair("e", "old"), pair("f", "new")]
        );
        assert_eq!(at(3), [pair("a", "new"), pair("b", "old"), pair("c", "new")]);
        assert_eq!(View::new(&overlay, &*base, Version(2)).first(&all, 1).unwrap(), [pair("a", "new")]);
    }

    #[test]
    fn what_was_added_is_added_to_what_is_stored() {
        let store = Memory::default();
        store
            .apply(
                &[Applied { version: Version(1), writes: vec![(Key::from("n"), Some(Value::counter(5)))] }],
                None,
            )
            .unwrap();
        let mut overlay = Overlay::new(Version(1));
        overlay.install(Version(2), &[Write::add(Key::from("n"), 3)]);
        let base = store.snapshot().unwrap();
        let view = View::new(&overlay, &*base, Version(2));
        assert_eq!(view.get(&Key::from("n")).unwrap(), Some(Value::counter(8)));
        assert_eq!(view.first(&KeyRange::prefix(b""), 9).unwrap(), [(Key::from("n"), Value::counter(8))]);
    }
}
