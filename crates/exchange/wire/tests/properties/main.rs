//! Whatever is written reads back the same; whatever is not a message is refused without a panic.

mod register;

use pares_types::{
    Answer, Band, BusinessDay, BustedTrade, CancelCause, Cancelled, ClientOrderId, ClientRequest, Command,
    Epoch, Event, GatewayId, Guarded, IncomingCause, InstrumentId, MemberId, NewOrder, NewTerms, OrderChange,
    OrderId, OrderKind, OrderNews, Outcome, Peg, Phase, Position, Price, Quantity, Reason, Reply, Request,
    RequestDigest, RequestId, RestCause, Role, Rule, SelfTrade, ShardId, Side, Status, Symbol, TieBreak,
    TimeInForce, Timestamp, Trade, TradeBusted, VenueId,
};
use pares_wire::WireError;
use pares_wire::frame::{self, ClientFrame, GatewayFrame};
use pares_wire::record::{self, CheckpointChunk, CheckpointStored, RequestRecord, ResultPlace, ResultRecord};
use proptest::prelude::*;
use proptest::sample::select;

/// A type whose fields are drawn, each by its own strategy; those behind the semicolon are what they are.
macro_rules! drawn {
    ($($type:ident)::+ { $($field:ident: $strategy:expr),* $(; $($rest:ident: $value:expr),*)? }) => {
        ($($strategy,)*).prop_map(|($($field,)*)| $($type)::+ { $($field,)* $($($rest: $value),*)? })
    };
}

fn id() -> impl Strategy<Value = RequestId> {
    (any::<u16>(), 1..=RequestId::SEQUENCE_MAX).prop_map(|(of, number)| RequestId::new(GatewayId(of), number))
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
    select(Status::ALL.to_vec())
}

fn cause() -> impl Strategy<Value = CancelCause> {
    select(CancelCause::ALL.to_vec())
}

fn phase() -> impl Strategy<Value = Phase> {
    select(Phase::ALL.to_vec())
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp)
}

fn member() -> impl Strategy<Value = MemberId> {
    any::<u32>().prop_map(MemberId)
}

fn shard() -> impl Strategy<Value = ShardId> {
    any::<u16>().prop_map(ShardId)
}

fn position() -> impl Strategy<Value = Position> {
    any::<u64>().prop_map(Position)
}

/// Often zero, which says that there is none.
fn wish() -> impl Strategy<Value = Quantity> {
    prop_oneof![Just(Quantity::ZERO), quantity()]
}

fn trigger() -> impl Strategy<Value = Option<Price>> {
    proptest::option::of(price())
}

fn time_in_force() -> impl Strategy<Value = TimeInForce> {
    use TimeInForce::*;
    prop_oneof![
        4 => select(vec![Day, Ioc, Fok, Gtc, AtOpen, AtClose]),
        1 => time().prop_map(|until| Gtd { until }),
    ]
}

fn self_trade() -> impl Strategy<Value = SelfTrade> {
    use SelfTrade::*;
    select(vec![Allow, CancelResting, CancelIncoming, CancelBoth, Decrement])
}

fn new_order() -> impl Strategy<Value = NewOrder> {
    let kind = prop_oneof![
        price().prop_map(|price| OrderKind::Limit { price }),
        Just(OrderKind::Market),
        (select(vec![Peg::Best, Peg::Mid]), price()).prop_map(|(to, limit)| OrderKind::Pegged { to, limit }),
    ];
    drawn! { NewOrder {
        side: side(), kind: kind, time_in_force: time_in_force(), post_only: any::<bool>(), self_trade: self_trade(),
        quantity: quantity(), display: wish(), minimum: wish(), trigger: trigger()
    } }
}

fn new_terms() -> impl Strategy<Value = NewTerms> {
    drawn! { NewTerms {
        price: price(), quantity: quantity(), display: proptest::option::of(quantity()), trigger: trigger(),
        time_in_force: proptest::option::of(time_in_force()), reduces: any::<bool>()
    } }
}

