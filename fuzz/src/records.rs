//! Records in the logs, and the segments that hold them.

use pares_log::record as log;
use pares_types::{
    Amendment, BusinessDay, BustedTrade, CancelCause, ClientOrderId, Command, Entry, Epoch, Event, GatewayId,
    Guarded, IncomingCause, InstrumentId, Key, MemberId, NewOrder, OrderId, OrderKind, Outcome, Peg, Phase,
    Position, Price, Quantity, Reason, Registration, Request, RequestId, RestCause, Rights, Rule, ShardId,
    Side, Status, Symbol, TimeInForce, Timestamp, VenueId,
};
use pares_wire::record::{
    self, CheckpointChunk, CheckpointStored, RequestRecord, ResultPlace, ResultRecord, SessionMark,
    SessionMarkRecord, SpentLogonRecord, request_bytes, result_bytes, write_request, write_result,
};
use zerocopy::IntoBytes;

/// Reads one record as each of the schemas.
pub fn record(bytes: &[u8]) {
    let _schema = record::schema(bytes);
    if let Ok(request) = RequestRecord::read(bytes) {
        assert_eq!(RequestRecord::read(&written(&request)), Ok(request), "a request reads back as written");
    }
    if let Ok(result) = ResultRecord::read(bytes) {
        read_result(&result);
    }
    if let Ok((chunk, piece)) = CheckpointChunk::read(bytes) {
        let end = u64::from(chunk.start.get()) + piece.len() as u64;
        assert!(end < 1 << 32, "a piece lies where a checkpoint can have one");
        assert!(
            chunk.total().is_none_or(|total| end == total),
            "the last piece ends where its checkpoint does"
        );
    }
    let _stored = CheckpointStored::read(bytes).map(|stored| stored.position.get());
    if let Ok(mark) = SessionMarkRecord::read(bytes) {
        assert_eq!(mark.bytes(), bytes, "a mark is written as it was read");
    }
    if let Ok(spent) = SpentLogonRecord::read(bytes) {
        assert_eq!(spent.as_bytes(), bytes, "a spent Logon is written as it was read");
    }
}

fn written(request: &Request) -> Vec<u8> {
    let mut bytes = vec![0; request_bytes(request)];
    write_request(&mut bytes, request);
    bytes
}

fn read_result(result: &ResultRecord<'_>) {
    let events: Result<Vec<Event>, _> = result.events().collect();
    let (Ok(request), Ok(outcome), Ok(events)) = (result.request(), result.outcome(), events) else { return };
    let place = ResultPlace {
        shard: result.shard(),
        epoch: result.epoch(),
        position: result.position(),
        venue: result.venue(),
        state_hash: result.state_hash().unwrap_or_default(),
    };
    let mut written = vec![0; result_bytes(&request, events.len())];
    write_result(&mut written, &place, &request, &outcome, &events);
    let again = ResultRecord::read(&written).expect("what was written is readable");
    assert_eq!((again.request(), again.outcome()), (Ok(request), Ok(outcome)), "as written");
    assert!(again.events().eq(events.into_iter().map(Ok)), "events read back as written");
}

/// Scans a segment of a log, whole and in two halves, at the offset that its first bytes say.
pub fn segment(bytes: &[u8]) {
    let Some((base, bytes)) = bytes.split_first_chunk() else { return };
    // Offsets are bytes written: no log comes near half of all numbers.
    let base = u64::from_le_bytes(*base) >> 1;
    let whole = log::scan(bytes, base, 0, usize::MAX);
    assert!(whole.position <= bytes.len() + 8, "a scan stays in its segment");
    let first = log::scan(bytes, base, 0, bytes.len() / 2);
    assert!(first.position <= whole.position && first.records <= whole.records, "a limit only shortens");
    let second = log::scan(bytes, base, first.position, usize::MAX);
    let halves = (first.records + second.records, first.payload_bytes + second.payload_bytes);
    assert_eq!(halves, (whole.records, whole.payload_bytes), "a scan resumes where it stopped");
}

