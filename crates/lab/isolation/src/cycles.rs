//! Cycles of dependencies, and which level of isolation each breaks.
//!
//! To look at all cycles takes for ever. Whether there is one of a kind is a question of strongly connected components: of the graph with that
//! kind's edges, or, for cycles in which no two anti-dependencies follow each other, of the graph of pairs (operation, whether the last edge was one).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::check::{Anomalies, Anomaly};
use crate::dependencies::{Dependencies, Dependency, components};

pub(crate) fn look(graph: &Dependencies, found: &mut Anomalies) {
    let mut worse = BTreeSet::new();
    for component in components(graph.len(), |from| targets(graph, from, |why| why == Dependency::Ww)) {
        tell(graph, Anomaly::G0, &component, |why| why == Dependency::Ww, found);
        worse.extend(component);
    }
    for component in components(graph.len(), |from| targets(graph, from, |why| why != Dependency::Rw)) {
        if has(graph, &component, Dependency::Wr) {
            tell(graph, Anomaly::G1c, &component, |why| why != Dependency::Rw, found);
        }
        worse.extend(component);
    }
    without_adjacent(graph, &mut worse, found);
    for component in components(graph.len(), |from| targets(graph, from, |_| true)) {
        if !component.iter().any(|operation| worse.contains(operation)) {
            tell(graph, Anomaly::G2Item, &component, |_| true, found);
        }
    }
}

fn targets(graph: &Dependencies, from: usize, is: impl Fn(Dependency) -> bool) -> Vec<usize> {
    graph.of_one(from).filter(|(_, why, _)| is(*why)).map(|(to, ..)| to).collect()
}

fn has(graph: &Dependencies, component: &[usize], kind: Dependency) -> bool {
    component.iter().any(|from| {
        graph.of_one(*from).any(|(to, why, _)| why == kind && component.binary_search(&to).is_ok())
    })
}

/// Cycles in which no two anti-dependencies follow each other. Node `2n` is operation `n` reached by a dependency, `2n + 1` by an anti-dependency.
fn without_adjacent(graph: &Dependencies, worse: &mut BTreeSet<usize>, found: &mut Anomalies) {
    let edges = |node: usize| {
        let step = |(to, why, _)| match why {
            Dependency::Rw => node.is_multiple_of(2).then_some(2 * to + 1),
            Dependency::Ww | Dependency::Wr => Some(2 * to),
        };
        graph.of_one(node / 2).filter_map(step).collect()
    };
    for component in components(2 * graph.len(), edges) {
        let is_in = |node: usize| component.binary_search(&node).is_ok();
        let anti = component.iter().filter(|node| node.is_multiple_of(2)).flat_map(|from| {
            let targets = graph.of_one(from / 2).filter(|(_, why, _)| *why == Dependency::Rw);
            targets.map(move |(to, ..)| (from / 2, to))
        });
        let anti: Vec<(usize, usize)> = anti.filter(|(_, to)| is_in(2 * to + 1)).collect();
        if anti.is_empty() {
            continue;
        }
        let single = anti.iter().find_map(|&(from, to)| {
            let back = path(graph, to, from, |why| why != Dependency::Rw)?;
            Some([vec![from], back].concat())
        });
        let members: BTreeSet<usize> = component.iter().map(|node| node / 2).collect();
        match single {
            Some(cycle) => found.add(Anomaly::GSingle, &cycle[..cycle.len() - 1], words(graph, &cycle)),
            None => {
                let members: Vec<usize> = members.iter().copied().collect();
                found.add(Anomaly::GNonadjacent, &members, format!("among {members:?}"));
            }
        }
        worse.extend(members);
    }
}

/// Tells of a shortest cycle through the component's first operation.
fn tell(
    graph: &Dependencies,
    anomaly: Anomaly,
    component: &[usize],
    is: impl Fn(Dependency) -> bool,
    found: &mut Anomalies,
) {
    let first = component[0];
    let cycle = path(graph, first, first, is).expect("a component is connected");
    found.add(anomaly, &cycle[..cycle.len() - 1], words(graph, &cycle));
}

/// A shortest way with at least one edge, both ends included.
fn path(graph: &Dependencies, from: usize, to: usize, is: impl Fn(Dependency) -> bool) -> Option<Vec<usize>> {
    let (mut before, mut queue) = (BTreeMap::new(), VecDeque::from([from]));
    while let Some(at) = queue.pop_front() {
        for next in targets(graph, at, &is) {
            if before.contains_key(&next) {
                continue;
            }
            before.insert(next, at);
            if next == to {
                return Some(back(&before, from, to));
            }
            queue.push_back(next);
        }
    }
    None
}

fn back(before: &BTreeMap<usize, usize>, from: usize, to: usize) -> Vec<usize> {
    let mut way = vec![to];
    loop {
        let at = before[way.last().expect("it begins with one")];
        way.push(at);
        if at == from {
            way.reverse();
            return way;
        }
    }
}

/// `3 -ww 7-> 5 -rw 2-> 3`.
fn words(graph: &Dependencies, cycle: &[usize]) -> String {
    let step = |pair: &[usize]| {
        let edges = graph.of_one(pair[0]).filter(|(to, ..)| *to == pair[1]);
        let why: Vec<String> = edges.map(|(_, why, list)| format!("{why:?} {}", list.0)).collect();
        format!("{} -{}-> ", pair[0], why.join("/").to_lowercase())
    };
    let steps: String = cycle.windows(2).map(step).collect();
    steps + &cycle.last().map_or_else(String::new, ToString::to_string)
}
