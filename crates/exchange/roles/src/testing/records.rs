//! Records as nodes of a test write them.

use pares_book::FastBook;
use pares_config::{Layout, NodeId, SystemConfig};
use pares_log::Offset;
use pares_types::{
    ClientOrderId, Command, Epoch, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Position, Quantity,
    Reason, RecorderId, Request, RequestId, ShardId, Status, Timestamp, VenueId,
};
use pares_venue::{Recorded, Shard};
use pares_wire::record::{self, ResultPlace};

use super::TestWorld;
use crate::checkpoints::UnfinishedCheckpoint;
use crate::index::Indexer;
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
    let request = Request {
        id: RequestId::new(GatewayId(0), position + 1),
        stamp: Timestamp(1),
        member: MemberId(1),
        client_order_id: ClientOrderId(1),
        instrument: InstrumentId(1),
        shard,
        command: Command::TIME,
    };
    result_to(&request, (Epoch(epoch), position), (Status::Accepted, Reason::None))
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
    /// A node publishes that in its log. Says where each of it lies.
    pub fn publish(&self, log: NodeId, payloads: &[Vec<u8>]) -> Vec<Offset> {
        let mut writer = self.write_log(log, crate::recorder::log_config(&config())).unwrap();
        let offsets = payloads.iter().map(|payload| writer.append(payload).unwrap()).collect();
        writer.publish();
        offsets
    }

    /// The process of recorder 0 indexes what there is of the first shard, a thousand rows a run.
    pub fn index(&self) {
        let (id, log) = (RecorderId(0), NodeId::Recorder(RecorderId(0)));
        let end = self.write_log(log, crate::recorder::log_config(&config())).unwrap().tail();
        let life = Indexer::start(self, (id, vec![ShardId(0)]), (1_000, false), end).unwrap();
        (0..200).for_each(|_| self.run_tasks());
        drop(life);
        self.run_tasks();
    }

    /// Where the records of a log begin.
    pub fn places(&self, log: NodeId) -> Vec<Offset> {
        let mut reader = self.read_log_from_start(log).unwrap();
        let mut places = Vec::new();
        while let Some(entry) = reader.next().unwrap() {
            places.push(entry.offset);
        }
        places
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
        let (dir, place) = (Layout::new("").checkpoints(RecorderId(0)), (shard, position));
        let mut file = UnfinishedCheckpoint::create(self, &dir, place, VenueId(0), false).unwrap();
        file.finish(&state).unwrap();
        file.name(from).unwrap();
        position
    }

    pub fn results(&self, log: NodeId) -> Vec<(u32, u64)> {
        let mut reader = self.read_log_from_start(log).unwrap();
        let mut found = Vec::new();
        while let Some(entry) = reader.next().unwrap() {
            if let Ok(result) = record::ResultRecord::read(entry.payload) {
                found.push((result.epoch().0, result.position().0));
            }
        }
        found
    }
}
