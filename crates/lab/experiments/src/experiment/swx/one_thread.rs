//! A giving server as the paper's: one thread relays messages to traders and gives the state, in one of the paper's three ways.
//!
//! The paper's primary had one processor and one line of 10 Mbit/s for both, and what it called to hand over a chunk returned once the other
//! had it. Here link and processors are not short, so what both share is a thread. The server that ships has no such way of giving, and gets
//! none for an experiment; this one speaks as it does, so that the server that is filled, traders and source are those that ship.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_desk::blocks::{BatchBuilder, StreamBatch};
use pares_desk::frame::{self, DeskRequest, DeskSignOn, DeskSignedOn, REQUEST_BYTES_MAX, kind};
use pares_desk::item::{ItemName, OrderedItem, SubmittedItem, TraderId};
use pares_desk::session::SessionBuffers;
use pares_feed::publication::Session;
use pares_load::{LabError, LabResult, Worker};
use pares_log::Reader;
use pares_member::config::stream;
use pares_member::start::stream_number;
use pares_member::world::address_file;
use pares_types::{Epoch, GatewayId, Position, RequestId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::IntoBytes;

use crate::member::{Desk, GIVES};

/// Bytes of a frame in which a block goes: a frame has an end, a block has as many as it takes.
const FRAME_BYTES: usize = 256 << 10;
/// Between two looks at whether to stop.
const LOOK_NS: i64 = 1_000_000;

/// How the state is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In one go.
    Block,
    /// In chunks of so many bytes, each as soon as the other has the one before.
    Chunks(usize),
    /// The same, with a pause after each.
    Paused(usize, Duration),
}

impl Way {
    fn chunk_bytes(self) -> usize {
        match self {
            Self::Block => FRAME_BYTES,
            Self::Chunks(bytes) | Self::Paused(bytes, _) => bytes,
        }
    }
}

/// Serves in the giving server's place.
///
/// # Errors
/// If it cannot listen.
pub(super) fn start(desk: &Desk, way: Way) -> Result<Worker<LabResult>, LabError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(LabError::io("listening"))?;
    let address = listener.local_addr().map_err(LabError::io("listening"))?;
    let file = address_file(&desk.layout, GIVES);
    std::fs::write(file, address.to_string()).map_err(LabError::io("saying where to connect"))?;
    let mut server = Server::new(desk, way, listener)?;
    let run = move |stop: &Arc<AtomicBool>| {
        while !stop.load(Ordering::Relaxed) {
            server.turn()?;
        }
        Ok(())
    };
    Worker::start("giving server", run)
}

struct Connection {
    stream: TcpStream,
    buffers: SessionBuffers,
    /// Who it is, if a trader.
    trader: Option<TraderId>,
}

/// A transfer under way: where, of what, and when the next chunk goes.
struct Transfer {
    connection: usize,
    next: Position,
    due: Instant,
}

struct Server {
    way: Way,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    session: Session,
    number: u64,
    log: Reader,
    /// The state is the stream below; live messages are from there on.
    state: Position,
    next: Position,
    transfer: Option<Transfer>,
}

fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> LabError {
    LabError::io(doing)
}

impl Server {
    fn new(desk: &Desk, way: Way, listener: TcpListener) -> Result<Self, LabError> {
        listener.set_nonblocking(true).map_err(io("listening"))?;
        let number = stream_number(&desk.world()?)?;
        let session = Session(format!("{number:010}").into_bytes().try_into().expect("ten digits"));
        let path = desk.layout.log(stream(GIVES));
        let read = |error| LabError::Failed(format!("reading the stream: {error}"));
        let mut log = Reader::at_start(&path).map_err(read)?;
        let mut state = Position(0);
        while log.next().map_err(read)?.is_some() {
            state = state.next();
        }
        let log = Reader::at_start(&path).map_err(read)?;
        let (connections, transfer) = (Vec::new(), None);
        Ok(Self { way, listener, connections, session, number, log, state, next: state, transfer })
    }

    /// Waits for something, does it, and gives a chunk if one is due.
    fn turn(&mut self) -> LabResult {
        self.accept()?;
        for index in self.readable()? {
            self.hear(index);
        }
        match self.transfer.take_if(|transfer| Instant::now() >= transfer.due) {
            Some(transfer) => self.give(transfer),
            None => Ok(()),
        }
    }

