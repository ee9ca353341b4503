//! Each anomaly in the smallest history that has it.
#![allow(clippy::unwrap_used)] // helpers are test code, too

use std::collections::BTreeSet;

use pares_isolation::history::parse;
use pares_isolation::{Anomalies, Anomaly, check};

fn found(text: &str) -> Anomalies {
    check(&parse(text).unwrap())
}

/// Each history with the anomalies that it has, and no others.
const HISTORIES: [(&str, &str, &[Anomaly]); 21] = [
    (
        "a serial history has none",
        "0 1 2 done +1:1 2=[]
         1 3 4 done +1:2 +2:3
         0 5 6 done 1=[1,2] 2=[3] +1:4 1=[1,2,4]
         2 7 9 not-done +1:5
         2 8 10 unknown +1:6 1=?
         3 11 12 done 1=[1,2,4,6] 2=[3]",
        &[],
    ),
    (
        "an old snapshot is none either",
        "0 1 2 done +1:1 +2:2\n1 3 4 done +1:3 +2:4\n2 5 6 done 1=[1] 2=[2]\n3 7 8 done 1=[1,3] 2=[2,4]",
        &[],
    ),
    (
        "two orders of writes",
        "0 1 2 done +1:1 +2:2\n1 1 2 done +1:3 +2:4\n2 3 4 done 1=[1,3] 2=[4,2]",
        &[Anomaly::G0],
    ),
    ("a read of what is not done", "0 1 2 not-done +1:1\n1 3 4 done 1=[1]", &[Anomaly::G1a]),
    (
        // Who read it comes after the first append and before the second.
        "a read between two appends of one",
        "0 1 2 done +1:1 +1:2\n1 1 2 done 1=[1]\n2 3 4 done 1=[1,2]",
        &[Anomaly::G1b, Anomaly::GSingle],
    ),
    ("two that read each other", "0 1 2 done +1:1 2=[2]\n1 1 2 done +2:2 1=[1]", &[Anomaly::G1c]),
    (
        "a read of half a transaction",
        "0 1 2 done +1:1 +2:2\n1 1 2 done 1=[1] 2=[]\n2 3 4 done 2=[2]",
        &[Anomaly::GSingle],
    ),
    (
        "a lost update, by its name too",
        "0 1 2 done 1=[] +1:1\n1 1 2 done 1=[] +1:2\n2 3 4 done 1=[1,2]",
        &[Anomaly::GSingle, Anomaly::LostUpdate],
    ),
    (
        // A long fork: each update alone is well, and no order of the two gives both reads.
        "readers see writes in opposite orders",
        "0 1 2 done +1:1\n1 1 2 done +2:2\n2 3 4 done 1=[1] 2=[]\n3 3 4 done 1=[] 2=[2]\n4 5 6 done 1=[1] 2=[2]",
        &[Anomaly::GNonadjacent],
    ),
    ("write skew", SKEW, &[Anomaly::G2Item]),
    ("an element that is there twice", "0 1 2 done +1:1\n1 3 4 done 1=[1,1]", &[Anomaly::DuplicateElement]),
    ("an element that no one appended", "0 1 2 done +1:1\n1 3 4 done 1=[1,7]", &[Anomaly::PhantomElement]),
    (
        "two reads of which neither begins with the other",
        "0 1 2 done +1:1\n1 1 2 done +1:2\n2 3 4 done 1=[1,2]\n3 3 4 done 1=[2]",
        &[Anomaly::IncompatibleOrders],
    ),
    ("own append unseen", "0 1 2 done +1:1 1=[]", &[Anomaly::Internal, Anomaly::ReadYourWrites]),
    ("two reads that differ in one", "0 1 9 done +1:1\n1 3 4 done 1=[] 1=[1]", &[Anomaly::Internal]),
    (
        "done and not there at the end",
        "0 1 2 done +1:1\n1 3 4 done +1:2\n2 5 6 done 1=[2]",
        &[Anomaly::LostAppend],
    ),
    ("perhaps done and not there", "0 1 2 unknown +1:1\n1 3 4 done +1:2\n2 5 6 done 1=[2]", &[]),
    ("still open when the list was read", "0 1 9 done +1:1\n1 3 4 done +1:2\n2 5 6 done 1=[2]", &[]),
    ("a session that misses its own write", BEHIND, &[Anomaly::ReadYourWrites]),
    (
        "a session that goes back",
        "0 1 2 done +1:1\n1 3 4 done 1=[1]\n1 5 6 done 1=[]",
        &[Anomaly::MonotonicReads],
    ),
    ("an element appended twice", "0 1 2 done +1:1\n1 3 4 done +1:1", &[Anomaly::Unusable]),
];
const SKEW: &str = "0 1 2 done 1=[] +2:1\n1 1 2 done 2=[] +1:2\n2 3 4 done 1=[2] 2=[1]";
const BEHIND: &str = "0 1 2 done +1:1\n0 3 4 done 1=[]\n1 5 6 done 1=[1]";

#[test]
fn each_anomaly_is_found_where_it_is_and_no_other() {
    for (name, text, expected) in HISTORIES {
        let found = found(text);
        let kinds: BTreeSet<Anomaly> = found.examples().iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(
            kinds,
            expected.iter().copied().collect::<BTreeSet<_>>(),
            "{name}: {:?}",
            found.examples()
        );
    }
}

#[test]
fn write_skew_and_missed_own_writes_are_allowed() {
    for text in [SKEW, BEHIND] {
        assert_eq!(found(text).forbidden_under_snapshot_isolation(), 0);
    }
}

#[test]
fn a_history_is_written_as_it_is_read() {
    let text = "0 1 2 done +1:1 2=[] 3=[1,2]\n1 3 4 not-done +1:2\n2 5 6 unknown 1=?";
    let lines: Vec<String> = parse(text).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(lines.join("\n"), text);
    for wrong in ["", "0 1 2", "0 1 2 well", "0 1 2 done x", "0 1 2 done 1=[1", "0 1 2 done +1", "a 1 2 done"]
    {
        wrong.parse::<pares_isolation::history::Operation>().unwrap_err();
    }
}

#[test]
fn session_at_one_site_missed_its_own_write() {
    let found = found(include_str!("histories/own-write-missed.history"));
    assert_eq!(found.count(Anomaly::ReadYourWrites), 1, "{:?}", found.examples());
}
