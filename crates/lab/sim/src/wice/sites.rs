//! The event loop: sites on their machines, messages between them, clients.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use pares_flow::{Random, Schedule};
use pares_link::{ClientId, SPEAKS, UNDERSTANDS};
use pares_site::SiteNode;
use pares_site::protocol::{Ask, Code, Horizon};
use pares_wice::{Command, Configuration, SiteId, Version};

use super::bank::{Bank, Shared};
use super::check::{Checker, Committed};
use super::clients::{Client, OPERATOR};
use super::comings::Change;
use super::desks::{LineEvent, Question};
use super::faults::Faults;
use super::fronts::Fronts;
use super::keeper::Keeper;
use super::machine::{Arrived, Machine, number_of};
use super::third_place::ThirdPlace;
use super::{Broken, Defect, Failure, Plan, Summary, Verdict, must, settings};
use crate::words_of;

/// A site has a turn so often though nothing comes.
const TICK_US: u64 = 10_000;
/// After the last fault, everything must have an outcome within this.
const CALM_US: u64 = 20_000_000;

#[derive(Debug)]
pub(super) enum Event {
    Message { to: SiteId, from: SiteId, wipes: u64, bytes: Vec<u8> },
    Ask { site: SiteId, life: u64, connection: ClientId, bytes: Vec<u8> },
    Turn { site: SiteId, life: u64 },
    Tick { site: SiteId, life: u64 },
    Write { site: SiteId, life: u64 },
    Act { client: usize, turn: u64 },
    Restart { site: SiteId },
    Relieve { site: SiteId },
    Roll { site: SiteId },
    Front { front: usize, life: u64 },
    Desk { desk: usize, life: u64 },
    Line { line: u64, event: LineEvent },
    Quoted { desk: usize, life: u64, question: Question },
    Keep,
    Fault,
    Operator,
    Change,
}

/// A site, up or down.
pub(super) struct Node {
    pub(super) machine: Machine,
    /// None while it is down.
    pub(super) cycle: Option<SiteNode<Machine, Bank>>,
    /// Counts its starts and ends: what was meant for an earlier life does not reach a later one.
    pub(super) life: u64,
    /// How often it has lost its disk, with its cluster.
    pub(super) wipes: u64,
    pub(super) isolated_until_us: u64,
    pub(super) due: bool,
    /// All sites, as its `sites.toml` said when it started.
    pub(super) list: Vec<SiteId>,
}

impl Node {
    pub(super) fn new(machine: Machine) -> Self {
        let list = Vec::new();
        Self { machine, cycle: None, life: 0, wipes: 0, isolated_until_us: 0, due: false, list }
    }

    /// Whether a client can connect.
    pub(super) fn accepts(&self) -> bool {
        self.cycle.is_some() && !self.machine.exhausted.get()
    }

    /// Whether it is up and has a vote in its cluster.
    pub(super) fn votes(&self) -> bool {
        self.cycle.as_ref().is_some_and(|cycle| cycle.report().votes)
    }

    /// Its rules, where it participates.
    pub(super) fn rules(&self) -> Option<&pares_wice::Site> {
        self.cycle.as_ref()?.rules()
    }
}

pub(super) struct Sites {
    pub(super) plan: Plan,
    pub(super) random: Random,
    pub(super) seed: u64,
    pub(super) now_us: Rc<Cell<u64>>,
    queue: Schedule<Event>,
    pub(super) connections: u64,
    pub(super) nodes: BTreeMap<SiteId, Node>,
    /// All sites, as `sites.toml` says now, and what is to change in it.
    pub(super) list: Vec<SiteId>,
    pub(super) changes: VecDeque<Change>,
    /// The sites of a cluster that went, and continues by itself.
    pub(super) departed: Vec<SiteId>,
    /// What each cluster's log has committed.
    pub(super) committed: Vec<Committed>,
    /// The same of logs that are gone: others may have adopted what was in them.
    pub(super) retired: Vec<Committed>,
    pub(super) faults: Faults,
    pub(super) third_place: ThirdPlace,
    pub(super) clients: Vec<Client>,
    pub(super) ledger: Shared,
    /// Reads under way, and the version that they must show.
    pub(super) looks: BTreeMap<ClientId, Version>,
    pub(super) checker: Checker,
    pub(super) summary: Summary,
    pub(super) operator_told: Option<Code>,
    pub(super) keeper: Option<Keeper>,
    /// A broker's fronts, if they are the clients.
    pub(super) fronts: Option<Fronts>,
    trace: Option<Vec<String>>,
}

/// Runs one seed.
///
/// # Errors
/// What promise was broken, and when.
pub fn run(plan: Plan, seed: u64) -> Result<Summary, Failure> {
    Sites::new(plan, seed).run_to_end(seed)
}

