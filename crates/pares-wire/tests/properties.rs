//! Whatever is written reads back the same; whatever is not a message is refused without a panic.

use pares_types::{
    Answer, CancelCause, Cancellation, ClientOrderId, ClientRequest, Command, Epoch, Event, GatewayId,
    InstrumentId, MemberId, NewOrder, OrderId, OrderKind, Outcome, Position, Price, Quantity, Reason, Reply,
    Request, RequestId, Role, ShardId, Side, Status, TimeInForce, Timestamp, Trade, VenueId,
};
use pares_wire::WireError;
use pares_wire::frame::{self, ClientFrame, GatewayFrame};
use pares_wire::record::{self, CheckpointChunk, CheckpointStored, RequestRecord, ResultPlace, ResultRecord};
use proptest::prelude::*;
use proptest::sample::select;

fn id() -> impl Strategy<Value = RequestId> {
    (any::<u16>(), 1..=RequestId::SEQUENCE_MAX)
        .prop_map(|(gateway, number)| RequestId::new(GatewayId(gateway), number))
}

fn order_id() -> impl Strategy<Value = OrderId> {
    id().prop_map(OrderId)
}

fn name() -> impl Strategy<Value = ClientOrderId> {
    any::<u64>().prop_map(ClientOrderId)
}

fn instrument() -> impl Strategy<Value = InstrumentId> {
    any::<u32>().prop_map(InstrumentId)
}

fn quantity() -> impl Strategy<Value = Quantity> {
    any::<u64>().prop_map(Quantity)
}

fn price() -> impl Strategy<Value = Price> {
    any::<i64>().prop_map(Price)
}

fn side() -> impl Strategy<Value = Side> {
    select(vec![Side::Buy, Side::Sell])
}

fn reason() -> impl Strategy<Value = Reason> {
    select(Reason::ALL.to_vec())
}

fn status() -> impl Strategy<Value = Status> {
    use Status::*;
    select(vec![Resting, Filled, Cancelled, Refused, MassCancelled])
}

fn cause() -> impl Strategy<Value = CancelCause> {
    use CancelCause::*;
    select(vec![Requested, MassCancel, Remainder, FillOrKill, Reduced])
}