fn rule() -> impl Strategy<Value = Rule> {
    let schedule = (any::<u64>(), proptest::option::of(phase()));
    prop_oneof![
        (price(), price()).prop_map(|(min, max)| Rule::PriceRange { min, max }),
        (price(), price()).prop_map(|(from, tick)| Rule::Tick { from, tick }),
        quantity().prop_map(Rule::Lot),
        quantity().prop_map(Rule::QuantityMax),
        any::<u64>().prop_map(Rule::ValueMax),
        any::<u32>().prop_map(Rule::OrdersMax),
        any::<u32>().prop_map(Rule::StepMax),
        (any::<u32>(), price()).prop_map(|(width, least)| Rule::StaticBand(Band { width, least })),
        (any::<u32>(), price()).prop_map(|(width, least)| Rule::DynamicBand(Band { width, least })),
        any::<(u64, u8, bool)>().prop_map(|(ns, max, market)| Rule::Extension { ns, max, market }),
        quantity().prop_map(Rule::AuctionMin),
        select(vec![TieBreak::Latest, TieBreak::NearestLimit]).prop_map(Rule::TieBreak),
        any::<u32>().prop_map(Rule::PressureLimit),
        any::<u64>().prop_map(|ns| Rule::RandomEnd { ns }),
        any::<bool>().prop_map(|fresh| Rule::IcebergRefill { fresh }),
        any::<bool>().prop_map(|rests| Rule::MarketRemainder { rests }),
        any::<bool>().prop_map(|keeps| Rule::DisplayDecrease { keeps }),
        any::<u64>().prop_map(|ns| Rule::Call { ns }),
        schedule.prop_map(|(at_ns, phase)| Rule::Schedule { at_ns, phase }),
        price().prop_map(Rule::Reference),
    ]
}

fn busted_trade() -> impl Strategy<Value = BustedTrade> {
    drawn! { BustedTrade {
        position: position(), index: any::<u16>(), resting: order_id(), incoming: order_id(), price: price(),
        quantity: quantity(), resting_side: side(), resting_owner: (member(), name()), incoming_owner: (member(), name())
    } }
}

fn day() -> impl Strategy<Value = BusinessDay> {
    (1..=BusinessDay::MAX.0).prop_map(BusinessDay)
}

fn guarded() -> impl Strategy<Value = Guarded> {
    drawn! { Guarded { member: member(), session: any::<u16>(), last: id() } }
}

/// What has no message of its own.
fn exchange_command() -> impl Strategy<Value = Command> {
    let symbol = "[!-~]{1,16}".prop_map(|name| Symbol::new(&name).expect("printable"));
    prop_oneof![
        Just(Command::TIME),
        phase().prop_map(Command::SetPhase),
        rule().prop_map(Command::SetRule),
        symbol.prop_map(Command::AddInstrument),
        Just(Command::RemoveInstrument),
        member().prop_map(|member| Command::Block { member }),
        member().prop_map(|member| Command::Unblock { member }),
        busted_trade().prop_map(Command::Bust),
        day().prop_map(|day| Command::BeginDay { day }),
        day().prop_map(|day| Command::EndDay { day }),
        register::registration().prop_map(Command::Register),
    ]
}

/// What a record can say, and a frame cannot: a gateway draws, not an operator.
fn drawn() -> impl Strategy<Value = Command> {
    any::<u64>().prop_map(|draw| Command::Time { draw })
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        new_order().prop_map(Command::Enter),
        (order_id(), name(), new_terms())
            .prop_map(|(target, name, terms)| Command::Amend(terms.of(target, name))),
        order_id().prop_map(|target| Command::Cancel { target }),
        proptest::option::of(side()).prop_map(|side| Command::MassCancel { side }),
        guarded().prop_map(Command::CancelGuarded),
        exchange_command(),
        drawn(),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    drawn! { Request {
        id: id(), stamp: time(), member: member(), client_order_id: name(), instrument: instrument(), shard: shard(),
        command: command()
    } }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![order_event(), book_event(), day_event()]
}

