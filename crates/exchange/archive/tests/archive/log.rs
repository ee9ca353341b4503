//! A recorder's log of whole days.

use std::path::PathBuf;

use pares_archive::{Days, Store};
use pares_log::{Config, Writer};
use pares_types::{
    BusinessDay, ClientOrderId, Command, Epoch, Event, GatewayId, InstrumentId, MemberId, OrderId, Outcome,
    Position, Quantity, Reason, Request, RequestId, ShardId, Status, Timestamp, VenueId,
};
use pares_wire::record::{ResultPlace, result_bytes, write_result};
use tempfile::TempDir;

pub(crate) const SHARD: ShardId = ShardId(0);
pub(crate) const RECORDER: &str = "recorder-0";

/// A recorder's log.
pub(crate) struct Log {
    pub(crate) dir: TempDir,
    pub(crate) writer: Writer,
    position: u64,
}

impl Log {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("pares.toml"), "").unwrap();
        let config = Config::default().segment_bytes(1 << 20);
        let (writer, _) = Writer::open(&dir.path().join(RECORDER), config).unwrap();
        Self { dir, writer, position: 0 }
    }

    pub(crate) fn days(&self) -> Days {
        Days::new(&self.dir.path().join(RECORDER), &[SHARD])
    }

    fn system(&self) -> PathBuf {
        self.dir.path().join("pares.toml")
    }

    fn append(&mut self, command: Command, events: &[Event]) {
        let id = RequestId::new(GatewayId(0), self.position + 1);
        let request = Request {
            id,
            stamp: Timestamp(1),
            member: MemberId(0),
            client_order_id: ClientOrderId(self.position + 1),
            instrument: InstrumentId(0),
            shard: SHARD,
            command,
        };
        let (none, order) = (Quantity::ZERO, OrderId(id));
        let outcome = Outcome {
            status: Status::Accepted,
            reason: Reason::None,
            order,
            executed: none,
            remaining: none,
        };
        let position = Position(self.position);
        let place = ResultPlace { shard: SHARD, epoch: Epoch(1), position, venue: VenueId(0), state_hash: 0 };
        let fill = |out: &mut [u8]| write_result(out, &place, &request, &outcome, events);
        self.writer.append_with(result_bytes(&request, events.len()), fill).unwrap();
        self.position += 1;
    }

    /// A whole day; the next begins a segment.
    pub(crate) fn pass(&mut self, day: u32) {
        let day = BusinessDay(day);
        self.append(Command::BeginDay { day }, &[]);
        let (orders, trades, quantity) = (0, 0, Quantity::ZERO);
        let ended = Event::DayEnded { day, requests: 1, orders, trades, quantity, state_hash: 7 };
        self.append(Command::EndDay { day }, &[ended]);
        self.writer.begin_segment().unwrap();
        self.writer.publish();
        assert_eq!(self.days().close().unwrap(), [day]);
    }

    pub(crate) fn archive(&self, store: &Store, only: Option<u32>) -> Result<Vec<String>, String> {
        let copied = self.days().archive((&self.system(), RECORDER), store, only.map(BusinessDay));
        copied.map(|copied| copied.days).map_err(|error| error.to_string())
    }
}

pub(crate) fn name(day: u32) -> String {
    BusinessDay(day).to_string()
}
