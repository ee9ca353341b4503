//! The world: the processes that ship, what connects them, and the clock.

mod checks;
mod clients;
mod copies;
mod disks;
mod effects;
pub(crate) mod faults;
pub(crate) mod feed;
mod guards;
mod guests;
mod life;
mod moves;
mod order_queries;
pub(crate) mod revocations;
mod settings;
pub(crate) mod steps;
mod streams;
mod taps;
mod versions;
mod waits;

use std::collections::BTreeMap;

use pares_book::{FastBook, Instrument};
use pares_config::{NodeId, Placement, SystemConfig};
use pares_flow::{Random, Schedule};
use pares_gateway_role::GatewayNode;
use pares_publisher::publisher::PublisherNode;
use pares_publisher::replayer::ReplayerNode;
use pares_roles::recorder::RecorderNode;
use pares_roles::venue::VenueNode;
use pares_roles::world::Task;
use pares_types::{Epoch, GatewayId, MemberId, Position, RecorderId, RequestId, ShardId, VenueId};
use pares_venue::Shard;

use crate::client::{Client, EXCHANGE};
use crate::engine::Poison;
use crate::guest::Seat;
use crate::ledger::Ledger;
use crate::memory::datagrams::{MemoryDatagrams, MemoryLines};
use crate::memory::host::Host;
use crate::memory::machine::Machine;
use crate::memory::seam::Seam;
use crate::memory::sockets::MemorySockets;
use crate::queue::Action;
use crate::scenario::{MS, Scenario};
use crate::trace::{Trace, Watcher};
use crate::{Fault, Summary, Verdict};

use checks::Safe;

/// Once faults have stopped, everything must be answered within this.
const DRAIN_NS: u64 = 3_000 * MS;
/// Between two looks at whether all is at rest: out of step with the clocks.
const LOOK_NS: u64 = 1_370_000;

/// What a process has in memory.
enum Memory {
    Gateway(Box<GatewayNode<Host, MemorySockets>>),
    Venue(Box<VenueNode<Host>>),
    Recorder(Box<RecorderNode<Host>>),
    Publisher(Box<PublisherNode<Host, MemoryLines>>),
    Replayer(Box<ReplayerNode<Host, MemorySockets, MemoryDatagrams>>),
}

/// A process, or the place where one should be.
#[derive(Default)]
struct Process {
    memory: Option<Memory>,
    is_stopped: bool,
    /// The step that counts, of those planned.
    plan: u64,
    planned_ns: u64,
    /// Duty cycles without anything to do since there last was something.
    idle: u32,
    /// A sync of its own log is under way: it waits for the device.
    is_syncing: bool,
    /// Stopped in the middle of a cycle: what it published since is not seen yet.
    is_hidden: bool,
    /// It is stopped in the middle of its next cycle, for so long.
    stops_for_ns: Option<u64>,
    /// Starts that failed in a row.
    failures: u32,
    /// It ended for good, or until the operator has stopped everything.
    is_out: bool,
    /// Its log was read through in this life, once it had caught up.
    is_checked: bool,
    /// From when on it can be relied on, if nothing befalls it.
    healthy_at_ns: u64,
}

/// Something done beside a duty cycle.
struct Job {
    node: NodeId,
    life: u32,
    name: &'static str,
    task: Option<Task>,
    plan: u64,
}

pub(crate) struct World<'a> {
    scenario: Scenario,
    now_ns: u64,
    queue: Schedule<Action>,
    random: Random,
    pub(crate) trace: Trace<'a>,
    config: SystemConfig,
    placement: Placement,
    moves: moves::Moves,
    instruments: Vec<Vec<Instrument>>,
    machine: Machine,
    epoch: Epoch,
    /// By shard: where the epoch began.
    epoch_first: Vec<Position>,
    processes: BTreeMap<NodeId, Process>,
    jobs: BTreeMap<u64, Job>,
    /// By recorder.
    safe: Vec<Safe>,
    /// Logs in which a bit has flipped since they were opened.
    rotten: std::collections::BTreeSet<NodeId>,
    slow_until_ns: BTreeMap<NodeId, u64>,
    /// By gateway: where its requests lie in its log.
    journalled: Vec<BTreeMap<RequestId, u64>>,
    /// By venue and shard: from when on it has had the shard long enough.
    shards_back_ns: Vec<Vec<u64>>,
    /// By connection: the client, and when the last byte under way arrives, each way.
    sessions: Vec<clients::Session>,
    clients: Vec<Client>,
    /// Members that come by other protocols.
    guests: Vec<Seat>,
    ledger: Ledger,
    streams: streams::Streams,
    /// By shard: its orders as of the position of an answer.
    orders: Vec<order_queries::Orders>,
    keys: revocations::Keys,
    /// If a session copies a member.
    copies: Option<copies::Copies>,
    feed: Option<feed::Feed>,
    waits: waits::Waits,
    /// Past every answered position, by shard.
    answered: Vec<Position>,
    /// Until when completion times are excused.
    disturbed_until_ns: u64,
    /// The same of a shard's answers.
    shards_disturbed_until_ns: Vec<u64>,
    /// By recorder: whether it has found venues to differ.
    found: Vec<bool>,
    calm: bool,
    /// Everything is down and about to start again.
    restarting: bool,
    summary: Summary,
}