/// A record of each schema.
#[must_use]
pub fn record_seeds() -> Vec<Vec<u8>> {
    let bytes = |command| written(&request(command));
    let requests = commands().into_iter().map(bytes);
    let results =
        [0, 1, 3].map(|events| result(&vec![fill(); events])).into_iter().chain([result(&events())]);
    let chunk = CheckpointChunk {
        schema: record::CHECKPOINT_CHUNK,
        version: record::VERSION,
        shard: 1.into(),
        epoch: 1.into(),
        position: 8_192.into(),
        total_bytes: 64.into(),
        start: 16.into(),
    };
    let stored = CheckpointStored {
        schema: record::CHECKPOINT_STORED,
        version: record::VERSION,
        shard: 1.into(),
        epoch: 1.into(),
        position: 8_192.into(),
    };
    let chunk = [chunk.as_bytes(), &[7; 48]].concat();
    let told = vec![(ShardId(0), 5), (ShardId(7), 9)];
    let copied = Some(MemberId(8));
    let mark = SessionMark { member: MemberId(7), session: 1, next_in: 2, out_max: 40, copied, told };
    let mark = SessionMarkRecord { reign: 3, gateway: GatewayId(1), logon_ns: 9, mark }.bytes();
    let spent = SpentLogonRecord::new((MemberId(7), 1), (8, 9), 120).as_bytes().to_vec();
    requests.chain(results).chain([chunk, stored.as_bytes().to_vec(), mark, spent]).collect()
}

/// Segments: sealed, open, empty.
#[must_use]
pub fn segment_seeds() -> Vec<Vec<u8>> {
    let base = 4_096_u64;
    let mut records = Vec::new();
    for payload in record_seeds() {
        let start = records.len();
        records.resize(start + log::size(payload.len()), 0);
        records[start + log::HEADER_BYTES..][..payload.len()].copy_from_slice(&payload);
        log::seal(&mut records[start..], base + start as u64, payload.len());
    }
    let mut sealed = records.clone();
    let end = sealed.len();
    sealed.resize(end + 64, 0);
    log::seal_pad(&mut sealed[end..], base + end as u64);
    let open = [records, vec![0; 64]].concat();
    let head = (base << 1).to_le_bytes();
    [sealed, open, vec![0; 64]].map(|segment| [head.as_slice(), &segment].concat()).into()
}

fn request(command: Command) -> Request {
    Request {
        id: id(2),
        stamp: Timestamp(1_700_000_000_000_000_000),
        member: MemberId(1),
        client_order_id: ClientOrderId(7),
        instrument: InstrumentId(1),
        shard: ShardId(0),
        command,
    }
}

fn commands() -> Vec<Command> {
    let plain = NewOrder::limit(Side::Buy, Price(1_000_000), Quantity(100));
    let peg = OrderKind::Pegged { to: Peg::Mid, limit: Price(900) };
    let target = OrderId(id(1));
    let amendment = Amendment::new(target, Price(900), Quantity(1));
    let until = TimeInForce::Gtd { until: Timestamp(5) };
    let member = MemberId(9);
    vec![
        Command::Enter(NewOrder { post_only: true, ..plain }),
        Command::Enter(NewOrder::market(Side::Sell, Quantity(1))),
        Command::Enter(NewOrder { kind: peg, time_in_force: until, ..plain }),
        Command::Enter(NewOrder { trigger: Some(Price(-1)), ..plain }),
        Command::Enter(NewOrder { display: Quantity(10), minimum: Quantity(20), ..plain }),
        Command::Amend(amendment),
        Command::Amend(Amendment { display: Some(Quantity(1)), time_in_force: Some(until), ..amendment }),
        Command::Amend(Amendment { trigger: Some(Price(7)), ..amendment }),
        Command::Cancel { target },
        Command::MassCancel { side: None },
        Command::MassCancel { side: Some(Side::Sell) },
        Command::TIME,
        Command::SetPhase(Phase::Halted),
        Command::SetRule(Rule::PriceRange { min: Price(-5), max: Price(5) }),
        Command::SetRule(Rule::Schedule { at_ns: 1, phase: None }),
        Command::SetRule(Rule::Reference(Price(3))),
        Command::AddInstrument(Symbol::new("ALFA").expect("a legal name")),
        Command::RemoveInstrument,
        Command::Block { member },
        Command::Unblock { member },
        Command::Bust(busted()),
        Command::BeginDay { day: BusinessDay(7) },
        Command::EndDay { day: BusinessDay(7) },
        Command::CancelGuarded(Guarded { member, session: 3, last: RequestId::new(GatewayId(1), 9) }),
        Command::Register(Registration { member, session: 0, entry: Entry::AddMember }),
        Command::Register(Registration { member, session: 3, entry: Entry::SetKey(Key::Shared([5; 32])) }),
        Command::Register(Registration { member, session: 3, entry: Entry::SetRights(Rights::ENTER) }),
        Command::Register(Registration { member, session: 3, entry: Entry::ListInstrument(InstrumentId(2)) }),
        Command::Register(Registration { member, session: 3, entry: Entry::SetPositionMax(900) }),
        Command::Register(Registration {
            member,
            session: 3,
            entry: Entry::UnlistInstrument(InstrumentId(2)),
        }),
    ]
}

