//! The event loop: sites, their clusters' logs, messages between them, clients.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pares_wice::{Body, LogEntry, Message, Notice, Role, Settings, SiteId, Snapshot, Term, Transaction};

use super::check::Checker;
use super::clients::Client;
use super::cluster::Cluster;
use super::faults::Faults;
use super::node::{Collected, Effect, Node};
use super::{Defect, Failure, Plan, Summary};
use crate::random::Random;

/// Between sites of one cluster, and of two, one way, microseconds.
const NEAR_US: (u64, u64) = (50, 400);
const FAR_US: (u64, u64) = (20_000, 30_000);
const TICK_US: u64 = 40_000;
/// A client that has heard nothing for so long tries another site.
pub(super) const CLIENT_PATIENCE_US: u64 = 1_500_000;
/// After the last fault, everything must have an outcome within this.
const CALM_US: u64 = 20_000_000;

#[derive(Debug)]
pub(super) enum Event {
    Message { to: SiteId, from: SiteId, wipes: u64, message: Message },
    Commit { cluster: u8, term: u64 },
    Give { site: SiteId, life: u64 },
    Tick { site: SiteId, life: u64 },
    Apply { site: SiteId, life: u64 },
    Act { client: usize, turn: u64 },
    Submit { site: SiteId, life: u64, transaction: Transaction, snapshot: Snapshot },
    Elect { cluster: u8 },
    Restart { site: SiteId },
    Fault,
    Operator,
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) random: Random,
    pub(super) now_us: u64,
    queue: BTreeMap<(u64, u64), Event>,
    count: u64,
    pub(super) nodes: BTreeMap<SiteId, Node>,
    pub(super) clusters: Vec<Cluster>,
    pub(super) faults: Faults,
    pub(super) clients: Vec<Client>,
    pub(super) checker: Checker,
    pub(super) summary: Summary,
    trace: Option<Vec<String>>,
}

pub(super) type Verdict = Result<(), String>;

/// Runs one seed.
///
/// # Errors
/// What promise was broken, and when.
pub fn run(plan: Plan, seed: u64) -> Result<Summary, Failure> {
    run_world(&mut World::new(plan, seed), seed)
}

/// Runs one seed, and tells what happened, a line for each thing: the time in microseconds first.
pub fn run_traced(plan: Plan, seed: u64) -> (Vec<String>, Result<Summary, Failure>) {
    let mut world = World::new(plan, seed);
    world.trace = Some(Vec::new());
    let result = run_world(&mut world, seed);
    (world.trace.take().unwrap_or_default(), result)
}

fn run_world(world: &mut World, seed: u64) -> Result<Summary, Failure> {
    let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
    let what = match ran {
        Ok(Ok(())) => return Ok(world.summary()),
        Ok(Err(what)) => what,
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".into()),
    };
    Err(Failure { seed, at_us: world.now_us, what })
}

