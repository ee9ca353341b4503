//! The stream as a server keeps it: from submissions to what traders receive.

use pares_config::DurabilitySetting;
use pares_desk::blocks::{BatchBuilder, BatchRing, Follows, RING_BYTES_MAX, StreamBatch};
use pares_desk::frame::{Refusal, kind};
use pares_desk::item::{BODY_BYTES_MAX, ItemBody, ItemName, NUMBER_MAX, TraderId};
use pares_desk::local::{LocalStream, Offered};
use pares_desk::names::SubmissionState;
use pares_feed::mold::{Packet, Packing};
use pares_feed::publication::Session;
use pares_log::AppendError;
use pares_roles::tail::Tail;
use pares_roles::{NodeError, World};
use pares_sequencer::{ProposeError, Sequencer};
use pares_types::{Epoch, GatewayId, Position};

use super::logs::{self, StreamLog, Submissions, position_of};
use super::web;
use crate::config::MemberConfig;
use crate::start::{self, SHARD, stream_number};

/// Submissions read of each peer in a turn.
const READ_MAX: usize = 512;
/// Records appended in a turn.
const TAKEN_MAX: usize = 1_024;
/// Traders that may ever have submitted something.
const TRADERS_MAX: usize = 65_536;
/// Bytes of what is read from the log for one who is behind.
const BEHIND_BYTES: usize = 64 << 10;
/// Turns in which bytes may be missing before a peer is asked.
const MISSING_MAX: u32 = 3;

/// The stream at a server.
pub(super) struct Keeper<W: World> {
    world: W,
    server: u16,
    pub(super) stream: LocalStream,
    window: W::Window,
    log: StreamLog<W>,
    submissions: Submissions<W>,
    peers: Vec<Tail<W>>,
    ring: BatchRing,
    /// The same as texts, once a trader reads them.
    texts: Option<BatchRing>,
    /// What was encoded last, for the group.
    cast: Option<StreamBatch>,
    session: Session,
    pub(super) number: u64,
    is_synced: bool,
    so_far: SoFar,
    record: Vec<u8>,
}

/// What became of something that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is in the log.
    New,
    /// It stands in the stream, and the submitter may not be told of it yet: with all others.
    Untold,
    /// It stands there.
    Stands(SubmissionState),
}

/// What a server remembers from turn to turn.
#[derive(Debug, Default)]
struct SoFar {
    /// Whether the window has continued without this server.
    is_behind: bool,
    /// Turns in which the bytes of what is decided were missing.
    missing: u32,
    /// Whether the disk was full when something was to be appended.
    is_out_of_room: bool,
    /// Whether anything was appended since the last publishing.
    appended: bool,
    /// Once all below that position is released to traders, submissions up to that sequence are released.
    releasing: Option<(Position, u64)>,
}

impl<W: World> Keeper<W> {
    pub(super) fn open(server: u16, config: &MemberConfig, world: W) -> Result<Self, NodeError> {
        let window = world.open_window(SHARD).map_err(NodeError::io("opening the window"))?;
        let window = window.ok_or(NodeError::NotStarted(SHARD))?;
        let number = stream_number(&world)?;
        let mut stream = LocalStream::new(server, config.count(), config.quorum, window.epoch());
        start::cut_if_left_out(&world, config, server)?;
        let log = StreamLog::open(&world, config, server, |record| stream.recover(record).is_ok())?;
        let told = start::told(&world, &window)?;
        if stream.next() == Position(0) {
            start::note_told_before(&world, server, window.recorded())?;
        }
        stream.start_at(told);
        let through = stream.through(GatewayId(server));
        (0..config.count()).for_each(|one| stream.void(GatewayId(one), start::void(&world, one)));
        let recover = |record: &[u8]| _ = stream.on_submitted(record);
        let submitted = Submissions::open(&world, config, server, through, recover)?;
        let peers = logs::peers(server, config, &world);
        let session = Session(format!("{number:010}").into_bytes().try_into().expect("ten digits"));
        let ring = BatchRing::new(stream.told().0, RING_BYTES_MAX);
        Ok(Self {
            world,
            server,
            stream,
            window,
            log,
            submissions: submitted,
            peers,
            ring,
            texts: None,
            cast: None,
            session,
            number,
            is_synced: config.durability == DurabilitySetting::Disk,
            so_far: SoFar::default(),
            record: Vec::new(),
        })
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.window.epoch()
    }

    /// All below is in the logs of a quorum, or was when everything was started.
    pub(super) fn recorded(&self) -> Position {
        self.window.recorded()
    }

    /// Whether what is missing here can only be had from a peer.
    pub(super) fn needs_peer(&self) -> bool {
        self.so_far.is_behind || self.so_far.missing > MISSING_MAX
    }

