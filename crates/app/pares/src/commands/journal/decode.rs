//! Records of the logs as a person reads them, and as JSON.
//!
//! One decoder for every kind of log: a record says by its first byte what it is (docs/protocols/records.md), and what
//! this build does not understand is shown as such instead of ending the listing.

use pares_types::{Event, Request, Timestamp};
use pares_wire::WireError;
use pares_wire::record::{
    self, CheckpointChunk, CheckpointStored, RequestRecord, ResultRecord, SessionMarkRecord, SpentLogonRecord,
};
use serde_json::{Map, Value, json};

use super::{event, request};
use crate::utc;

/// A record, decoded for showing.
pub struct Shown {
    /// What kind of record.
    pub kind: &'static str,
    /// One line.
    pub line: String,
    /// All fields.
    pub fields: Map<String, Value>,
}

/// Decodes a payload.
pub fn show(payload: &[u8]) -> Shown {
    let decoded = match record::schema(payload) {
        Some(record::REQUEST) => RequestRecord::read(payload).map(|request| show_request(&request)),
        Some(record::RESULT) => ResultRecord::read(payload).and_then(|result| show_result(&result)),
        Some(record::CHECKPOINT_CHUNK) => {
            CheckpointChunk::read(payload).map(|(chunk, piece)| show_chunk(chunk, piece.len()))
        }
        Some(record::CHECKPOINT_STORED) => CheckpointStored::read(payload).map(show_stored),
        Some(record::SESSION_MARK) => SessionMarkRecord::read(payload).map(|mark| show_mark(&mark)),
        Some(record::SPENT_LOGON) => SpentLogonRecord::read(payload).map(|spent| show_spent(&spent)),
        Some(schema) => {
            Err(WireError::UnknownSchema { schema, version: payload.get(1).copied().unwrap_or(0) })
        }
        None => Err(WireError::Truncated),
    };
    decoded.unwrap_or_else(|error| show_unknown(&error))
}

fn shown(kind: &'static str, line: String, fields: Value) -> Shown {
    let Value::Object(fields) = fields else { unreachable!("callers give an object") };
    Shown { kind, line, fields }
}

fn show_unknown(error: &WireError) -> Shown {
    shown("unknown", error.to_string(), json!({ "error": error.to_string() }))
}

fn show_request(request: &Request) -> Shown {
    shown("request", request::line(request), request::fields(request))
}

fn show_mark(record: &SessionMarkRecord) -> Shown {
    let SessionMarkRecord { reign, gateway, logon_ns, mark } = record;
    let line = format!(
        "FIX session {} of member {}: numbers up to {} by gateway-{gateway}; {} expected",
        mark.session, mark.member, mark.out_max, mark.next_in
    );
    let told: Vec<Value> =
        mark.told.iter().map(|(shard, next)| json!({ "shard": shard.0, "next": next })).collect();
    let fields = json!({
        "member": mark.member.0, "session": mark.session, "gateway": gateway.0, "reign": reign,
        "next_in": mark.next_in, "out_max": mark.out_max, "told": told, "logon_ns": logon_ns,
    });
    shown("mark", line, fields)
}

fn show_spent(record: &SpentLogonRecord) -> Shown {
    let (member, session) = record.who();
    let [first, last] = [record.first_ns, record.last_ns].map(|ns| utc::format(Timestamp(ns.get())));
    let line = format!(
        "FIX session {session} of member {member}: its Logons sent from {first} to {last} are used up"
    );
    let fields = json!({
        "member": member.0, "session": session, "first_ns": record.first_ns.get(),
        "last_ns": record.last_ns.get(), "until_ns": record.until_ns.get(),
    });
    shown("spent", line, fields)
}

fn show_result(result: &ResultRecord<'_>) -> Result<Shown, WireError> {
    let (request, outcome) = (result.request()?, result.outcome()?);
    let events = result.events().collect::<Result<Vec<Event>, _>>()?;
    let refusal = match outcome.reason {
        pares_types::Reason::None => String::new(),
        reason => format!(" ({reason})"),
    };
    let mut line = format!(
        "shard {} position {}: {} -> {}{refusal} executed {} remaining {}",
        result.shard(),
        result.position(),
        request::line(&request),
        outcome.status,
        outcome.executed,
        outcome.remaining,
    );
    events.iter().for_each(|event| line.push_str(&format!("; {}", event::line(event))));
    let fields = json!({
        "shard": result.shard().0,
        "epoch": result.epoch().0,
        "position": result.position().0,
        "venue": result.venue().0,
        "state_hash": result.state_hash().map(|hash| format!("{hash:016x}")),
        "request": request::fields(&request),
        "status": outcome.status.word(),
        "reason": outcome.reason.word(),
        "order": outcome.order.to_string(),
        "executed": outcome.executed.0,
        "remaining": outcome.remaining.0,
        "events": events.iter().map(event::fields).collect::<Vec<_>>(),
    });
    Ok(shown("result", line, fields))
}