fn day_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        drawn! { Event::DayPrices { open: price(), high: price(), low: price(), last: price() } },
        drawn! { Event::DayVolume { closing: trigger(), quantity: quantity(), trades: any::<u64>() } },
        drawn! { Event::DayEnded {
            day: day(), requests: any::<u64>(), orders: any::<u64>(), trades: any::<u64>(), quantity: quantity(),
            state_hash: any::<u64>()
        } },
    ]
}

fn order_event() -> impl Strategy<Value = Event> {
    let incoming_cause = {
        use IncomingCause::*;
        select(vec![Triggered, Repriced, Auction, Continued])
    };
    let rest_cause = {
        use RestCause::*;
        select(vec![Triggered, Repriced, Refilled, Released, Withdrawn, Unfinished, Continued, Priced])
    };
    prop_oneof![
        drawn! { Event::Fill {
            resting: order_id(), resting_member: member(), resting_client_order_id: name(), resting_side: side(),
            price: price(), quantity: quantity(), resting_remaining: quantity()
        } },
        drawn! { Event::Cancelled {
            order: order_id(), member: member(), client_order_id: name(), side: side(), price: price(),
            quantity: quantity(), cause: cause()
        } },
        drawn! { Event::Incoming {
            order: order_id(), member: member(), client_order_id: name(), side: side(), price: price(),
            quantity: quantity(), cause: incoming_cause
        } },
        drawn! { Event::Rested {
            order: order_id(), member: member(), client_order_id: name(), side: side(), price: price(),
            quantity: quantity(), shown: quantity(), cause: rest_cause
        } },
    ]
}

fn book_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        drawn! { Event::PhaseEntered { phase: phase(), until: time(), reference: trigger() } },
        drawn! { Event::Auction {
            price: price(), quantity: quantity(), surplus: quantity(), surplus_side: side(), firm: any::<bool>()
        } },
        drawn! { Event::Busted {
            resting: order_id(), incoming: order_id(), position: position(), index: any::<u16>(), price: price(),
            quantity: quantity()
        } },
        instrument().prop_map(Event::Instrument),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    drawn! { Outcome {
        status: status(), reason: reason(), order: order_id(), executed: quantity(), remaining: quantity()
    } }
}

fn result_place() -> impl Strategy<Value = ResultPlace> {
    let (epoch, venue) = (any::<u32>().prop_map(Epoch), any::<u16>().prop_map(VenueId));
    drawn! { ResultPlace {
        shard: shard(), epoch: epoch, position: position(), venue: venue, state_hash: any::<u64>()
    } }
}

