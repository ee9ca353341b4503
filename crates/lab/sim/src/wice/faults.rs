//! What fails, and what the operator does about it.
//!
//! There is one operator, who decides with one mind: declares lost only what cannot be heard, at a place that counts as live, and never both sides of a cut.
//! (What two operators can do to each other no protocol can undo; see `docs/protocols/wice.md`.) With a witness there is one on each side, who do just that.

use std::collections::BTreeMap;

use pares_site::{has_begun_everywhere, who_goes_on};
use pares_wice::{ClusterId, ClusterSet, Command, Configuration, Era, SiteId};

use super::Verdict;
use super::machine::Arrived;
use super::sites::{Event, Sites};

#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) over: bool,
    /// The one cluster that is cut off or down, until when, and whether it is to be declared lost.
    away: Option<Away>,
    /// Clusters that were to be declared lost, and the newest era then: until a later one counts them as live again, they may have
    /// been, whatever the operator knows of it.
    doubtful: BTreeMap<ClusterId, Era>,
    /// Clusters that were to be admitted, and the newest era then: until a later one is known, they may live again.
    admitted: BTreeMap<ClusterId, Era>,
    /// The newest configuration ever heard of.
    newest: Option<Configuration>,
}

#[derive(Clone, Copy, Debug)]
struct Away {
    cluster: ClusterId,
    /// Its sites live, and only the links are cut.
    lives: bool,
    until_us: u64,
    declare: bool,
    wipe: bool,
}

impl Faults {
    /// Whether messages between two clusters are lost.
    pub(super) fn cuts(&self, one: ClusterId, other: ClusterId) -> bool {
        self.away.is_some_and(|away| one != other && (away.cluster == one || away.cluster == other))
    }

    /// What becomes of a cluster that goes is no fault any more.
    pub(super) fn forget(&mut self, cluster: ClusterId) {
        self.away = self.away.filter(|away| away.cluster != cluster);
    }
}

impl Sites {
    pub(super) fn fault(&mut self) {
        if self.faults.over {
            return;
        }
        let every = self.plan.fault_every_us;
        let after = self.random.between(every / 2, every * 3 / 2);
        self.schedule(after, Event::Fault);
        self.summary.faults += 1;
        let sites: Vec<SiteId> = self.nodes.keys().copied().collect();
        let mut site = sites[self.random.index(sites.len())];
        if self.random.chance(400) {
            site = self.delegate_of(site.cluster).unwrap_or(site);
        }
        match self.random.below(13) {
            0..=3 => self.crash(site, 400_000),
            4 => self.crash(site, 2_500_000),
            5 | 6 => self.isolate(site),
            7 => self.fail_disk(site),
            8 => self.exhaust(site),
            9 => {
                let peer = sites[self.random.index(sites.len())];
                self.disturb(site, peer);
            }
            10 => self.lose_disk(site),
            _ if self.faults.away.is_none() && !self.is_unnamed(site.cluster) => {
                self.lose(site.cluster);
            }
            _ => {}
        }
    }

    fn crash(&mut self, site: SiteId, down_us: u64) {
        if self.nodes[&site].cycle.is_some() {
            self.end(site);
            let after = self.random.between(1_000, down_us);
            self.schedule(after, Event::Restart { site });
        }
    }

    /// Its process ends, by itself or with the power.
    pub(super) fn end(&mut self, site: SiteId) {
        let power = self.random.chance(500);
        let keep = if self.random.chance(500) { 0 } else { self.random.below(4) };
        self.note(|| format!("{site} crashes, power fails: {power}"));
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        node.cycle = None;
        node.life += 1;
        node.machine.crash(keep, power);
        if !power {
            self.hang_up(site);
        }
    }

    /// A process that ends has its connections ended; a machine without power ends none.
    fn hang_up(&mut self, site: SiteId) {
        let others = self.nodes.keys().copied().filter(|other| *other != site);
        for other in others.collect::<Vec<_>>() {
            if self.know_each_other(site, other) && !self.is_isolated(site) && !self.is_isolated(other) {
                self.arrives(other, Arrived::Lost(site));
            }
        }
    }

    /// A machine's disk is gone, and it starts with another. One at a time: two of three are what a cluster must not lose.
    fn lose_disk(&mut self, site: SiteId) {
        let mates = self.sites_of(site.cluster);
        if mates.len() < 3 || self.counts_gone() || !mates.iter().all(|mate| self.nodes[mate].votes()) {
            return;
        }
        self.summary.disks += 1;
        self.replace_disk(site);
    }

    /// It ends, and starts with nothing.
    pub(super) fn replace_disk(&mut self, site: SiteId) {
        self.end(site);
        self.note(|| format!("{site} loses its disk"));
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        node.wipes += 1;
        node.machine.wipe();
        let after = self.random.between(1_000, 400_000);
        self.schedule(after, Event::Restart { site });
    }

