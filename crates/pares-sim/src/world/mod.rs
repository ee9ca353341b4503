//! The world: processes, what connects them, and the clock.

mod checks;
mod clients;
mod disks;
mod duty;
mod engines;
pub(crate) mod faults;
mod life;
mod network;
mod rot;
mod versions;
mod wipes;

use pares_book::{Instrument, Symbol, Timetable, TimetableRow};
use pares_gateway::{Config, Pace};
use pares_sequencer::LocalWindow;
use pares_types::{
    Epoch, GatewayId, InstrumentId, MemberId, Phase, Position, Price, Quantity, Request, ShardId,
};

use crate::bug::Bug;
use crate::build::Build;
use crate::client::{Client, EXCHANGE};
use crate::gateway::GatewayNode;
use crate::ledger::Ledger;
use crate::link::Link;
use crate::log::Log;
use crate::queue::{Action, Queue};
use crate::random::Random;
use crate::record::{NodeId, RecorderEntry, StoredCheckpoint, VenueEntry};
use crate::recorder::RecorderNode;
use crate::scenario::{MS, Scenario};
use crate::surroundings::Counts;
use crate::trace::{Trace, Watcher};
use crate::venue::VenueNode;
use crate::{Broken, Engines, Summary};

use faults::Trap;

/// Once faults have stopped, everything must be answered within this.
const DRAIN_NS: u64 = 2_000 * MS;

/// What is true of a process of any kind.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Counts its starts and deaths.
    life: u32,
    up: bool,
    stopped: bool,
    step_due: bool,
    /// Stopped in the middle of a cycle: what was appended is not published.
    unfinished: bool,
    /// What befalls it in the middle of its next cycle.
    trap: Option<Trap>,
}

struct GatewayHost {
    process: Process,
    log: Log<Request>,
    /// Published mark: requests before it are answered.
    answered: u64,
    node: Option<GatewayNode>,
    /// Whether its clock is to wake it.
    wound: bool,
    /// Its clock minus the true time, ns.
    clock_off_ns: i64,
}

struct VenueHost {
    process: Process,
    log: Log<VenueEntry>,
    node: Option<VenueNode>,
    /// From when on it can be relied on, if nothing befalls it; and each of its shards.
    healthy_at_ns: u64,
    shards_back_ns: Vec<u64>,
    /// What its last process died of, if of that, and how often so.
    died_at: Option<(ShardId, Position)>,
    deaths: u32,
    build: Build,
}

struct RecorderHost {
    process: Process,
    log: Log<RecorderEntry>,
    checkpoints: Vec<StoredCheckpoint>,
    node: Option<RecorderNode>,
    safe: checks::Safe,
    /// From when on its disk can be relied on, if nothing befalls it.
    healthy_at_ns: u64,
    /// Whether it has found venues to differ.
    found: bool,
}

/// A client's connection to a gateway.
struct Session {
    client: usize,
    gateway: usize,
    life: u32,
    alive: bool,
    /// When the last byte under way arrives, each way: a connection is in order.
    to_gateway_ns: u64,
    to_client_ns: u64,
}

pub(crate) struct World<'a> {
    scenario: Scenario,
    now_ns: u64,
    queue: Queue,
    random: Random,
    pub(crate) trace: Trace<'a>,
    instruments: Vec<Vec<Instrument>>,
    windows: Vec<LocalWindow>,
    epoch: Epoch,
    /// By shard: where the epoch began.
    epoch_first: Vec<Position>,
    gateways: Vec<GatewayHost>,
    venues: Vec<VenueHost>,
    recorders: Vec<RecorderHost>,
    /// By reader, then source, each in the order of [`World::node_index`].
    links: Vec<Link>,
    /// In the order of [`World::node_index`].
    disks: Vec<disks::Disk>,
    sessions: Vec<Session>,
    clients: Vec<Client>,
    ledger: Ledger,
    /// Past every answered position, by shard.
    answered: Vec<Position>,
    /// Until when completion times are excused.
    disturbed_until_ns: u64,
    /// The same of a shard's answers.
    shards_disturbed_until_ns: Vec<u64>,
    calm: bool,
    /// Everything is down and about to start again.
    restarting: bool,
    counts: Counts,
    summary: Summary,
}

