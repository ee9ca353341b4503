//! A gateway: clients' sessions in, one numbered stream of requests out, answers from the committed stream.
//!
//! ```text
//!  clients --frames--> Gateway rules --journal--> own log --publish--> ring venues
//!     ^                     ^   ^
//!     +------ replies ------+   +--- committed stream, other gateways' logs
//! ```
//! The request is forwarded by being journalled: venues tail the log. An answer rests on the recorders'
//! logs, which hold the request too; only the *journalled* notice rests on the gateway's own. So with `disk`
//! a thread of its own syncs it at once while any client wants such notices, and every second otherwise:
//! the device is left to the recorders, and nobody waits for a sync that nobody was promised.

mod connection;
mod connections;
mod sync;

use std::time::Duration;

use pares_book::Instrument;
pub use pares_gateway::NAME_BYTES;
use pares_gateway::{Answer, Config as Rules, Gateway, GatewaySink, Pace, Place, SessionId};
use pares_log::{Config, Offset, Reader, Writer};
use pares_shm::{Bell, BellKind, Bells, CountersWriter, Ringer, clock};
use pares_types::{
    ClientOrderId, Epoch, Event, GatewayId, MemberId, Reason, Reply, Request, ShardId, Timestamp,
};
use pares_wire::frame::{self, ClientFrame, Pong, SIGN_ON_JOURNALLED, SignOn, SignedOn};
use pares_wire::record::{RequestRecord, ResultRecord, request_bytes, write_request};

use crate::committed::{Committed, CommittedStream};
use crate::config::{DurabilitySetting, Layout, SystemConfig, bells};
use crate::crash::{self, Point};
use crate::duty::{Duty, SLEEP_MAX};
use crate::tail::Tail;
use crate::{NodeError, epoch};
use connection::Incoming;
use connections::Connections;
use sync::SyncThread;

/// Records read from one log before the rest is looked at.
const BATCH_MAX: usize = 512;
/// Repeats whose first answer is to be read; more of them are rejected. Only while a recorder's log is filled again do any
/// wait for longer than it takes to read them.
const AGAIN_MAX: usize = 16_384;
/// Between two looks for connections that went silent.
const SWEEP_EVERY_NS: u64 = 1_000_000_000;
/// The counter that tells joining venues where to start reading this gateway's log.
pub const ANSWERED_OFFSET: &str = "answered_offset";

/// Counters of a gateway, in file order.
pub const COUNTERS: [&str; 14] = [
    ANSWERED_OFFSET,
    "requests",
    "answers",
    "rejected",
    "sessions",
    "in_flight",
    "names",
    "refused_connections",
    "malformed_connections",
    "slow_connections",
    "silent_connections",
    "trades",
    "slowed_reads",
    "shards_not_recorded",
];
const REQUESTS: usize = 1;
const ANSWERS: usize = 2;
const REJECTED: usize = 3;
const TRADES: usize = 11;
const SLOWED_READS: usize = 12;
const SHARDS_NOT_RECORDED: usize = 13;

/// A gateway's state.
pub struct GatewayNode {
    rules: Gateway,
    edge: Edge,
    committed: CommittedStream,
    peers: Vec<Tail>,
    /// Each recorder's log, and a reader of it once needed.
    recorders: Vec<(std::path::PathBuf, Option<Reader>)>,
    in_flight_max: u16,
    id: GatewayId,
    swept_ns: u64,
    /// Whether any client has asked for journalled notices.
    wants_journalled: bool,
    frames: Vec<(SessionId, Incoming)>,
    events: Vec<Event>,
    syncer: Option<SyncThread>,
}

/// What the rules' effects reach: the log and the connections.
struct Edge {
    writer: Writer,
    connections: Connections,
    counters: CountersWriter,
    ringer: Ringer,
    venues: Vec<usize>,
    appended: bool,
    /// Who asked again for which answer.
    again: Vec<(SessionId, ClientOrderId)>,
}

impl GatewaySink for Edge {
    fn journal(&mut self, request: &Request) -> Result<u64, Reason> {
        let fill = |out: &mut [u8]| {
            write_request(out, request);
            crash::torn(Point::GatewayWriting, out);
        };
        let offset = self.writer.append_with(request_bytes(request), fill);
        let offset = offset.map_err(|_| Reason::StorageUnavailable)?;
        self.appended = true;
        self.counters.add(REQUESTS, 1);
        Ok(offset.0)
    }