fn new_order() -> impl Strategy<Value = NewOrder> {
    let kind = prop_oneof![
        price().prop_map(|price| (OrderKind::Limit { price }, false)),
        price().prop_map(|price| (OrderKind::Limit { price }, true)),
        any::<bool>().prop_map(|post_only| (OrderKind::Market, post_only)),
    ];
    let time_in_force = select(vec![TimeInForce::Day, TimeInForce::Ioc, TimeInForce::Fok]);
    (side(), kind, time_in_force, quantity()).prop_map(
        |(side, (kind, post_only), time_in_force, quantity)| NewOrder {
            side,
            kind,
            time_in_force,
            post_only,
            quantity,
        },
    )
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        new_order().prop_map(Command::Enter),
        (order_id(), price(), quantity()).prop_map(|(target, price, quantity)| Command::Amend {
            target,
            price,
            quantity
        }),
        order_id().prop_map(|target| Command::Cancel { target }),
        Just(Command::MassCancel),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    (id(), any::<u64>(), any::<u32>(), name(), instrument(), any::<u16>(), command()).prop_map(
        |(id, stamp, member, client_order_id, instrument, shard, command)| Request {
            id,
            stamp: Timestamp(stamp),
            member: MemberId(member),
            client_order_id,
            instrument,
            shard: ShardId(shard),
            command,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let parties = || (order_id(), any::<u32>().prop_map(MemberId), name());
    prop_oneof![
        (parties(), side(), price(), quantity(), quantity()).prop_map(
            |((resting, resting_member, resting_client_order_id), resting_side, price, quantity, left)| {
                let resting_remaining = left;
                Event::Fill {
                    resting,
                    resting_member,
                    resting_client_order_id,
                    resting_side,
                    price,
                    quantity,
                    resting_remaining,
                }
            }
        ),
        (parties(), quantity(), cause()).prop_map(|((order, member, client_order_id), quantity, cause)| {
            Event::Cancelled { order, member, client_order_id, quantity, cause }
        }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    (status(), reason(), order_id(), quantity(), quantity()).prop_map(
        |(status, reason, order, executed, remaining)| Outcome { status, reason, order, executed, remaining },
    )
}

fn result_place() -> impl Strategy<Value = ResultPlace> {
    (any::<u16>(), any::<u32>(), any::<u64>(), any::<u16>(), any::<u64>()).prop_map(
        |(shard, epoch, position, venue, state_hash)| ResultPlace {
            shard: ShardId(shard),
            epoch: Epoch(epoch),
            position: Position(position),
            venue: VenueId(venue),
            state_hash,
        },
    )
}

fn client_request() -> impl Strategy<Value = ClientRequest> {
    prop_oneof![
        (name(), instrument(), new_order()).prop_map(|(client_order_id, instrument, order)| {
            ClientRequest::Enter { client_order_id, instrument, order }
        }),
        (name(), name(), price(), quantity()).prop_map(|(client_order_id, target, price, quantity)| {
            ClientRequest::Amend { client_order_id, target, price, quantity }
        }),
        (name(), name())
            .prop_map(|(client_order_id, target)| ClientRequest::Cancel { client_order_id, target }),
        (name(), instrument()).prop_map(|(client_order_id, instrument)| {
            ClientRequest::MassCancel { client_order_id, instrument }
        }),
    ]
}

/// What every report on an order begins with: name, order, shard, position, instrument.
fn about() -> impl Strategy<Value = (ClientOrderId, OrderId, ShardId, Position, InstrumentId)> {
    (name(), order_id(), any::<u16>().prop_map(ShardId), any::<u64>().prop_map(Position), instrument())
}

fn answer() -> impl Strategy<Value = Answer> {
    (about(), id(), outcome(), any::<u32>(), any::<bool>()).prop_map(
        |(about, request, outcome, events, repeat)| {
            let (client_order_id, order, shard, position, instrument) = about;
            let Outcome { status, reason, executed, remaining, .. } = outcome;
            Answer {
                client_order_id,
                request,
                order,
                shard,
                position,
                instrument,
                status,
                reason,
                executed,
                remaining,
                events,
                repeat,
            }
        },
    )
}

fn trade() -> impl Strategy<Value = Trade> {
    let role = select(vec![Role::Resting, Role::Incoming]);
    (about(), side(), role, price(), quantity(), quantity()).prop_map(
        |(about, side, role, price, quantity, remaining)| {
            let (client_order_id, order, shard, position, instrument) = about;
            Trade {
                client_order_id,
                order,
                shard,
                position,
                instrument,
                side,
                role,
                price,
                quantity,
                remaining,
            }
        },
    )
}

fn cancellation() -> impl Strategy<Value = Cancellation> {
    (about(), quantity(), cause()).prop_map(|(about, quantity, cause)| {
        let (client_order_id, order, shard, position, instrument) = about;
        Cancellation { client_order_id, order, shard, position, instrument, quantity, cause }
    })
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        (name(), id()).prop_map(|(client_order_id, request)| Reply::Journalled { client_order_id, request }),
        answer().prop_map(Reply::Answer),
        trade().prop_map(Reply::Trade),
        cancellation().prop_map(Reply::Cancelled),
        (name(), reason()).prop_map(|(client_order_id, reason)| Reply::Rejected { client_order_id, reason }),
    ]
}

proptest! {
    #[test]
    fn a_request_reads_back_as_written(request in request()) {
        let record = RequestRecord::from(&request);
        prop_assert_eq!(RequestRecord::read(zerocopy::IntoBytes::as_bytes(&record)), Ok(request));
    }

    #[test]
    fn a_result_reads_back_as_written(
        place in result_place(), request in request(), outcome in outcome(),
        events in prop::collection::vec(event(), 0..5),
    ) {
        let mut bytes = vec![0; record::result_bytes(events.len())];
        record::write_result(&mut bytes, &place, &request, &outcome, &events);
        let read = ResultRecord::read(&bytes).unwrap();
        prop_assert_eq!((read.shard(), read.epoch(), read.position()), (place.shard, place.epoch, place.position));
        prop_assert_eq!(read.venue(), place.venue);
        prop_assert_eq!(read.request_id(), Ok(request.id));
        prop_assert_eq!(read.request(), Ok(request));
        prop_assert_eq!(read.outcome(), Ok(outcome));
        prop_assert_eq!(read.events().collect::<Result<Vec<_>, _>>(), Ok(events));
    }

    #[test]
    fn a_client_s_frame_reads_back_as_written(request in client_request()) {
        let mut bytes = Vec::new();
        frame::write_request(&mut bytes, &request);
        let (kind, body, rest) = frame::split(&bytes).unwrap().unwrap();
        prop_assert!(rest.is_empty());
        prop_assert_eq!(frame::decode_client(kind, body), Ok(ClientFrame::Request(request)));
        prop_assert_eq!(frame::request_name(kind, body), request.client_order_id());
    }

    #[test]
    fn a_gateway_s_frame_reads_back_as_written(reply in reply()) {
        let mut bytes = Vec::new();
        frame::write_reply(&mut bytes, &reply);
        let (kind, body, _) = frame::split(&bytes).unwrap().unwrap();
        prop_assert_eq!(frame::decode_gateway(kind, body), Ok(GatewayFrame::Reply(reply)));
    }

    #[test]
    fn a_frame_cut_short_is_not_there_yet(request in client_request(), cut in 0..40usize) {
        let mut bytes = Vec::new();
        frame::write_request(&mut bytes, &request);
        bytes.truncate(cut.min(bytes.len() - 1));
        prop_assert_eq!(frame::split(&bytes), Ok(None));
    }

    #[test]
    fn a_body_cut_short_is_refused(reply in reply(), cut in 0..64usize) {
        let mut bytes = Vec::new();
        frame::write_reply(&mut bytes, &reply);
        let (kind, body, _) = frame::split(&bytes).unwrap().unwrap();
        let cut = &body[..cut.min(body.len() - 1)];
        prop_assert_eq!(frame::decode_gateway(kind, cut), Err(WireError::Truncated));
    }

    #[test]
    fn a_result_cut_short_is_refused(
        place in result_place(), request in request(), outcome in outcome(), event in event(), cut in 0..168usize,
    ) {
        let mut bytes = vec![0; record::result_bytes(1)];
        record::write_result(&mut bytes, &place, &request, &outcome, &[event]);
        prop_assert!(ResultRecord::read(&bytes[..cut]).is_err());
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), schema in 0..6u8) {
        read_everything(&bytes);
        // Almost a record, so that the checks behind the first are reached.
        for (byte, value) in bytes.iter_mut().zip([schema, record::VERSION]) {
            *byte = value;
        }
        read_everything(&bytes);
    }

    #[test]
    fn random_damage_to_a_result_never_panics(
        place in result_place(), request in request(), outcome in outcome(), event in event(),
        at in 0..168usize, value in any::<u8>(),
    ) {
        let mut bytes = vec![0; record::result_bytes(1)];
        record::write_result(&mut bytes, &place, &request, &outcome, &[event]);
        bytes[at] = value;
        read_everything(&bytes);
    }
}

fn read_everything(bytes: &[u8]) {
    let _ = RequestRecord::read(bytes);
    let _ = CheckpointChunk::read(bytes);
    let _ = CheckpointStored::read(bytes);
    let _ = record::schema(bytes);
    if let Ok(result) = ResultRecord::read(bytes) {
        let _ = (result.request(), result.outcome(), result.state_hash(), result.request_id());
        let _ = result.events().filter(Result::is_ok).count();
    }
    if let Ok(Some((kind, body, _))) = frame::split(bytes) {
        let _ = frame::decode_client(kind, body);
    }
    for kind in 0..=u8::MAX {
        let _ = (frame::decode_client(kind, bytes), frame::decode_gateway(kind, bytes));
        let _ = frame::request_name(kind, bytes);
    }
}