impl<'a> World<'a> {
    pub(crate) fn new(scenario: &Scenario, watcher: Watcher<'a>) -> Self {
        let mut random = Random::new(scenario.seed);
        let config = settings::config(scenario);
        let shards = config.shards().expect("the simulator's instruments are legal");
        let instruments: Vec<_> = shards.into_values().collect();
        // The exchange asks little, and last of all.
        let members = (1..=scenario.clients).map(|n| MemberId(u32::try_from(n).expect("few clients")));
        let requests = scenario.requests_per_client;
        let clients = members.map(|member| (member, requests)).chain([(EXCHANGE, requests / 4)]);
        let clients =
            clients.map(|(member, requests)| Client::new(member, requests, scenario.gateways, random.fork()));
        let clients = clients.map(|client| revocations::prepared(client, scenario)).collect();
        let poison =
            Poison { permille: scenario.faults.poison_permille, shards: scenario.faults.poison_shards };
        let looks_away =
            scenario.bug == Some(crate::Bug::ExecuteWrongly) || scenario.faults.every_ns(Fault::Upgrade) > 0;
        let feed = feed::Feed::new(scenario, &instruments, &mut random);
        let guests = guests::guests(scenario, &mut random);
        let placement = config.placement().expect("the simulator's lanes are legal");
        let processes = NodeId::all(&config).into_iter().map(|node| (node, Process::default()));
        Self {
            now_ns: 0,
            queue: Schedule::default(),
            clients,
            guests,
            trace: Trace::new(watcher),
            machine: Machine::new(Seam::new(scenario.bug, poison, scenario.seed), true),
            epoch: Epoch(0),
            epoch_first: vec![Position(0); scenario.shards],
            processes: processes.collect(),
            jobs: BTreeMap::new(),
            safe: (0..scenario.recorders).map(|_| Safe::new(scenario.shards)).collect(),
            rotten: std::collections::BTreeSet::new(),
            slow_until_ns: BTreeMap::new(),
            journalled: vec![BTreeMap::new(); scenario.gateways],
            shards_back_ns: vec![vec![0; scenario.shards]; scenario.venues],
            sessions: Vec::new(),
            keys: revocations::Keys::default(),
            copies: guests::copying(scenario).map(copies::Copies::new),
            feed,
            ledger: Ledger::new(scenario.shards, looks_away),
            streams: streams::Streams::default(),
            orders: (0..scenario.shards).map(|_| order_queries::Orders::default()).collect(),
            waits: waits::Waits::default(),
            answered: vec![Position(0); scenario.shards],
            // Everything is about to start.
            disturbed_until_ns: 2 * MS,
            shards_disturbed_until_ns: vec![0; scenario.shards],
            found: vec![false; scenario.recorders],
            calm: false,
            restarting: true,
            summary: Summary::default(),
            random,
            moves: moves::Moves::new(&config, &placement),
            placement,
            config,
            instruments,
            scenario: scenario.clone(),
        }
    }

    pub(crate) fn run(&mut self) -> Verdict {
        self.queue.push(0, Action::BeginEpoch);
        self.machine.lock().net.is_taped = self.config.tap;
        self.plan_faults();
        self.plan_subscribers();
        for client in 0..self.clients.len() {
            let at_ns = self.random.below(self.scenario.think_ns);
            self.queue.push(at_ns, Action::Wake { client });
        }
        for guest in 0..self.guests.len() {
            let at_ns = self.random.below(self.scenario.think_ns);
            self.queue.push(at_ns, Action::WakeGuest { guest });
        }
        self.queue.push(self.scenario.duration_ns, Action::Calm);
        let ended = self.come_to_rest();
        self.judge_versions(ended)
    }

    fn come_to_rest(&mut self) -> Verdict {
        while let Some((at_ns, action)) = self.queue.pop() {
            self.now_ns = at_ns;
            self.machine.lock().now_ns = at_ns;
            if at_ns > self.scenario.duration_ns + self.drain_ns() {
                return Err(self.unanswered());
            }
            self.summary.events += 1;
            if matches!(action, Action::Look) {
                if self.is_at_rest()? {
                    return self.check_end();
                }
                self.queue.push(at_ns + self.look_ns(), Action::Look);
                continue;
            }
            self.act(action)?;
            if self.is_halted() {
                return Ok(());
            }
        }
        Err(self.unanswered())
    }

    /// Who lacks market data asks less and less often.
    fn drain_ns(&self) -> u64 {
        if self.feed.is_some() { 6 * DRAIN_NS } else { DRAIN_NS }
    }

    fn look_ns(&self) -> u64 {
        if self.feed.is_some() { 20 * LOOK_NS } else { LOOK_NS }
    }

