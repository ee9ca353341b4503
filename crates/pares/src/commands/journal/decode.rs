//! Records of the logs as a person reads them, and as JSON.
//!
//! One decoder for every kind of log: a record says by its first byte what it is (docs/protocols/records.md), and what
//! this build does not understand is shown as such instead of ending the listing.

use pares_types::{Command, Event, NewOrder, OrderKind, Request};
use pares_wire::WireError;
use pares_wire::record::{self, CheckpointChunk, CheckpointStored, RequestRecord, ResultRecord};
use serde_json::{Map, Value, json};

use crate::text::name;
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
    shown("request", request_line(request), request_fields(request))
}

/// A request in a line.
fn request_line(request: &Request) -> String {
    let what = match request.command {
        Command::Enter(order) => {
            let price = match order.kind {
                OrderKind::Limit { price } => format!("at {price}"),
                OrderKind::Market => "at market".to_owned(),
            };
            let flag = if order.post_only { " post_only" } else { "" };
            let (side, force) = (name(&order.side), name(&order.time_in_force));
            format!("{side} {} {price} {force}{flag}", order.quantity)
        }
        Command::Amend { target, price, quantity } => format!("amend {target} to {quantity} at {price}"),
        Command::Cancel { target } => format!("cancel {target}"),
        Command::MassCancel => "mass_cancel".to_owned(),
    };
    let Request { id, member, client_order_id, instrument, .. } = request;
    format!("{id} member {member} name {client_order_id} instrument {instrument}: {what}")
}

fn request_fields(request: &Request) -> Value {
    let mut fields = json!({
        "id": request.id.to_string(),
        "stamp": utc::format(request.stamp),
        "member": request.member.0,
        "client_order_id": request.client_order_id.0,
        "instrument": request.instrument.0,
        "shard": request.shard.0,
    });
    let command = match request.command {
        Command::Enter(order) => enter_fields(&order),
        Command::Amend { target, price, quantity } => json!({
            "command": "amend",
            "target": target.to_string(),
            "price": price.to_string(),
            "quantity": quantity.0,
        }),
        Command::Cancel { target } => json!({ "command": "cancel", "target": target.to_string() }),
        Command::MassCancel => json!({ "command": "mass_cancel" }),
    };
    merge(&mut fields, command);
    fields
}

fn enter_fields(order: &NewOrder) -> Value {
    let (kind, price) = match order.kind {
        OrderKind::Limit { price } => ("limit", Value::from(price.to_string())),
        OrderKind::Market => ("market", Value::Null),
    };
    json!({
        "command": "enter",
        "side": name(&order.side),
        "kind": kind,
        "price": price,
        "quantity": order.quantity.0,
        "time_in_force": name(&order.time_in_force),
        "post_only": order.post_only,
    })
}

fn show_result(result: &ResultRecord<'_>) -> Result<Shown, WireError> {
    let (request, outcome) = (result.request()?, result.outcome()?);
    let events = result.events().collect::<Result<Vec<Event>, _>>()?;
    let refusal = match outcome.reason {
        pares_types::Reason::None => String::new(),
        reason => format!(" ({})", name(&reason)),
    };
    let mut line = format!(
        "shard {} position {}: {} -> {}{refusal} executed {} remaining {}",
        result.shard(),
        result.position(),
        request_line(&request),
        name(&outcome.status),
        outcome.executed,
        outcome.remaining,
    );
    events.iter().for_each(|event| line.push_str(&format!("; {}", event_line(event))));
    let fields = json!({
        "shard": result.shard().0,
        "epoch": result.epoch().0,
        "position": result.position().0,
        "venue": result.venue().0,
        "state_hash": result.state_hash().map(|hash| format!("{hash:016x}")),
        "request": request_fields(&request),
        "status": name(&outcome.status),
        "reason": name(&outcome.reason),
        "order": outcome.order.to_string(),
        "executed": outcome.executed.0,
        "remaining": outcome.remaining.0,
        "events": events.iter().map(event_fields).collect::<Vec<_>>(),
    });
    Ok(shown("result", line, fields))
}

fn event_line(event: &Event) -> String {
    match event {
        Event::Fill { resting, price, quantity, resting_remaining, .. } => {
            format!("{quantity} at {price} with {resting} ({resting_remaining} left)")
        }
        Event::Cancelled { order, quantity, cause, .. } => {
            format!("{quantity} of {order} cancelled ({})", name(cause))
        }
    }
}

fn event_fields(event: &Event) -> Value {
    match event {
        Event::Fill {
            resting,
            resting_member,
            resting_client_order_id,
            resting_side,
            price,
            quantity,
            resting_remaining,
        } => json!({
            "event": "fill",
            "resting": resting.to_string(),
            "resting_member": resting_member.0,
            "resting_client_order_id": resting_client_order_id.0,
            "resting_side": name(resting_side),
            "price": price.to_string(),
            "quantity": quantity.0,
            "resting_remaining": resting_remaining.0,
        }),
        Event::Cancelled { order, member, client_order_id, quantity, cause } => json!({
            "event": "cancelled",
            "order": order.to_string(),
            "member": member.0,
            "client_order_id": client_order_id.0,
            "quantity": quantity.0,
            "cause": name(cause),
        }),
    }
}

fn show_chunk(chunk: &CheckpointChunk, piece: usize) -> Shown {
    let (shard, position) = (chunk.shard.get(), chunk.position.get());
    let (start, total) = (chunk.start.get(), chunk.total_bytes.get());
    let end = u64::from(start) + piece as u64;
    shown(
        "checkpoint_piece",
        format!("shard {shard} position {position}: bytes {start} to {end} of {total}"),
        json!({
            "shard": shard,
            "epoch": chunk.epoch.get(),
            "position": position,
            "start": start,
            "bytes": piece,
            "total_bytes": total,
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

/// Adds the fields of one object to another.
fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{
        CancelCause, ClientOrderId, Epoch, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Position,
        Price, Quantity, Reason, RequestId, ShardId, Side, Status, Timestamp, VenueId,
    };
    use pares_wire::record::{ResultPlace, result_bytes, write_result};

    fn order(sequence: u64) -> OrderId {
        OrderId(RequestId::new(GatewayId(2), sequence))
    }

    /// An amend that trades 3 and gives up 1.
    fn result() -> Vec<u8> {
        let request = Request {
            id: order(9).0,
            stamp: Timestamp(1_000_000_007),
            member: MemberId(4),
            client_order_id: ClientOrderId(77),
            instrument: InstrumentId(1),
            shard: ShardId(5),
            command: Command::Amend { target: order(8), price: Price(1_000_100), quantity: Quantity(6) },
        };
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
        let (cause, quantity) = (CancelCause::Reduced, Quantity(1));
        let events = [fill, Event::Cancelled { order: order(8), member, client_order_id, quantity, cause }];
        let (shard, epoch, venue) = (ShardId(5), Epoch(1), VenueId(1));
        let place = ResultPlace { shard, epoch, position: Position(12), venue, state_hash: 0 };
        let mut bytes = vec![0; result_bytes(events.len())];
        write_result(&mut bytes, &place, &request, &outcome, &events);
        bytes
    }

    #[test]
    fn a_result_is_one_line_with_its_request_outcome_and_events() {
        assert_eq!(
            show(&result()).line,
            "shard 5 position 12: 2:9 member 4 name 77 instrument 1: amend 2:8 to 6 at 100.0100 -> resting \
             executed 3 remaining 3; 3 at 99.9900 with 2:1 (10 left); 1 of 2:8 cancelled (reduced)"
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
