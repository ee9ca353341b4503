//! The baseline: uniform total order over all servers, certification everywhere (DBSM; paper sections 1 and 4).
//!
//! Order is by logical clock (Lamport, 1978): who has executed a transaction sends it to everybody with its clock, everybody
//! acknowledges to everybody with a later clock, and a server delivers the transaction with the lowest clock when it has
//! heard from all others that they have it and that their clock is past it. That is uniform, needs no sequencer, and
//! takes what the paper says any such protocol takes: a message to the farthest server and one back, wherever the
//! initiator is, before anything is installed.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Event, Replication, World};
use crate::item::Written;
use crate::network::{Site, side};
use crate::server::Executed;
use crate::setting::{Protocol, SITES};
use crate::tally::Cause;

/// Clock, and how many transactions of each server have come in.
const ACKNOWLEDGEMENT_BYTES: u64 = 32;

#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A transaction, the `count`-th of its sender.
    Executed { clock: u64, count: u64, executed: Rc<Executed> },
    /// The sender's clock, and how many of each server's it has.
    Acknowledgement { clock: u64, received: [u64; SITES] },
}

#[derive(Debug, Default)]
struct Member {
    clock: u64,
    sent: u64,
    /// How many of each server's transactions are here.
    received: [u64; SITES],
    /// The last clock heard of each other server.
    heard: [u64; SITES],
    /// How many of each (second) server's transactions each (first) has.
    acknowledged: [[u64; SITES]; SITES],
    /// By clock and sender, with the sender's count.
    pending: BTreeMap<(u64, Site), (u64, Rc<Executed>)>,
    /// How many it has delivered.
    delivered: usize,
}

/// All members, and what certification decides in delivery order. It is the same at each of them, so it is worked out by
/// the first and kept for the others; the checker sees to it that the order is the same.
#[derive(Debug, Default)]
pub(crate) struct Dbsm {
    members: [Member; SITES],
    /// Of each transaction in delivery order, its version if it passed.
    decided: Vec<Option<u64>>,
    index: std::collections::HashMap<crate::item::Item, Writers>, // looked up only
    versions: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Writers {
    put: u64,
    added: u64,
}

impl Dbsm {
    /// First committer wins: the versions this one has not seen may not have written what it writes.
    fn certify(&mut self, snapshot: u64, writes: &[Written]) -> Option<u64> {
        let conflicts = |written: &Written| {
            let last = self.index.get(&written.item).copied().unwrap_or_default();
            last.put > snapshot || (!written.adds && last.added > snapshot)
        };
        if writes.iter().any(conflicts) {
            return None;
        }
        self.versions += 1;
        for written in writes {
            let last = self.index.entry(written.item).or_default();
            *(if written.adds { &mut last.added } else { &mut last.put }) = self.versions;
        }
        Some(self.versions)
    }

    /// The next transaction `site` can deliver.
    fn next(&mut self, site: Site) -> Option<(Rc<Executed>, Option<u64>)> {
        let member = &mut self.members[site];
        let (&(clock, from), &(count, _)) = member.pending.first_key_value()?;
        let past = |other: Site| {
            other == site || (member.heard[other] >= clock && member.acknowledged[other][from] >= count)
        };
        if !(0..SITES).all(past) {
            return None;
        }
        let (_, (_, executed)) = member.pending.pop_first()?;
        let place = member.delivered;
        member.delivered += 1;
        if place == self.decided.len() {
            let decision = self.certify(executed.snapshot, &executed.writes);
            self.decided.push(decision);
        }
        Some((executed, self.decided[place]))
    }
}

impl World {
    fn dbsm(&mut self) -> &mut Dbsm {
        match &mut self.replication {
            Replication::Dbsm(dbsm) => dbsm,
            Replication::Wice(_) => unreachable!("only DBSM sends these messages"),
        }
    }

    /// Sends an executed transaction to everybody.
    pub(super) fn broadcast(&mut self, executed: Rc<Executed>) {
        let site = executed.site;
        self.checker.holds(site, executed.number);
        let member = &mut self.dbsm().members[site];
        member.clock += 1;
        member.sent += 1;
        member.received[site] += 1;
        let (clock, count) = (member.clock, member.sent);
        member.pending.insert((clock, site), (count, Rc::clone(&executed)));
        // A sender has what it sends, so whoever hears of it knows that already.
        member.acknowledged[site][site] = count;
        let bytes = self.setting.write_set_bytes.into();
        self.send_all(site, bytes, &Message::Executed { clock, count, executed });
    }

    fn send_all(&mut self, from: Site, bytes: u64, message: &Message) {
        let once = self.setting.protocol == Protocol::Dbsm && !self.setting.unicast;
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
            Message::Executed { clock, count, executed } => {
                self.checker.holds(to, executed.number);
                let member = &mut self.dbsm().members[to];
                member.clock = member.clock.max(clock) + 1;
                member.received[from] = count;
                member.heard[from] = clock;
                member.acknowledged[from][from] = count;
                member.pending.insert((clock, from), (count, executed));
                let (clock, received) = (member.clock, member.received);
                self.send_all(to, ACKNOWLEDGEMENT_BYTES, &Message::Acknowledgement { clock, received });
            }
            Message::Acknowledgement { clock, received } => {
                let member = &mut self.dbsm().members[to];
                member.clock = member.clock.max(clock);
                member.heard[from] = clock;
                member.acknowledged[from] = received;
            }
        }
        while let Some((executed, version)) = self.dbsm().next(to) {
            self.on_ordered(to, &executed, version);
        }
    }

    /// A transaction's place in the total order has come at `site`.
    fn on_ordered(&mut self, site: Site, executed: &Rc<Executed>, version: Option<u64>) {
        let holder = executed.holder;
        let own = executed.site == site && self.running.contains_key(&holder);
        match version {
            Some(version) => {
                self.deliver(site, version, executed);
                // Everybody has it: that is what uniform delivery means.
                self.on_stable(site, version);
                if own {
                    self.on_stable_commit(holder);
                }
            }
            None if own => self.abort(holder, Cause::Refused),
            None => {}
        }
    }

    /// The cluster DBSM resubmits to: none is better than another.
    pub(super) fn dbsm_certifier_side(&self) -> usize {
        side(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Item, Table};

    /// Paper section 4.2: write-write certification, first committer wins.
    #[test]
    fn what_was_written_since_the_snapshot_may_not_be_written_again() {
        let mut dbsm = Dbsm::default();
        let put = [Written::put(Item::new(Table::Stock, 0, 0, 1))];
        let other = [Written::put(Item::new(Table::Stock, 0, 0, 2))];
        assert_eq!(dbsm.certify(0, &put), Some(1));
        assert_eq!(dbsm.certify(0, &put), None);
        assert_eq!(dbsm.certify(0, &other), Some(2));
        assert_eq!(dbsm.certify(1, &put), Some(3), "it had seen version 1");
    }
}
