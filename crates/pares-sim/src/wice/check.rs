//! The checker: owns the history, and trusts no site's word for it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pares_wice::{Body, Change, Entry, Key, SiteId, TransactionId, Value, Version};

use super::bank::{self, Executed};

/// An attempt as its client's site executed it.
#[derive(Debug)]
struct Attempt {
    snapshot: Version,
    executed: Executed,
}

#[derive(Debug, Default)]
pub(super) struct Checker {
    /// Version 1 at index 0: what was stable anywhere, which is for ever.
    stable: Vec<Arc<Entry>>,
    checked: BTreeMap<SiteId, usize>,
    attempts: BTreeMap<(TransactionId, u32), Attempt>,
    aborted: BTreeSet<(TransactionId, u32)>,
    answered: BTreeMap<TransactionId, Version>,
    stores: BTreeMap<Version, u64>,
}

type Verdict = Result<(), String>;

impl Checker {
    pub(super) fn versions(&self) -> u64 {
        self.stable.len() as u64
    }

    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.stable.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn executed(
        &mut self,
        id: TransactionId,
        attempt: u32,
        snapshot: Version,
        executed: Executed,
    ) {
        self.attempts.insert((id, attempt), Attempt { snapshot, executed });
    }

    pub(super) fn restarted(&mut self, site: SiteId) {
        self.checked.remove(&site);
    }

    /// A site holds everything up to `stable` for stable.
    pub(super) fn on_stable(&mut self, site: SiteId, delivered: &[Arc<Entry>], stable: Version) -> Verdict {
        let until = usize::try_from(stable.0).expect("few");
        let checked = self.checked.entry(site).or_insert(0);
        if until > delivered.len() {
            return Err(format!(
                "{site} holds version {stable} for stable and has delivered {}",
                delivered.len()
            ));
        }
        for (at, entry) in delivered.iter().enumerate().take(until).skip(*checked) {
            match self.stable.get(at) {
                None => self.stable.push(Arc::clone(entry)),
                Some(known) if known == entry => {}
                Some(known) => {
                    return Err(format!("version {} is {known:?} and, at {site}, {entry:?}", at + 1));
                }
            }
        }
        *checked = until.max(*checked);
        Ok(())
    }

    pub(super) fn on_store(
        &mut self,
        site: SiteId,
        version: Version,
        items: &BTreeMap<Key, Value>,
    ) -> Verdict {
        let mut hasher = DefaultHasher::new();
        items.hash(&mut hasher);
        let digest = hasher.finish();
        match *self.stores.entry(version).or_insert(digest) == digest {
            true if bank::total(items) == 0 => Ok(()),
            true => Err(format!("{site}: the money at version {version} is {}", bank::total(items))),
            false => Err(format!("{site}: another store at version {version}")),
        }
    }

    pub(super) fn on_abort(&mut self, id: TransactionId, attempt: u32) {
        self.aborted.insert((id, attempt));
    }

    /// Whether these versions have `id` as `version`.
    pub(super) fn holds(delivered: &[Arc<Entry>], id: TransactionId, version: Version) -> bool {
        let at = usize::try_from(version.0).expect("few").checked_sub(1);
        at.and_then(|at| delivered.get(at)).is_some_and(|entry| is_update_of(entry, id))
    }

    /// A client is told that its transaction has committed.
    pub(super) fn on_answer(&mut self, id: TransactionId, version: Version) {
        self.answered.insert(id, version);
    }

    /// Replays the whole history: every attempt read what its snapshot holds, and missed nothing it must not miss.
    pub(super) fn finish(&self) -> Verdict {
        let mut replay = Replay::default();
        for (at, entry) in self.stable.iter().enumerate() {
            let version = Version(at as u64 + 1);
            if entry.version != version {
                return Err(format!("version {} at the place of {version}", entry.version));
            }
            if let Body::Update { id, attempt, .. } = &entry.body {
                if self.aborted.contains(&(*id, *attempt)) {
                    return Err(format!(
                        "{id}, attempt {attempt}, was reported aborted, and is version {version}"
                    ));
                }
                let executed =
                    self.attempts.get(&(*id, *attempt)).ok_or(format!("{id} was never executed"))?;
                replay.next(version, entry, executed)?;
            }
        }
        for (id, version) in &self.answered {
            if !Self::holds(&self.stable, *id, *version) {
                return Err(format!("{id} was answered at version {version} and is lost"));
            }
        }
        Ok(())
    }
}

fn is_update_of(entry: &Entry, wanted: TransactionId) -> bool {
    matches!(&entry.body, Body::Update { id, .. } if *id == wanted)
}

/// The history carried out again, each item with all its past.
#[derive(Default)]
struct Replay {
    items: BTreeMap<Key, Value>,
    past: BTreeMap<Key, Vec<(Version, bool, Option<Value>)>>,
    seen: BTreeMap<TransactionId, Version>,
}

impl Replay {
    fn next(&mut self, version: Version, entry: &Entry, attempt: &Attempt) -> Verdict {
        let Body::Update { id, writes, .. } = &entry.body else { return Ok(()) };
        if let Some(earlier) = self.seen.insert(*id, version) {
            return Err(format!("{id} is version {earlier} and version {version}"));
        }
        if *writes != attempt.executed.writes {
            return Err(format!("{id}: version {version} is not what was executed"));
        }
        for (key, seen) in &attempt.executed.reads {
            let held = self.at(key, attempt.snapshot);
            if held != *seen {
                return Err(format!(
                    "{id} read {seen:?} of {key:?} at {}, which was {held:?}",
                    attempt.snapshot
                ));
            }
        }
        for write in writes {
            let adds = matches!(write.change, Change::Add(_));
            let missed = self.past.get(&write.key).into_iter().flatten();
            let mut missed =
                missed.filter(|(writer, by_adding, _)| *writer > attempt.snapshot && !(adds && *by_adding));
            if let Some((writer, ..)) = missed.next_back() {
                return Err(format!(
                    "{id}, version {version} on {}, missed {writer} of {:?}",
                    attempt.snapshot, write.key
                ));
            }
        }
        bank::apply(&mut self.items, writes);
        for write in writes {
            let adds = matches!(write.change, Change::Add(_));
            let value = self.items.get(&write.key).cloned();
            self.past.entry(write.key.clone()).or_default().push((version, adds, value));
        }
        Ok(())
    }

    fn at(&self, key: &Key, snapshot: Version) -> Option<Value> {
        let past = self.past.get(key)?;
        past.iter().rev().find(|(version, ..)| *version <= snapshot).and_then(|(.., value)| value.clone())
    }
}
