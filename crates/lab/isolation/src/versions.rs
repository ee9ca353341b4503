//! What each list says by itself: the order of its versions, who wrote each, and what nobody may have read.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{Anomalies, Anomaly};
use crate::history::{Element, Ending, ListName, MicroOperation, Operation};

/// What an operation saw of a list before it appended to it, and what it appended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// What others had made of it, if it was read.
    pub(crate) seen: Option<Vec<Element>>,
    pub(crate) appended: Vec<Element>,
}

/// All lists of a history.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    /// Who appended each element, and whether it was the last of that operation to that list.
    pub(crate) writers: BTreeMap<(ListName, Element), (usize, bool)>,
    /// The longest read of each list.
    pub(crate) orders: BTreeMap<ListName, Vec<Element>>,
    /// By operation: what it did with each list.
    pub(crate) touched: Vec<BTreeMap<ListName, Touched>>,
}

impl Versions {
    pub(crate) fn infer(operations: &[Operation], found: &mut Anomalies) -> Self {
        let mut versions = Self::default();
        for (at, operation) in operations.iter().enumerate() {
            versions.note_appends(at, operation, found);
        }
        for (at, operation) in operations.iter().enumerate() {
            let touched = touched(at, operation, found);
            versions.touched.push(touched);
        }
        versions.note_reads(found);
        versions.look_at_reads(operations, found);
        versions
    }

    fn note_appends(&mut self, at: usize, operation: &Operation, found: &mut Anomalies) {
        let mut last: BTreeMap<ListName, Element> = BTreeMap::new();
        for part in &operation.parts {
            let MicroOperation::Append(list, element) = *part else { continue };
            if let Some(before) = last.insert(list, element) {
                self.writers.insert((list, before), (at, false));
            }
            if let Some((other, _)) = self.writers.insert((list, element), (at, true)) {
                let text = format!("{} of list {} is appended twice: by {other} and {at}", element.0, list.0);
                found.add(Anomaly::Unusable, &[other, at], text);
            }
        }
    }

    /// The longest read of a list is its order; every other must be the beginning of it.
    fn note_reads(&mut self, found: &mut Anomalies) {
        let mut longest: BTreeMap<ListName, (usize, &Vec<Element>)> = BTreeMap::new();
        let reads = || {
            self.touched.iter().enumerate().flat_map(|(at, lists)| {
                lists.iter().filter_map(move |(list, touched)| Some((*list, at, touched.seen.as_ref()?)))
            })
        };
        for (list, at, seen) in reads() {
            let best = longest.entry(list).or_insert((at, seen));
            if seen.len() > best.1.len() {
                *best = (at, seen);
            }
        }
        for (list, at, seen) in reads() {
            let (by, best) = longest[&list];
            if !best.starts_with(seen) {
                let text = format!("list {}: {at} read {seen:?}, {by} read {best:?}", list.0);
                found.add(Anomaly::IncompatibleOrders, &[at, by], text);
            }
        }
        self.orders = longest.into_iter().map(|(list, (_, order))| (list, order.clone())).collect();
    }

    fn look_at_reads(&self, operations: &[Operation], found: &mut Anomalies) {
        for (at, lists) in self.touched.iter().enumerate() {
            for (list, touched) in lists {
                let Some(seen) = &touched.seen else { continue };
                self.look_at(at, *list, seen, operations, found);
            }
        }
    }

    fn look_at(
        &self,
        at: usize,
        list: ListName,
        seen: &[Element],
        operations: &[Operation],
        found: &mut Anomalies,
    ) {
        let mut once = BTreeSet::new();
        for element in seen {
            if !once.insert(element) {
                let text = format!("{at} read {} twice in list {}: {seen:?}", element.0, list.0);
                found.add(Anomaly::DuplicateElement, &[at], text);
            }
            let Some((writer, _)) = self.writers.get(&(list, *element)).copied() else {
                let text = format!("{at} read {} in list {}, and nobody appended it", element.0, list.0);
                found.add(Anomaly::PhantomElement, &[at], text);
                continue;
            };
            if operations[writer].ending == Ending::NotDone {
                let text = format!("{at} read {} in list {}, and {writer} is not done", element.0, list.0);
                found.add(Anomaly::G1a, &[at, writer], text);
            }
        }
        let last = seen.last().and_then(|element| self.writers.get(&(list, *element)));
        if let Some((writer, false)) = last.copied().filter(|(writer, _)| *writer != at) {
            let text = format!("{at} read list {} between two appends of {writer}: {seen:?}", list.0);
            found.add(Anomaly::G1b, &[at, writer], text);
        }
    }
}

/// What an operation did with each list; what it read must have what it did before.
fn touched(at: usize, operation: &Operation, found: &mut Anomalies) -> BTreeMap<ListName, Touched> {
    let mut lists: BTreeMap<ListName, Touched> = BTreeMap::new();
    for part in &operation.parts {
        match part {
            MicroOperation::Append(list, element) => lists.entry(*list).or_default().appended.push(*element),
            MicroOperation::Read(list, Some(read)) if operation.ending == Ending::Done => {
                let touched = lists.entry(*list).or_default();
                let own = touched.appended.as_slice();
                let others = read.strip_suffix(own);
                let before = touched.seen.get_or_insert_with(|| others.unwrap_or(read).to_vec());
                if others != Some(before.as_slice()) {
                    let text = format!(
                        "{at} read {read:?} from list {}, after {before:?} and its own {own:?}",
                        list.0
                    );
                    found.add(Anomaly::Internal, &[at], text);
                }
            }
            MicroOperation::Read(..) => {}
        }
    }
    lists
}