/// Runs one seed, and tells what happened, a line for each thing: the time in microseconds first.
pub fn run_traced(plan: Plan, seed: u64) -> (Vec<String>, Result<Summary, Failure>) {
    let mut sites = Sites::new(plan, seed);
    sites.trace = Some(Vec::new());
    let result = sites.run_to_end(seed);
    (sites.trace.take().unwrap_or_default(), result)
}

impl Sites {
    fn new(plan: Plan, seed: u64) -> Self {
        let ids: Vec<SiteId> = (0..plan.clusters)
            .flat_map(|cluster| (0..plan.sites).map(move |site| SiteId::new(cluster, site)))
            .collect();
        let now_us = Rc::new(Cell::new(1_000_000));
        let node = |&id: &SiteId| {
            let others = ids.iter().copied().filter(|other| other.cluster != id.cluster).collect();
            let own = u64::from(number_of(id)) << 32;
            let machine = Machine::new(others, Rc::clone(&now_us), seed ^ own, plan.defect);
            machine.make_new();
            if plan.defect == Some(Defect::StoresWrongValues) && id == SiteId::new(1, 0) {
                machine.make_erring();
            }
            (id, Node::new(machine))
        };
        let client = |client: usize| Client {
            site: ids[client % ids.len()],
            sequence: 0,
            request: None,
            asked: 0,
            turn: 0,
            seen: Horizon::default(),
            floor: Version(0),
            floor_of_request: Version(0),
        };
        let clients = (0..plan.clients).map(client).collect();
        Self {
            plan,
            random: Random::new(seed),
            seed,
            nodes: ids.iter().map(node).collect(),
            list: ids,
            changes: VecDeque::new(),
            departed: Vec::new(),
            now_us,
            queue: Schedule::default(),
            connections: 0,
            clients,
            committed: (0..plan.clusters).map(|_| Committed::default()).collect(),
            retired: Vec::new(),
            faults: Faults::default(),
            third_place: ThirdPlace::made(),
            ledger: Shared::default(),
            looks: BTreeMap::new(),
            checker: Checker::new(&plan),
            summary: Summary::default(),
            operator_told: None,
            keeper: plan.keeps.then(Keeper::new),
            fronts: plan.brokers.then(|| Fronts::new(seed)),
            trace: None,
        }
    }