    /// Connections stay, and nothing comes over them: half of each is gone.
    fn isolate(&mut self, site: SiteId) {
        let until_us = self.now_us() + self.random.between(50_000, 500_000);
        self.note(|| format!("{site} is cut off until {until_us}"));
        self.nodes.get_mut(&site).expect("all sites exist").isolated_until_us = until_us;
    }

    /// One of the next writes or syncs of its log fails.
    fn fail_disk(&mut self, site: SiteId) {
        let after = self.random.below(6);
        self.note(|| format!("{site}: its log fails in {after}"));
        self.nodes[&site].machine.disk.borrow().fail_in(after);
    }

    fn exhaust(&mut self, site: SiteId) {
        self.note(|| format!("{site} has no descriptors left"));
        self.nodes[&site].machine.exhausted.set(true);
        let after = self.random.between(50_000, 600_000);
        self.schedule(after, Event::Relieve { site });
    }

    /// A peer signs on again, and sends frames that are cut short or mean nothing.
    fn disturb(&mut self, site: SiteId, peer: SiteId) {
        if !self.know_each_other(site, peer) || site == peer || self.nodes[&site].cycle.is_none() {
            return;
        }
        self.note(|| format!("{peer} signs on to {site} again and sends nonsense"));
        for length in 0..8 {
            let kind = self.random.below(6) as u8;
            let mut frame = vec![kind];
            frame.extend((0..length * 3).map(|_| self.random.below(3) as u8));
            // A whole request is no nonsense.
            frame.truncate(if kind == 3 { 12 } else { 32 });
            self.arrives(site, Arrived::Frame(peer, frame));
        }
        // Both ends live.
        self.arrives(site, Arrived::Lost(peer));
        self.arrives(peer, Arrived::Lost(site));
        self.connect(site, peer);
    }

    pub(super) fn start(&mut self, site: SiteId) -> Verdict {
        let down = self.faults.away.is_some_and(|away| !away.lives && away.cluster == site.cluster);
        if self.nodes[&site].cycle.is_some() || down {
            return Ok(());
        }
        self.begin(site)
    }

    /// A whole cluster: cut off, or down.
    fn lose(&mut self, cluster: ClusterId) {
        let lives = self.random.chance(600);
        let until_us = self.now_us() + self.random.between(100_000, 900_000);
        let declare = self.random.chance(600);
        let wipe = !lives && declare && self.random.chance(300);
        self.note(|| {
            format!("{cluster} is away, lives: {lives}, declare: {declare}, wipe: {wipe}, until {until_us}")
        });
        self.faults.away = Some(Away { cluster, lives, until_us, declare, wipe });
        if !lives {
            for site in self.sites_of(cluster) {
                self.end(site);
            }
        }
    }

    pub(super) fn sites_of(&self, cluster: ClusterId) -> Vec<SiteId> {
        self.list.iter().copied().filter(|site| site.cluster == cluster).collect()
    }

    fn come_back(&mut self, away: Away) -> Verdict {
        self.note(|| format!("{} is back", away.cluster));
        self.faults.away = None;
        if away.lives {
            let others: Vec<SiteId> = self.nodes.keys().copied().collect();
            for site in self.sites_of(away.cluster) {
                others
                    .iter()
                    .filter(|other| other.cluster != away.cluster)
                    .for_each(|&o| self.connect(site, o));
            }
            return Ok(());
        }
        // Its disks are gone only if the others have gone on without it: otherwise nothing answered may be lost with one cluster.
        self.survey();
        if away.wipe && !self.may_live(away.cluster) {
            self.retire(away.cluster);
            for site in self.sites_of(away.cluster) {
                let node = self.nodes.get_mut(&site).expect("all sites exist");
                node.wipes += 1;
                node.machine.wipe();
            }
        }
        self.sites_of(away.cluster).into_iter().try_for_each(|site| self.start(site))
    }

    /// The sites of each side of a cut; all, where there is none. Of a cluster that is down nobody says anything.
    pub(super) fn sides(&self) -> Vec<Vec<SiteId>> {
        let Some(away) = self.faults.away else { return vec![self.list.clone()] };
        let (cut_off, others) = self.list.iter().partition(|site| site.cluster == away.cluster);
        vec![cut_off, others]
    }

    /// Whether nobody is away, and nobody may have been declared lost who lives.
    pub(super) fn is_quiet(&self) -> bool {
        self.faults.away.is_none() && self.faults.doubtful.is_empty()
    }

    /// Whether a cluster is declared lost for good: the era without it has begun at all clusters that live, as `pares site lost` waits for. Begun at one alone, it is
    /// undone if that one is lost.
    pub(super) fn is_without(&mut self, cluster: ClusterId) -> bool {
        self.survey();
        let reports = self.reports_of(&self.list);
        let latest = reports.iter().map(|(_, report)| report).max_by_key(|report| report.era);
        !self.may_live(cluster) && latest.is_some_and(|latest| has_begun_everywhere(&reports, latest))
    }