    fn reply(&mut self, session: SessionId, reply: Reply) {
        match reply {
            Reply::Answer(_) => self.counters.add(ANSWERS, 1),
            Reply::Rejected { .. } => self.counters.add(REJECTED, 1),
            Reply::Trade(_) => self.counters.add(TRADES, 1),
            _ => {}
        }
        if let Some(output) = self.connections.output(session) {
            frame::write_reply(output, &reply);
        }
        if matches!(reply, Reply::Answer(_)) {
            crash::at(Point::GatewayAnswered);
        }
    }

    fn answer_again(&mut self, session: SessionId, _: Place, name: ClientOrderId) {
        if self.again.len() < AGAIN_MAX {
            self.again.push((session, name));
        } else {
            self.reply(session, Reply::Rejected { client_order_id: name, reason: Reason::Overloaded });
        }
    }

    fn read_later(&mut self, session: SessionId, pause_ns: u64) {
        self.connections.read_later(session, pause_ns, clock::mono_ns());
    }
}

impl GatewayNode {
    /// Opens the gateway's log, learns from the logs all that was ever asked and answered, and listens.
    ///
    /// # Errors
    /// If a log is damaged, shared memory is missing or the address is taken.
    pub fn open(
        id: GatewayId,
        config: &SystemConfig,
        layout: &Layout,
        bell: &Bell,
    ) -> Result<Self, NodeError> {
        let log = layout.gateway_log(id);
        let log_config =
            Config::default().segment_bytes(config.segment_mib << 20).durability(config.durability.into());
        let (writer, _) = Writer::open(&log, log_config)?;
        let shards = config.shards()?;
        let timed = shards.iter().filter(|(_, list)| list.iter().any(becomes_due));
        let timed: Vec<ShardId> = timed.map(|(shard, _)| *shard).collect();
        let instruments =
            shards.into_iter().flat_map(|(shard, list)| list.into_iter().map(move |one| (one.id, shard)));
        let rules = Rules {
            id,
            session_in_flight_max: config.session_in_flight_max,
            session_pace: Pace::new(config.session_rate_max, config.session_burst_max),
            patience_ns: config.quorum_patience_ms * 1_000_000,
            in_flight_max: config.in_flight_max,
            names_max: config.names_max,
        };
        let mut rules = Gateway::new(rules, instruments)
            .with_hash_seed(clock::now_ns())
            .with_clock(config.clock_ms * 1_000_000, timed);
        let mut committed = CommittedStream::new(config, layout, |_| Offset::START)?;
        let life = epoch::current(config, layout)?;
        if !recover(&mut rules, &mut committed, &log, (id, life))? {
            return Err(NodeError::LogLost { gateway: id, log });
        }
        crash::at(Point::GatewayRecovered);
        let peers = config.gateway_ids().filter(|&peer| peer != id);
        let syncer =
            (config.durability == DurabilitySetting::Disk).then(|| SyncThread::start(&writer)).transpose()?;
        Ok(Self {
            rules,
            edge: Edge {
                counters: CountersWriter::create(&layout.counters(&format!("gateway-{id}")), &COUNTERS)?,
                connections: listen(id, config, layout, bell)?,
                ringer: Bells::create(&layout.run())?.ringer(),
                venues: config.venue_ids().map(bells::venue).collect(),
                writer,
                appended: false,
                again: Vec::new(),
            },
            committed,
            peers: peers.map(|peer| Tail::new(layout.gateway_log(peer), Offset::START)).collect(),
            recorders: config.recorder_ids().map(|id| (layout.recorder_log(id), None)).collect(),
            in_flight_max: config.session_in_flight_max,
            id,
            swept_ns: 0,
            wants_journalled: false,
            frames: Vec::new(),
            events: Vec::new(),
            syncer,
        })
    }

    /// Names taken by other gateways; read before any client's request, so that a repeat is known as one.
    fn poll_peers(&mut self) -> Result<usize, NodeError> {
        let mut work = 0;
        for tail in &mut self.peers {
            while let Some(entry) = tail.next()? {
                self.rules.on_peer_request(&RequestRecord::read(entry.payload)?);
                work += 1;
            }
        }
        Ok(work)
    }

    fn poll_committed(&mut self) -> Result<usize, NodeError> {
        let Self { rules, edge, committed, events, .. } = self;
        committed.poll(BATCH_MAX, |item| {
            match item {
                Committed::Result { recorder, offset, record } => {
                    crash::at(Point::GatewayCommitted);
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
                }
                Committed::Shown { .. } | Committed::CheckpointStored { .. } => {}
            }
            Ok(())
        })
    }

