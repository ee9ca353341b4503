//! Recorders' logs for tests of audits.

use pares_log::{Config, Writer};
use pares_node::Layout;
use pares_types::{
    ClientOrderId, Command, Epoch, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Position, Quantity,
    Reason, RecorderId, Request, RequestId, ShardId, Status, Timestamp, VenueId,
};
use pares_wire::record::{ResultPlace, result_bytes, write_result};

/// A result of the first shard, for a request of member 1.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// Of the request; its number is the same.
    pub(crate) name: u64,
    pub(crate) position: u64,
    pub(crate) venue: u16,
    pub(crate) reason: Reason,
    pub(crate) executed: u64,
}

/// Writes a recorder's log.
pub(crate) fn write_log(layout: &Layout, recorder: u16, entries: impl IntoIterator<Item = Entry>) {
    let config = Config::default().segment_bytes(1 << 20);
    let (mut writer, _) = Writer::open(&layout.recorder_log(RecorderId(recorder)), config).unwrap();
    for Entry { name, position, venue, reason, executed } in entries {
        let (id, shard) = (RequestId::new(GatewayId(0), name), ShardId(0));
        let request = Request {
            id,
            stamp: Timestamp(0),
            member: MemberId(1),
            client_order_id: ClientOrderId(name),
            instrument: InstrumentId(1),
            shard,
            command: Command::Cancel { target: OrderId(id) },
        };
        let (order, executed, remaining) = (OrderId(id), Quantity(executed), Quantity::ZERO);
        let outcome = Outcome { status: Status::Cancelled, reason, order, executed, remaining };
        let (epoch, position, venue) = (Epoch(1), Position(position), VenueId(venue));
        let place = ResultPlace { shard, epoch, position, venue, state_hash: 0 };
        let fill = |out: &mut [u8]| write_result(out, &place, &request, &outcome, &[]);
        writer.append_with(result_bytes(&request, 0), fill).unwrap();
    }
    writer.publish();
}