    pub(super) fn now_us(&self) -> u64 {
        self.now_us.get()
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        let now_us = self.now_us();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{now_us:>9} {}", what()));
        }
    }

    pub(super) fn schedule(&mut self, after_us: u64, event: Event) {
        self.queue.push(self.now_us() + after_us, event);
    }

    fn run_to_end(&mut self, seed: u64) -> Result<Summary, Failure> {
        let ran = catch_unwind(AssertUnwindSafe(|| self.run()));
        let (broken, what) = match ran {
            Ok(Ok(())) => return Ok(self.summary()),
            Ok(Err(broken)) => broken,
            Err(panic) => (Broken::Panicked, words_of(panic.as_ref())),
        };
        Err(Failure { seed, at_us: self.now_us(), broken, what })
    }

    fn summary(&self) -> Summary {
        let (versions, digest) = (self.checker.versions(), self.checker.digest());
        let (aborted, moments) = (self.ledger.open().aborted(), self.checker.moments());
        let adopted = self.committed.iter().map(|committed| committed.adoptions).sum();
        Summary { versions, digest, aborted, adopted, moments, took_us: self.now_us(), ..self.summary }
    }

    fn run(&mut self) -> Verdict {
        for site in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.begin(site)?;
        }
        for client in 0..self.clients.len() {
            let after = self.random.between(10_000, 200_000);
            self.schedule(after, Event::Act { client, turn: 0 });
        }
        if self.plan.fault_every_us > 0 {
            self.schedule(300_000, Event::Fault);
        }
        self.schedule(100_000, Event::Operator);
        self.begin_fronts();
        if self.plan.keeps {
            self.schedule(100_000, Event::Keep);
        }
        self.plan_changes();
        let end = self.now_us() + self.plan.faulty_us;
        while self.now_us() < end {
            self.step()?;
        }
        self.end_faults()?;
        let deadline = self.now_us() + CALM_US;
        while !self.is_settled() {
            must(self.now_us() <= deadline, Broken::Unsettled, || self.unsettled())?;
            self.step()?;
        }
        self.restore_what_was_kept()?;
        self.check_people()?;
        let ledger = self.ledger.open();
        self.checker.finish(&ledger)
    }

    fn is_settled(&self) -> bool {
        let nodes = || self.list.iter().map(|site| &self.nodes[site]);
        let rules = || nodes().map(Node::rules);
        let newest = rules().flatten().map(pares_wice::Site::delivered).max().unwrap_or_default();
        self.changes.is_empty()
            && self.keeper.as_ref().is_none_or(|keeper| keeper.has(newest))
            && self.clients.iter().all(|client| client.request.is_none())
            && self.fronts.as_ref().is_none_or(|fronts| fronts.are_settled())
            && nodes().all(Node::votes)
            && rules()
                .all(|rules| rules.is_some_and(|rules| !rules.is_recalling() && rules.stable() == newest))
            && nodes().all(|node| pares_store::Store::applied(&*node.machine.store()) == newest)
    }

    fn unsettled(&self) -> String {
        let mut text = format!("not everything came to an end; to be changed: {:?}", self.changes);
        for client in self.clients.iter().filter(|client| client.request.is_some()) {
            text += &format!("\n  {client:?}");
        }
        text += &self.fronts.as_ref().map_or_else(String::new, Fronts::unsettled);
        for cycle in self.nodes.values().filter_map(|node| node.cycle.as_ref()) {
            text += &format!("\n  {:?}", cycle.report());
            for status in cycle.rules().into_iter().flat_map(pares_wice::Site::statuses) {
                text += &format!("\n    has heard {status:?}");
            }
        }
        text
    }

    fn step(&mut self) -> Verdict {
        let (at, event) = self.queue.pop().expect("a tick is always to come");
        self.now_us.set(at);
        if event.of().into_iter().flatten().any(|site| !self.nodes.contains_key(&site)) {
            return Ok(());
        }
        match event {
            // What a site sent before it lost its disk does not come after it has connected again.
            Event::Message { from, wipes, .. } if self.nodes[&from].wipes != wipes => {}
            Event::Message { to, from, bytes, .. } => self.arrives(to, Arrived::Frame(from, bytes)),
            Event::Ask { site, life, .. }
            | Event::Turn { site, life }
            | Event::Tick { site, life }
            | Event::Write { site, life }
                if self.nodes[&site].life != life => {}
            Event::Ask { site, connection, bytes, .. } => {
                self.arrives(site, Arrived::Asked(connection, bytes))
            }
            Event::Turn { site, .. } => return self.turn(site),
            Event::Tick { site, life } => {
                self.schedule(TICK_US, Event::Tick { site, life });
                self.vouch_for_unnamed(site);
                return self.turn(site);
            }
            Event::Write { site, life } => return self.write(site, life),
            Event::Act { client, turn } => self.act(client, turn),
            Event::Restart { site } => return self.start(site),
            Event::Relieve { site } => self.nodes[&site].machine.exhausted.set(false),
            Event::Roll { site } => return self.roll(site),
            Event::Change => return self.change(),
            Event::Fault => self.fault(),
            Event::Operator => return self.operate(),
            Event::Keep => return self.keep(),
            Event::Front { front, life } => self.front_turn(front, life),
            Event::Desk { desk, life } => self.desk_turn(desk, life),
            Event::Line { line, event } => self.line_happens(line, event),
            Event::Quoted { desk, life, question } => self.quoted(desk, life, &question),
        }
        Ok(())
    }

    /// A site begins with what its machine has.
    pub(super) fn begin(&mut self, site: SiteId) -> Verdict {
        let Some(named) = self.named_at(site).map(<[SiteId]>::to_vec) else {
            self.leave(site);
            return Ok(());
        };
        self.note(|| format!("{site} starts"));
        let setup = settings::of(site, named, &self.plan, self.random.next_u64());
        let node = self.nodes.get_mut(&site).expect("all sites exist");
        node.life += 1;
        node.due = false;
        node.list.clone_from(&setup.settings.sites);
        if self.plan.mixed {
            node.machine.speaks.set(if self.random.chance(500) { SPEAKS } else { UNDERSTANDS });
        }
        let (life, ledger) = (node.life, self.ledger.clone());
        match SiteNode::begin(node.machine.clone(), setup, Bank::new(self.plan, site, ledger)) {
            Ok(cycle) => node.cycle = Some(cycle),
            Err(error) => return self.ended(site, error),
        }
        self.look(site)?;
        self.schedule(TICK_US, Event::Tick { site, life });
        self.schedule(5_000, Event::Write { site, life });
        for other in self.nodes.keys().copied().filter(|other| *other != site).collect::<Vec<_>>() {
            self.connect(site, other);
        }
        Ok(())
    }

    pub(super) fn configurations(&self) -> impl Iterator<Item = Configuration> {
        self.nodes.values().filter_map(Node::rules).map(pares_wice::Site::configuration)
    }

    /// Lets an operator's command reach a site; whether it is carried out.
    pub(super) fn command(&mut self, site: SiteId, command: Command) -> Result<bool, (Broken, String)> {
        self.operator_told = None;
        self.arrives(site, Arrived::Asked(OPERATOR, Ask::Operate(1, command).to_bytes()));
        self.turn(site)?;
        let told = self.operator_told;
        self.note(|| format!("{site} is told {command:?}: {told:?}"));
        Ok(told == Some(Code::Done))
    }
}