impl<'a> World<'a> {
    pub(crate) fn new(scenario: &Scenario, watcher: Watcher<'a>) -> Self {
        let mut random = Random::new(scenario.seed);
        let instruments = instruments(scenario);
        let epoch = Epoch(1);
        // The exchange asks little, and last of all.
        let members = (1..=scenario.clients).map(|n| MemberId(u32::try_from(n).expect("few clients")));
        let requests = scenario.requests_per_client;
        let clients = members.map(|member| (member, requests)).chain([(EXCHANGE, requests / 4)]);
        let clients =
            clients.map(|(member, requests)| Client::new(member, requests, scenario.gateways, random.fork()));
        let nodes = scenario.gateways + scenario.venues + scenario.recorders;
        Self {
            now_ns: 0,
            queue: Queue::default(),
            clients: clients.collect(),
            random,
            trace: Trace::new(watcher),
            windows: instruments
                .iter()
                .map(|_| LocalWindow::new(scenario.window, epoch, Position(0)))
                .collect(),
            epoch,
            epoch_first: vec![Position(0); scenario.shards],
            gateways: (0..scenario.gateways).map(|_| GatewayHost::new()).collect(),
            venues: (0..scenario.venues).map(|_| VenueHost::new(scenario.shards)).collect(),
            recorders: (0..scenario.recorders).map(|_| RecorderHost::new(scenario.shards)).collect(),
            links: (0..nodes * nodes).map(|_| Link::default()).collect(),
            disks: (0..nodes).map(|_| disks::Disk::default()).collect(),
            sessions: Vec::new(),
            ledger: Ledger::new(
                scenario.shards,
                scenario.bug == Some(Bug::ExecuteWrongly) || scenario.faults.other_build_ns > 0,
            ),
            answered: vec![Position(0); scenario.shards],
            disturbed_until_ns: 0,
            shards_disturbed_until_ns: vec![0; scenario.shards],
            calm: false,
            restarting: false,
            counts: Counts::default(),
            summary: Summary { epochs: 1, ..Summary::default() },
            instruments,
            scenario: scenario.clone(),
        }
    }

    pub(crate) fn run(&mut self) -> Result<(), Broken> {
        for node in self.nodes() {
            self.start(node)?;
        }
        self.plan_faults();
        for client in 0..self.clients.len() {
            let at_ns = self.random.below(self.scenario.think_ns);
            self.queue.push(at_ns, Action::Wake { client });
        }
        self.queue.push(self.scenario.duration_ns, Action::Calm);
        loop {
            self.come_to_rest()?;
            if !self.start_anew_who_waits() {
                let ended = self.check_end();
                return self.judge_versions(ended);
            }
        }
    }