    fn read_clients(&mut self) -> usize {
        let now_ns = clock::now_ns();
        let mut frames = std::mem::take(&mut self.frames);
        let work = self.edge.connections.read(now_ns, clock::mono_ns(), &mut frames);
        for (session, incoming) in frames.drain(..) {
            match incoming {
                Incoming::Frame(frame) => self.on_frame(now_ns, session, frame),
                Incoming::Unreadable(name) => {
                    self.rules.on_unreadable(Timestamp(now_ns), session, name, &mut self.edge);
                }
            }
        }
        self.frames = frames;
        work
    }

    fn on_frame(&mut self, now_ns: u64, session: SessionId, frame: ClientFrame) {
        match frame {
            ClientFrame::Request(request) => {
                crash::at(Point::GatewayReceived);
                self.rules.on_request(Timestamp(now_ns), session, request, &mut self.edge);
            }
            ClientFrame::SignOn(sign_on) => self.on_sign_on(session, &sign_on),
            ClientFrame::Ping(ping) => {
                if let Some(output) = self.edge.connections.output(session) {
                    frame::write(output, &Pong { token: ping.token });
                }
            }
        }
    }

    fn on_sign_on(&mut self, session: SessionId, sign_on: &SignOn) {
        let member = MemberId(sign_on.member.get());
        let journalled = sign_on.flags.get() & SIGN_ON_JOURNALLED != 0;
        self.rules.on_sign_on(session, member, journalled);
        self.wants_journalled |= journalled;
        self.edge.connections.sign_on(session);
        crash::at(Point::GatewaySigningOn);
        let reply = SignedOn {
            token: sign_on.token,
            gateway: self.id.0.into(),
            in_flight_max: self.in_flight_max.into(),
            member: member.0.into(),
            reserved: 0.into(),
        };
        if let Some(output) = self.edge.connections.output(session) {
            frame::write(output, &reply);
        }
    }

    /// Answers repeats from the record of the first answer. One that is not where it was, because a recorder's log is being
    /// filled again, is looked for later.
    fn answer_repeats(&mut self) {
        for (session, name) in std::mem::take(&mut self.edge.again) {
            let Some((member, place)) = self.rules.first_answer(session, name) else { continue };
            match self.recorded_answer(member, name, place) {
                Some(answer) => {
                    crash::at(Point::GatewayRepeating);
                    self.edge.reply(session, Reply::Answer(answer));
                }
                None => {
                    self.recorders[usize::from(place.recorder.0)].1 = None;
                    self.edge.again.push((session, name));
                }
            }
        }
    }

    /// The answer in the record at `place`, if that is the one.
    fn recorded_answer(&mut self, member: MemberId, name: ClientOrderId, place: Place) -> Option<Answer> {
        let (log, reader) = &mut self.recorders[usize::from(place.recorder.0)];
        if reader.is_none() {
            *reader = Reader::at_end(log).ok();
        }
        let entry = reader.as_mut()?.read_at(Offset(place.offset)).ok()?;
        let record = ResultRecord::read(entry.payload).ok()?;
        let (request, outcome) = (record.request().ok()?, record.outcome().ok()?);
        let is_it = request.member == member && request.client_order_id == name;
        let events = record.events().len();
        is_it.then(|| self.rules.replay_answer(record.position(), &request, &outcome, events))
    }

    /// Tells the time where it is due.
    fn tell_time(&mut self) {
        if self.rules.time_due().is_some() {
            self.rules.on_time(Timestamp(clock::now_ns()), &mut self.edge);
        }
    }

    /// Publishes what was journalled and wakes the venues.
    fn publish(&mut self) {
        if !std::mem::take(&mut self.edge.appended) {
            return;
        }
        crash::at(Point::GatewayJournalled);
        self.edge.writer.publish();
        crash::at(Point::GatewayPublished);
        for &bell in &self.edge.venues {
            self.edge.ringer.ring(bell);
        }
        if let Some(syncer) = self.syncer.as_ref().filter(|_| self.wants_journalled) {
            syncer.request();
        }
    }

    fn housekeep(&mut self) {
        let counters = &self.edge.counters;
        let answered = self.rules.answered_offset(self.edge.writer.tail().0);
        counters.set(0, answered);
        counters.set(SHARDS_NOT_RECORDED, self.rules.standing_still() as u64);
        self.edge.writer.release_before(Offset(answered));
        let connections = &mut self.edge.connections;
        let state = [
            connections.len() as u64,
            self.rules.in_flight() as u64,
            self.rules.names() as u64,
            connections.refused,
            connections.malformed,
            connections.slow,
            connections.silent,
        ];
        state.into_iter().enumerate().for_each(|(index, value)| counters.set(4 + index, value));
        counters.set(SLOWED_READS, connections.parkings);
        let now_ns = clock::now_ns();
        if now_ns.saturating_sub(self.swept_ns) >= SWEEP_EVERY_NS {
            self.swept_ns = now_ns;
            connections.sweep(now_ns);
            if let Some(syncer) = &self.syncer {
                syncer.request();
            }
        }
    }

