//! The checker: owns the history, and trusts no site's word for it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use pares_broker::AuditEntry;
use pares_store::Applied;
use pares_wice::codec::Coded;
use pares_wice::{Body, Change, Era, Key, KeyRange, LogEntry, SiteId, TransactionId, Value, Version, Write};

use super::bank::{self, Execution, Ledger};
use super::shelf::Written;
use super::{Broken, Plan, Verdict, brokerage, must, wards};

/// What a version changed: the items and their values since.
pub(super) type Changed = Vec<(Key, Option<Value>)>;

/// What a cluster's log has committed.
#[derive(Debug, Default)]
pub(super) struct Committed {
    payloads: BTreeMap<u64, Vec<u8>>,
    /// By number, and the version that each had.
    pub(super) executions: BTreeMap<usize, Version>,
    /// The past it has adopted.
    pub(super) adopted: Option<Version>,
    pub(super) adoptions: u64,
    pub(super) eras: BTreeSet<Era>,
}

impl Committed {
    /// A member has been handed out a payload: the same as every other.
    pub(super) fn on_handed_out(&mut self, index: u64, payload: Vec<u8>) -> Verdict {
        if let Some(known) = self.payloads.get(&index) {
            return must(*known == payload, Broken::Forked, || {
                format!("place {index} of a cluster's log has two payloads")
            });
        }
        for entry in Vec::<LogEntry>::from_bytes(&payload).expect("a site proposes entries") {
            let entry = match entry {
                LogEntry::Stream { entry, .. } => entry,
                LogEntry::Adopt { past, .. } => {
                    self.adopted = Some(past.delivered);
                    self.adoptions += 1;
                    self.eras.extend(past.eras.iter().map(|(_, configuration)| configuration.era));
                    continue;
                }
                LogEntry::Fence(_) | LogEntry::WitnessedFence(_) | LogEntry::Discard { .. } => continue,
            };
            match &entry.body {
                Body::Configure(configuration) => drop(self.eras.insert(configuration.era)),
                Body::Update { writes, .. } => {
                    let put = writes.iter().filter_map(|write| match &write.change {
                        Change::Put(value) => bank::answered(&write.key, value),
                        _ => None,
                    });
                    self.executions.extend(put.map(|(_, number)| (number, entry.version)));
                }
            }
        }
        self.payloads.insert(index, payload);
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Checker {
    /// Whether what was read is certified too.
    serialisable: bool,
    /// Version 1 at index 0: what some store has, which is for ever.
    stable: Vec<Changed>,
    items: BTreeMap<Key, Value>,
    /// The items of each version, as one number.
    digests: Vec<u64>,
    answered: BTreeSet<usize>,
    /// The highest version of those.
    highest: Version,
    /// Requests that were asked once and turned away: nothing of them may ever be done.
    denied: BTreeSet<TransactionId>,
    pub(super) books: Option<brokerage::Books>,
}

pub(super) fn digest(items: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    items.hash(&mut hasher);
    hasher.finish()
}

fn put(items: &mut BTreeMap<Key, Value>, changed: &Changed) {
    for (key, value) in changed {
        match value {
            Some(value) => items.insert(key.clone(), value.clone()),
            None => items.remove(key),
        };
    }
}

fn place(version: Version) -> usize {
    usize::try_from(version.0).expect("few").checked_sub(1).expect("version 0 has no place")
}

impl Checker {
    pub(super) fn new(plan: &Plan) -> Self {
        let books = plan.brokers.then(brokerage::Books::default);
        Self { serialisable: plan.serialisable, books, ..Self::default() }
    }

    pub(super) fn versions(&self) -> u64 {
        self.stable.len() as u64
    }

    pub(super) fn digest(&self) -> u64 {
        digest(&self.stable)
    }

    /// A site's store has been written.
    pub(super) fn on_written(&mut self, site: SiteId, written: Written) -> Verdict {
        match written {
            Written::Versions(versions) => {
                versions.into_iter().try_for_each(|applied| self.on_version(site, applied))
            }
            Written::State(version, items) => {
                let items: BTreeMap<Key, Value> = items.into_iter().collect();
                let is_it = version.0 == 0 || self.digests.get(place(version)) == Some(&digest(&items));
                must(is_it, Broken::Forked, || format!("{site} was sent another state of version {version}"))
            }
        }
    }

    fn on_version(&mut self, site: SiteId, Applied { version, writes }: Applied) -> Verdict {
        match self.stable.get(place(version)) {
            Some(known) => {
                return must(*known == writes, Broken::Forked, || {
                    format!("version {version} is {known:?} and, at {site}, {writes:?}")
                });
            }
            None => assert_eq!(place(version), self.stable.len(), "a store has no gap"),
        }
        let were = wards::on_call(&self.items);
        put(&mut self.items, &writes);
        if let Some(rule) = wards::broken_rule(&self.items, were) {
            return Err((Broken::Skewed, format!("version {version}, at {site}: {rule}")));
        }
        if let Some(books) = &mut self.books {
            books.on_version(version, &writes, &self.items)?;
        }
        self.stable.push(writes);
        self.digests.push(digest(&self.items));
        self.on_total(site, bank::total(self.items.iter()))
    }

    /// All money that a site or a client sees at once.
    pub(super) fn on_total(&self, site: SiteId, total: i128) -> Verdict {
        must(total == 0, Broken::Money, || format!("{site}: all money together is {total}"))
    }

    /// A site answers that an execution was committed, under a version.
    pub(super) fn on_answer(&mut self, number: usize, version: Version) {
        self.answered.insert(number);
        self.highest = self.highest.max(version);
    }

    /// All that was answered until now is at or below it.
    pub(super) fn highest(&self) -> Version {
        self.highest
    }

    /// The versions, from the first to the last, at which all items together are what has this digest. Versions without writes are like those before.
    pub(super) fn versions_of(&self, seen: u64) -> Option<(Version, Version)> {
        if seen == digest(&BTreeMap::<Key, Value>::new()) {
            return Some((Version(0), Version(0)));
        }
        let at = |place: usize| Version(place as u64 + 1);
        let first = self.digests.iter().position(|digest| *digest == seen)?;
        let last = self.digests.iter().rposition(|digest| *digest == seen)?;
        Some((at(first), at(last)))
    }

    /// A client that has asked once receives the answer that nothing has changed, and gives it up.
    pub(super) fn on_denied(&mut self, id: TransactionId) {
        self.denied.insert(id);
    }

    /// A broker's log, by user and place.
    pub(super) fn log(&self) -> Vec<AuditEntry> {
        self.books.as_ref().map_or_else(Vec::new, brokerage::Books::log)
    }

    /// What happened without a command, in a broker's log.
    pub(super) fn moments(&self) -> u64 {
        self.books.as_ref().map_or(0, brokerage::Books::moments)
    }

    pub(super) fn is_answered(&self, number: usize) -> bool {
        self.answered.contains(&number)
    }

    /// Replays the whole history: every execution read what its snapshot holds, and missed nothing it must not miss.
    pub(super) fn finish(&self, ledger: &Ledger) -> Verdict {
        let mut replay = Replay { serialisable: self.serialisable, ..Replay::default() };
        let mut committed = BTreeSet::new();
        for (version, changed) in (1..).map(Version).zip(&self.stable) {
            let reply = changed.iter().find_map(|(key, value)| bank::answered(key, value.as_ref()?));
            let Some((id, number)) = reply else { continue }; // an era
            let execution = &ledger.executions[number];
            assert_eq!(execution.id, id, "an execution answers its own request");
            committed.insert(number);
            must(!self.denied.contains(&id), Broken::Undead, || {
                format!("{id} was denied to who asked once, and is version {version}")
            })?;
            must(!execution.aborted, Broken::Undead, || {
                format!("{id}: execution {number} was aborted, and is version {version}")
            })?;
            replay.next(version, changed, execution)?;
        }
        if let Some(lost) = self.answered.difference(&committed).next() {
            return Err((Broken::Lost, format!("execution {lost} was answered and is lost")));
        }
        self.books.as_ref().map_or(Ok(()), |books| books.end(&self.items))
    }
}

/// The history carried out again, each item with all its past.
#[derive(Default)]
struct Replay {
    serialisable: bool,
    items: BTreeMap<Key, Value>,
    past: BTreeMap<Key, Vec<(Version, bool, Option<Value>)>>,
    seen: BTreeMap<TransactionId, Version>,
}

impl Replay {
    fn next(&mut self, version: Version, changed: &Changed, execution: &Execution) -> Verdict {
        let id = execution.id;
        if let Some(earlier) = self.seen.insert(id, version) {
            return Err((Broken::Twice, format!("{id} is version {earlier} and version {version}")));
        }
        // A refusal certifies nothing of what it read.
        if !execution.writes.is_empty() {
            self.read_what_was_there(execution)?;
            self.reads_are_still_so(version, execution)?;
        }
        for (key, value) in changed {
            let write = execution.writes.iter().find(|write| write.key == *key);
            self.missed(version, key, write, execution)?;
            must(write.is_none_or(|write| self.after(write) == *value), Broken::Misread, || {
                format!("{id}: version {version} is not what was executed")
            })?;
        }
        must(changed.len() == execution.writes.len() + 1, Broken::Misread, || {
            format!("{id}: version {version} changes {changed:?}")
        })?;
        for (key, value) in changed {
            let adds = execution.writes.iter().any(|write| write.key == *key && is_addition(write));
            self.past.entry(key.clone()).or_default().push((version, adds, value.clone()));
        }
        put(&mut self.items, changed);
        Ok(())
    }

    /// What an execution read is what its snapshot holds.
    fn read_what_was_there(&self, execution: &Execution) -> Verdict {
        let (id, snapshot) = (execution.id, execution.snapshot);
        for (key, seen) in &execution.reads {
            let held = self.at(key, snapshot);
            must(held == *seen, Broken::Misread, || {
                format!("{id} read {seen:?} of {key:?} at {snapshot}, which was {held:?}")
            })?;
        }
        for (range, seen) in &execution.ranges {
            let known = self.past.range(range.from.clone()..).take_while(|(key, _)| range.contains(key));
            let held = known.filter_map(|(key, _)| Some((key.clone(), self.at(key, snapshot)?)));
            let held: Vec<(Key, Value)> = held.collect();
            must(held == *seen, Broken::Misread, || {
                format!("{id} walked {range:?} at {snapshot} and saw {seen:?}, which was {held:?}")
            })?;
        }
        Ok(())
    }

    /// Where reads are certified, it would read the same at its place in the order.
    fn reads_are_still_so(&self, version: Version, execution: &Execution) -> Verdict {
        if !self.serialisable {
            return Ok(());
        }
        let changed = execution.reads.iter().find(|(key, seen)| self.items.get(key) != seen.as_ref());
        let changed = changed.map(|(key, _)| format!("{key:?}"));
        let is_other = |(range, seen): &&(KeyRange, Vec<(Key, Value)>)| {
            let now = self.items.range(range.from.clone()..).take_while(|(key, _)| range.contains(key));
            !now.eq(seen.iter().map(|(key, value)| (key, value)))
        };
        let walked = execution.ranges.iter().find(is_other).map(|(range, _)| format!("{range:?}"));
        match changed.or(walked) {
            None => Ok(()),
            Some(what) => {
                let (id, snapshot) = (execution.id, execution.snapshot);
                let text =
                    format!("{id} read {what} on {snapshot}, which is another before version {version}");
                Err((Broken::Skewed, text))
            }
        }
    }

    fn missed(&self, version: Version, key: &Key, write: Option<&Write>, execution: &Execution) -> Verdict {
        let adds = write.is_some_and(is_addition);
        let past = self.past.get(key).into_iter().flatten();
        let mut missed = past.filter(|(writer, added, _)| *writer > execution.snapshot && !(adds && *added));
        match missed.next_back() {
            None => Ok(()),
            Some((writer, ..)) => {
                let (id, snapshot) = (execution.id, execution.snapshot);
                Err((
                    Broken::Missed,
                    format!("{id}, version {version} on {snapshot}, missed {writer} of {key:?}"),
                ))
            }
        }
    }

    /// The value that a write leaves behind.
    fn after(&self, write: &Write) -> Option<Value> {
        match &write.change {
            Change::Put(value) => Some(value.clone()),
            Change::Delete => None,
            Change::Add(delta) => {
                let total = self.items.get(&write.key).and_then(Value::as_counter).unwrap_or(0);
                Some(Value::counter(total + i128::from(*delta)))
            }
        }
    }

    fn at(&self, key: &Key, snapshot: Version) -> Option<Value> {
        let past = self.past.get(key)?;
        past.iter().rev().find(|(version, ..)| *version <= snapshot).and_then(|(.., value)| value.clone())
    }
}

fn is_addition(write: &Write) -> bool {
    matches!(write.change, Change::Add(_))
}