    fn come_to_rest(&mut self) -> Result<(), Broken> {
        while let Some((at_ns, action)) = self.queue.pop() {
            self.now_ns = at_ns;
            if at_ns > self.scenario.duration_ns + DRAIN_NS {
                return Err(self.unanswered());
            }
            self.summary.events += 1;
            self.act(action)?;
            if self.is_halted() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<(), Broken> {
        match action {
            Action::Message { source, reader, life, from, to } => {
                self.on_message(source, reader, life, from, to)
            }
            Action::Ask { source, reader, life } => self.on_ask(source, reader, life),
            Action::Step { node, life } => return self.on_step(node, life),
            Action::Synced { node, life, to } => return self.on_synced(node, life, to),
            Action::Stored { recorder, life, checkpoint } => self.on_stored(recorder, life, checkpoint),
            Action::Heard { recorder, life, shard, position } => {
                return self.on_heard(recorder, life, shard, position);
            }
            Action::Start { node, life } if self.process(node).life == life => return self.start(node),
            Action::Start { .. } => {}
            Action::Resume { node, life } => return self.resume(node, life),
            Action::BeginEpoch => return self.begin_epoch(),
            Action::Wake { client } => self.wake(client),
            Action::Tick { gateway, life } => self.on_tick(gateway, life),
            Action::ToGateway { session, input } => self.on_input(session, input),
            Action::ToClient { session, reply } => return self.on_reply(session, reply),
            Action::Broken { session } => self.on_broken(session),
            Action::Noticed { recorder, life } => self.on_noticed(recorder, life),
            Action::Room { node } => self.schedule(node),
            Action::Repair => return self.repair(),
            Action::Fault(fault) => return self.on_fault(fault),
            Action::Calm => return self.on_calm(),
        }
        Ok(())
    }

    pub(crate) fn summary(&self) -> Summary {
        let requests: usize =
            self.clients.iter().map(|client| client.answers.len() + client.abandoned.len()).sum();
        let abandoned: usize = self.clients.iter().map(|client| client.abandoned.len()).sum();
        Summary {
            requests: requests as u64,
            abandoned: abandoned as u64,
            positions: self.ledger.positions(),
            duplicates_refused: self.ledger.duplicates_refused,
            window_full: self.counts.window_full,
            too_far_behind: self.counts.too_far_behind,
            engines: Engines {
                failed: self.counts.failed,
                by_themselves: self.counts.by_itself,
                restored: self.counts.restored,
                overruled: self.counts.overruled,
                stuck: self.counts.stuck,
                ..self.summary.engines
            },
            took_ns: self.now_ns,
            trace_hash: self.trace.hash(),
            state_hash: self.state_hash(),
            ..self.summary
        }
    }

    fn note(&mut self, template: &'static str, words: &[u64]) {
        self.trace.note(self.now_ns, template, words);
    }

    /// All processes, in the order of the tiers.
    fn nodes(&self) -> Vec<NodeId> {
        let gateways = (0..self.gateways.len()).map(NodeId::Gateway);
        let venues = (0..self.venues.len()).map(NodeId::Venue);
        gateways.chain(venues).chain((0..self.recorders.len()).map(NodeId::Recorder)).collect()
    }

    fn node_index(&self, node: NodeId) -> usize {
        match node {
            NodeId::Gateway(n) => n,
            NodeId::Venue(n) => self.gateways.len() + n,
            NodeId::Recorder(n) => self.gateways.len() + self.venues.len() + n,
        }
    }

    fn process(&mut self, node: NodeId) -> &mut Process {
        match node {
            NodeId::Gateway(n) => &mut self.gateways[n].process,
            NodeId::Venue(n) => &mut self.venues[n].process,
            NodeId::Recorder(n) => &mut self.recorders[n].process,
        }
    }

    /// Whether it is up, not stopped, and the same process as then.
    fn runs(&mut self, node: NodeId, life: u32) -> bool {
        let process = self.process(node);
        process.up && !process.stopped && process.life == life
    }

    fn gateway_config(&self, gateway: usize) -> Config {
        Config {
            id: GatewayId(u16::try_from(gateway).expect("few gateways")),
            session_in_flight_max: 32,
            session_pace: Pace::FREE,
            patience_ns: self.scenario.patience_ns,
            in_flight_max: self.scenario.in_flight_max,
            names_max: 4_096,
        }
    }
}

impl GatewayHost {
    fn new() -> Self {
        Self {
            process: Process::default(),
            log: Log::new(),
            answered: 0,
            node: None,
            wound: false,
            clock_off_ns: 0,
        }
    }
}

impl VenueHost {
    fn new(shards: usize) -> Self {
        Self {
            process: Process::default(),
            log: Log::new(),
            node: None,
            healthy_at_ns: 0,
            shards_back_ns: vec![0; shards],
            died_at: None,
            deaths: 0,
            build: Build::Ours,
        }
    }
}

impl RecorderHost {
    fn new(shards: usize) -> Self {
        let safe = checks::Safe::new(shards);
        Self {
            process: Process::default(),
            log: Log::new(),
            checkpoints: Vec::new(),
            node: None,
            safe,
            healthy_at_ns: 0,
            found: false,
        }
    }
}

fn shard_id(shard: usize) -> ShardId {
    ShardId(u16::try_from(shard).expect("few shards"))
}

/// A whole trading day in the first half of a run.
fn timetable() -> Timetable {
    let rows = [
        (1, Phase::OpeningCall),
        (4, Phase::Continuous),
        (18, Phase::ClosingCall),
        (20, Phase::PostClose),
        (22, Phase::Closed),
        (24, Phase::Continuous),
    ];
    let rows = rows.map(|(at_ms, phase)| TimetableRow { at_ns: at_ms * MS, phase });
    Timetable::from_rows(&rows).expect("a day in order")
}

/// Each shard's instruments; ids count from 1 over all shards. Of two, one trades all the time without bands; the other
/// has a day, bands, and steps so short that work is left over.
fn instruments(scenario: &Scenario) -> Vec<Vec<Instrument>> {
    let instrument = |id: usize| {
        let plain = Instrument {
            quantity_max: Quantity(1_000),
            price_min: Price(100_000),
            price_max: Price(1_000_000),
            orders_max: 32,
            ..Instrument::listed(
                InstrumentId(u32::try_from(id).expect("few instruments")),
                Symbol::new("SIM").expect("a legal symbol"),
            )
        };
        let eventful = Instrument {
            step_max: 2,
            static_band: 10,
            dynamic_band: 8,
            call_ns: 2 * MS,
            timetable: timetable(),
            ..plain
        };
        Instrument::new(if id.is_multiple_of(2) { eventful } else { plain }).expect("a consistent instrument")
    };
    let of_shard =
        |shard| (1..=scenario.instruments_per_shard).map(move |n| shard * scenario.instruments_per_shard + n);
    (0..scenario.shards).map(|shard| of_shard(shard).map(instrument).collect()).collect()
}
