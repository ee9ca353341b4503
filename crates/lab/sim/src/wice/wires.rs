//! What comes from one site to another, and when.

use pares_link::SPEAKS;
use pares_wice::SiteId;

use super::machine::{Arrived, number_of};
use super::sites::{Event, Sites};
use super::{Broken, Verdict};

/// Between sites of one cluster, and of two, one way, microseconds.
pub(super) const NEAR_US: (u64, u64) = (50, 400);
const FAR_US: (u64, u64) = (20_000, 30_000);

/// The first byte of the frame that only the newer of two builds knows.
const SAYS_VERSION_KIND: u8 = 23;

impl Sites {
    /// Whether two sites have each other's address.
    pub(super) fn know_each_other(&self, one: SiteId, other: SiteId) -> bool {
        let knows =
            |one: SiteId, other: SiteId| self.nodes.get(&one).is_some_and(|node| node.list.contains(&other));
        knows(one, other) && knows(other, one)
    }

    pub(super) fn connect(&mut self, one: SiteId, other: SiteId) {
        let are_up = self.nodes[&one].cycle.is_some() && self.nodes[&other].cycle.is_some();
        if are_up && self.know_each_other(one, other) {
            self.agree(one, other);
            self.arrives(one, Arrived::Connected(other));
            self.arrives(other, Arrived::Connected(one));
        }
    }

    /// Both speak the lower version from now on.
    fn agree(&self, one: SiteId, other: SiteId) {
        let machines = [(one, other), (other, one)].map(|(at, peer)| (&self.nodes[&at].machine, peer));
        let version = machines.iter().map(|(machine, _)| machine.speaks.get()).min();
        let version = version.expect("there are two");
        for (machine, peer) in machines {
            machine.versions.borrow_mut().insert(number_of(peer), version);
        }
    }

    /// What is newer than the build of who gets it is not sent.
    pub(super) fn is_understood(&self, from: SiteId, to: u16, bytes: &[u8]) -> Verdict {
        let peer = self.nodes.iter().find(|(site, _)| number_of(**site) == to);
        let is_new = bytes.first() == Some(&SAYS_VERSION_KIND);
        let older =
            peer.filter(|(_, node)| is_new && node.cycle.is_some() && node.machine.speaks.get() < SPEAKS);
        older.map_or(Ok(()), |(site, _)| {
            Err((Broken::Misspoken, format!("{from} sends {site} what its build does not know")))
        })
    }

    /// Something comes to a site, which has a turn soon.
    pub(super) fn arrives(&mut self, site: SiteId, arrived: Arrived) {
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        if node.cycle.is_none() {
            return;
        }
        node.machine.inbox.borrow_mut().push(arrived);
        self.soon(site);
    }

    pub(super) fn is_isolated(&self, site: SiteId) -> bool {
        self.nodes[&site].isolated_until_us > self.now_us()
    }

    pub(super) fn send(&mut self, from: SiteId, to: u16, bytes: &[u8]) {
        let to = self.nodes.keys().copied().find(|site| number_of(*site) == to);
        let Some(to) = to.filter(|to| self.know_each_other(from, *to)) else { return };
        let cut = self.is_isolated(from) || self.is_isolated(to);
        if cut || self.faults.cuts(from.cluster, to.cluster) || self.random.chance(self.plan.loss_permille) {
            return;
        }
        let wipes = self.nodes[&from].wipes;
        let (least, most) = if from.cluster == to.cluster { NEAR_US } else { FAR_US };
        if self.random.chance(self.plan.loss_permille) {
            let after = self.random.between(least, most * 4);
            self.schedule(after, Event::Message { to, from, wipes, bytes: bytes.to_vec() });
        }
        let after = self.random.between(least, most);
        self.schedule(after, Event::Message { to, from, wipes, bytes: bytes.to_vec() });
    }
}
