//! The processes that the simulation has of its own: a gateway reduced to its log, and the process that holds both ends of mirrors.

use std::collections::{BTreeMap, VecDeque};

use pares_config::{DurabilitySetting, NodeId, SystemConfig};
use pares_flow::Random;
use pares_log::{LogReader as _, LogWriter as _, Offset};
use pares_roles::committed::{Committed, CommittedStream};
use pares_roles::duty::Duty;
use pares_roles::mirror::{LogName, MirrorEnded, MirrorReceiver, MirrorSource, Scope, log_of};
use pares_roles::venue::{ANSWERED_OFFSET_COUNTER, EPOCH_COUNTER};
use pares_roles::world::{Counters as _, Ring as _, World as _};
use pares_roles::{NodeError, durable_log, epoch};
use pares_types::{
    ClientOrderId, Command, GatewayId, HostId, InstrumentId, MemberId, NewOrder, OrderId, Price, Quantity,
    Request, RequestId, ShardId, Side, Timestamp,
};
use pares_wire::record::{RequestRecord, request_bytes, write_request};

use super::wires::{SharedWires, Way};
use crate::memory::host::Host;
use crate::memory::world::{MemoryCounters, Ringer};
use crate::memory::writer::Writer;

/// Records of one recorder's log that a gateway reads at once.
const BATCH_MAX: usize = 64;
/// The counters of a gateway; by shard, up to where it has answered.
pub(super) const COMMITTED: &str = "committed";

/// A gateway that is asked by chance, and whose answers are counted.
pub(super) struct Scribe {
    id: GatewayId,
    config: SystemConfig,
    writer: Writer,
    ringer: Ringer,
    readers: Vec<NodeId>,
    random: Random,
    sequence: u64,
    committed: CommittedStream<Host>,
    /// Requests without an answer, and where they lie.
    waiting: VecDeque<(RequestId, Offset)>,
    counters: MemoryCounters,
    /// From when on it is asked no more, ns.
    quiet_ns: u64,
    world: Host,
}

impl Scribe {
    pub(super) fn open(
        id: GatewayId,
        config: &SystemConfig,
        world: &Host,
        (random, quiet_ns): (Random, u64),
    ) -> Result<Self, NodeError> {
        let node = NodeId::Gateway(id);
        let shards: Vec<ShardId> = config.shards()?.into_keys().collect();
        let names = shards.iter().map(|shard| format!("{COMMITTED}-{shard}"));
        let names: Vec<String> =
            [ANSWERED_OFFSET_COUNTER, EPOCH_COUNTER].map(str::to_owned).into_iter().chain(names).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let counters = world.create_counters(&node.to_string(), &names);
        let counters = counters.map_err(NodeError::io("making a gateway's counters"))?;
        let writer = world.write_log(node, durable_log(config))?;
        let (mut waiting, mut log) = (VecDeque::new(), world.read_log_from_start(node)?);
        while let Some(record) = log.next()? {
            waiting.push_back((RequestRecord::read(record.payload)?.id, record.offset));
        }
        let sequence = waiting.back().map_or(0, |(id, _): &(RequestId, Offset)| id.sequence());
        counters.set(1_usize, epoch::of_records(world, config)?.0.into());
        let host = config.host_of(node).expect("a gateway is at a host");
        Ok(Self {
            id,
            config: config.clone(),
            writer,
            ringer: world.ringer(),
            readers: vec![NodeId::Orderer(host), NodeId::Mirror(host)],
            random,
            sequence,
            committed: CommittedStream::new(world, config, |_| Offset::START)?,
            waiting,
            counters,
            quiet_ns,
            world: world.clone(),
        })
    }

    fn request(&mut self) -> Request {
        self.sequence += 1;
        let (id, shards) = (RequestId::new(self.id, self.sequence), self.config.instruments.len() as u64);
        let number = self.random.below(shards);
        let side = self.random.pick(&[Side::Buy, Side::Sell]);
        let (price, quantity) =
            (Price(1_000 + 100 * self.random.below(8) as i64), Quantity(self.random.between(1, 9)));
        let target = OrderId(RequestId::new(self.id, self.random.between(1, self.sequence)));
        let command = match self.random.below(5) {
            0 => Command::Cancel { target },
            _ => Command::Enter(NewOrder::limit(side, price, quantity)),
        };
        Request {
            id,
            stamp: Timestamp(self.sequence),
            member: MemberId(1 + u32::from(self.id.0)),
            client_order_id: ClientOrderId(self.sequence),
            instrument: InstrumentId(1 + number as u32),
            shard: ShardId(number as u16),
            command,
        }
    }

    fn ask(&mut self) -> Result<usize, NodeError> {
        let room = self.config.in_flight_max - self.waiting.len().min(self.config.in_flight_max);
        if self.world.mono_ns() >= self.quiet_ns || self.random.below(8) > 0 {
            return Ok(0);
        }
        let count = (self.random.between(1, 4) as usize).min(room);
        for _ in 0..count {
            let request = self.request();
            let offset =
                self.writer.append_with(request_bytes(&request), |out| write_request(out, &request))?;
            self.waiting.push_back((request.id, offset));
        }
        self.writer.publish();
        if count > 0 && self.config.durability == DurabilitySetting::Disk {
            self.writer.sync()?;
        }
        self.readers.iter().for_each(|&reader| self.ringer.ring(reader));
        Ok(count)
    }

