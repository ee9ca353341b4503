//! What a session may expect of its own reads: its own writes, and never less than it has read.

use std::collections::BTreeMap;

use crate::check::{Anomalies, Anomaly};
use crate::history::{Element, Ending, ListName, MicroOperation, Operation};

/// What a session knows of a list.
#[derive(Debug, Default)]
struct Known<'a> {
    appended: Vec<Element>,
    read: &'a [Element],
}

pub(crate) fn look(operations: &[Operation], found: &mut Anomalies) {
    let mut sessions: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, operation) in operations.iter().enumerate().filter(|(_, done)| done.ending == Ending::Done) {
        sessions.entry(operation.session).or_default().push(at);
    }
    for mut session in sessions.into_values() {
        session.sort_by_key(|at| operations[*at].invoked);
        let mut lists: BTreeMap<ListName, Known<'_>> = BTreeMap::new();
        for at in session {
            step(at, &operations[at], &mut lists, found);
        }
    }
}

fn step<'a>(
    at: usize,
    operation: &'a Operation,
    lists: &mut BTreeMap<ListName, Known<'a>>,
    found: &mut Anomalies,
) {
    for part in &operation.parts {
        match part {
            MicroOperation::Append(list, element) => lists.entry(*list).or_default().appended.push(*element),
            MicroOperation::Read(list, Some(read)) => {
                let known = lists.entry(*list).or_default();
                if let Some(lacking) = known.appended.iter().find(|own| !read.contains(own)) {
                    let text =
                        format!("{at} read {read:?} from list {} without its own {}", list.0, lacking.0);
                    found.add(Anomaly::ReadYourWrites, &[at], text);
                }
                if read.starts_with(known.read) {
                    known.read = read;
                } else {
                    let text = format!("{at} read {read:?} from list {} after {:?}", list.0, known.read);
                    found.add(Anomaly::MonotonicReads, &[at], text);
                }
            }
            MicroOperation::Read(_, None) => {}
        }
    }
}
