//! Sites that come and go while everything fails: `sites.toml` changes, and each site restarts with it at its own time.
//!
//! ```text
//!   named in sites.toml --> sites restart, one here and one there --> the new one is filled, and votes
//!   (its vote is taken away -->) no more in sites.toml --> sites restart (--> its vote is taken away)
//!   a cluster: declared lost, and no more in sites.toml, or the other way round --> sites restart; its own are gone, or continue with a sites.toml that names them alone
//! ```

use std::rc::Rc;

use pares_site::SiteNode;
use pares_site::protocol::{Ask, Between, Code};
use pares_wice::codec::Coded;
use pares_wice::{ClusterId, Message, SiteId, Status, Term};

use super::check::Committed;
use super::clients::OPERATOR;
use super::machine::{Arrived, Machine, number_of};
use super::sites::{Event, Node, Sites};
use super::{Changes, Defect, Verdict};

/// From one change until the next, microseconds, and until the last site has been restarted with it.
const APART_US: (u64, u64) = (500_000, 1_200_000);
const ROLL_US: u64 = 400_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Comes(SiteId),
    Goes(SiteId),
    LosesVote(SiteId),
    ClusterIsLost(ClusterId),
    ClusterGoes(ClusterId),
}

/// How long an operator waits for an era that he has decided.
const PATIENCE_US: u64 = 400_000;

impl Sites {
    /// The first change is to come, if there is any.
    pub(super) fn plan_changes(&mut self) {
        match self.plan.changes {
            Changes::None => return,
            Changes::Sites => self.plan_sites(),
            Changes::Cluster => {
                let cluster = self.random.below(u64::from(self.plan.clusters)) as u8;
                let goes = ClusterId(cluster);
                let mut steps = [Change::ClusterIsLost(goes), Change::ClusterGoes(goes)];
                if self.random.chance(500) {
                    steps.reverse();
                }
                self.changes = steps.into_iter().chain([Change::Comes(SiteId::new(cluster, 0))]).collect();
            }
        }
        self.next_change();
    }

    fn plan_sites(&mut self) {
        let third = SiteId::new(0, self.plan.sites);
        let other = SiteId::new(self.plan.clusters, 0);
        let goes = SiteId::new(0, self.random.index(usize::from(self.plan.sites)) as u8);
        let first = self.random.chance(500).then_some(Change::LosesVote(goes));
        let rest = [Change::Goes(goes), Change::LosesVote(goes), Change::Comes(other)];
        self.changes = [Change::Comes(third)].into_iter().chain(first).chain(rest).collect();
    }

    fn next_change(&mut self) {
        let after = self.random.between(APART_US.0, APART_US.1);
        self.schedule(after, Event::Change);
    }

