//! Each anomaly in the smallest history that has it.
#![allow(clippy::unwrap_used)] // helpers are test code, too

use pares_isolation::history::parse;
use pares_isolation::{Anomalies, Anomaly, check};

fn found(text: &str) -> Anomalies {
    check(&parse(text).unwrap())
}

/// Has these and nothing else.
#[track_caller]
fn has(text: &str, expected: &[Anomaly]) {
    let found = found(text);
    let kinds: Vec<Anomaly> = found.examples().iter().map(|(kind, ..)| *kind).collect();
    let (mut kinds, mut expected) = (kinds, expected.to_vec());
    kinds.sort_unstable();
    kinds.dedup();
    expected.sort_unstable();
    assert_eq!(kinds, expected, "{:?}", found.examples());
}

#[test]
fn a_serial_history_has_none() {
    has(
        "0 1 2 done +1:1 2=[]
         1 3 4 done +1:2 +2:3
         0 5 6 done 1=[1,2] 2=[3] +1:4 1=[1,2,4]
         2 7 9 not-done +1:5
         2 8 10 unknown +1:6 1=?
         3 11 12 done 1=[1,2,4,6] 2=[3]",
        &[],
    );
}

#[test]
fn an_old_snapshot_is_none_either() {
    has(
        "0 1 2 done +1:1 +2:2
         1 3 4 done +1:3 +2:4
         2 5 6 done 1=[1] 2=[2]
         3 7 8 done 1=[1,3] 2=[2,4]",
        &[],
    );
}

#[test]
fn g0_two_orders_of_writes() {
    has(
        "0 1 2 done +1:1 +2:2
         1 1 2 done +1:3 +2:4
         2 3 4 done 1=[1,3] 2=[4,2]",
        &[Anomaly::G0],
    );
}

#[test]
fn g1a_a_read_of_what_is_not_done() {
    has("0 1 2 not-done +1:1\n1 3 4 done 1=[1]", &[Anomaly::G1a]);
}

#[test]
fn g1b_a_read_between_two_appends_of_one() {
    // Who read it comes after the first append and before the second.
    has("0 1 2 done +1:1 +1:2\n1 1 2 done 1=[1]\n2 3 4 done 1=[1,2]", &[Anomaly::G1b, Anomaly::GSingle]);
}

#[test]
fn g1c_two_that_read_each_other() {
    has("0 1 2 done +1:1 2=[2]\n1 1 2 done +2:2 1=[1]", &[Anomaly::G1c]);
}

#[test]
fn g_single_a_read_of_half_a_transaction() {
    has("0 1 2 done +1:1 +2:2\n1 1 2 done 1=[1] 2=[]\n2 3 4 done 2=[2]", &[Anomaly::GSingle]);
}

#[test]
fn a_lost_update_is_told_by_its_name_too() {
    has(
        "0 1 2 done 1=[] +1:1\n1 1 2 done 1=[] +1:2\n2 3 4 done 1=[1,2]",
        &[Anomaly::GSingle, Anomaly::LostUpdate],
    );
}

#[test]
fn g_nonadjacent_readers_see_writes_in_opposite_orders() {
    // A long fork: each update alone is well, and no order of the two gives both reads.
    has(
        "0 1 2 done +1:1
         1 1 2 done +2:2
         2 3 4 done 1=[1] 2=[]
         3 3 4 done 1=[] 2=[2]
         4 5 6 done 1=[1] 2=[2]",
        &[Anomaly::GNonadjacent],
    );
}

#[test]
fn g2_item_write_skew_and_it_is_allowed() {
    let text = "0 1 2 done 1=[] +2:1\n1 1 2 done 2=[] +1:2\n2 3 4 done 1=[2] 2=[1]";
    has(text, &[Anomaly::G2Item]);
    assert_eq!(found(text).forbidden_under_snapshot_isolation(), 0);
}

#[test]
fn an_element_that_is_there_twice_or_that_nobody_appended() {
    has("0 1 2 done +1:1\n1 3 4 done 1=[1,1]", &[Anomaly::DuplicateElement]);
    has("0 1 2 done +1:1\n1 3 4 done 1=[1,7]", &[Anomaly::PhantomElement]);
}

#[test]
fn two_reads_of_which_neither_begins_with_the_other() {
    has(
        "0 1 2 done +1:1\n1 1 2 done +1:2\n2 3 4 done 1=[1,2]\n3 3 4 done 1=[2]",
        &[Anomaly::IncompatibleOrders],
    );
}

#[test]
fn a_transaction_that_does_not_see_what_it_did() {
    has("0 1 2 done +1:1 1=[]", &[Anomaly::Internal, Anomaly::ReadYourWrites]);
    has("0 1 9 done +1:1\n1 3 4 done 1=[] 1=[1]", &[Anomaly::Internal]);
}

#[test]
fn what_was_done_and_is_not_there_at_the_end() {
    let lost = "0 1 2 done +1:1\n1 3 4 done +1:2\n2 5 6 done 1=[2]";
    has(lost, &[Anomaly::LostAppend]);
    has(&lost.replace("0 1 2 done", "0 1 2 unknown"), &[]);
    // It was still open when the list was read.
    has(&lost.replace("0 1 2", "0 1 9"), &[]);
}

#[test]
fn sessions_that_miss_their_own_writes_or_go_back() {
    let behind = "0 1 2 done +1:1\n0 3 4 done 1=[]\n1 5 6 done 1=[1]";
    has(behind, &[Anomaly::ReadYourWrites]);
    assert_eq!(found(behind).forbidden_under_snapshot_isolation(), 0);
    has("0 1 2 done +1:1\n1 3 4 done 1=[1]\n1 5 6 done 1=[]", &[Anomaly::MonotonicReads]);
}

#[test]
fn an_element_appended_twice_makes_a_history_useless() {
    has("0 1 2 done +1:1\n1 3 4 done +1:1", &[Anomaly::Unusable]);
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
