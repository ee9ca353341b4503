//! The whole check, and what it found.

use std::collections::BTreeMap;

use crate::cycles;
use crate::dependencies::Dependencies;
use crate::history::{Ending, MicroOperation, Operation};
use crate::sessions;
use crate::versions::Versions;

/// Of each kind of anomaly so many are kept in words.
const EXAMPLES_MAX: u64 = 5;

/// What can be wrong with a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// The history itself is none that can be checked: an element was appended twice.
    Unusable,
    /// A cycle of writes.
    G0,
    /// A read of what was reported as not done.
    G1a,
    /// A read of a version that its writer replaced in the same transaction.
    G1b,
    /// A cycle of writes and reads.
    G1c,
    /// A cycle with exactly one anti-dependency: read skew, a lost update.
    GSingle,
    /// A cycle with several anti-dependencies, no two of which follow each other.
    GNonadjacent,
    /// Any other cycle: write skew. Allowed under snapshot isolation.
    G2Item,
    /// Two transactions read one version of a list, and both appended to it.
    LostUpdate,
    /// A read has an element twice.
    DuplicateElement,
    /// A read has an element that nobody appended.
    PhantomElement,
    /// Two reads of one list, neither of which begins with the other.
    IncompatibleOrders,
    /// A transaction did not read what it read or appended before.
    Internal,
    /// What was done is missing from the longest read of its list, which was asked after it was answered.
    LostAppend,
    /// A session read a list without what it appended before.
    ReadYourWrites,
    /// A session read a list as it was before a read of its own.
    MonotonicReads,
}

impl Anomaly {
    /// Whether snapshot isolation allows it. What sessions may expect is no part of it.
    #[must_use]
    pub fn is_allowed_under_snapshot_isolation(self) -> bool {
        matches!(self, Self::G2Item | Self::ReadYourWrites | Self::MonotonicReads)
    }
}

/// What was found in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    counts: BTreeMap<Anomaly, u64>,
    examples: Vec<(Anomaly, Vec<usize>, String)>,
}

impl Anomalies {
    /// How many there are of a kind. Cycles are counted by the strongly connected components that have one.
    #[must_use]
    pub fn count(&self, anomaly: Anomaly) -> u64 {
        self.counts.get(&anomaly).copied().unwrap_or(0)
    }

    /// How many there are that snapshot isolation forbids.
    #[must_use]
    pub fn forbidden_under_snapshot_isolation(&self) -> u64 {
        let forbidden = |anomaly: &Anomaly| !anomaly.is_allowed_under_snapshot_isolation();
        self.counts.iter().filter(|(anomaly, _)| forbidden(anomaly)).map(|(_, count)| count).sum()
    }

    /// The first of each kind: the operations concerned, by their place in the history, and what is wrong in words.
    #[must_use]
    pub fn examples(&self) -> &[(Anomaly, Vec<usize>, String)] {
        &self.examples
    }

    pub(crate) fn add(&mut self, anomaly: Anomaly, operations: &[usize], text: String) {
        let count = self.counts.entry(anomaly).or_default();
        *count += 1;
        if *count <= EXAMPLES_MAX {
            self.examples.push((anomaly, operations.to_vec(), text));
        }
    }
}

/// Checks a history. It should end with a read of every list when all is quiet: what is never read is not checked.
#[must_use]
pub fn check(operations: &[Operation]) -> Anomalies {
    let mut found = Anomalies::default();
    let versions = Versions::infer(operations, &mut found);
    cycles::look(&Dependencies::of(&versions), &mut found);
    lost_updates(operations, &versions, &mut found);
    lost_appends(operations, &versions, &mut found);
    sessions::look(operations, &mut found);
    found
}

fn lost_updates(operations: &[Operation], versions: &Versions, found: &mut Anomalies) {
    let mut read_and_appended: BTreeMap<_, usize> = BTreeMap::new();
    for (at, lists) in versions.touched.iter().enumerate() {
        for (list, touched) in lists {
            let Some(seen) = touched.seen.as_ref().filter(|_| !touched.appended.is_empty()) else { continue };
            if operations[at].ending != Ending::Done {
                continue;
            }
            if let Some(other) = read_and_appended.insert((list, seen), at) {
                let text = format!("list {}: {other} and {at} read {seen:?}, and both appended", list.0);
                found.add(Anomaly::LostUpdate, &[other, at], text);
            }
        }
    }
}

fn lost_appends(operations: &[Operation], versions: &Versions, found: &mut Anomalies) {
    let mut asked = BTreeMap::new();
    for (at, lists) in versions.touched.iter().enumerate() {
        for (list, touched) in lists {
            let is_longest = touched.seen.as_ref().is_some_and(|seen| *seen == versions.orders[list]);
            let latest = asked.entry(*list).or_insert(0);
            if is_longest {
                *latest = operations[at].invoked.max(*latest);
            }
        }
    }
    for (at, operation) in operations.iter().enumerate().filter(|(_, done)| done.ending == Ending::Done) {
        for part in &operation.parts {
            let MicroOperation::Append(list, element) = part else { continue };
            let Some(order) = versions.orders.get(list) else { continue };
            if asked[list] > operation.completed && !order.contains(element) {
                let text = format!("{} of {at} is missing from list {}: {order:?}", element.0, list.0);
                found.add(Anomaly::LostAppend, &[at], text);
            }
        }
    }
}
