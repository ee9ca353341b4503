//! Clients, servers and networks, moved by events in virtual time.
//!
//! | module | what |
//! |---|---|
//! | [`clients`] | thinking, asking, being answered |
//! | [`execution`] | a transaction at its site: rows, processor, abort |
//! | [`install`] | versions delivered by either protocol become visible |
//! | [`dbsm`], [`clocks`], [`sequencer`] | the paper's baseline, and how it may agree on an order |
//! | [`wice`], [`cluster_log`] | the rules of `pares-wice`, and what they run on |

mod clients;
mod clocks;
mod cluster_log;
mod dbsm;
mod execution;
mod install;
mod sequencer;
mod wice;

use std::collections::HashMap; // looked up only; iterated once, for a maximum

use pares_flow::Schedule;

use crate::check::Checker;
use crate::locks::Holder;
use crate::network::{Carried, Network, Site, side};
use crate::queue::{Nanos, SECOND};
use crate::random::Dice;
use crate::server::Server;
use crate::setting::{Protocol, SITES, Setting};
use crate::tally::{Counts, SideResult};
use crate::workload::Books;
use clients::{Answer, Ask, Client};
use dbsm::Dbsm;
use execution::Running;
use wice::Wice;

/// Something happens.
pub(crate) enum Event {
    /// A client has thought enough.
    Ready(u32),
    /// A server's processor may have ended a job.
    Processor { site: Site, asked: u64 },
    /// A version is in a server's log.
    Logged { site: Site, version: u64 },
    /// A message comes in.
    Arrive { from: Site, to: Site, message: Message },
    /// An entry of the cluster's log is on a member's disk.
    EntryLogged { site: Site, index: u64 },
    /// A protocol looks at its clock.
    Tick,
    /// A site ends its batch.
    Flush(Site),
    /// Load moves to the other side.
    Sunset,
}

/// What servers send each other.
pub(crate) enum Message {
    Dbsm(dbsm::Message),
    Wice(pares_wice::Message),
    Log(cluster_log::Message),
    /// A request is to be executed at the receiver.
    Request(Ask),
    /// It has been.
    Answer(Answer),
}

enum Replication {
    Dbsm(Box<Dbsm>),
    Wice(Box<Wice>),
}

pub(crate) struct World {
    setting: Setting,
    queue: Schedule<Event>,
    random: Dice,
    network: Network,
    servers: Vec<Server>,
    clients: Vec<Client>,
    books: Books,
    running: HashMap<Holder, Running>,
    holders: u64,
    replication: Replication,
    checker: Checker,
    counts: [Counts; 2],
    link_before: [Carried; 2],
    /// When each version was first delivered somewhere, from version 1 on.
    delivered_at: Vec<Nanos>,
    /// Which side has night.
    night: Option<usize>,
    moved_at: Option<Nanos>,
}

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// Clients of C_A and of C_B.
    pub sides: [SideResult; 2],
    /// The same after the load has moved and settled, if it moves.
    pub after: Option<[SideResult; 2]>,
    /// Versions in the commit order.
    pub versions: u64,
    /// Longest time in which no version was delivered anywhere, within two seconds after the certifier was asked to move, ms.
    pub pause_ms: Option<f64>,
    /// The longest within the two seconds before.
    pub usual_pause_ms: Option<f64>,
    /// How long the oldest request without an answer had been under way at the end, ms.
    pub longest_open_ms: f64,
    /// Equal for equal histories.
    pub digest: u64,
    /// Events simulated.
    pub events: u64,
}

impl World {
    pub(crate) fn new(setting: &Setting) -> Self {
        let mut random = Dice::new(setting.seed);
        let distance = (setting.protocol != Protocol::DbsmCluster).then_some(setting.distance);
        let replication = match setting.protocol {
            Protocol::Wice => Replication::Wice(Box::new(Wice::new())),
            protocol => Replication::Dbsm(Box::new(Dbsm::new(protocol))),
        };
        let mut world = Self {
            clients: Client::all(setting),
            books: Books::new(setting.warehouse_count()),
            queue: Schedule::default(),
            network: Network::new(distance),
            servers: (0..SITES).map(|_| Server::new()).collect(),
            running: HashMap::new(),
            holders: 0,
            replication,
            checker: Checker::default(),
            counts: <[Counts; 2]>::default(),
            link_before: <[Carried; 2]>::default(),
            delivered_at: Vec::new(),
            night: setting.day.map(|_| 1),
            moved_at: None,
            random: Dice::new(random.next()),
            setting: setting.clone(),
        };
        world.begin_protocol();
        world.seat_clients();
        world
    }

