//! From a committed position to its packet on both lines.
//!
//! The publisher is the role that ships, on its own thread, with real sockets and its own log. The recorder is played: a record of one recorder, so
//! that what is published there is committed. A stamp is taken before the record is published and the bell rung, on the thread that does it;
//! another when the last of the publisher's sends has returned. So in the time lie the wake-up, the reading, the messages, the publisher's log and two
//! system calls, and the loopback as far as the receivers' sockets. What a recorder does before it publishes is not in it.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use pares_book::{FastBook, Market};
use pares_config::{FeedConfig, InstrumentConfig};
use pares_feed::itch::FeedMessage;
use pares_feed::mold::Packet;
use pares_flow::{FlowInstrument, SyntheticConfig, SyntheticFlow};
use pares_load::{LabError, ScratchDirectory, Worker, failed, setup};
use pares_node::config;
use pares_node::{HostWorld, Layout, NodeError, NodeId, SystemConfig, duty, process};
use pares_os::{BellKind, clock};
use pares_publisher::lines::{Lines, UdpLines};
use pares_publisher::publisher::PublisherNode;
use pares_roles::World;
use pares_roles::durable_log;
use pares_roles::world::Ring;
use pares_types::{
    ClientOrderId, Epoch, Event, GatewayId, InstrumentId, MemberId, OrderId, Position, Price, PublisherId,
    Quantity, RecorderId, Request, RequestId, ShardId, Timestamp, VenueId,
};
use pares_wire::record::{ResultPlace, result_bytes, write_result};

/// Requests a second.
const RATE: u64 = 10_000;
const SHARD: ShardId = ShardId(0);
const PUBLISHER: PublisherId = PublisherId(0);
const INSTRUMENTS: u32 = 10;
/// The first of them fill caches and wake all processes.
const UNTIMED: u64 = 1_000;
/// How long a publisher may take to start, and to send the last record.
const PATIENCE_NS: u64 = 20_000_000_000;

/// When each position was committed, and how long it took until it was sent.
struct Stamps {
    committed_ns: Vec<AtomicU64>,
    delays: Mutex<Histogram<u64>>,
    /// The last position that was sent.
    sent: AtomicU64,
}

/// The lines of the host, with a stamp after each packet.
struct Stamping {
    lines: UdpLines,
    stamps: Arc<Stamps>,
}

impl Lines for Stamping {
    fn send(&mut self, shard: ShardId, packet: &[u8]) -> u64 {
        let failed = self.lines.send(shard, packet);
        self.stamps.on_sent(packet, clock::mono_ns());
        failed
    }
}

impl Stamps {
    /// Messages carry the time of their request, which here is its position.
    fn on_sent(&self, packet: &[u8], now_ns: u64) {
        let Ok(packet) = Packet::read(packet) else { return };
        let mut delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = None;
        for message in packet.messages().filter_map(|(_, message)| FeedMessage::read(message)) {
            let position = message.head().time_ns();
            if last.replace(position) == Some(position) {
                continue;
            }
            if position >= UNTIMED {
                let committed_ns = self.committed_ns[position as usize].load(Ordering::Acquire);
                delays.saturating_record(now_ns.saturating_sub(committed_ns));
            }
            self.sent.store(position, Ordering::Release);
        }
    }
}

/// How long it took, nanoseconds, of each record that gave messages, for so many seconds.
///
/// # Errors
/// If the publisher does not start, or does not send everything.
pub(super) fn measure(seconds: u64) -> Result<Histogram<u64>, LabError> {
    let records = UNTIMED + RATE * seconds;
    let scratch = ScratchDirectory::create(None)?;
    let layout = Layout::new(scratch.path().join("sent"));
    let (ears, feed) = super::lines()?;
    let config = system(feed);
    std::fs::create_dir_all(layout.run()).map_err(LabError::io("making the directory"))?;
    config::save(&config, &layout.config())?;
    let world = HostWorld::new(&layout)?;
    let stamps = Arc::new(Stamps {
        committed_ns: (0..records).map(|_| AtomicU64::new(0)).collect(),
        delays: Mutex::new(super::delays()),
        sent: AtomicU64::new(0),
    });
    let mut recorder = PlayedRecorder::new(world, &config)?;
    recorder.write(0)?;
    recorder.commit(0, &stamps);
    let publisher = publish(&config, &layout, &stamps)?;
    let recorded = await_sent(0, &stamps).and_then(|()| recorder.run(records, &stamps, &ears));
    publisher.finish()?;
    recorded?;
    let delays = stamps.delays.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(delays.clone())
}

fn system(feed: FeedConfig) -> SystemConfig {
    let instrument = |id| InstrumentConfig { shard: Some(SHARD.0), ..setup::instrument(id) };
    SystemConfig {
        recorders: 1,
        venues: 1,
        gateways: vec![([127, 0, 0, 1], 0).into()],
        instruments: (1..=INSTRUMENTS).map(instrument).collect(),
        feed: Some(feed),
        ..SystemConfig::default()
    }
}

