//! A record of so many requests, as if they had been asked.

use std::path::Path;

use pares_book::FastBook;
use pares_load::{LabError, failed};
use pares_node::checkpoints::UnfinishedCheckpoint;
use pares_node::{HostWorld, NodeId, SystemConfig};
use pares_roles::World;
use pares_roles::durable_log;
use pares_sequencer::{LocalWindow, Sequencer};
use pares_text::progress;
use pares_types::{
    ClientOrderId, Command, Epoch, Event, GatewayId, InstrumentId, MemberId, NewOrder, Outcome, Position,
    Price, Quantity, RecorderId, Request, RequestId, ShardId, Side, Timestamp, VenueId,
};
use pares_venue::shard::BATCH_MAX;
use pares_venue::{ResultAt, Shard, VenueSink};
use pares_wire::record::{ResultPlace, request_bytes, result_bytes, write_request, write_result};

const EPOCH: Epoch = Epoch(1);
const GATEWAY: GatewayId = GatewayId(0);
const WINDOW: usize = 4_096;
const MEMBERS: u64 = 100;
/// The first orders rest, the others trade two by two.
const RESTING: u64 = 10_000;
/// Requests that the gateway's log still holds.
const HELD: u64 = 1_000;

type Writer = <HostWorld as World>::Writer;

/// Makes it at recorder 0, with the end of the gateway's log. Says how many bytes the record has.
pub(super) fn make(world: &HostWorld, config: &SystemConfig, requests: u64) -> Result<u64, LabError> {
    let shards = config.shards()?.into_iter();
    let window = || LocalWindow::new(WINDOW, EPOCH, Position(0));
    let desk = |(id, list): (ShardId, Vec<pares_book::Instrument>)| Desk {
        instruments: list.iter().map(|one| one.id).collect(),
        shard: Shard::new(id, &list),
        window: window(),
    };
    let open = |log| world.write_log(log, durable_log(config));
    let mut maker = Maker {
        desks: shards.map(desk).collect(),
        gateway: open(NodeId::Gateway(GATEWAY)).map_err(failed("opening the gateway's log"))?,
        record: open(NodeId::Recorder(RecorderId(0))).map_err(failed("opening the recorder's log"))?,
        sequence: 0,
    };
    maker.fill(world, requests, config.checkpoint_every)?;
    Ok(maker.record.tail().0)
}

/// A shard at the venue that made the record.
struct Desk {
    instruments: Vec<InstrumentId>,
    shard: Shard<FastBook>,
    window: LocalWindow,
}

struct Maker {
    desks: Vec<Desk>,
    gateway: Writer,
    record: Writer,
    sequence: u64,
}

impl Maker {
    fn fill(&mut self, world: &HostWorld, requests: u64, every: u64) -> Result<(), LabError> {
        let bar = progress::rate("recording", requests);
        let mut turn = 0;
        // The shard whose checkpoint is the oldest comes next, as venues do it.
        let mut due = (0..self.desks.len() as u64)
            .map(|desk| (requests.saturating_sub((desk + 1) * every), desk as usize));
        let mut next = due.next_back();
        while self.sequence < requests {
            let count = (BATCH_MAX as u64).min(requests - self.sequence);
            let desk = turn % self.desks.len();
            self.batch(desk, count, requests)?;
            turn += 1;
            while let Some((_, desk)) = next.filter(|(at, _)| *at <= self.sequence) {
                self.checkpoint(world, desk)?;
                next = due.next_back();
            }
            bar.set_position(self.sequence);
        }
        bar.finish_and_clear();
        self.record.publish();
        self.gateway.publish();
        Ok(())
    }

    /// Has a shard execute so many requests, of `requests` in all.
    fn batch(&mut self, desk: usize, count: u64, requests: u64) -> Result<(), LabError> {
        let Self { desks, gateway, record, sequence } = self;
        let Desk { instruments, shard, window } = &mut desks[desk];
        for _ in 0..count {
            *sequence += 1;
            let request = request(*sequence, shard.id(), instruments);
            shard.on_request(&request);
            if *sequence + HELD > requests {
                let fill = |out: &mut [u8]| write_request(out, &request);
                gateway
                    .append_with(request_bytes(&request), fill)
                    .map_err(failed("writing the gateway's log"))?;
            }
        }
        let mut sink = Sink { record, failed: None };
        while shard.pending_len() > 0 {
            shard.step(window, &mut sink);
            window.raise_recorded(shard.position());
        }
        sink.record.publish();
        sink.failed.map_or(Ok(()), Err)
    }

    fn checkpoint(&mut self, world: &HostWorld, desk: usize) -> Result<(), LabError> {
        let shard = &mut self.desks[desk].shard;
        let mut state = Vec::new();
        let place = (shard.id(), shard.checkpoint(&mut state));
        let dir = Path::new("recorder-0/checkpoints");
        let mut file = UnfinishedCheckpoint::create(world, dir, place, (&VenueId(0), false))?;
        file.finish(&state)?;
        file.name(self.record.tail())?;
        Ok(())
    }
}

/// Two after the other trade with each other, but for the first.
fn request(sequence: u64, shard: ShardId, instruments: &[InstrumentId]) -> Request {
    let instrument = instruments[(sequence / 2) as usize % instruments.len()];
    let (side, price) = match (sequence <= RESTING, sequence % 2) {
        (true, _) => (Side::Buy, 100_000),
        (false, 0) => (Side::Sell, 1_000_000),
        (false, _) => (Side::Buy, 1_000_000),
    };
    Request {
        id: RequestId::new(GATEWAY, sequence),
        stamp: Timestamp(sequence),
        member: MemberId((sequence / 2 % MEMBERS) as u32 + 1),
        client_order_id: ClientOrderId(sequence),
        instrument,
        shard,
        command: Command::Enter(NewOrder::limit(side, Price(price), Quantity(100))),
    }
}

/// Appends what a venue hands out as a recorder does.
struct Sink<'a> {
    record: &'a mut Writer,
    failed: Option<LabError>,
}

impl VenueSink for Sink<'_> {
    fn has_room(&mut self) -> bool {
        true
    }

    fn result(&mut self, at: ResultAt, request: &Request, outcome: &Outcome, events: &[Event]) {
        let ResultAt { shard, epoch, position, state_hash } = at;
        let (venue, state_hash) = (VenueId(0), state_hash.unwrap_or(0));
        let place = ResultPlace { shard, epoch, position, venue, state_hash };
        let fill = |out: &mut [u8]| write_result(out, &place, request, outcome, events);
        if let Err(error) = self.record.append_with(result_bytes(request, events.len()), fill) {
            self.failed.get_or_insert_with(|| failed("writing the record")(error));
        }
    }
}
