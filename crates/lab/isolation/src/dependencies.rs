//! Who must come before whom.

use std::collections::BTreeMap;

use crate::history::{Element, ListName};
use crate::versions::Versions;

/// Why one operation comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dependency {
    /// The other made the next version.
    Ww,
    /// The other read its version.
    Wr,
    /// The other made the version after the one it read.
    Rw,
}

/// Dependencies of a history. Edges of an operation are sorted, each there once.
#[derive(Debug)]
pub(crate) struct Dependencies {
    edges: Vec<BTreeMap<(usize, Dependency), ListName>>,
}

impl Dependencies {
    pub(crate) fn of(versions: &Versions) -> Self {
        let mut all = Self { edges: vec![BTreeMap::new(); versions.touched.len()] };
        for (list, order) in &versions.orders {
            all.note_writes(versions, *list, order);
        }
        for (at, lists) in versions.touched.iter().enumerate() {
            for (list, touched) in lists {
                if let Some(seen) = &touched.seen {
                    all.note_read(versions, at, *list, seen);
                }
            }
        }
        all
    }

    fn note_writes(&mut self, versions: &Versions, list: ListName, order: &[Element]) {
        for pair in order.windows(2) {
            let [one, next] = [pair[0], pair[1]].map(|element| versions.writers.get(&(list, element)));
            if let (Some((one, _)), Some((next, _))) = (one, next) {
                self.note(*one, *next, Dependency::Ww, list);
            }
        }
    }

    fn note_read(&mut self, versions: &Versions, at: usize, list: ListName, seen: &[Element]) {
        let writer = |element: &Element| versions.writers.get(&(list, *element)).map(|(writer, _)| *writer);
        if let Some(writer) = seen.last().and_then(writer) {
            self.note(writer, at, Dependency::Wr, list);
        }
        let order = &versions.orders[&list];
        if let Some(next) = order.get(seen.len()).filter(|_| order.starts_with(seen)).and_then(writer) {
            self.note(at, next, Dependency::Rw, list);
        }
    }

    fn note(&mut self, from: usize, to: usize, why: Dependency, list: ListName) {
        if from != to {
            self.edges[from].entry((to, why)).or_insert(list);
        }
    }

    /// How many operations there are.
    pub(crate) fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whom an operation comes before, why, and by which list.
    pub(crate) fn of_one(&self, from: usize) -> impl Iterator<Item = (usize, Dependency, ListName)> {
        self.edges[from].iter().map(|(&(to, why), &list)| (to, why, list))
    }
}

/// Strongly connected components of `0..nodes` with more than one node, each sorted. Tarjan's algorithm, with a stack of its own: histories
/// are long chains.
pub(crate) fn components(nodes: usize, edges: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let (mut number, mut low, mut on_stack) = (vec![NEW; nodes], vec![0; nodes], vec![false; nodes]);
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..nodes {
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut enter = (number[root] == NEW).then_some(root);
        loop {
            if let Some(node) = enter.take() {
                (number[node], low[node], on_stack[node]) = (next, next, true);
                next += 1;
                stack.push(node);
                path.push((node, edges(node)));
            }
            let Some((node, left)) = path.last_mut() else { break };
            let node = *node;
            if let Some(to) = left.pop() {
                match number[to] {
                    NEW => enter = Some(to),
                    seen if on_stack[to] => low[node] = low[node].min(seen),
                    _ => {}
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                low[*before] = low[*before].min(low[node]);
            }
            if low[node] == number[node] {
                let at = stack.iter().rposition(|other| *other == node).expect("it was pushed");
                let mut component = stack.split_off(at);
                component.iter().for_each(|member| on_stack[*member] = false);
                component.sort_unstable();
                if component.len() > 1 {
                    found.push(component);
                }
            }
        }
    }
    found
}
