//! The role of a gateway: clients' sessions in, one numbered stream of requests out, answers from the committed stream. Generic over the
//! world that it runs in, as the roles of `pares-roles`.
//!
//! ```text
//!  clients --frames--> Gateway rules --journal--> own log --publish--> ring venues
//!     ^                     ^   ^
//!     +------ replies ------+   +--- committed stream, other gateways' logs
//! ```
//! The request is forwarded by being journalled: venues tail the log. An answer rests on the recorders'
//! logs, which hold the request too; only the *journalled* notice rests on the gateway's own. So with `disk`
//! a task beside the duty cycle syncs it at once while any client wants such notices, and every second otherwise:
//! the device is left to the recorders, and nobody waits for a sync that nobody was promised.
//!
//! Invariants that it asserts:
//!
//! - Nothing is answered that is not in the log, which is released up to what is answered at most.
//! - Marks of numbers are in the log before anything is sent under them; an own mark has one place, behind those before.
//! - A Logon that is used is spent; a session has a bounded number of spans of spent times, apart from each other.
//! - A connection signs on once, and one that was refused ends; there are no more connections than there may be.
//! - Strangers have no more than their share of the room, and who signs on was one until then.
//! - Input ends within its buffer; only bytes that were queued are sent; bytes that were not sent are counted once.
//! - What was found for a session was looked for, and a place in a log is not behind the message that is wanted.
//! - A tap says what it lost before anything else.

mod connection;
mod connections;
mod counters;
mod door_end;
mod edge;
mod frames;
mod housekeeping;
mod lists;
mod look_ups;
mod marks;
mod recover;
mod repair;
mod repeats;
mod resuming;
mod settings;
mod sign_on;
mod spent_logons;
mod sync;
mod tap;
#[cfg(test)]
mod tests;
mod types;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

pub use connections::{OPERATORS_MAX, strangers_max};
use pares_config::{NodeId, SystemConfig};
use pares_gateway::{Gateway, Place, SessionId};
use pares_log::LogWriter;
use pares_port::{DoorFactory, DoorTime};
use pares_roles::committed::{Committed, CommittedStream};
use pares_roles::duty::{Duty, SLEEP_MAX};
use pares_roles::index::{Search, Starts};
use pares_roles::inlet::LogCursor;
use pares_roles::lanes::LanesWatch;
use pares_roles::repair_asked::RepairWatch;
use pares_roles::world::{Sockets, World};
use pares_roles::{NodeError, epoch, repair_asked};
use pares_types::{Event, GatewayId, Timestamp};
use pares_wire::record::{self, RequestRecord, SessionMarkRecord};

use edge::GatewayIo;
use lists::Lists;
use marks::Marks;
use repeats::FirstAnswers;
use resuming::Resuming;
use settings::{connections, peers, rules};
use spent_logons::SpentLogons;
use sync::SyncTask;
use tap::Tap;
use types::Incoming;

/// Records read from one log before the rest is looked at.
const BATCH_MAX: usize = 512;
/// Between two tries to tell the time while the log takes nothing.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// A gateway's state.
pub struct GatewayNode<W: World, S: Sockets> {
    rules: Gateway,
    edge: GatewayIo<W, S>,
    committed: CommittedStream<W>,
    /// The other gateways' logs.
    peers: Vec<LogCursor<W>>,
    first_answers: FirstAnswers<W>,
    resuming: Resuming<W>,
    lists: Lists,
    marks: Marks,
    spent_logons: SpentLogons,
    search: Search,
    in_flight_max: u16,
    id: GatewayId,
    swept_ns: u64,
    frames: Vec<(SessionId, Incoming)>,
    events: Vec<Event>,
    syncer: Option<SyncTask>,
    lookout: RepairWatch,
    lanes: LanesWatch,
    /// The time is due, and the log does not take it.
    untold: bool,
}

