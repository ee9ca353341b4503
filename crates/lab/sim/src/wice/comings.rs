//! Sites that come and go while everything fails: `sites.toml` changes, and each site is started anew with it at its own time.
//!
//! ```text
//!   named in sites.toml --> sites restart, one here and one there --> the new one is filled, and votes
//!   (its vote is taken away -->) no more in sites.toml --> sites restart (--> its vote is taken away)
//! ```

use std::rc::Rc;

use pares_site::SiteNode;
use pares_site::protocol::{Ask, Code};
use pares_wice::{ClusterId, SiteId};

use super::Verdict;
use super::check::Committed;
use super::clients::OPERATOR;
use super::machine::{Arrived, Machine, number_of};
use super::sites::{Event, Node, Sites};

/// From one change until the next, microseconds, and until the last site has been restarted with it.
const APART_US: (u64, u64) = (500_000, 1_200_000);
const ROLL_US: u64 = 400_000;

/// A change of who there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Comes(SiteId),
    Goes(SiteId),
    LosesVote(SiteId),
}

impl Sites {
    /// The first change is to come, if there is any.
    pub(super) fn plan_changes(&mut self) {
        if self.plan.changes {
            let third = SiteId::new(0, self.plan.sites);
            let other = SiteId::new(self.plan.clusters, 0);
            let goes = SiteId::new(0, self.random.index(usize::from(self.plan.sites)) as u8);
            let first = self.random.chance(500).then_some(Change::LosesVote(goes));
            let rest = [Change::Goes(goes), Change::LosesVote(goes), Change::Comes(other)];
            self.changes = [Change::Comes(third)].into_iter().chain(first).chain(rest).collect();
            self.next_change();
        }
    }

    fn next_change(&mut self) {
        let after = self.random.between(APART_US.0, APART_US.1);
        self.schedule(after, Event::Change);
    }

    /// Makes the next change, or goes on with it.
    pub(super) fn change(&mut self) -> Verdict {
        let Some(&change) = self.changes.front() else { return Ok(()) };
        match change {
            Change::Comes(site) => self.comes(site),
            Change::Goes(site) if !self.is_complete(site) => return self.later(),
            Change::Goes(site) => self.goes(site),
            Change::LosesVote(site) if !self.loses_vote(site)? => return self.later(),
            Change::LosesVote(_) => {}
        }
        self.note(|| format!("the next change is done: {change:?}"));
        self.summary.changes += 1;
        self.changes.pop_front();
        self.next_change();
        Ok(())
    }

    fn later(&mut self) -> Verdict {
        self.schedule(20_000, Event::Change);
        Ok(())
    }

    /// Whether all others of a cluster are there and count each other: only then one may go.
    fn is_complete(&self, leaving: SiteId) -> bool {
        let others: Vec<SiteId> =
            self.sites_of(leaving.cluster).into_iter().filter(|site| *site != leaving).collect();
        let counts_all = |site: &SiteId| {
            let report = self.nodes[site].cycle.as_ref().map(SiteNode::report);
            report.is_some_and(|report| report.votes && report.voters.len() >= others.len())
        };
        others.iter().all(counts_all)
    }

    /// Each site is started anew with the list of now, some time.
    fn roll_all(&mut self) {
        for site in self.list.clone() {
            let after = self.random.between(1_000, ROLL_US);
            self.schedule(after, Event::Roll { site });
        }
    }

    fn comes(&mut self, site: SiteId) {
        let own = u64::from(number_of(site)) << 32;
        let others = self.list.iter().copied().filter(|other| other.cluster != site.cluster).collect();
        let machine = Machine::new(others, Rc::clone(&self.now_us), self.seed ^ own, self.plan.defect);
        self.nodes.insert(site, Node::new(machine));
        self.list.push(site);
        if site.cluster == ClusterId(self.plan.clusters) {
            self.plan.clusters += 1;
            self.committed.push(Committed::default());
        }
        self.roll_all();
    }

    fn goes(&mut self, site: SiteId) {
        self.list.retain(|other| *other != site);
        if self.random.chance(500) {
            self.leave(site);
        }
        self.roll_all();
    }

    /// Asks for a site's vote until it is taken away; whether it is.
    fn loses_vote(&mut self, site: SiteId) -> Result<bool, (super::Broken, String)> {
        let is_named = self.list.contains(&site);
        let delegate = self.delegate_of(site.cluster).filter(|_| !is_named || self.is_complete(site));
        let Some(delegate) = delegate else { return Ok(false) };
        self.operator_told = None;
        self.arrives(delegate, Arrived::Asked(OPERATOR, Ask::Remove(1, site).to_bytes()));
        self.turn(delegate)?;
        Ok(self.operator_told == Some(Code::Done))
    }

    /// Whether its vote is taken away, or will be.
    pub(super) fn is_leaving(&self, site: SiteId) -> bool {
        !self.list.contains(&site) || self.changes.contains(&Change::LosesVote(site))
    }

    /// Whether somebody who is gone may count for a vote yet.
    pub(super) fn counts_gone(&self) -> bool {
        matches!(self.changes.front(), Some(Change::LosesVote(_)))
    }

    /// Its machine is gone.
    pub(super) fn leave(&mut self, site: SiteId) {
        self.note(|| format!("{site} is no more"));
        self.nodes.remove(&site);
    }

    /// A site that runs is started anew, with the list of now.
    pub(super) fn roll(&mut self, site: SiteId) -> Verdict {
        if self.nodes[&site].cycle.is_some() {
            self.end(site);
        }
        self.start(site)
    }
}

impl Event {
    /// Whose it is; of a message, who receives it and who has sent it.
    pub(super) fn of(&self) -> [Option<SiteId>; 2] {
        match *self {
            Self::Message { to, from, .. } => [Some(to), Some(from)],
            Self::Ask { site, .. }
            | Self::Turn { site, .. }
            | Self::Tick { site, .. }
            | Self::Write { site, .. }
            | Self::Restart { site }
            | Self::Relieve { site }
            | Self::Roll { site } => [Some(site), None],
            Self::Act { .. } | Self::Keep | Self::Fault | Self::Operator | Self::Change => [None; 2],
        }
    }
}