    fn answer(&mut self) -> Result<usize, NodeError> {
        let Self { committed, waiting, .. } = self;
        let read = committed.poll(BATCH_MAX, |item| {
            if let Committed::Result { record, .. } = item {
                let id = record.request_id()?;
                waiting.retain(|(waits, _)| *waits != id);
            }
            Ok(())
        })?;
        let first = self.waiting.front().map_or(self.writer.tail(), |&(_, offset)| offset);
        self.counters.set(0_usize, first.0);
        for (at, shard) in (2_usize..).zip(self.config.shards()?.into_keys()) {
            self.counters.set(at, self.committed.committed(shard).0);
        }
        Ok(read)
    }
}

impl Duty for Scribe {
    fn work(&mut self) -> Result<usize, NodeError> {
        Ok(self.ask()? + self.answer()?)
    }

    fn look_everywhere(&mut self) {
        self.committed.look();
    }
}

/// The mirrors of a host, and what it sends to those of others.
pub(super) struct Mirrors {
    host: HostId,
    config: SystemConfig,
    world: Host,
    wires: SharedWires,
    /// By the host to which they go, with the number of the connection.
    sources: BTreeMap<HostId, (u64, MirrorSource<Host>)>,
    /// By the host from which they come, with the number of the connection; 0 while there is none.
    receivers: BTreeMap<HostId, (u64, MirrorReceiver<Host>)>,
}

fn logs_of(config: &SystemConfig, host: HostId) -> Vec<LogName> {
    NodeId::at(config, Some(host)).into_iter().filter_map(log_of).collect()
}

impl Mirrors {
    pub(super) fn new(host: HostId, config: &SystemConfig, world: Host, wires: SharedWires) -> Self {
        let of = |from| (from, (0, MirrorReceiver::new(&world).of_host(config, from, host)));
        let receivers = config.host_ids().filter(|&from| from != host).map(of).collect();
        Self { host, config: config.clone(), world, wires, sources: BTreeMap::new(), receivers }
    }

    /// What this host sends to another.
    fn send(&mut self, to: HostId) -> Result<usize, MirrorEnded> {
        let way = (self.host, to);
        let (number, is_over) = {
            let mut wires = self.wires.borrow_mut();
            let pipe = wires.pipe(way);
            (pipe.number, pipe.is_over)
        };
        if number == 0 || is_over {
            self.sources.remove(&to);
            return Ok(0);
        }
        if self.sources.get(&to).is_none_or(|(of, _)| *of != number) {
            let logs = logs_of(&self.config, self.host);
            let source = MirrorSource::new(&self.world, Box::new(move || logs.clone()));
            self.sources.insert(to, (number, source.within(Scope::of_host(&self.config, self.host))));
        }
        let (_, source) = self.sources.get_mut(&to).expect("it was just there");
        let mut taken = 0;
        while let Ok(frame) = pop(&self.wires, way, true) {
            source.on_frame(&frame)?;
            taken += 1;
        }
        let is_busy = source.turn(|frame| self.wires.borrow_mut().push(way, false, frame))?;
        Ok(taken + usize::from(is_busy))
    }

    /// What this host has of another.
    fn receive(&mut self, from: HostId) -> Result<usize, MirrorEnded> {
        let way = (from, self.host);
        let (number, receiver) = self.receivers.get_mut(&from).expect("of each other host");
        if *number == 0 {
            let is_cut =
                self.wires.borrow().cuts.contains(&way) || self.wires.borrow().cuts.contains(&(way.1, way.0));
            if is_cut || !self.wires.borrow_mut().random.one_in(8) {
                return Ok(0);
            }
            *number = self.wires.borrow_mut().connect(way);
            receiver
                .ask(logs_of(&self.config, from), |frame| self.wires.borrow_mut().push(way, true, frame))?;
            return Ok(1);
        }
        let mut taken = 0;
        loop {
            match pop(&self.wires, way, false) {
                Ok(frame) => {
                    receiver.on_frame(&frame, |answer| self.wires.borrow_mut().push(way, true, answer))?;
                    taken += 1;
                }
                Err(is_over) => {
                    *number = if is_over { 0 } else { *number };
                    return Ok(taken);
                }
            }
        }
    }

    /// A connection that ends by itself; what no other one repairs ends the process.
    fn end(&mut self, way: Way, ended: MirrorEnded) -> Result<usize, NodeError> {
        self.wires.borrow_mut().hang_up(way);
        match ended {
            MirrorEnded::Hopeless(error) => Err(error),
            MirrorEnded::Broken(_) => Ok(1),
        }
    }
}

fn pop(wires: &SharedWires, way: Way, is_answer: bool) -> Result<Vec<u8>, bool> {
    wires.borrow_mut().pop(way, is_answer)
}

impl Duty for Mirrors {
    fn work(&mut self) -> Result<usize, NodeError> {
        let mut work = 0;
        let others: Vec<HostId> = self.receivers.keys().copied().collect();
        for other in others {
            let sent = self.send(other);
            work += sent.or_else(|ended| self.end((self.host, other), ended))?;
            let received = self.receive(other);
            work += received.or_else(|ended| {
                self.receivers.get_mut(&other).expect("of each other host").0 = 0;
                self.end((other, self.host), ended)
            })?;
        }
        Ok(work)
    }
}