impl<W: World, S: Sockets> GatewayNode<W, S> {
    /// Opens the gateway's log, repairs it if need be, and learns from the logs all that was ever asked and answered.
    ///
    /// `doors` makes what stands in front of its connections.
    ///
    /// # Errors
    /// If the system was not started, or the gateway's log is lost or beyond repair.
    pub fn open(
        id: GatewayId,
        config: &SystemConfig,
        world: W,
        sockets: S,
        doors: Arc<dyn DoorFactory>,
    ) -> Result<Self, NodeError> {
        let node = NodeId::Gateway(id);
        let life = epoch::of_records(&world, config)?;
        // Before the log is touched: what an earlier process told of it is true no longer.
        let (counters, untold) = tap::counters(&world, node)?;
        let recover::Opened { writer, rules, committed, marks, spent_logons } =
            repair::opened(&world, id, life, config)?;
        let lookout = repair_asked::done(&world, node);
        let syncer = SyncTask::start(&world, &writer, config)?;
        let tap = Tap::open(id, config, &world, (untold, Arc::clone(&doors)));
        let connections = connections((id, config), &world, sockets, (doors, tap))?;
        let (lanes, placement) = LanesWatch::open(&world, config)?;
        let to_ring = (placement, config.host_of(node).map(NodeId::Orderer));
        let edge = GatewayIo::new(to_ring, life, world, writer, connections, counters);
        Ok(Self {
            rules,
            committed,
            peers: peers(id, config, &edge.world),
            first_answers: FirstAnswers::new(usize::from(config.recorders)),
            resuming: Resuming::new(config.recorders, Starts::start(&edge.world, config, node)?),
            lists: Lists::default(),
            marks,
            spent_logons,
            search: Search::start(&edge.world, config, node)?,
            in_flight_max: config.session_in_flight_max,
            id,
            swept_ns: 0,
            frames: Vec::new(),
            events: Vec::new(),
            syncer,
            lookout,
            lanes,
            untold: false,
            edge,
        })
    }