    fn act(&mut self, action: Action) -> Verdict {
        match action {
            Action::Step { node, life, plan } => return self.on_step(node, life, plan),
            Action::Synced { node, life, to } => self.on_synced(node, life, to),
            Action::Task { number, plan } => return self.on_task(number, plan),
            Action::Start { node, life } if self.life(node) == life => return self.start(node),
            Action::Start { .. } | Action::Look => {}
            Action::Resume { node, life } => self.resume(node, life),
            Action::BeginEpoch => return self.begin_epoch(),
            Action::Wake { client } => self.wake(client),
            Action::WakeGuest { guest } => self.wake_guest(guest),
            Action::ToServer { server, connection, bytes } => self.on_bytes(server, connection, &bytes),
            Action::HangUp { server, connection } => self.on_hang_up(server, connection),
            Action::ToClient { connection, bytes } => return self.on_frames(connection, &bytes),
            Action::Broken { connection } => self.on_broken(connection),
            Action::Relief { node } => self.relieve(node),
            Action::Repair => return self.repair(),
            Action::MoveOn => return self.move_on(),
            Action::Heal { reader, source } => self.heal_cut(reader, source),
            Action::Fault(fault) => return self.on_fault(fault),
            Action::Feed(action) => return self.on_feed(action),
            Action::Calm => return self.on_calm(),
        }
        Ok(())
    }

    pub(crate) fn summary(&self) -> Summary {
        let requests: usize =
            self.clients.iter().map(|client| client.answers.len() + client.abandoned.len()).sum();
        let engines = self.summary.engines.and(&self.machine.lock().seam.counts);
        let abandoned: usize = self.clients.iter().map(|client| client.abandoned.len()).sum();
        Summary {
            requests: requests as u64,
            abandoned: abandoned as u64,
            positions: self.ledger.positions(),
            duplicates_refused: self.ledger.duplicates_refused,
            too_old_refused: self.ledger.too_old,
            engines,
            took_ns: self.now_ns,
            feed: self.feed.as_ref().map(feed::Feed::seen).unwrap_or_default(),
            trace_hash: self.trace.hash(),
            state_hash: self.state_hash(),
            ..self.count_guests(self.summary)
        }
    }

    fn note(&mut self, template: &'static str, words: &[u64]) {
        self.trace.note(self.now_ns, template, words);
    }

    /// All nodes, in the order of the tiers.
    fn nodes(&self) -> Vec<NodeId> {
        self.processes.keys().copied().collect()
    }

    fn process(&mut self, node: NodeId) -> &mut Process {
        self.processes.get_mut(&node).expect("a node of the system")
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.processes[&node].memory.is_some()
    }

    fn life(&self, node: NodeId) -> u32 {
        self.machine.lock().fate(node).life
    }

    /// A venue's shard, where it has it.
    fn seated(&self, venue: usize, shard: usize) -> Option<&Shard<FastBook>> {
        self.venue(venue)?.seated().find(|one| one.id() == shard_id(shard))
    }

    /// The venues that execute a shard, without those that restore it for a move.
    fn venues_of(&self, shard: usize) -> impl Iterator<Item = usize> + use<> {
        let seats = self.placement.seats(shard_id(shard));
        let venues = seats.all().iter().filter(move |&venue| !seats.is_restored_by(venue));
        venues.map(|venue| usize::from(venue.0))
    }

    fn venue(&self, venue: usize) -> Option<&VenueNode<Host>> {
        match &self.processes[&venue_id(venue)].memory {
            Some(Memory::Venue(node)) => Some(node),
            _ => None,
        }
    }
}

fn gateway_id(gateway: usize) -> NodeId {
    NodeId::Gateway(GatewayId(u16::try_from(gateway).expect("few gateways")))
}

fn venue_id(venue: usize) -> NodeId {
    NodeId::Venue(VenueId(u16::try_from(venue).expect("few venues")))
}

fn recorder_id(recorder: usize) -> NodeId {
    NodeId::Recorder(RecorderId(u16::try_from(recorder).expect("few recorders")))
}

/// Its number among those of its role.
fn index(node: NodeId) -> usize {
    match node {
        NodeId::Gateway(id) => usize::from(id.0),
        NodeId::Venue(id) => usize::from(id.0),
        NodeId::Recorder(id) => usize::from(id.0),
        NodeId::Publisher(id) => usize::from(id.0),
        NodeId::Replayer(id) => usize::from(id.0),
        NodeId::Orderer(id) | NodeId::Mirror(id) => usize::from(id.0),
    }
}

/// A name for a node in traces and dice.
fn number(node: NodeId) -> u64 {
    let role = match node {
        NodeId::Gateway(_) => 0,
        NodeId::Venue(_) => 100,
        NodeId::Recorder(_) => 200,
        NodeId::Publisher(_) => 300,
        NodeId::Replayer(_) => 400,
        NodeId::Orderer(_) => 500,
        NodeId::Mirror(_) => 600,
    };
    role + index(node) as u64
}

fn shard_id(shard: usize) -> ShardId {
    ShardId(u16::try_from(shard).expect("few shards"))
}