fn client_request() -> impl Strategy<Value = ClientRequest> {
    let exchange = (name(), instrument(), exchange_command()).prop_map(|(name, instrument, command)| {
        // These are for all instruments, and their frames do not say so.
        use Command::{BeginDay, Block, EndDay, Register, Unblock};
        let all =
            matches!(command, Block { .. } | Unblock { .. } | BeginDay { .. } | EndDay { .. } | Register(_));
        let instrument = if all { InstrumentId(0) } else { instrument };
        ClientRequest::Exchange { client_order_id: name, instrument, command }
    });
    let one_side = proptest::option::of(side());
    prop_oneof![
        drawn! { ClientRequest::Enter { client_order_id: name(), instrument: instrument(), order: new_order() } },
        drawn! { ClientRequest::Amend { client_order_id: name(), target: name(), terms: new_terms() } },
        drawn! { ClientRequest::Cancel { client_order_id: name(), target: name() } },
        drawn! { ClientRequest::MassCancel { client_order_id: name(), instrument: instrument(), side: one_side } },
        exchange,
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    drawn! { Answer {
        client_order_id: name(), request: id(), order: order_id(), shard: shard(), position: position(),
        instrument: instrument(), status: status(), reason: reason(), executed: quantity(), remaining: quantity(),
        events: any::<u32>(), repeat: any::<bool>(); number: position.0, asked: RequestDigest::from_bits(events)
    } }
}

fn trade() -> impl Strategy<Value = Trade> {
    let role = select(vec![Role::Resting, Role::Incoming]);
    drawn! { Trade {
        client_order_id: name(), order: order_id(), shard: shard(), position: position(), index: any::<u16>(),
        instrument: instrument(), side: side(), role: role, price: price(), quantity: quantity(),
        remaining: quantity(), number: any::<u64>()
    } }
}

fn cancellation() -> impl Strategy<Value = Cancelled> {
    drawn! { Cancelled {
        client_order_id: name(), order: order_id(), shard: shard(), position: position(), instrument: instrument(),
        side: side(), price: price(), quantity: quantity(), cause: cause(), number: any::<u64>()
    } }
}

fn order_news() -> impl Strategy<Value = OrderNews> {
    drawn! { OrderNews {
        client_order_id: name(), order: order_id(), shard: shard(), position: position(), instrument: instrument(),
        side: side(), change: select(OrderChange::ALL.to_vec()), price: price(), remaining: quantity(),
        shown: quantity(), number: any::<u64>()
    } }
}

fn bust() -> impl Strategy<Value = TradeBusted> {
    drawn! { TradeBusted {
        client_order_id: name(), order: order_id(), shard: shard(), position: position(), traded_at: position(),
        index: any::<u16>(), instrument: instrument(), price: price(), quantity: quantity(), number: any::<u64>()
    } }
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        order_news().prop_map(Reply::News),
        bust().prop_map(Reply::Busted),
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
        let bytes = request_record(&request);
        prop_assert_eq!(RequestRecord::read(&bytes), Ok(request));
        prop_assert!([64, 104, record::REQUEST_BYTES_MAX].contains(&bytes.len()));
        prop_assert!(RequestRecord::read(&bytes[..bytes.len() - 1]).is_err(), "cut short");
        prop_assert!(RequestRecord::read(&[&bytes[..], &[0]].concat()).is_err(), "too long");
    }

    #[test]
    fn a_result_reads_back_as_written(
        place in result_place(), request in request(), outcome in outcome(),
        events in prop::collection::vec(event(), 0..5),
    ) {
        let mut bytes = vec![0; record::result_bytes(&request, events.len())];
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
        place in result_place(), request in request(), outcome in outcome(), event in event(), cut in 0..208usize,
    ) {
        let mut bytes = vec![0; record::result_bytes(&request, 1)];
        record::write_result(&mut bytes, &place, &request, &outcome, &[event]);
        prop_assert!(ResultRecord::read(&bytes[..cut.min(bytes.len() - 1)]).is_err());
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
        at in 0..208usize, value in any::<u8>(),
    ) {
        let mut bytes = vec![0; record::result_bytes(&request, 1)];
        record::write_result(&mut bytes, &place, &request, &outcome, &[event]);
        let at = at % bytes.len();
        bytes[at] = value;
        read_everything(&bytes);
    }
}

fn request_record(request: &Request) -> Vec<u8> {
    let mut bytes = vec![0; record::request_bytes(request)];
    record::write_request(&mut bytes, request);
    bytes
}

fn read_everything(bytes: &[u8]) {
    let _ = RequestRecord::read(bytes);
    let _ = CheckpointChunk::read(bytes);
    let _ = CheckpointStored::read(bytes);
    let _ = record::SessionMarkRecord::read(bytes);
    let _ = record::SpentLogonRecord::read(bytes);
    let _ = record::schema(bytes);
    if let Ok(result) = ResultRecord::read(bytes) {
        let _ = (result.request(), result.outcome(), result.state_hash(), result.request_id());
        let _ = result.events().filter(Result::is_ok).count();
    }
    let _ = frame::split(bytes).map(|split| split.map(|(kind, body, _)| frame::decode_client(kind, body)));
    for kind in 0..=u8::MAX {
        let (of_client, of_gateway) = (frame::decode_client(kind, bytes), frame::decode_gateway(kind, bytes));
        let _ = (of_client, of_gateway, frame::request_name(kind, bytes));
    }
}