    /// A trader, or the exchange, submits something.
    pub(super) fn submit(&mut self, name: ItemName, kind: u8, body: &[u8]) -> Result<Taken, Refusal> {
        if !(1..=NUMBER_MAX).contains(&name.number) {
            return Err(Refusal::Number);
        }
        if let Some(stands) = self.stream.names().find(name) {
            // One that is not remembered counts as used since a later one stands there.
            let at = if let SubmissionState::At(at) = stands {
                Some(at)
            } else {
                self.stream.names().newest(name.trader)
            };
            let is_told = at.is_some_and(|at| at < self.stream.told());
            return Ok(if is_told { Taken::Stands(stands) } else { Taken::Untold });
        }
        self.check(name, kind, body)?;
        let (stamp_ns, stream) = (self.world.now_ns(), &mut self.stream);
        let mut is_new = false;
        let on = |record: &[u8]| is_new = stream.on_submitted(record) == Ok(true);
        match self.submissions.append(name, stamp_ns, (kind, body), on) {
            Ok(()) if is_new => Ok(Taken::New),
            // Its number was used, and it will not stand by it: the trader is to say it elsewhere.
            Ok(()) => Err(Refusal::NoRoom),
            Err(AppendError::TooLarge { .. }) => Err(Refusal::TooLong),
            Err(AppendError::Full | AppendError::Poisoned { .. }) => Err(Refusal::NoRoom),
        }
    }

    fn check(&self, name: ItemName, kind: u8, body: &[u8]) -> Result<(), Refusal> {
        if body.len() > BODY_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        let says = ItemBody::read(kind, body).map_err(|_| Refusal::Malformed)?;
        if matches!(says, ItemBody::Report { .. }) && name.trader.is_trader() {
            return Err(Refusal::Malformed);
        }
        if self.stream.is_full() {
            return Err(Refusal::Busy);
        }
        let names = self.stream.names();
        let is_full = name.trader.is_trader() && names.submitters() >= TRADERS_MAX;
        match is_full && names.through(name.trader) == 0 {
            true => Err(Refusal::TooManyTraders),
            false => Ok(()),
        }
    }

    /// The highest number of a trader that was ordered.
    pub(super) fn through(&self, trader: TraderId) -> u64 {
        self.stream.names().through(trader)
    }

    /// Where the newest item of a trader stands, to `take`.
    pub(super) fn newest(&mut self, trader: TraderId, mut take: impl FnMut(&[u8])) -> Result<(), NodeError> {
        let Some(at) = self.stream.names().newest(trader) else { return Ok(()) };
        self.log.read(at, at.next(), |record| {
            take(record);
            false
        })
    }

    /// Others may read what was submitted here.
    pub(super) fn publish_submissions(&mut self) {
        self.submissions.publish();
    }

    /// Takes in what the peers' traders submitted. Says how much that was.
    pub(super) fn read_peers(&mut self) -> usize {
        let mut read = 0;
        for tail in &mut self.peers {
            for _ in 0..READ_MAX {
                if self.stream.is_full() {
                    break;
                }
                let unreadable = match tail.next() {
                    Ok(Some(record)) => self.stream.on_submitted(record.payload).err(),
                    Ok(None) => break,
                    Err(error) => {
                        // Who has read it orders it, and the stream brings it here.
                        if tail.pass_over(error).is_err() {
                            break;
                        }
                        None
                    }
                };
                read += 1;
                if let Some(error) = unreadable {
                    self.world.complain(&format_args!("a peer's submission cannot be read: {error}"));
                }
            }
        }
        read
    }

    /// Another log in the place of a peer's is found with the next record, not after many looks at an end.
    pub(super) fn look(&mut self) {
        self.peers.iter_mut().for_each(Tail::look);
    }

    /// Proposes, learns what is decided, and appends it. Says how much was appended.
    pub(super) fn order(&mut self) -> Result<usize, NodeError> {
        match self.stream.order(&mut self.window) {
            Ok(_) => self.so_far.is_behind = false,
            Err(ProposeError::WindowFull { .. }) => {}
            Err(ProposeError::TooFarBehind { .. }) => self.so_far.is_behind = true,
            Err(ProposeError::EpochOver { .. }) => return Err(NodeError::EpochOver),
        }
        let mut record = std::mem::take(&mut self.record);
        let mut taken = 0;
        while taken < TAKEN_MAX && self.stream.next_record(&mut record) && self.append(&record)? {
            taken += 1;
        }
        self.record = record;
        self.so_far.missing =
            if taken == 0 && self.stream.lacks_bytes() { self.so_far.missing + 1 } else { 0 };
        Ok(taken)
    }