pub(crate) fn busted() -> BustedTrade {
    BustedTrade {
        position: Position(3),
        index: 1,
        resting: OrderId(id(1)),
        incoming: OrderId(id(2)),
        price: Price(10),
        quantity: Quantity(1),
        resting_side: Side::Sell,
        resting_owner: (MemberId(1), ClientOrderId(11)),
        incoming_owner: (MemberId(2), ClientOrderId(21)),
    }
}

fn result(events: &[Event]) -> Vec<u8> {
    let place = ResultPlace {
        shard: ShardId(0),
        epoch: Epoch(1),
        position: Position(1_024),
        venue: VenueId(1),
        state_hash: 0xABCD,
    };
    let outcome = Outcome {
        status: Status::Filled,
        reason: Reason::None,
        order: OrderId(id(2)),
        executed: Quantity(100),
        remaining: Quantity::ZERO,
    };
    let request = request(commands()[0]);
    let mut bytes = vec![0; result_bytes(&request, events.len())];
    write_result(&mut bytes, &place, &request, &outcome, events);
    bytes
}

fn fill() -> Event {
    Event::Fill {
        resting: OrderId(id(1)),
        resting_member: MemberId(2),
        resting_client_order_id: ClientOrderId(3),
        resting_side: Side::Sell,
        price: Price(1_000_000),
        quantity: Quantity(10),
        resting_remaining: Quantity(5),
    }
}

/// An event of each kind but the fill.
fn events() -> Vec<Event> {
    let (order, member, client_order_id) = (OrderId(id(1)), MemberId(2), ClientOrderId(3));
    let (side, price, quantity) = (Side::Buy, Price(10), Quantity(5));
    let BustedTrade { resting, incoming, position, index, .. } = busted();
    let cause = IncomingCause::Triggered;
    let firm = Event::Auction { price, quantity, surplus: quantity, surplus_side: side, firm: true };
    vec![
        Event::Instrument(InstrumentId(7)),
        Event::DayPrices { open: price, high: price, low: price, last: price },
        Event::DayVolume { closing: None, quantity, trades: 1 },
        Event::DayEnded { day: BusinessDay(7), requests: 1, orders: 2, trades: 3, quantity, state_hash: 4 },
        Event::Cancelled {
            order,
            member,
            client_order_id,
            side,
            price,
            quantity,
            cause: CancelCause::Expired,
        },
        Event::Incoming { order, member, client_order_id, side, price, quantity, cause },
        Event::Rested {
            order,
            member,
            client_order_id,
            side,
            price,
            quantity,
            shown: Quantity(1),
            cause: RestCause::Refilled,
        },
        Event::PhaseEntered { phase: Phase::Closed, until: Timestamp::NEVER, reference: Some(price) },
        firm,
        Event::Busted { resting, incoming, position, index, price, quantity },
    ]
}

pub(crate) fn id(sequence: u64) -> RequestId {
    RequestId::new(GatewayId(1), sequence)
}
