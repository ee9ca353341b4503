//! Random histories, compared with the store in memory after each step.

use pares_store::{Applied, StoreSnapshot};
use pares_wice::{Key, KeyRange, Value, Version};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::place::{Kind, Place};
use crate::suite::items;

#[derive(Clone, Debug)]
enum Step {
    /// Versions, each with its items.
    Apply(Vec<Vec<(u8, Option<u8>)>>, Option<u8>),
    Flush,
    Reopen,
    Snapshot,
    /// Ends the oldest.
    End,
    /// In the snapshot with this number, if there is one.
    Range(usize, u8, Option<u8>, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let item = || 0..24u8;
    let writes = prop::collection::vec((item(), prop::option::weighted(0.7, any::<u8>())), 0..6);
    let batch = prop::collection::vec(writes, 0..5);
    let step = prop_oneof![
        6 => (batch, prop::option::weighted(0.2, any::<u8>())).prop_map(|(batch, meta)| Step::Apply(batch, meta)),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        2 => Just(Step::Snapshot),
        1 => Just(Step::End),
        3 => (0..4usize, item(), prop::option::of(item()), 0..20usize)
            .prop_map(|(which, from, to, limit)| Step::Range(which, from, to, limit)),
    ];
    prop::collection::vec(step, 1..40)
}

pub(crate) fn any_history_reads_as_in_memory(place: &Place) {
    let cases = if matches!(place.kind, Kind::Memory | Kind::Redb) { 32 } else { 12 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let one = |steps: Vec<Step>| {
        run(&place.another(), &steps);
        Ok(())
    };
    runner.run(&steps(), one).unwrap();
}

/// One, two or three bytes, so that keys begin with each other.
fn key(number: u8) -> Key {
    Key::new(vec![number / 3; 1 + number as usize % 3])
}

fn run(place: &Place, steps: &[Step]) {
    let mut store = place.open();
    let mut snapshots: Vec<(Box<dyn StoreSnapshot>, Naive)> = Vec::new();
    let mut now = Naive::default();
    for step in steps {
        match step {
            Step::Apply(batch, meta) => {
                let versions = batch.iter().map(|writes| now.apply(writes)).collect::<Vec<_>>();
                now.meta = meta.map_or(now.meta, |byte| vec![byte; 3]);
                store.apply(&versions, meta.map(|byte| vec![byte; 3]).as_deref()).unwrap();
            }
            Step::Flush => assert_eq!(store.flush().unwrap().0, now.version),
            Step::Reopen => {
                snapshots.clear();
                store.flush().unwrap();
                drop(store);
                store = place.open();
            }
            Step::Snapshot if snapshots.len() < 4 => {
                snapshots.push((store.snapshot().unwrap(), now.clone()));
            }
            Step::End if !snapshots.is_empty() => drop(snapshots.remove(0)),
            Step::Range(which, from, to, limit) => {
                if let Some((snapshot, then)) = snapshots.get(*which) {
                    let range = KeyRange { from: key(*from), to: to.map(key) };
                    let expected = then.items.iter().filter(|(key, _)| range.contains(key));
                    let expected: Vec<_> =
                        expected.take(*limit).map(|(k, v)| (k.clone(), v.clone())).collect();
                    assert_eq!(snapshot.first(&range, *limit).unwrap(), expected);
                }
            }
            Step::Snapshot | Step::End => {}
        }
        assert_eq!((store.applied().0, &*store.meta()), (now.version, &now.meta[..]));
        for (snapshot, then) in &snapshots {
            then.check(&**snapshot);
        }
    }
    now.check(&*store.snapshot().unwrap());
}

/// The twin's twin: a map that is copied for each snapshot, so that the store in memory is tested too.
#[derive(Clone, Default)]
struct Naive {
    version: u64,
    meta: Vec<u8>,
    items: std::collections::BTreeMap<Key, Value>,
}

impl Naive {
    fn apply(&mut self, writes: &[(u8, Option<u8>)]) -> Applied {
        self.version += 1;
        let writes: Vec<(Key, Option<Value>)> =
            writes.iter().map(|(k, v)| (key(*k), v.map(|byte| Value::new(vec![byte; 2])))).collect();
        for (key, value) in &writes {
            match value {
                Some(value) => drop(self.items.insert(key.clone(), value.clone())),
                None => drop(self.items.remove(key)),
            }
        }
        Applied { version: Version(self.version), writes }
    }

    fn check(&self, snapshot: &dyn StoreSnapshot) {
        assert_eq!((snapshot.version().0, snapshot.meta()), (self.version, &self.meta[..]));
        let expected: Vec<_> = self.items.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        assert_eq!(items(snapshot), expected);
        for number in 0..24 {
            assert_eq!(snapshot.get(&key(number)).unwrap().as_ref(), self.items.get(&key(number)));
        }
    }
}