    /// Whether the newest era known anywhere counts a cluster as live.
    fn lives(&self, cluster: ClusterId) -> bool {
        self.faults.newest.is_some_and(|newest| newest.live.contains(cluster))
    }

    /// Whether an era that is not known yet may count it as live.
    pub(super) fn may_live(&self, cluster: ClusterId) -> bool {
        let newest = self.newest_configuration().era;
        self.lives(cluster) || self.faults.admitted.get(&cluster).is_some_and(|era| newest <= *era)
    }

    fn survey(&mut self) {
        let newest = self.configurations().chain(self.faults.newest);
        let newest = newest.max_by_key(|configuration| configuration.era);
        self.faults.newest = newest;
        if let Some(newest) = newest {
            self.faults.doubtful.retain(|cluster, era| newest.era <= *era || !newest.live.contains(*cluster));
        }
    }

    /// The site that says that it leads, and can be asked.
    pub(super) fn delegate_of(&self, cluster: ClusterId) -> Option<SiteId> {
        let leads = |site: &&SiteId| {
            let node = &self.nodes[*site];
            node.cycle.as_ref().is_some_and(|cycle| cycle.report().delegate) && !self.is_isolated(**site)
        };
        self.sites_of(cluster).iter().find(leads).copied()
    }

    pub(super) fn operate(&mut self) -> Verdict {
        self.schedule(60_000, Event::Operator);
        self.survey();
        if let Some(away) = self.faults.away {
            if away.declare && self.plan.witness {
                self.each_declares_the_others_lost()?;
            } else if away.declare && self.lives(away.cluster) {
                self.declare_lost(away.cluster)?;
            }
            if self.plan.witness {
                self.look_after_witness()?;
            }
            if self.now_us() >= away.until_us {
                return self.come_back(away);
            }
            return Ok(());
        }
        if self.plan.witness {
            self.look_after_witness()?;
        }
        let all = (0..self.plan.clusters).map(ClusterId);
        if let Some(missing) = all.clone().find(|&cluster| !self.lives(cluster) && self.is_to_live(cluster)) {
            return self.tell_certifier(Command::Admit(missing));
        }
        if !self.faults.over && self.plan.fault_every_us > 0 && self.random.chance(50) {
            let to = self.random.below(u64::from(self.plan.clusters)) as u8;
            return self.tell_certifier(Command::Migrate(ClusterId(to)));
        }
        Ok(())
    }

    pub(super) fn declare_lost(&mut self, lost: ClusterId) -> Verdict {
        let others =
            (0..self.plan.clusters).map(ClusterId).filter(|&cluster| cluster != lost && self.lives(cluster));
        let others: Vec<ClusterId> = others.collect();
        let newest = self.newest_configuration();
        if others
            .iter()
            .any(|cluster| self.faults.doubtful.contains_key(cluster) || self.is_unnamed(*cluster))
        {
            return Ok(());
        }
        // Repeat the declaration of lost clusters, ours and that of others, which this cluster may have missed.
        let gone = (0..self.plan.clusters).map(ClusterId).filter(|cluster| !newest.live.contains(*cluster));
        let all: ClusterSet = self.to_be_lost().into_iter().chain(gone).chain([lost]).collect();
        let heard: Vec<SiteId> = others.iter().flat_map(|&cluster| self.sites_of(cluster)).collect();
        if let Ok(site) = who_goes_on(&self.reports_of(&heard), all, None) {
            let taken = self.command(site, Command::DeclareLost(all))?;
            if taken {
                self.summary.faults += 1;
                self.faults.doubtful.insert(lost, newest.era);
            }
        }
        Ok(())
    }

    pub(super) fn newest_configuration(&self) -> Configuration {
        self.faults.newest.expect("the operator has looked")
    }

    pub(super) fn tell_certifier(&mut self, command: Command) -> Verdict {
        if let Some(site) = self.delegate_of(self.newest_configuration().certifier) {
            let taken = self.command(site, command)?;
            self.summary.faults += u64::from(taken);
            if let (true, Command::Admit(cluster)) = (taken, command) {
                self.faults.admitted.insert(cluster, self.newest_configuration().era);
            }
        }
        Ok(())
    }

    pub(super) fn end_faults(&mut self) -> Verdict {
        self.faults.over = true;
        self.plan.loss_permille = 0;
        if let Some(away) = self.faults.away {
            self.come_back(away)?;
        }
        for node in self.nodes.values_mut() {
            node.isolated_until_us = 0;
            node.machine.exhausted.set(false);
            node.machine.disk.borrow().repair();
        }
        self.nodes.keys().copied().collect::<Vec<_>>().into_iter().try_for_each(|site| self.start(site))
    }
}