    /// Makes the next change, or continues it.
    pub(super) fn change(&mut self) -> Verdict {
        let Some(&change) = self.changes.front() else { return Ok(()) };
        match change {
            Change::Comes(site) => self.comes(site),
            Change::Goes(site) if !self.is_complete(site) => return self.later(),
            Change::Goes(site) => self.goes(site),
            Change::LosesVote(site) if !self.loses_vote(site)? => return self.later(),
            Change::LosesVote(_) => {}
            Change::ClusterIsLost(cluster) if self.is_without(cluster) => {}
            Change::ClusterIsLost(cluster) => return self.declares_gone(cluster),
            // Before it is declared lost only while all is well: who waits for its promise would wait for ever.
            Change::ClusterGoes(cluster) if self.is_lost_next(cluster) && !self.is_quiet() => {
                self.changes.swap(0, 1);
                return self.later();
            }
            Change::ClusterGoes(cluster) => self.cluster_goes(cluster),
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

    /// Each site restarts with the present list, some time.
    fn roll_all(&mut self) {
        for site in self.list.clone() {
            let after = self.random.between(1_000, ROLL_US);
            self.schedule(after, Event::Roll { site });
        }
    }

    /// An operator has a cluster that is to go declared lost.
    fn declares_gone(&mut self, cluster: ClusterId) -> Verdict {
        let before = self.summary.faults;
        if self.may_live(cluster) {
            self.declare_lost(cluster)?;
        }
        let is_told = self.summary.faults > before;
        self.schedule(if is_told { PATIENCE_US } else { 20_000 }, Event::Change);
        Ok(())
    }

    /// A cluster is named no more. Its machines are gone, or continue with a `sites.toml` that names no other site.
    fn cluster_goes(&mut self, cluster: ClusterId) {
        self.faults.forget(cluster);
        let own = self.sites_of(cluster);
        self.list.retain(|site| site.cluster != cluster);
        if self.random.chance(500) {
            own.into_iter().for_each(|site| self.leave(site));
        } else {
            for site in &own {
                let after = self.random.between(1_000, ROLL_US);
                self.schedule(after, Event::Roll { site: *site });
            }
            self.departed = own;
        }
        self.roll_all();
    }

    fn is_lost_next(&self, cluster: ClusterId) -> bool {
        self.changes.get(1) == Some(&Change::ClusterIsLost(cluster))
    }

    /// The cluster that is being declared lost, because it goes.
    pub(super) fn to_be_lost(&self) -> Option<ClusterId> {
        match self.changes.front() {
            Some(Change::ClusterIsLost(cluster)) => Some(*cluster),
            _ => None,
        }
    }

    /// Whether no site of a cluster is named.
    pub(super) fn is_unnamed(&self, cluster: ClusterId) -> bool {
        self.sites_of(cluster).is_empty()
    }

    /// Whether a cluster that is not live is to become live.
    pub(super) fn is_to_live(&self, cluster: ClusterId) -> bool {
        let next = self.changes.front();
        let goes = [Change::ClusterIsLost(cluster), Change::ClusterGoes(cluster)];
        !next.is_some_and(|next| goes.contains(next)) && !self.is_unnamed(cluster)
    }

    /// Whom the `sites.toml` of a site names that starts now; nobody, if it has none any more.
    pub(super) fn named_at(&self, site: SiteId) -> Option<&[SiteId]> {
        [&self.list, &self.departed].into_iter().find(|list| list.contains(&site)).map(Vec::as_slice)
    }

    /// With a defect, a site of a cluster that went takes those that its `sites.toml` does not name to have all that its own cluster has.
    pub(super) fn vouch_for_unnamed(&mut self, site: SiteId) {
        let node = &self.nodes[&site];
        let is_defect = self.plan.defect == Some(Defect::CountsOnlyNamed);
        let is_alone = is_defect && node.list.iter().all(|named| named.cluster == site.cluster);
        let Some(rules) = node.rules().filter(|_| is_alone) else { return };
        let is_own = |status: &&Status| status.site.cluster == site.cluster;
        let Some(own) = rules.statuses().find(is_own).cloned() else { return };
        let (others, delivered) = (rules.configuration().live.without(site.cluster), rules.delivered());
        for cluster in others.iter() {
            let (named, serial) = (SiteId::new(cluster.0, 0), self.now_us());
            let own = Status { site: named, term: Term(u64::MAX), serial, ..own.clone() };
            let said = Status { certifying: false, delivered, received: delivered, ..own };
            let frame = Between::Rules(&Message::Status(said.clone()).to_bytes()).to_bytes();
            self.arrives(site, Arrived::Frame(said.site, frame));
        }
    }

    fn comes(&mut self, site: SiteId) {
        if self.is_unnamed(site.cluster) && site.cluster.0 < self.plan.clusters {
            std::mem::take(&mut self.departed).into_iter().for_each(|site| self.leave(site));
            self.retire(site.cluster);
        }
        let own = u64::from(number_of(site)) << 32;
        let others = self.list.iter().copied().filter(|other| other.cluster != site.cluster).collect();
        let machine = Machine::new(others, Rc::clone(&self.now_us), self.seed ^ own, self.plan.defect);
        // What another machine under this number has sent is not what this one sends.
        self.nodes.insert(site, Node { wipes: self.connections << 32, ..Node::new(machine) });
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
        // The delegate itself may be named no more.
        let mate = || self.sites_of(site.cluster).into_iter().find(|mate| self.nodes[mate].cycle.is_some());
        let Some(asked) = delegate.or_else(|| mate().filter(|_| !is_named)) else { return Ok(false) };
        self.operator_told = None;
        self.arrives(asked, Arrived::Asked(OPERATOR, Ask::Remove(1, site).to_bytes()));
        self.turn(asked)?;
        Ok(self.operator_told == Some(Code::Done))
    }

    /// Whether its vote is taken away, or will be.
    pub(super) fn is_leaving(&self, site: SiteId) -> bool {
        !self.list.contains(&site) || self.changes.contains(&Change::LosesVote(site))
    }

    /// Whether a site that is gone may count for a vote yet.
    pub(super) fn counts_gone(&self) -> bool {
        matches!(self.changes.front(), Some(Change::LosesVote(_)))
    }

    /// Its machine is gone.
    pub(super) fn leave(&mut self, site: SiteId) {
        self.note(|| format!("{site} is no more"));
        self.nodes.remove(&site);
    }

    /// A site that runs is restarted, with the present list.
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
            _ => [None; 2],
        }
    }
}