    /// Appends the record of the next position. Says whether there was room.
    fn append(&mut self, record: &[u8]) -> Result<bool, NodeError> {
        match self.log.append(record) {
            Ok(()) => {
                self.stream.take(record);
                (self.so_far.is_out_of_room, self.so_far.appended) = (false, true);
                Ok(true)
            }
            Err(AppendError::Full) => {
                if !std::mem::replace(&mut self.so_far.is_out_of_room, true) {
                    self.world.complain(&"the disk is full: only the other servers store the stream");
                }
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a packet of a peer's stream. Says how many positions were new.
    pub(super) fn on_chunk(&mut self, peer: u16, packet: &[u8]) -> Result<usize, NodeError> {
        let Ok(packet) = Packet::read(packet) else { return Ok(0) };
        if packet.session != self.session {
            return Ok(0);
        }
        let (recorded, mut taken) = (self.window.recorded(), 0);
        for (_, record) in packet.messages() {
            match self.stream.on_peer_record(peer, record, recorded) {
                Ok(Offered::Take) if self.append(record)? => taken += 1,
                Ok(Offered::Known) => {}
                Ok(Offered::Take | Offered::Early | Offered::Unrecorded) => break,
                Ok(Offered::Contradicts) => {
                    let at = position_of(record).map_or("?".to_owned(), |at| at.to_string());
                    return Err(NodeError::Refused(format!(
                        "server {peer} and this server differ at position {at} of the stream"
                    )));
                }
                Err(error) => {
                    self.world.complain(&format_args!("server {peer} sent no stream: {error}"));
                    break;
                }
            }
        }
        Ok(taken)
    }

    /// Whether something was appended that nobody else has seen yet, or may be told.
    pub(super) fn has_untold(&self) -> bool {
        self.so_far.appended || self.stream.told().0 > self.ring.next()
    }

    /// Publishes what was appended and encodes what may be told now. Says whether there was anything.
    pub(super) fn publish(&mut self) -> Result<bool, NodeError> {
        let has_more = self.has_untold();
        if std::mem::take(&mut self.so_far.appended) {
            self.log.publish(self.is_synced)?;
        }
        let told = self.stream.told();
        if self.window.recorded() < told {
            self.window.raise_recorded(told);
        }
        if told.0 > self.ring.next() {
            let from = Position(self.ring.next());
            let batch = self.batch(from, told, BEHIND_BYTES)?;
            if let Some(mut texts) = self.texts.take() {
                texts.push(self.texts(from, Position(batch.next), usize::MAX)?);
                self.texts = Some(texts);
            }
            self.cast = Some(batch.clone());
            self.ring.push(batch);
        }
        self.release();
        Ok(has_more)
    }

    /// Lets go of what was submitted here and traders may receive: no server needs its bytes from here any more.
    fn release(&mut self) {
        let (next, through) = (self.stream.next(), self.stream.through(GatewayId(self.server)));
        let (position, ordered) = *self.so_far.releasing.get_or_insert((next, through));
        if self.stream.told() >= position {
            self.submissions.release(ordered);
            self.so_far.releasing = None;
        }
    }

    fn batch(&mut self, from: Position, to: Position, bytes_max: usize) -> Result<StreamBatch, NodeError> {
        let mut builder = BatchBuilder::new(self.session, kind::BLOCK, from.0);
        self.log.read(from, to, |record| {
            builder.push(record);
            builder.bytes() < bytes_max
        })?;
        Ok(builder.finish())
    }

    /// All below is released to traders.
    pub(super) fn told(&self) -> Position {
        Position(self.ring.next())
    }

    /// What is to be sent to the group: what was encoded since this was last asked.
    pub(super) fn take_cast(&mut self) -> Option<StreamBatch> {
        self.cast.take()
    }

    /// The packet that says how far the stream is.
    pub(super) fn heartbeat(&self) -> Vec<u8> {
        Packing::new(self.session, self.ring.next()).take().to_vec()
    }

    /// A trader reads texts from now on.
    pub(super) fn serve_web(&mut self, is_web: bool) {
        if is_web && self.texts.is_none() {
            self.texts = Some(BatchRing::new(self.ring.next(), RING_BYTES_MAX));
        }
    }

    /// Items as texts in frames of a WebSocket.
    fn texts(&mut self, from: Position, to: Position, bytes_max: usize) -> Result<StreamBatch, NodeError> {
        let (mut frames, mut next) = (Vec::new(), from.0);
        self.log.read(from, to, |record| {
            web::write_text(&mut frames, &web::item(record));
            next += 1;
            frames.len() < bytes_max
        })?;
        Ok(StreamBatch { first: from.0, next, frames: frames.into() })
    }

    /// What comes for a trader from position `next` on.
    pub(super) fn batch_after(&mut self, next: u64, is_web: bool) -> Result<Option<StreamBatch>, NodeError> {
        let ring = if is_web { self.texts.as_ref().unwrap_or(&self.ring) } else { &self.ring };
        match ring.follows(next) {
            Follows::Batch(batch) => Ok(Some(batch.clone())),
            Follows::Nothing => Ok(None),
            Follows::Log(to) if is_web => self.texts(Position(next), Position(to), BEHIND_BYTES).map(Some),
            Follows::Log(to) => self.batch(Position(next), Position(to), BEHIND_BYTES).map(Some),
        }
    }

    /// A chunk of the stream for a peer; empty if it has all.
    pub(super) fn chunk(&mut self, from: Position, bytes_max: usize) -> Result<StreamBatch, NodeError> {
        let builder = BatchBuilder::new(self.session, kind::CHUNK, from.0);
        let mut builder = builder.packets_of(bytes_max);
        let to = self.stream.next();
        self.log.read(from.min(to), to, |record| {
            builder.push(record);
            builder.bytes() < bytes_max
        })?;
        Ok(builder.finish())
    }
}
