//! What fails, and what the operator does about it.
//!
//! There is one operator, who decides with one mind: declares lost only what cannot be heard, at a place that counts among the living, and never
//! both sides of a cut. (What two operators can do to each other no protocol can undo; see `docs/protocols/wice.md`.)

use std::collections::BTreeMap;

use pares_wice::{ClusterId, ClusterSet, Command, Configuration, Era, SiteId};

use super::world::{Event, World};

/// The state of what has failed.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) over: bool,
    /// The one cluster that is cut off or down, until when, and whether it is to be declared lost.
    away: Option<Away>,
    /// Clusters that were to be declared lost, and the newest era then: until a later one counts them among the living again, they may
    /// have been, whatever is heard of it.
    doubtful: BTreeMap<ClusterId, Era>,
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
}

impl World {
    pub(super) fn fault(&mut self) {
        if self.faults.over {
            return;
        }
        let every = self.plan.fault_every_us;
        let after = self.random.between(every / 2, every * 3 / 2);
        self.schedule(after, Event::Fault);
        self.summary.faults += 1;
        let sites: Vec<SiteId> = self.nodes.keys().copied().collect();
        let site = sites[self.random.index(sites.len())];
        match self.random.below(10) {
            0..=3 => self.crash(site, 400_000),
            4 | 5 => {
                let leader = self.clusters[usize::from(site.cluster.0)].leader;
                if let Some(number) = leader {
                    self.crash(SiteId { number, ..site }, 300_000);
                }
            }
            6 | 7 => self.schedule(1, Event::Elect { cluster: site.cluster.0 }),
            _ if self.faults.away.is_none() => self.lose(site.cluster),
            _ => {}
        }
    }

    fn crash(&mut self, site: SiteId, down_us: u64) {
        if self.nodes[&site].site.is_none() {
            return;
        }
        self.note(|| format!("{site} crashes"));
        self.nodes.get_mut(&site).expect("all sites exist").crash();
        if self.clusters[usize::from(site.cluster.0)].leader == Some(site.number) {
            self.clusters[usize::from(site.cluster.0)].leader = None;
            let after = self.random.between(10_000, 60_000);
            self.schedule(after, Event::Elect { cluster: site.cluster.0 });
        }
        let after = self.random.between(1_000, down_us);
        self.schedule(after, Event::Restart { site });
    }

    pub(super) fn start(&mut self, site: SiteId) {
        let down = self.faults.away.is_some_and(|away| !away.lives && away.cluster == site.cluster);
        if self.nodes[&site].site.is_some() || down {
            return;
        }
        let keeps_unflushed = self.random.chance(500);
        self.nodes.get_mut(&site).expect("all sites exist").start(keeps_unflushed);
        self.note(|| format!("{site} starts"));
        self.begin(site);
    }

    /// A whole cluster: cut off, or down.
    fn lose(&mut self, cluster: ClusterId) {
        let lives = self.random.chance(600);
        let until_us = self.now_us + self.random.between(100_000, 900_000);
        let declare = self.random.chance(600);
        let wipe = !lives && declare && self.random.chance(300);
        self.note(|| {
            format!("{cluster} is away, lives: {lives}, declare: {declare}, wipe: {wipe}, until {until_us}")
        });
        self.faults.away = Some(Away { cluster, lives, until_us, declare, wipe });
        if !lives {
            for site in self.sites_of(cluster) {
                self.nodes.get_mut(&site).expect("all sites exist").crash();
            }
            self.clusters[usize::from(cluster.0)].leader = None;
        }
    }

    fn sites_of(&self, cluster: ClusterId) -> Vec<SiteId> {
        self.nodes.keys().copied().filter(|site| site.cluster == cluster).collect()
    }

    fn come_back(&mut self, away: Away) {
        self.note(|| format!("{} is back", away.cluster));
        self.faults.away = None;
        if away.lives {
            return;
        }
        // Its disks are gone only if the others have gone on without it: otherwise nothing answered may be lost with one cluster.
        if away.wipe && !self.lives(away.cluster) {
            let era = self.newest_configuration().era;
            self.clusters[usize::from(away.cluster.0)].wipe();
            for site in self.sites_of(away.cluster) {
                self.nodes.get_mut(&site).expect("all sites exist").wipe(era);
            }
        }
        for site in self.sites_of(away.cluster) {
            self.start(site);
        }
        self.schedule(20_000, Event::Elect { cluster: away.cluster.0 });
    }

    /// Whether the newest era known anywhere counts a cluster among the living.
    fn lives(&self, cluster: ClusterId) -> bool {
        self.faults.newest.is_some_and(|newest| newest.live.contains(cluster))
    }

    fn look(&mut self) {
        let known =
            self.nodes.values().filter_map(|node| node.site.as_ref()).map(|site| site.configuration());
        let newest = known.chain(self.faults.newest).max_by_key(|configuration| configuration.era);
        self.faults.newest = newest;
        if let Some(newest) = newest {
            self.faults.doubtful.retain(|cluster, era| newest.era <= *era || !newest.live.contains(*cluster));
        }
    }

    fn delegate_of(&self, cluster: ClusterId) -> Option<SiteId> {
        let number = self.clusters[usize::from(cluster.0)].leader?;
        Some(SiteId { cluster, number })
    }

    pub(super) fn operate(&mut self) -> Result<(), String> {
        self.schedule(60_000, Event::Operator);
        self.look();
        if let Some(away) = self.faults.away {
            if away.declare && self.lives(away.cluster) {
                self.declare_lost(away.cluster)?;
            }
            if self.now_us >= away.until_us {
                self.come_back(away);
            }
            return Ok(());
        }
        let all = (0..self.plan.clusters).map(ClusterId);
        if let Some(missing) = all.clone().find(|&cluster| !self.lives(cluster)) {
            return self.tell_certifier(Command::Admit(missing));
        }
        if !self.faults.over && self.plan.fault_every_us > 0 && self.random.chance(50) {
            let to = self.random.below(u64::from(self.plan.clusters)) as u8;
            return self.tell_certifier(Command::Migrate(ClusterId(to)));
        }
        Ok(())
    }

    fn declare_lost(&mut self, lost: ClusterId) -> Result<(), String> {
        let others =
            (0..self.plan.clusters).map(ClusterId).filter(|&cluster| cluster != lost && self.lives(cluster));
        let others: Vec<ClusterId> = others.collect();
        let newest = self.newest_configuration();
        if others.iter().any(|cluster| self.faults.doubtful.contains_key(cluster)) {
            return Ok(());
        }
        let told = if newest.certifier != lost { Some(newest.certifier) } else { others.first().copied() };
        if let Some(site) = told.and_then(|cluster| self.delegate_of(cluster)) {
            let taken = self.command(site, Command::DeclareLost(ClusterSet::default().with(lost)))?;
            if taken {
                self.summary.faults += 1;
                self.faults.doubtful.insert(lost, newest.era);
            }
        }
        Ok(())
    }

    fn newest_configuration(&self) -> Configuration {
        self.faults.newest.expect("the operator has looked")
    }

    fn tell_certifier(&mut self, command: Command) -> Result<(), String> {
        if let Some(site) = self.delegate_of(self.newest_configuration().certifier) {
            let taken = self.command(site, command)?;
            self.summary.faults += u64::from(taken);
        }
        Ok(())
    }

    pub(super) fn end_faults(&mut self) {
        self.faults.over = true;
        self.plan.loss_permille = 0;
        if let Some(away) = self.faults.away {
            self.come_back(away);
        }
        for site in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.start(site);
        }
    }
}
