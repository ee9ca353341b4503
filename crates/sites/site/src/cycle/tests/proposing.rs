//! What the cluster's log says no to, for a while.

use super::*;
use crate::items::Items;
use crate::node::SiteNode;
use crate::setup::Setup;

/// A site alone whose log has one payload under way at a time.
fn narrow(machine: &Machine) -> TestSite {
    let setup = machine.setup(&[1]).unwrap();
    let log = pares_cluster::ReplicaConfig { backlog_bytes_max: 1, ..setup.log.clone() };
    SiteNode::begin(machine.clone(), Setup { log, ..setup }, Items).unwrap()
}

#[test]
fn unaccepted_proposals_are_retried_later() {
    let machine = Machine::default();
    let mut site = narrow(&machine);
    machine.pass(&mut site, 3);
    for (sequence, name) in (1..).zip(["a", "b", "c"]) {
        // A payload of the log each: together they are more than it takes at once.
        let request = format!("put {name} {}", "x".repeat(200 << 10));
        machine.client_sent(&execute(sequence, &request).to_bytes());
    }
    machine.pass(&mut site, 8);
    assert_eq!((machine.told_client(), site.report().delivered), (3, 3));
    while let Some(reply) = machine.heard() {
        assert_eq!(reply.code, Code::Done);
    }
    assert_eq!(site.report().open, 0);
}
