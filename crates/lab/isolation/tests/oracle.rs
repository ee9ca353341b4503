//! Histories of an oracle: one thread executes everything, so none has an anomaly; and with one put in, it is found.
#![allow(clippy::unwrap_used)] // helpers are test code, too

use std::collections::BTreeMap;

use pares_isolation::history::{Element, Ending, ListName, MicroOperation, Operation};
use pares_isolation::{Anomaly, check};
use proptest::prelude::*;

const LISTS: u32 = 4;

/// By list; an append or a read.
type Plan = Vec<(u8, Vec<(u32, bool)>)>;

fn plan() -> impl Strategy<Value = Plan> {
    let part = (0..LISTS, any::<bool>());
    prop::collection::vec((0u8..10, prop::collection::vec(part, 1..5)), 1..60)
}

/// Executes one after the other. What ends unknown is done half of the times; a read of every list is at the end.
fn serial(plan: &Plan) -> Vec<Operation> {
    let (mut state, mut history, mut element) = (BTreeMap::<u32, Vec<Element>>::new(), Vec::new(), 0);
    let everything = (0, (0..LISTS).map(|list| (list, false)).collect());
    for (place, (chance, parts)) in plan.iter().chain([&everything]).enumerate() {
        let (ending, is_done) = match chance {
            7 => (Ending::NotDone, false),
            8 => (Ending::Unknown, false),
            9 => (Ending::Unknown, true),
            _ => (Ending::Done, true),
        };
        let mut after = state.clone();
        let mut act = |&(list, appends): &(u32, bool)| {
            let elements = after.entry(list).or_default();
            if appends {
                element += 1;
                elements.push(Element(element));
                return MicroOperation::Append(ListName(list), Element(element));
            }
            MicroOperation::Read(ListName(list), (ending == Ending::Done).then(|| elements.clone()))
        };
        let parts = parts.iter().map(&mut act).collect();
        let time = 10 * place as u64;
        history.push(Operation {
            session: place as u32 % 3,
            invoked: time,
            completed: time + 5,
            ending,
            parts,
        });
        if is_done {
            state = after;
        }
    }
    history
}

/// Puts transactions on two lists of their own into a history, in front of its last read.
fn with(mut history: Vec<Operation>, injected: &str) -> Vec<Operation> {
    let mut injected = pares_isolation::history::parse(injected).unwrap();
    let last = history.pop().unwrap();
    for operation in &mut injected {
        operation.session += 100;
        operation.invoked += last.invoked;
        operation.completed += last.invoked;
    }
    history.extend(injected);
    history.push(Operation { invoked: last.invoked + 100, completed: last.invoked + 101, ..last });
    history
}

const INJECTED: [(Anomaly, &str); 8] = [
    (Anomaly::G0, "0 1 2 done +8:901 +9:902\n1 1 2 done +8:903 +9:904\n2 3 4 done 8=[901,903] 9=[904,902]"),
    (Anomaly::G1a, "0 1 2 not-done +8:901\n1 3 4 done 8=[901]"),
    (Anomaly::G1b, "0 1 2 done +8:901 +8:902\n1 1 2 done 8=[901]"),
    (Anomaly::G1c, "0 1 2 done +8:901 9=[902]\n1 1 2 done +9:902 8=[901]"),
    (Anomaly::GSingle, "0 1 2 done +8:901 +9:902\n1 1 2 done 8=[901] 9=[]\n2 3 4 done 9=[902]"),
    (Anomaly::LostUpdate, "0 1 2 done 8=[] +8:901\n1 1 2 done 8=[] +8:902\n2 3 4 done 8=[901,902]"),
    (Anomaly::G2Item, "0 1 2 done 8=[] +9:901\n1 1 2 done 9=[] +8:902\n2 3 4 done 8=[902] 9=[901]"),
    (Anomaly::LostAppend, "0 1 2 done +8:901\n1 1 2 done +8:902\n2 3 4 done 8=[902]"),
];

proptest! {
    #[test]
    fn what_one_thread_executes_has_none(plan in plan()) {
        let found = check(&serial(&plan));
        prop_assert!(found.examples().is_empty(), "{:?}", found.examples());
    }

    #[test]
    fn one_that_is_put_in_is_found(plan in plan(), which in 0..INJECTED.len()) {
        let (anomaly, text) = INJECTED[which];
        let found = check(&with(serial(&plan), text));
        prop_assert!(found.count(anomaly) > 0, "{anomaly:?}: {:?}", found.examples());
    }

    /// A read from which one element in the middle has gone.
    #[test]
    fn a_hole_in_a_read_is_found(plan in plan(), list in 0..LISTS, at in any::<prop::sample::Index>()) {
        let mut history = serial(&plan);
        let last = history.last_mut().unwrap();
        let MicroOperation::Read(_, Some(read)) = &mut last.parts[list as usize] else { unreachable!() };
        prop_assume!(read.len() > 1);
        let whole = read.clone();
        read.remove(at.index(whole.len() - 1));
        let reader = Operation {
            session: 99,
            parts: vec![MicroOperation::Read(ListName(list), Some(whole))],
            ..last.clone()
        };
        history.push(reader);
        prop_assert!(check(&history).count(Anomaly::IncompatibleOrders) > 0);
    }
}
