//! The baseline: uniform total order over all servers, certification everywhere (DBSM; paper sections 1 and 4).
//!
//! The server that has executed a transaction sends it to all servers; all deliver in the same order, decide by the same rule, and
//! install what passes. Nothing is installed before it is certain that all have it in that order. How that is agreed on the paper
//! does not say, only that it takes "a full round-trip to the most distant site", so there are two ways to choose from:
//! [`super::clocks`] and [`super::sequencer`].

use std::collections::HashMap; // looked up only, never iterated
use std::rc::Rc;

use super::clocks::{self, Clocks};
use super::sequencer::{self, Sequencer};
use super::{Event, Replication, World};
use crate::item::{Item, Written};
use crate::network::Site;
use crate::server::Executed;
use crate::setting::{Protocol, SITES};
use crate::tally::Cause;

/// What orders a transaction.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Clocks(clocks::Message),
    Sequencer(sequencer::Message),
}

pub(super) enum Order {
    Clocks(Box<Clocks>),
    Sequencer(Box<Sequencer>),
}

/// The total order, and what certification decides in it. That is the same at every server, so it is worked out by
/// the first and kept for the others; the checker sees to it that the order is the same.
pub(super) struct Dbsm {
    pub(super) order: Order,
    /// Of each transaction in delivery order, its version if it passed.
    decided: Vec<Option<u64>>,
    /// How many each server has delivered.
    delivered: [usize; SITES],
    index: HashMap<Item, Writers>,
    versions: u64,
    /// Lets everything pass, so that the checker has something to find.
    #[cfg(test)]
    blind: bool,
}

/// The last versions that put an item, and that added to it.
#[derive(Clone, Copy, Debug, Default)]
struct Writers {
    put: u64,
    added: u64,
}

impl Dbsm {
    pub(super) fn new(protocol: Protocol) -> Self {
        let order = match protocol {
            Protocol::DbsmSequencer => Order::Sequencer(Box::default()),
            _ => Order::Clocks(Box::default()),
        };
        Self {
            order,
            decided: Vec::new(),
            delivered: [0; SITES],
            index: HashMap::new(),
            versions: 0,
            #[cfg(test)]
            blind: false,
        }
    }

    /// First committer wins: the versions this one has not seen may not have written what it writes.
    fn certify(&mut self, snapshot: u64, writes: &[Written]) -> Option<u64> {
        let conflicts = |written: &Written| {
            let last = self.index.get(&written.item).copied().unwrap_or_default();
            last.put > snapshot || (!written.adds && last.added > snapshot)
        };
        let conflicts = writes.iter().any(conflicts);
        #[cfg(test)]
        let conflicts = conflicts && !self.blind;
        if conflicts {
            return None;
        }
        self.versions += 1;
        for written in writes {
            let last = self.index.entry(written.item).or_default();
            *(if written.adds { &mut last.added } else { &mut last.put }) = self.versions;
        }
        Some(self.versions)
    }

    /// The version of the next transaction in `site`'s order, if it passes.
    fn decide(&mut self, site: Site, executed: &Executed) -> Option<u64> {
        let place = self.delivered[site];
        self.delivered[site] += 1;
        if place == self.decided.len() {
            let decision = self.certify(executed.snapshot, &executed.writes);
            self.decided.push(decision);
        }
        self.decided[place]
    }
}

impl World {
    pub(super) fn dbsm(&mut self) -> &mut Dbsm {
        match &mut self.replication {
            Replication::Dbsm(dbsm) => dbsm,
            Replication::Wice(_) => unreachable!("only DBSM has these events"),
        }
    }

    /// Sends an executed transaction to all servers.
    pub(super) fn broadcast(&mut self, executed: Rc<Executed>) {
        self.checker.holds(executed.site, executed.number);
        match self.dbsm().order {
            Order::Clocks(_) => self.send_by_clock(executed),
            Order::Sequencer(_) => self.send_to_be_ordered(executed),
        }
    }

    /// One message for each of the others, or one over the link for all that stand there.
    pub(super) fn send_all(&mut self, from: Site, bytes: u64, message: &Message) {
        let once = self.setting.protocol != Protocol::DbsmCluster && !self.setting.unicast;
        let now = self.now();
        let at = once.then(|| self.network.multicast(now, from, bytes));
        for to in (0..SITES).filter(|to| *to != from) {
            let at = match at {
                Some(at) => at[to],
                None => self.network.send(now, from, to, bytes),
            };
            self.queue.push(at, Event::Arrive { from, to, message: super::Message::Dbsm(message.clone()) });
        }
    }

    pub(super) fn on_dbsm_message(&mut self, from: Site, to: Site, message: Message) {
        match message {
            Message::Clocks(message) => self.on_clock_message(from, to, message),
            Message::Sequencer(message) => self.on_sequencer_message(from, to, message),
        }
    }

    /// A transaction's place in the total order has come at `site`, and it is certain that all servers have it.
    pub(super) fn on_ordered(&mut self, site: Site, executed: &Rc<Executed>) {
        let holder = executed.holder;
        let own = executed.site == site && self.running.contains_key(&holder);
        match self.dbsm().decide(site, executed) {
            Some(version) => {
                self.deliver(site, version, executed);
                self.on_stable(site, version);
                if own {
                    self.on_stable_commit(holder);
                }
            }
            None if own => self.abort(holder, Cause::Refused),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Table;
    use crate::setting::Setting;

    #[test]
    fn a_certifier_that_lets_everything_pass_is_found_out() {
        let setting = Setting {
            scattered: true,
            seconds: 20,
            warmup_seconds: 0,
            ..Setting::new(Protocol::Dbsm, 300, 1)
        };
        let mut world = World::new(&setting);
        world.dbsm().blind = true;
        let violation = world.run().unwrap_err();
        // A lost update, or first that an overrun transaction commits which its site has given up.
        assert!(violation.starts_with("C2") || violation.starts_with("C3"), "{violation}");
    }

    /// Paper section 4.2: write-write certification, first committer wins.
    #[test]
    fn what_was_written_since_the_snapshot_may_not_be_written_again() {
        let mut dbsm = Dbsm::new(Protocol::Dbsm);
        let put = [Written::put(Item::new(Table::Stock, 0, 0, 1))];
        let other = [Written::put(Item::new(Table::Stock, 0, 0, 2))];
        assert_eq!(dbsm.certify(0, &put), Some(1));
        assert_eq!(dbsm.certify(0, &put), None);
        assert_eq!(dbsm.certify(0, &other), Some(2));
        assert_eq!(dbsm.certify(1, &put), Some(3), "it had seen version 1");
    }
}
