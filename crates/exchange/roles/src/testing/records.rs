//! Records as nodes of a test write them.

use std::ops::Range;

use pares_book::FastBook;
use pares_config::{Layout, NodeId, SystemConfig};
use pares_log::Offset;
use pares_types::{
    ClientOrderId, Command, Epoch, GatewayId, InstrumentId, MemberId, NewOrder, OrderId, Outcome, Position,
    Price, Quantity, Reason, RecorderId, Request, RequestId, ShardId, Side, Status, Timestamp, VenueId,
};
use pares_venue::{Recorded, Shard};
use pares_wire::record::{self, ResultPlace};

use super::TestWorld;
use crate::checkpoints::UnfinishedCheckpoint;
use crate::index::Indexer;
use crate::shut_out::Note;
use crate::world::World;

pub fn config() -> SystemConfig {
    SystemConfig { segment_mib: 2, window: 1_024, ..SystemConfig::default() }
}

/// What venue 0 says about a position of the first shard in an epoch.
pub fn result(epoch: u32, position: u64) -> Vec<u8> {
    result_of(ShardId(0), epoch, position)
}

/// What venue 0 says about a position in an epoch.
pub fn result_of(shard: ShardId, epoch: u32, position: u64) -> Vec<u8> {
    let request = Request { shard, ..request(GatewayId(0), position + 1) };
    result_to(&request, (Epoch(epoch), position), (Status::Accepted, Reason::None))
}

/// What venue 0 says about these positions of the first shard in the first epoch.
pub fn results(positions: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
    positions.into_iter().map(|position| result(1, position)).collect()
}

/// A gateway's request of that number: member 1 tells the first shard the time.
pub fn request(gateway: GatewayId, sequence: u64) -> Request {
    Request {
        id: RequestId::new(gateway, sequence),
        stamp: Timestamp(sequence),
        member: MemberId(1),
        client_order_id: ClientOrderId(sequence),
        instrument: InstrumentId(1),
        shard: ShardId(0),
        command: Command::TIME,
    }
}

/// An order that rests: one share, at the lowest price.
pub fn bid() -> Command {
    Command::Enter(NewOrder::limit(Side::Buy, Price(1), Quantity(1)))
}

/// What venue 0 says of a request at a position of an epoch; one share is left of the order.
pub fn result_to(
    request: &Request,
    (epoch, position): (Epoch, u64),
    (status, reason): (Status, Reason),
) -> Vec<u8> {
    let (shard, position) = (request.shard, Position(position));
    let place = ResultPlace { shard, epoch, position, venue: VenueId(0), state_hash: 0 };
    let (executed, remaining) = (Quantity(0), Quantity(1));
    let outcome = Outcome { status, reason, order: OrderId(request.id), executed, remaining };
    let mut bytes = vec![0; record::result_bytes(request, 0)];
    record::write_result(&mut bytes, &place, request, &outcome, &[]);
    bytes
}

/// A request as it lies in its gateway's log.
pub fn payload(request: &Request) -> Vec<u8> {
    let mut bytes = vec![0; record::request_bytes(request)];
    record::write_request(&mut bytes, request);
    bytes
}

impl TestWorld {
    /// A world in which nodes have published results of the first shard in the first epoch, of these positions.
    pub fn with(logs: &[(NodeId, Range<u64>)]) -> Self {
        let world = Self::new();
        for (log, positions) in logs {
            world.publish(*log, &results(positions.clone()));
        }
        world
    }

    /// A node publishes that in its log. Says where each of it lies.
    pub fn publish(&self, log: NodeId, payloads: &[Vec<u8>]) -> Vec<Offset> {
        let mut writer = self.write_log(log, crate::durable_log(&config())).unwrap();
        let offsets = payloads.iter().map(|payload| writer.append(payload).unwrap()).collect();
        writer.publish();
        offsets
    }

    /// The process of recorder 0 indexes what there is of the first shard, a thousand rows a run.
    pub fn index(&self) {
        let (id, log) = (RecorderId(0), NodeId::Recorder(RecorderId(0)));
        let end = self.write_log(log, crate::durable_log(&config())).unwrap().tail();
        let life = Indexer::start(self, (id, vec![ShardId(0)]), (1_000, false), end).unwrap();
        (0..200).for_each(|_| self.run_tasks());
        drop(life);
        self.run_tasks();
    }

    /// Where the records of a log begin.
    pub fn places(&self, log: NodeId) -> Vec<Offset> {
        self.records(log).into_iter().map(|(offset, _)| offset).collect()
    }

    /// The beginning of a log is dropped, up to that place at most; says where it begins now.
    pub fn release(&self, log: NodeId, before: Offset) -> Offset {
        self.write_log(log, crate::durable_log(&config())).unwrap().release_before(before)
    }

    /// What a log has published.
    pub fn payloads(&self, log: NodeId) -> Vec<Vec<u8>> {
        self.records(log).into_iter().map(|(_, payload)| payload).collect()
    }

    fn records(&self, log: NodeId) -> Vec<(Offset, Vec<u8>)> {
        let mut reader = self.read_log_from_start(log).unwrap();
        let next = || reader.next().unwrap().map(|entry| (entry.offset, entry.payload.to_vec()));
        std::iter::from_fn(next).collect()
    }

    /// Recorder 0 has a checkpoint of a shard behind these requests; replay starts at `from`. Its position.
    pub fn store_checkpoint(
        &self,
        config: &SystemConfig,
        shard: ShardId,
        requests: &[Request],
        from: Offset,
    ) -> Position {
        let mut behind = Shard::<FastBook>::new(shard, &config.shards().unwrap()[&shard]);
        for (position, request) in (0..).map(Position).zip(requests) {
            let recorded = Recorded { position, request, reason: Reason::None };
            behind.on_committed(recorded, Epoch(1), &mut crate::venue::Silence).unwrap();
        }
        let mut state = Vec::new();
        let position = behind.checkpoint(&mut state);
        self.store(RecorderId(0), (shard, position), &state, from);
        position
    }

    /// A recorder has that checkpoint; replay starts at `from`.
    pub fn store(&self, recorder: RecorderId, place: (ShardId, Position), state: &[u8], from: Offset) {
        let dir = Layout::new("").checkpoints(recorder);
        let mut file = UnfinishedCheckpoint::create(self, &dir, place, (&0, false)).unwrap();
        file.finish(state).unwrap();
        file.name(from).unwrap();
    }

    /// A recorder notes that venue 0 is shut out.
    pub fn note_shut_out(&self, recorder: u16) {
        self.note_shut_out_of(recorder, &[]);
    }

    /// The same, of a venue that executed those shards when it was found.
    pub fn note_shut_out_of(&self, recorder: u16, shards: &[u16]) {
        let (shards, disputed) = (shards.into(), Vec::new());
        Note { venue: 0, recorder, shards, found: None, disputed }.write(self).unwrap();
    }

    pub fn results(&self, log: NodeId) -> Vec<(u32, u64)> {
        let place = |payload: Vec<u8>| {
            let result = record::ResultRecord::read(&payload).ok()?;
            Some((result.epoch().0, result.position().0))
        };
        self.payloads(log).into_iter().filter_map(place).collect()
    }
}