/// Runs the publisher.
fn publish(
    config: &SystemConfig,
    layout: &Layout,
    stamps: &Arc<Stamps>,
) -> Result<Worker<Result<(), NodeError>>, LabError> {
    let (config, layout, stamps) = (config.clone(), layout.clone(), Arc::clone(stamps));
    Worker::start("publisher", move |stop| {
        let mut bell = process::listen(NodeId::Publisher(PUBLISHER), &layout, BellKind::Futex)?;
        let lines = Stamping { lines: UdpLines::open(PUBLISHER, &config)?, stamps };
        let world = HostWorld::new(&layout)?;
        let mut publisher = PublisherNode::open(PUBLISHER, &config, world, lines)?;
        duty::run(&mut publisher, &mut bell, stop, duty::on_bell)
    })
}

fn await_sent(position: u64, stamps: &Stamps) -> Result<(), LabError> {
    let begun_ns = clock::mono_ns();
    while stamps.sent.load(Ordering::Acquire) < position {
        if clock::mono_ns() - begun_ns > PATIENCE_NS {
            return Err(LabError::Failed(format!("the publisher has not sent position {position}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A recorder's log and what is executed into it.
struct PlayedRecorder {
    market: Market<FastBook>,
    flow: SyntheticFlow,
    writer: <HostWorld as World>::Writer,
    ringer: <HostWorld as World>::Ringer,
    events: Vec<Event>,
}

impl PlayedRecorder {
    fn new(world: HostWorld, config: &SystemConfig) -> Result<Self, LabError> {
        let instruments = config.shards()?.remove(&SHARD).unwrap_or_default();
        let flow = |of: &InstrumentConfig| {
            let (id, tick, lot) = (InstrumentId(of.id), Price(of.tick), Quantity(of.lot));
            FlowInstrument { id, tick, lot, start: Price(of.tick * 10_000) }
        };
        let flow = SyntheticFlow::new(&SyntheticConfig {
            seed: 1,
            instruments: config.instruments.iter().map(flow).collect(),
            members: (1..=20).map(MemberId).collect(),
            first_client_order_id: ClientOrderId(1),
            live_orders_max: 200,
        });
        let log = NodeId::Recorder(RecorderId(0));
        let writer = world.write_log(log, durable_log(config)).map_err(failed("opening the record"))?;
        let (market, ringer) = (Market::new(&instruments), world.ringer());
        Ok(Self { market, flow, writer, ringer, events: Vec::new() })
    }

    /// Writes the record of a position; nobody sees it yet.
    fn write(&mut self, position: u64) -> Result<(), LabError> {
        let id = |name: ClientOrderId| RequestId::new(GatewayId(0), name.0);
        let asked = self.flow.next_command();
        let command = asked.action.to_command(|name| Some(OrderId(id(name)))).expect("every name is known");
        let request = Request {
            id: id(asked.client_order_id),
            stamp: Timestamp(position),
            member: asked.member,
            client_order_id: asked.client_order_id,
            instrument: asked.instrument,
            shard: SHARD,
            command,
        };
        let outcome = self.market.apply(&request, &mut self.events);
        let (epoch, venue, state_hash) = (Epoch(1), VenueId(0), 0);
        let place = ResultPlace { shard: SHARD, epoch, position: Position(position), venue, state_hash };
        let (bytes, events) = (result_bytes(&request, self.events.len()), &self.events);
        let fill = |out: &mut [u8]| write_result(out, &place, &request, &outcome, events);
        self.writer.append_with(bytes, fill).map_err(failed("writing the record"))?;
        self.events.clear();
        Ok(())
    }

    /// What was written is committed.
    fn commit(&mut self, position: u64, stamps: &Stamps) {
        stamps.committed_ns[position as usize].store(clock::mono_ns(), Ordering::Release);
        self.writer.publish();
        self.ringer.ring(NodeId::Publisher(PUBLISHER));
    }

    /// One record after the other, each when it is due; takes meanwhile what arrives at the lines' ends.
    fn run(&mut self, records: u64, stamps: &Stamps, ears: &[UdpSocket; 2]) -> Result<(), LabError> {
        ears.iter().try_for_each(|ear| ear.set_nonblocking(true)).map_err(LabError::io("lines"))?;
        let (begun_ns, mut bytes) = (clock::mono_ns(), [0; 2_048]);
        for position in 1..records {
            self.write(position)?;
            let due_ns = begun_ns + position * 1_000_000_000 / RATE;
            while clock::mono_ns() < due_ns {
                ears.iter().for_each(|ear| drop(ear.recv(&mut bytes)));
            }
            self.commit(position, stamps);
        }
        // Not every record gives messages; the last ones might not.
        await_sent(records.saturating_sub(UNTIMED / 2), stamps)
    }
}