    fn accept(&mut self) -> LabResult {
        match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(io("accepting"))?;
                stream.set_nodelay(true).map_err(io("accepting"))?;
                let buffers = SessionBuffers::new(REQUEST_BYTES_MAX);
                self.connections.push(Some(Connection { stream, buffers, trader: None }));
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(io("accepting")(error)),
        }
    }

    /// Connections that have said something.
    fn readable(&self) -> Result<Vec<usize>, LabError> {
        let living = || self.connections.iter().enumerate().filter_map(|(i, c)| Some((i, c.as_ref()?)));
        let mut fds: Vec<PollFd<'_>> = living().map(|(_, c)| PollFd::new(&c.stream, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
        poll(&mut fds, Some(&timeout)).map_err(|error| io("waiting for traders")(error.into()))?;
        let said = living().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(said.map(|((index, _), _)| index).collect())
    }

    /// Reads what a connection has said and does it; one that is over is forgotten.
    fn hear(&mut self, index: usize) {
        let Some(mut connection) = self.connections[index].take() else { return };
        let mut bytes = [0; 16 << 10];
        let Ok(read @ 1..) = connection.stream.read(&mut bytes) else { return };
        connection.buffers.on_input(&bytes[..read]);
        let mut live = BatchBuilder::new(self.session, kind::BLOCK, self.next.0);
        let Connection { stream, buffers, trader } = &mut connection;
        let mut goes_on = true;
        while let Ok(Some((kind, payload))) = buffers.next_frame() {
            goes_on &= match frame::read_request(kind, payload) {
                Ok(DeskRequest::Submit { number, kind, body }) => {
                    let name = ItemName { trader: trader.unwrap_or_default(), number };
                    self.order(&mut live, name, kind, body);
                    true
                }
                Ok(DeskRequest::SignOn(sign_on)) => {
                    *trader = Some(TraderId(sign_on.trader.get()));
                    stream.write_all(&self.signed_on(&sign_on)).is_ok()
                }
                Ok(request) => self.on_peer(index, stream, request).is_ok(),
                Err(_) => false,
            };
        }
        self.connections[index] = goes_on.then_some(connection);
        if !live.is_empty() {
            self.relay(&live.finish());
        }
    }

    /// The server that is filled says something.
    fn on_peer(
        &mut self,
        index: usize,
        stream: &mut TcpStream,
        said: DeskRequest<'_>,
    ) -> std::io::Result<()> {
        match said {
            DeskRequest::PeerHello(_) => {
                let mut have = Vec::new();
                frame::write_through(&mut have, kind::HAVE, self.state);
                stream.write_all(&have)?;
            }
            DeskRequest::Ask(next) => {
                self.transfer = Some(Transfer { connection: index, next, due: Instant::now() });
            }
            _ => {}
        }
        Ok(())
    }

    fn signed_on(&self, sign_on: &DeskSignOn) -> Vec<u8> {
        // A trader that comes back continues from now: what it missed is lost, as in the paper.
        let signed_on = DeskSignedOn {
            server: GIVES.into(),
            cut_off: 0,
            reserved: 0,
            trader: sign_on.trader,
            through: 0.into(),
            next: self.next.0.into(),
            told: self.next.0.into(),
            stream: self.number.into(),
        };
        let mut out = Vec::new();
        frame::write(&mut out, kind::SIGNED_ON, &[signed_on.as_bytes()]);
        out
    }

    fn order(&mut self, live: &mut BatchBuilder, name: ItemName, kind: u8, body: &[u8]) {
        let request = RequestId::new(GatewayId(GIVES), self.next.0);
        let item = SubmittedItem { name, request, stamp_ns: 0, kind, body };
        let mut record = Vec::new();
        OrderedItem { epoch: Epoch(1), position: self.next, repeats: None, item }.write(&mut record);
        live.push(&record);
        self.next = self.next.next();
    }

    fn relay(&mut self, batch: &StreamBatch) {
        for slot in &mut self.connections {
            let Some(connection) = slot else { continue };
            if connection.trader.is_some() && connection.stream.write_all(&batch.frames).is_err() {
                *slot = None;
            }
        }
    }

    /// Gives what is due, and waits until the other has it.
    fn give(&mut self, mut transfer: Transfer) -> LabResult {
        loop {
            let mut chunk = Vec::new();
            let mut next = transfer.next;
            while next < self.state && (chunk.is_empty() || self.way == Way::Block) {
                next = self.chunk(next, &mut chunk)?;
            }
            let slot = self.connections.get_mut(transfer.connection).and_then(Option::as_mut);
            let Some(connection) = slot.filter(|_| next > transfer.next) else { return Ok(()) };
            if connection.stream.write_all(&chunk).is_err() || !await_took(connection, next) {
                return Ok(());
            }
            transfer.next = next;
            if let Way::Paused(_, pause) = self.way {
                transfer.due = Instant::now() + pause;
                self.transfer = Some(transfer);
                return Ok(());
            }
        }
    }

    /// Appends a frame of the state from there on. Where it ends.
    fn chunk(&mut self, from: Position, out: &mut Vec<u8>) -> Result<Position, LabError> {
        let bytes_max = self.way.chunk_bytes();
        let mut builder = BatchBuilder::new(self.session, kind::CHUNK, from.0).packets_of(2 * bytes_max);
        while builder.bytes() < bytes_max && builder.next() < self.state.0 {
            let record =
                self.log.next().map_err(|error| LabError::Failed(format!("reading the stream: {error}")))?;
            let Some(record) = record else { break };
            builder.push(record.payload);
        }
        let batch = builder.finish();
        out.extend_from_slice(&batch.frames);
        Ok(Position(batch.next))
    }
}

/// Waits until the server that is filled has all below `next`. Whether it came to that.
fn await_took(connection: &mut Connection, next: Position) -> bool {
    let mut bytes = [0; 4_096];
    loop {
        while let Ok(Some((kind, payload))) = connection.buffers.next_frame() {
            if matches!(frame::read_request(kind, payload), Ok(DeskRequest::Took(took)) if took >= next) {
                return true;
            }
        }
        match connection.stream.read(&mut bytes) {
            Ok(read @ 1..) => connection.buffers.on_input(&bytes[..read]),
            _ => return false,
        }
    }
}