    /// Runs to the end, or to the first thing found wrong.
    pub(crate) fn run(mut self) -> Result<RunResult, String> {
        let begin = self.setting.warmup_seconds * SECOND;
        let end = begin + self.setting.seconds * SECOND;
        let turn = self.setting.day.map(|day| begin + day.turns_seconds * SECOND);
        assert!(turn.is_none_or(|turn| turn < end), "the day turns while it is measured");
        self.run_until(begin)?;
        let sides = self.measure(turn.unwrap_or(end))?;
        let mut after = None;
        if let Some(turn) = turn {
            self.queue.push(turn, Event::Sunset);
            self.run_until(turn + (end - turn) / 3)?;
            after = Some(self.measure(end)?);
        }
        let pause = |from, to| self.longest_pause(from, to);
        Ok(RunResult {
            sides,
            after,
            versions: self.checker.versions(),
            pause_ms: self.moved_at.map(|moved| pause(moved, moved + 2 * SECOND)),
            usual_pause_ms: self.moved_at.map(|moved| pause(moved.saturating_sub(2 * SECOND), moved)),
            longest_open_ms: self.longest_open(),
            digest: self.checker.digest(),
            events: self.queue.made(),
        })
    }

    /// What clients see from now to `end`.
    fn measure(&mut self, end: Nanos) -> Result<[SideResult; 2], String> {
        let begin = self.now();
        self.counts = <[Counts; 2]>::default();
        for server in &mut self.servers {
            server.busy_before = server.processor.busy();
        }
        self.link_before = [0, 1].map(|side| self.network.carried(side));
        self.run_until(end)?;
        Ok(self.sides((end - begin) as f64 / SECOND as f64))
    }

    fn run_until(&mut self, end: Nanos) -> Result<(), String> {
        while let Some(event) = self.queue.pop_before(end) {
            self.on_event(event);
            if let Some(violation) = self.checker.violation() {
                return Err(violation.to_owned());
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Ready(client) => self.on_ready(client),
            Event::Processor { site, asked } => self.on_processor(site, asked),
            Event::Logged { site, version } => self.see(site, version),
            Event::Arrive { from, to, message } => self.on_message(from, to, message),
            Event::EntryLogged { site, index } => self.on_entry_logged(site, index),
            Event::Tick => self.on_tick(),
            Event::Flush(site) => self.on_flush(site),
            Event::Sunset => self.on_sunset(),
        }
    }

    fn on_message(&mut self, from: Site, to: Site, message: Message) {
        match message {
            Message::Dbsm(message) => self.on_dbsm_message(from, to, message),
            Message::Wice(message) => self.on_wice_message(from, to, message),
            Message::Log(message) => self.on_log_message(from, to, message),
            Message::Request(ask) => self.execute_at(to, ask),
            Message::Answer(answer) => self.on_answer(&answer),
        }
    }

    fn now(&self) -> Nanos {
        self.queue.now()
    }

    fn send(&mut self, from: Site, to: Site, bytes: u64, message: Message) {
        let at = self.network.send(self.queue.now(), from, to, bytes);
        self.queue.push(at, Event::Arrive { from, to, message });
    }

    fn sides(&self, seconds: f64) -> [SideResult; 2] {
        let commits: u64 = self.counts.iter().map(|counts| counts.committed).sum();
        [0, 1].map(|which| {
            let servers: Vec<&Server> = self
                .servers
                .iter()
                .enumerate()
                .filter(|(site, _)| side(*site) == which)
                .map(|(_, s)| s)
                .collect();
            let capacity = seconds * SECOND as f64 * servers.len() as f64;
            let busy: u64 = servers.iter().map(|server| server.processor.busy() - server.busy_before).sum();
            let (carried, before) = (self.network.carried(which), self.link_before[which]);
            let messages = carried.messages - before.messages;
            SideResult {
                processor_percent: 100.0 * busy as f64 / capacity,
                link_bytes_per_second: (carried.bytes - before.bytes) as f64 / seconds,
                link_percent: 100.0 * (carried.busy - before.busy) as f64 / (seconds * SECOND as f64),
                link_messages_per_commit: messages as f64 / commits.max(1) as f64,
                ..self.counts[which].side(seconds, capacity)
            }
        })
    }

    fn longest_open(&self) -> f64 {
        let now = self.now();
        let longest = self.running.values().map(|running| now - running.ask.sent).max();
        crate::tally::milliseconds(longest.unwrap_or_default())
    }

    fn longest_pause(&self, from: Nanos, to: Nanos) -> f64 {
        let inside = self.delivered_at.iter().copied().filter(|at| (from..to).contains(at));
        let moments: Vec<Nanos> = std::iter::once(from).chain(inside).chain([to]).collect();
        moments.windows(2).map(|pair| crate::tally::milliseconds(pair[1] - pair[0])).fold(0.0, f64::max)
    }
}