    /// Names taken by other gateways; read before any client's request, so that a repeat is known as one. A name that
    /// cannot be read is known late: the venues refuse the second request, and its asker gets the first answer.
    fn poll_peers(&mut self) -> usize {
        let mut work = 0;
        for peer in &mut self.peers {
            loop {
                match peer.next() {
                    Ok(Some(entry)) => {
                        let read = match record::schema(entry.payload) {
                            Some(record::SESSION_MARK) => SessionMarkRecord::read(entry.payload)
                                .map(|mark| self.marks.on_peer(mark, &mut self.edge.connections)),
                            // Those Logons name their gateway, and this one refuses them.
                            Some(record::SPENT_LOGON) => Ok(()),
                            _ => RequestRecord::read(entry.payload)
                                .map(|request| self.rules.on_peer_request(&request)),
                        };
                        if let Err(error) = read {
                            peer.on_strange(&error);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        if !peer.on_unreadable(error) {
                            break;
                        }
                    }
                }
                work += 1;
            }
        }
        work
    }

    fn poll_committed(&mut self) -> Result<usize, NodeError> {
        let Self { rules, edge, committed, events, first_answers, .. } = self;
        committed.poll(BATCH_MAX, |item| {
            match item {
                Committed::Result { recorder, offset, record } => {
                    events.clear();
                    for event in record.events() {
                        events.push(event?);
                    }
                    let (request, outcome) = (record.request()?, record.outcome()?);
                    let place = Place { recorder, offset: offset.0 };
                    rules.on_committed(record.position(), &request, &outcome, events, place, edge);
                }
                Committed::Moved { recorder, offset, record } => {
                    let (request, outcome) = (record.request()?, record.outcome()?);
                    let place = Place { recorder, offset: offset.0 };
                    rules.on_moved(record.position(), &request, &outcome, record.events().len(), place);
                    first_answers.on_replaced(recorder);
                }
                Committed::Shown { .. } | Committed::CheckpointStored { .. } => {}
            }
            Ok(())
        })
    }

    fn read_clients(&mut self) -> usize {
        let (now_ns, mono_ns) = (self.edge.world.now_ns(), self.edge.world.mono_ns());
        let mut frames = std::mem::take(&mut self.frames);
        assert!(frames.is_empty(), "what clients sent is dealt with in the turn that reads it");
        let at = DoorTime { utc_ns: now_ns, mono_ns };
        let work = self.edge.connections.read(at, &mut frames);
        for (session, incoming) in frames.drain(..) {
            if !self.edge.connections.is_heard(session) {
                continue;
            }
            match incoming {
                Incoming::Frame(frame) => self.on_frame(now_ns, session, frame),
                Incoming::Unreadable(name) => {
                    self.rules.on_unreadable(Timestamp(now_ns), session, name, &mut self.edge);
                }
                Incoming::LogOn(sign_on, proof) => {
                    self.on_log_on(at, session, &sign_on, proof.as_deref());
                }
                Incoming::Find(symbol) => {
                    self.edge.connections.found(session, at, self.rules.instrument_of(symbol));
                }
                Incoming::Claim(who) => {
                    self.peers.iter_mut().for_each(|peer| peer.tail.look());
                    self.poll_peers();
                    let mark = self.marks.claim(session, who);
                    self.edge.connections.claimed(session, at, mark.as_ref());
                }
            }
        }
        self.frames = frames;
        work
    }

    /// A log that takes nothing any more, or that others cannot read, is repaired as the gateway starts again.
    fn check_log(&mut self) -> Result<(), NodeError> {
        if let Some(error) = self.edge.poisoned.take() {
            return Err(error.into());
        }
        if self.lookout.is_due(&self.edge.world)?
            && let Some(placement) = self.lanes.look(&self.edge.world)
        {
            self.edge.follow(placement);
        }
        Ok(())
    }

    fn tell_time(&mut self) {
        if self.rules.time_due().is_some() {
            let now = Timestamp(self.edge.world.now_ns());
            self.rules.on_time(now, &mut self.edge);
            self.untold = self.rules.time_due().is_some_and(|due| due <= now);
        }
    }

    /// Encodes gateway replies for FIX and OUCH sessions. The marks of their numbers are in the log before anything is sent under
    /// them; whose cannot be, is sent nothing. Says how much there is to do about it.
    fn translate(&mut self) -> usize {
        let Self { edge, marks, .. } = self;
        if !edge.connections.has_doors() {
            return 0;
        }
        let at = DoorTime { utc_ns: edge.world.now_ns(), mono_ns: edge.world.mono_ns() };
        let asked = edge.connections.translate(at);
        let new = edge.connections.marks();
        if new.is_empty() {
            return asked;
        }
        for (session, mark) in new {
            marks.keep((session, mark), edge);
        }
        edge.writer.publish();
        asked + 1
    }

    /// Looks which sockets are ready, and waits for them and for the node's bell at most `timeout`. Says how many connections
    /// were accepted.
    ///
    /// # Errors
    /// If the poll fails: that process is broken.
    pub fn poll_sockets(&mut self, timeout: Duration) -> Result<usize, NodeError> {
        let mono_ns = self.edge.world.mono_ns();
        self.edge.connections.wait(timeout, mono_ns).map_err(NodeError::io("polling the sockets"))
    }
}

impl<W: World, S: Sockets> Duty for GatewayNode<W, S> {
    fn work(&mut self) -> Result<usize, NodeError> {
        self.check_log()?;
        self.rules.on_turn(self.edge.world.mono_ns());
        let mut work = self.poll_committed()?;
        work += self.poll_peers();
        work += self.poll_sockets(Duration::ZERO)?;
        work += self.read_clients();
        let mono_ns = self.edge.world.mono_ns();
        self.edge.connections.end_silent(mono_ns);
        self.rules.run_out_timers(mono_ns);
        work += self.resuming.tell(&mut self.rules, &mut self.edge)?;
        work += usize::from(self.lists.tell(&self.rules, &mut self.edge));
        self.tell_time();
        work += self.look_up();
        if self.edge.publish()
            && let Some(syncer) = self.syncer.as_ref().filter(|_| self.rules.wants_journalled())
        {
            syncer.request();
        }
        let durable = self.edge.writer.durable().0;
        self.rules.on_journalled(durable, &mut self.edge);
        self.first_answers.answer(&mut self.rules, &mut self.edge);
        work += self.translate();
        self.edge.connections.flush(|session| {
            self.rules.on_disconnect(session);
            self.marks.on_disconnect(session);
        });
        self.housekeep();
        Ok(work)
    }

    fn look_everywhere(&mut self) {
        self.committed.look();
        self.peers.iter_mut().for_each(|peer| peer.tail.look());
    }

    fn sleep_max(&self) -> Duration {
        let until = |due_ns: u64, now_ns: u64| Duration::from_nanos(due_ns.saturating_sub(now_ns));
        let world = &self.edge.world;
        let until_told = |due: Timestamp| if self.untold { FULL_PAUSE } else { until(due.0, world.now_ns()) };
        let time = self.rules.time_due().map(until_told);
        let edge = [self.edge.connections.next_due_ns(), self.rules.timer_due_ns()];
        let edge = edge.into_iter().flatten().min().map(|due_ns| until(due_ns, world.mono_ns()));
        [time, edge].into_iter().flatten().fold(SLEEP_MAX, Duration::min)
    }
}