    fn poll_sockets(&mut self, timeout: Duration) -> bool {
        // A failing poll is a broken process; the next system call will say so in its own words.
        self.edge.connections.wait(timeout, clock::now_ns()).unwrap_or(false)
    }
}

impl Duty for GatewayNode {
    fn work(&mut self) -> Result<usize, NodeError> {
        let mut work = self.poll_committed()?;
        work += self.poll_peers()?;
        self.rules.watch(clock::mono_ns());
        self.poll_sockets(Duration::ZERO);
        work += self.read_clients();
        self.tell_time();
        self.publish();
        let durable = self.edge.writer.durable().0;
        self.rules.on_journalled(durable, &mut self.edge);
        self.answer_repeats();
        self.edge.connections.flush(|session| self.rules.on_disconnect(session));
        self.housekeep();
        Ok(work)
    }

    fn sleep_max(&self) -> Duration {
        let until = |due_ns: u64, now_ns: u64| Duration::from_nanos(due_ns.saturating_sub(now_ns));
        let time = self.rules.time_due().map(|due| until(due.0, clock::now_ns()));
        let parked = self.edge.connections.next_due_ns().map(|due_ns| until(due_ns, clock::mono_ns()));
        [time, parked].into_iter().flatten().fold(SLEEP_MAX, Duration::min)
    }

    fn sleep(&mut self, bell: &Bell, max: Duration) {
        self.poll_sockets(max);
        bell.cancel();
        bell.drain();
    }
}

/// Whether something in the instrument becomes due by itself, from the start.
fn becomes_due(instrument: &Instrument) -> bool {
    !instrument.timetable.rows().is_empty() || instrument.call_ns != 0
}

/// All committed records, then the requests of the gateway's own log. Says whether that is all: a log in which nothing
/// was ever written is not the one from which requests were recorded in this life of the windows.
fn recover(
    rules: &mut Gateway,
    committed: &mut CommittedStream,
    log: &std::path::Path,
    (id, life): (GatewayId, Epoch),
) -> Result<bool, NodeError> {
    let mut known = false;
    let mut own = Reader::at_start(log)?;
    let mut has_begun = own.released() > Offset::START;
    loop {
        let read = committed.poll(usize::MAX, |item| {
            match item {
                Committed::Result { recorder, offset, record } => {
                    let (request, outcome) = (record.request()?, record.outcome()?);
                    let place = Place { recorder, offset: offset.0 };
                    known |= record.epoch() == life && request.id.gateway() == id;
                    rules.recover_committed(
                        record.position(),
                        &request,
                        &outcome,
                        record.events().len(),
                        place,
                    );
                }
                Committed::Shown { record } => rules.recover_uncommitted(&record.request()?),
                Committed::Moved { .. } | Committed::CheckpointStored { .. } => {}
            }
            Ok(())
        })?;
        if read == 0 {
            break;
        }
    }
    while let Some(entry) = own.next()? {
        crash::at(Point::GatewayRecovering);
        has_begun = true;
        let offset = entry.offset.0;
        rules.recover_own(&RequestRecord::read(entry.payload)?, offset);
    }
    Ok(has_begun || !known)
}

/// Listens where configured; a restarted gateway whose port was the system's choice takes the same one again.
fn listen(
    id: GatewayId,
    config: &SystemConfig,
    layout: &Layout,
    bell: &Bell,
) -> Result<Connections, NodeError> {
    let path = layout.gateway_address(id);
    let configured = config.gateways[usize::from(id.0)];
    let before = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    let address = before.filter(|_| configured.port() == 0).unwrap_or(configured);
    let fd = bell.fd().expect("a gateway's bell is a named pipe");
    let connections = Connections::open(address, fd, config.sessions_max)
        .map_err(NodeError::io("listening for clients (is the port taken?)"))?;
    let address = connections.address().map_err(NodeError::io("reading the address listened on"))?;
    let unfinished = path.with_extension("new");
    std::fs::write(&unfinished, address.to_string()).map_err(NodeError::io("publishing the address"))?;
    std::fs::rename(&unfinished, &path).map_err(NodeError::io("publishing the address"))?;
    Ok(connections)
}

/// The kind of bell a gateway sleeps on: one that a poll of sockets can wait for too.
pub const BELL: BellKind = BellKind::Fifo;