fn show_chunk(chunk: &CheckpointChunk, piece: usize) -> Shown {
    let (shard, position) = (chunk.shard.get(), chunk.position.get());
    let start = chunk.start.get();
    let end = u64::from(start) + piece as u64;
    let last = if chunk.total().is_some() { ", the last" } else { "" };
    shown(
        "checkpoint_piece",
        format!("shard {shard} position {position}: bytes {start} to {end}{last}"),
        json!({
            "shard": shard,
            "epoch": chunk.epoch.get(),
            "position": position,
            "start": start,
            "bytes": piece,
            "total_bytes": chunk.total(),
        }),
    )
}

fn show_stored(stored: &CheckpointStored) -> Shown {
    let (shard, position) = (stored.shard.get(), stored.position.get());
    shown(
        "checkpoint_stored",
        format!("shard {shard} position {position}"),
        json!({ "shard": shard, "epoch": stored.epoch.get(), "position": position }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{
        Amendment, BustedTrade, CancelCause, ClientOrderId, Command, Epoch, GatewayId, IncomingCause,
        InstrumentId, MemberId, NewOrder, OrderId, OrderKind, Outcome, Peg, Phase, Position, Price, Quantity,
        Reason, RequestId, RestCause, Rule, SelfTrade, ShardId, Side, Status, Symbol, TimeInForce, VenueId,
    };
    use pares_wire::record::{ResultPlace, result_bytes, write_result};
    use zerocopy::IntoBytes;

    fn order(sequence: u64) -> OrderId {
        OrderId(RequestId::new(GatewayId(2), sequence))
    }

    fn request(command: Command) -> Request {
        Request {
            id: order(9).0,
            stamp: Timestamp(1_000_000_007),
            member: MemberId(4),
            client_order_id: ClientOrderId(77),
            instrument: InstrumentId(1),
            shard: ShardId(5),
            command,
        }
    }

    /// An amend that trades 3 and gives up 1.
    fn result() -> Vec<u8> {
        let request = request(Command::Amend(Amendment::new(order(8), Price(1_000_100), Quantity(6))));
        let (status, reason) = (Status::Resting, Reason::None);
        let outcome =
            Outcome { status, reason, order: order(8), executed: Quantity(3), remaining: Quantity(3) };
        let (member, client_order_id) = (MemberId(4), ClientOrderId(70));
        let fill = Event::Fill {
            resting: order(1),
            resting_member: MemberId(6),
            resting_client_order_id: ClientOrderId(1),
            resting_side: Side::Sell,
            price: Price(999_900),
            quantity: Quantity(3),
            resting_remaining: Quantity(10),
        };
        let cancelled = Event::Cancelled {
            order: order(8),
            member,
            client_order_id,
            side: Side::Buy,
            price: Price(999_900),
            quantity: Quantity(1),
            cause: CancelCause::Reduced,
        };
        let events = [fill, cancelled];
        let (shard, epoch, venue) = (ShardId(5), Epoch(1), VenueId(1));
        let place = ResultPlace { shard, epoch, position: Position(12), venue, state_hash: 0 };
        let mut bytes = vec![0; result_bytes(&request, events.len())];
        write_result(&mut bytes, &place, &request, &outcome, &events);
        bytes
    }

    #[test]
    fn a_result_is_one_line_with_its_request_outcome_and_events() {
        assert_eq!(
            show(&result()).line,
            "shard 5 position 12: 2:9 member 4 name 77 instrument 1: amend 2:8 to 6 at 100.0100 -> resting \
             executed 3 remaining 3; 3 at 99.9900 with 2:1 (10 left); 1 of 2:8 cancelled at 99.9900 (reduced)"
        );
    }

    #[test]
    fn the_json_of_a_result_has_its_parts() {
        let fields = show(&result()).fields;
        assert_eq!(fields["request"]["stamp"], "1970-01-01T00:00:01.000000007Z");
        assert_eq!((&fields["status"], &fields["order"]), (&"resting".into(), &"2:8".into()));
        assert_eq!(
            (&fields["events"][0]["event"], &fields["events"][1]["cause"]),
            (&"fill".into(), &"reduced".into())
        );
    }

    /// What a request asks, without who asks.
    fn asked(command: Command) -> String {
        let line = super::request::line(&request(command));
        line.split_once(": ").expect("who asks comes first").1.to_owned()
    }

    #[test]
    fn requests_say_what_they_ask_and_no_more() {
        let limit = NewOrder::limit(Side::Buy, Price(1_000_000), Quantity(9));
        assert_eq!(asked(Command::Enter(limit)), "buy 9 at 100.0000 day");
        let elaborate = NewOrder {
            kind: OrderKind::Pegged { to: Peg::Mid, limit: Price(1_000_000) },
            time_in_force: TimeInForce::Gtd { until: Timestamp(1_000_000_000) },
            self_trade: SelfTrade::CancelBoth,
            display: Quantity(1),
            minimum: Quantity(2),
            trigger: Some(Price(990_000)),
            ..limit
        };
        assert_eq!(
            asked(Command::Enter(elaborate)),
            "buy 9 pegged to mid within 100.0000 gtd 1970-01-01T00:00:01.000000000Z self_trade cancel_both \
             display 1 minimum 2 trigger 99.0000"
        );
        let amendment = Amendment {
            time_in_force: Some(TimeInForce::Gtc),
            ..Amendment::new(order(8), Price(1), Quantity(2))
        };
        assert_eq!(asked(Command::Amend(amendment)), "amend 2:8 to 2 at 0.0001 gtc");
        let reduction = Amendment { reduces: true, ..Amendment::new(order(8), Price(1), Quantity(2)) };
        assert_eq!(asked(Command::Amend(reduction)), "reduce 2:8 to 2");
        assert_eq!(asked(Command::MassCancel { side: Some(Side::Sell) }), "mass_cancel sell");
    }

    #[test]
    fn requests_of_the_exchange_are_shown() {
        let trade = BustedTrade {
            position: Position(12),
            index: 1,
            resting: order(1),
            incoming: order(8),
            price: Price(10_000),
            quantity: Quantity(3),
            resting_side: Side::Sell,
            resting_owner: (MemberId(1), ClientOrderId(11)),
            incoming_owner: (MemberId(2), ClientOrderId(21)),
        };
        let at_ns = 8 * 3_600_000_000_000 + 500_000_000;
        let schedule = Rule::Schedule { at_ns, phase: Some(Phase::OpeningCall) };
        for (command, says) in [
            (Command::TIME, "time"),
            (Command::SetPhase(Phase::Halted), "set_phase halted"),
            (Command::SetRule(schedule), "set_rule schedule 08:00:00.500000000 opening_call"),
            (Command::AddInstrument(Symbol::new("ZULU").unwrap()), "add_instrument ZULU"),
            (Command::Block { member: MemberId(7) }, "block member 7"),
            (Command::Bust(trade), "bust 12.1: 3 at 1.0000 of 2:8 with 2:1"),
        ] {
            assert_eq!(asked(command), says);
        }
        let fields = super::request::fields(&request(Command::SetRule(schedule)));
        assert_eq!((&fields["command"], &fields["at"]), (&"set_rule".into(), &"08:00:00.500000000".into()));
    }

    #[test]
    fn every_kind_of_event_is_shown() {
        let (order, member, client_order_id) = (order(8), MemberId(4), ClientOrderId(70));
        let (side, price, quantity) = (Side::Buy, Price(10_000), Quantity(3));
        let incoming =
            |cause| Event::Incoming { order, member, client_order_id, side, price, quantity, cause };
        let rested = |cause| {
            let shown = Quantity(1);
            Event::Rested { order, member, client_order_id, side, price, quantity, shown, cause }
        };
        let (until, reference) = (Timestamp(1_000_000_000), Some(price));
        let phase = Event::PhaseEntered { phase: Phase::VolatilityCall, until, reference };
        let (surplus, surplus_side) = (Quantity(2), Side::Sell);
        for (event, says) in [
            (incoming(IncomingCause::Triggered), "2:8 triggered with 3 at 1.0000"),
            (incoming(IncomingCause::Auction), "2:8 buys (3 left)"),
            (rested(RestCause::Refilled), "2:8 rests with 3 at 1.0000, 1 shown (refilled)"),
            (rested(RestCause::Withdrawn), "2:8 withdrawn with 3 from 1.0000"),
            (phase, "enters volatility_call until 1970-01-01T00:00:01.000000000Z, reference 1.0000"),
            (
                Event::Auction { price, quantity, surplus, surplus_side, firm: true },
                "auction 3 at 1.0000 (firm, surplus 2 sell)",
            ),
            (Event::Instrument(InstrumentId(3)), "in instrument 3"),
        ] {
            assert_eq!(super::event::line(&event), says);
            assert!(super::event::fields(&event)["event"].is_string());
        }
    }

    #[test]
    fn spent_logons_are_shown_with_their_times() {
        let spent = SpentLogonRecord::new((MemberId(7), 1), (1_000_000_000, 2_000_000_000), 0);
        assert_eq!(
            show(spent.as_bytes()).line,
            "FIX session 1 of member 7: its Logons sent from 1970-01-01T00:00:01.000000000Z to \
             1970-01-01T00:00:02.000000000Z are used up"
        );
    }

    #[test]
    fn what_is_not_understood_is_shown_as_such() {
        for (payload, says) in [
            (&[][..], "message is cut short"),
            (&[record::REQUEST][..], "message is cut short"),
            (&[9, 2, 0][..], "unknown message 9 version 2: written by a newer build?"),
        ] {
            let shown = show(payload);
            assert_eq!((shown.kind, shown.line.as_str()), ("unknown", says));
        }
    }
}