impl World {
    fn new(plan: Plan, seed: u64) -> Self {
        let sites: Vec<SiteId> = (0..plan.clusters)
            .flat_map(|cluster| (0..plan.sites).map(move |site| SiteId::new(cluster, site)))
            .collect();
        let node = |&id: &SiteId| {
            let mut settings = Settings::new(id, sites.clone());
            (settings.patience_ticks, settings.stream_entries_max, settings.stream_window) = (4, 5, 40);
            settings.unstable_versions_max = 400;
            (id, Node::new(id, settings))
        };
        let nodes: BTreeMap<SiteId, Node> = sites.iter().map(node).collect();
        let clients = (0..plan.clients).map(|client| Client {
            site: sites[client % sites.len()],
            sequence: 0,
            attempt: 0,
            request: None,
            turn: 0,
        });
        Self {
            plan,
            random: Random::new(seed),
            now_us: 0,
            queue: BTreeMap::new(),
            count: 0,
            clients: clients.collect(),
            nodes,
            clusters: vec![Cluster::default(); usize::from(plan.clusters)],
            faults: Faults::default(),
            checker: Checker::default(),
            summary: Summary::default(),
            trace: None,
        }
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>9} {}", self.now_us, what()));
        }
    }

    fn summary(&self) -> Summary {
        let (versions, digest) = (self.checker.versions(), self.checker.digest());
        Summary { versions, digest, took_us: self.now_us, ..self.summary }
    }

    pub(super) fn schedule(&mut self, after_us: u64, event: Event) {
        self.count += 1;
        self.queue.insert((self.now_us + after_us, self.count), event);
    }

    fn run(&mut self) -> Verdict {
        for cluster in 0..self.plan.clusters {
            self.schedule(1_000, Event::Elect { cluster });
        }
        for site in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.begin(site);
        }
        for client in 0..self.clients.len() {
            let after = self.random.between(10_000, 200_000);
            self.schedule(after, Event::Act { client, turn: 0 });
        }
        if self.plan.fault_every_us > 0 {
            self.schedule(300_000, Event::Fault);
        }
        self.schedule(100_000, Event::Operator);
        let end = self.plan.faulty_us;
        while self.now_us < end {
            self.step()?;
        }
        self.calm()?;
        self.checker.finish()
    }

    /// No more faults, everything is started, and everything must come to an end.
    fn calm(&mut self) -> Verdict {
        self.end_faults();
        let deadline = self.now_us + CALM_US;
        while !self.is_settled() {
            if self.now_us > deadline {
                return Err(self.unsettled());
            }
            self.step()?;
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        let newest =
            self.nodes.values().filter_map(|node| node.site.as_ref()).map(|site| site.delivered()).max();
        let all_equal = self.nodes.values().all(|node| {
            let stable = node.site.as_ref().map(|site| site.stable());
            node.site.as_ref().is_some_and(|site| !site.is_recalling())
                && stable == newest
                && node.store.version == newest.unwrap_or_default()
        });
        all_equal && self.clients.iter().all(|client| client.request.is_none())
    }

    fn unsettled(&self) -> String {
        let mut text = String::from("not everything came to an end:");
        for client in self.clients.iter().filter(|client| client.request.is_some()) {
            text += &format!("\n  {client:?}");
        }
        for node in self.nodes.values() {
            let Some(site) = &node.site else { continue };
            text += &format!(
                "\n  {}: delivered {} stable {} store {} pending {} certifies {} asks {:?}, {:?}",
                node.id,
                site.delivered(),
                site.stable(),
                node.store.version,
                site.pending(),
                site.certifies(),
                site.certifier(),
                site.configuration(),
            );
            for status in site.statuses() {
                text += &format!("\n    {status:?}");
            }
        }
        text
    }

    fn step(&mut self) -> Verdict {
        let ((at, _), event) = self.queue.pop_first().ok_or("nothing happens any more")?;
        self.now_us = at;
        match event {
            // What a site sent before it lost its disk does not come after it has connected again.
            Event::Message { from, wipes, .. } if self.nodes[&from].wipes != wipes => Ok(()),
            Event::Message { to, from, message, .. } => self.on_node(to, |node, out| {
                let Some(site) = &mut node.site else { return };
                site.receive(from, message, out);
                site.flush(out);
            }),
            Event::Commit { cluster, term } => {
                if !self.has_majority(cluster) {
                    self.schedule(5_000, Event::Commit { cluster, term });
                } else if self.clusters[usize::from(cluster)].commit(term) {
                    self.give_all(cluster);
                }
                Ok(())
            }
            Event::Give { site, life } => self.give(site, life),
            Event::Tick { site, life } => {
                self.while_alive(site, life, TICK_US, Event::Tick { site, life });
                self.on_life(site, life, |node, out| {
                    if let Some(site) = &mut node.site {
                        site.tick(out);
                    }
                })
            }
            Event::Apply { site, life } => self.apply(site, life),
            Event::Act { client, turn } => self.act(client, turn),
            Event::Submit { site, life, transaction, snapshot } => self.on_life(site, life, |node, out| {
                let Some(site) = &mut node.site else { return };
                let (id, attempt) = (transaction.id, transaction.attempt);
                // Not taken, it is under way: the outcome of the earlier attempt is told for both.
                if site.submit(transaction, snapshot, out).is_ok() {
                    node.submitted.insert(id, attempt);
                }
                site.flush(out);
            }),
            Event::Elect { cluster } => self.elect(cluster),
            Event::Restart { site } => {
                self.start(site);
                Ok(())
            }
            Event::Fault => {
                self.fault();
                Ok(())
            }
            Event::Operator => self.operate(),
        }
    }

    fn while_alive(&mut self, site: SiteId, life: u64, after_us: u64, event: Event) {
        if self.nodes[&site].life == life {
            self.schedule(after_us, event);
        }
    }

    /// Lets a site act, and carries out what it wants done.
    pub(super) fn on_node(&mut self, site: SiteId, act: impl FnOnce(&mut Node, &mut Collected)) -> Verdict {
        let mut out = Collected::default();
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        act(node, &mut out);
        self.check_stable(site)?;
        for effect in out.0 {
            self.carry_out(site, effect)?;
        }
        Ok(())
    }

    fn on_life(&mut self, site: SiteId, life: u64, act: impl FnOnce(&mut Node, &mut Collected)) -> Verdict {
        if self.nodes[&site].life != life {
            return Ok(());
        }
        self.on_node(site, act)
    }

    fn check_stable(&mut self, site: SiteId) -> Verdict {
        let node = &self.nodes[&site];
        let Some(rules) = node.site.as_ref().filter(|rules| !rules.is_recalling()) else { return Ok(()) };
        self.checker.on_stable(site, &node.delivered, rules.stable())
    }

    fn carry_out(&mut self, site: SiteId, effect: Effect) -> Verdict {
        match effect {
            Effect::Propose(entry) => self.propose(site, entry),
            Effect::Send(to, message) => self.send(site, to, message),
            Effect::Outcome(id, outcome) => return self.outcome(site, id, outcome),
            Effect::Notice(Notice::Era(configuration)) => {
                self.note(|| format!("{site}: {configuration:?}"));
                self.summary.eras = self.summary.eras.max(u64::from(configuration.era.number));
            }
            Effect::Notice(Notice::Split(cluster)) => {
                return Err(format!("{site} sees a split from {cluster}"));
            }
            Effect::Notice(notice) => self.note(|| format!("{site}: {notice:?}")),
        }
        Ok(())
    }

    fn propose(&mut self, site: SiteId, entry: LogEntry) {
        let entry = match entry {
            LogEntry::Stream { era, entry } if self.plan.defect == Some(Defect::NoFence) => {
                let era = pares_wice::Era { takeovers: u32::MAX >> 1, ..era };
                LogEntry::Stream { era, entry }
            }
            LogEntry::Discard { .. } if self.plan.defect == Some(Defect::KeepsItsOwn) => return,
            entry => entry,
        };
        if self.plan.defect == Some(Defect::StreamsTooEarly) {
            self.stream_too_early(site, &entry);
        }
        let term = self.nodes[&site].term;
        self.note(|| format!("{site} proposes in term {term}: {}", shown(&entry)));
        if self.clusters[usize::from(site.cluster.0)].propose(site.number, term, entry) {
            let after = self.random.between(NEAR_US.0, NEAR_US.1);
            self.schedule(after, Event::Commit { cluster: site.cluster.0, term });
        }
    }

    fn stream_too_early(&mut self, site: SiteId, entry: &LogEntry) {
        let LogEntry::Stream { era, entry } = entry else { return };
        if !self.nodes[&site].site.as_ref().is_some_and(|rules| rules.certifies()) {
            return;
        }
        for to in self.nodes.keys().copied().filter(|to| to.cluster != site.cluster).collect::<Vec<_>>() {
            self.send(site, to, Message::Stream { era: *era, entries: vec![Arc::clone(entry)] });
        }
    }

    pub(super) fn send(&mut self, from: SiteId, to: SiteId, mut message: Message) {
        if let (Some(Defect::AcknowledgesTooEarly), Message::Status(status)) =
            (self.plan.defect, &mut message)
        {
            status.delivered = status.received;
        }
        if self.faults.cuts(from.cluster, to.cluster) || self.random.chance(self.plan.loss_permille) {
            return;
        }
        let wipes = self.nodes[&from].wipes;
        let (least, most) = if from.cluster == to.cluster { NEAR_US } else { FAR_US };
        if self.random.chance(self.plan.loss_permille) {
            let after = self.random.between(least, most * 4);
            self.schedule(after, Event::Message { to, from, wipes, message: message.clone() });
        }
        let after = self.random.between(least, most);
        self.schedule(after, Event::Message { to, from, wipes, message });
    }

    fn apply(&mut self, site: SiteId, life: u64) -> Verdict {
        let after = self.random.between(1_000, 30_000);
        self.while_alive(site, life, after, Event::Apply { site, life });
        let (too_early, flush) = (self.plan.defect == Some(Defect::StoresTooEarly), self.random.chance(300));
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        if node.life != life || node.site.as_ref().is_none_or(|rules| rules.is_recalling()) {
            return Ok(());
        }
        node.apply(too_early, flush);
        let node = &self.nodes[&site];
        self.checker.on_store(site, node.store.version, &node.store.items)
    }

    pub(super) fn begin(&mut self, site: SiteId) {
        let life = self.nodes[&site].life;
        self.schedule(TICK_US, Event::Tick { site, life });
        self.schedule(5_000, Event::Apply { site, life });
        self.schedule(100, Event::Give { site, life });
        self.checker.restarted(site);
    }

    pub(super) fn has_majority(&self, cluster: u8) -> bool {
        let up =
            self.nodes.values().filter(|node| node.id.cluster.0 == cluster && node.site.is_some()).count();
        up * 2 > usize::from(self.plan.sites)
    }

    fn give_all(&mut self, cluster: u8) {
        let members: Vec<(SiteId, u64)> = self
            .nodes
            .values()
            .filter(|node| node.id.cluster.0 == cluster)
            .map(|node| (node.id, node.life))
            .collect();
        for (site, life) in members {
            let after = self.random.between(NEAR_US.0, NEAR_US.1);
            self.schedule(after, Event::Give { site, life });
        }
    }

    /// A site is given what its cluster's log has committed, and told who leads.
    fn give(&mut self, site: SiteId, life: u64) -> Verdict {
        let cluster = &self.clusters[usize::from(site.cluster.0)];
        let until = if self.random.chance(100) {
            self.nodes[&site].given + self.random.index(3)
        } else {
            cluster.entries.len()
        };
        let until = until.min(cluster.entries.len());
        let entries: Vec<LogEntry> =
            cluster.entries.get(self.nodes[&site].given..until).unwrap_or_default().to_vec();
        let behind = until < cluster.entries.len();
        let leads = cluster.leader == Some(site.number) && until >= cluster.elected_with;
        let role = Role { term: Term(cluster.term), leads };
        if behind {
            self.schedule(2_000, Event::Give { site, life });
        }
        self.on_life(site, life, |node, out| {
            for entry in &entries {
                node.give(entry, out);
            }
            let Some(rules) = &mut node.site else { return };
            node.term = role.term.0;
            rules.role(role);
            rules.flush(out);
        })
    }

    /// A member leads from now on; the others hear of it at some time.
    fn elect(&mut self, cluster: u8) -> Verdict {
        let up: Vec<SiteId> = self
            .nodes
            .values()
            .filter(|node| node.id.cluster.0 == cluster && node.site.is_some())
            .map(|node| node.id)
            .collect();
        if up.is_empty() || !self.has_majority(cluster) {
            self.clusters[usize::from(cluster)].leader = None;
            self.schedule(50_000, Event::Elect { cluster });
            return Ok(());
        }
        let leader = up[self.random.index(up.len())];
        self.clusters[usize::from(cluster)].elect(leader.number, &mut self.random);
        for site in up {
            let after = self.random.between(100, 20_000);
            let life = self.nodes[&site].life;
            self.schedule(after, Event::Give { site, life });
        }
        Ok(())
    }

    /// Lets an operator's command reach a site.
    pub(super) fn command(&mut self, site: SiteId, command: pares_wice::Command) -> Result<bool, String> {
        let mut taken = false;
        self.on_node(site, |node, out| {
            if let Some(rules) = &mut node.site {
                taken = rules.command(command, out).is_ok();
                rules.flush(out);
            }
        })?;
        self.note(|| format!("{site} is told {command:?}: {taken}"));
        Ok(taken)
    }
}

fn shown(entry: &LogEntry) -> String {
    match entry {
        LogEntry::Stream { era, entry } => match &entry.body {
            Body::Update { id, attempt, .. } => {
                format!("{} in era {era}: {id}, attempt {attempt}", entry.version)
            }
            Body::Configure(configuration) => format!("{} in era {era}: {configuration:?}", entry.version),
        },
        LogEntry::Fence(configuration) => format!("fence for {configuration:?}"),
        LogEntry::Discard { era, keep } => format!("discard above {keep} in era {era}"),
    }
}
