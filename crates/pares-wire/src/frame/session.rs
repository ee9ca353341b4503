//! Frames as domain types, for the two ends of a session.
//!
//! ```text
//! client   write_request(ClientRequest) ----> decode_client   gateway
//!          decode_gateway               <---- write_reply(Reply)
//! ```

use pares_types::{
    self as domain, CancelCause, ClientOrderId, ClientRequest, InstrumentId, NewOrder, OrderId, Position,
    Price, Quantity, Reply, RequestId, Role, ShardId,
};

use super::{
    AmendOrder, Answer, CancelOrder, Cancelled, EnterOrder, Journalled, MassCancel, Message, Ping, Pong,
    Rejected, SignOn, SignedOn, Trade, VERSION, body, write,
};
use crate::record::{cause, reason, status};
use crate::{WireError, order_kind, order_kind_code, side, time_in_force};

/// [`SignOn::flags`]: also send [`Journalled`].
pub const SIGN_ON_JOURNALLED: u32 = 1;
/// [`Answer::flags`]: this repeats an earlier answer.
pub const ANSWER_REPEAT: u32 = 1;

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// Who is speaking.
    SignOn(SignOn),
    /// A request.
    Request(ClientRequest),
    /// Are you there?
    Ping(Ping),
}

/// What a gateway may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayFrame {
    /// Signed on.
    SignedOn(SignedOn),
    /// News of the member's requests and orders.
    Reply(Reply),
    /// I am.
    Pong(Pong),
}

/// Reads a frame's body (see [`super::split`]) as a client's message.
///
/// # Errors
/// [`WireError::UnknownSchema`] if a client may not send that kind: the connection is lost. Anything else
/// concerns this frame alone: reject it under the name [`request_name`] finds, and go on.
pub fn decode_client(kind: u8, bytes: &[u8]) -> Result<ClientFrame, WireError> {
    Ok(match kind {
        SignOn::KIND => ClientFrame::SignOn(sign_on(bytes)?),
        EnterOrder::KIND => ClientFrame::Request(enter(&body(bytes)?)?),
        AmendOrder::KIND => ClientFrame::Request(amend(&body(bytes)?)),
        CancelOrder::KIND => ClientFrame::Request(cancel(&body(bytes)?)),
        MassCancel::KIND => ClientFrame::Request(mass_cancel(&body(bytes)?)?),
        Ping::KIND => ClientFrame::Ping(body(bytes)?),
        _ => return Err(WireError::UnknownSchema { schema: kind, version: VERSION }),
    })
}

/// The name of the request in a frame that [`decode_client`] could not read; 0 if even that is missing.
#[must_use]
pub fn request_name(kind: u8, bytes: &[u8]) -> ClientOrderId {
    let named = (EnterOrder::KIND..=MassCancel::KIND).contains(&kind);
    // Every request begins with its name.
    let name = bytes.first_chunk().filter(|_| named);
    ClientOrderId(name.map_or(0, |name| u64::from_le_bytes(*name)))
}

/// Reads a frame's body as a gateway's message.
///
/// # Errors
/// If it is none, or a field is outside its legal range.
pub fn decode_gateway(kind: u8, bytes: &[u8]) -> Result<GatewayFrame, WireError> {
    Ok(match kind {
        SignedOn::KIND => GatewayFrame::SignedOn(body(bytes)?),
        Journalled::KIND => GatewayFrame::Reply(journalled(&body(bytes)?)?),
        Answer::KIND => GatewayFrame::Reply(Reply::Answer(answer(&body(bytes)?)?)),
        Trade::KIND => GatewayFrame::Reply(Reply::Trade(trade(&body(bytes)?)?)),
        Cancelled::KIND => GatewayFrame::Reply(Reply::Cancelled(cancelled(&body(bytes)?)?)),
        Rejected::KIND => GatewayFrame::Reply(rejected(&body(bytes)?)?),
        Pong::KIND => GatewayFrame::Pong(body(bytes)?),
        _ => return Err(WireError::UnknownSchema { schema: kind, version: VERSION }),
    })
}

/// Appends a request to `out` as a frame.
pub fn write_request(out: &mut Vec<u8>, request: &ClientRequest) {
    match *request {
        ClientRequest::Enter { client_order_id, instrument, order } => {
            let (order_kind, price) = order_kind_code(order.kind, order.post_only);
            let frame = EnterOrder {
                client_order_id: client_order_id.0.into(),
                price: price.into(),
                quantity: order.quantity.0.into(),
                instrument: instrument.0.into(),
                side: order.side as u8,
                order_kind,
                time_in_force: order.time_in_force as u8,
                reserved: 0,
            };
            write(out, &frame);
        }
        ClientRequest::Amend { client_order_id, target, price, quantity } => {
            let frame = AmendOrder {
                client_order_id: client_order_id.0.into(),
                target_client_order_id: target.0.into(),
                price: price.0.into(),
                quantity: quantity.0.into(),
            };
            write(out, &frame);
        }
        ClientRequest::Cancel { client_order_id, target } => {
            let (client_order_id, target) = (client_order_id.0.into(), target.0.into());
            write(out, &CancelOrder { client_order_id, target_client_order_id: target });
        }
        ClientRequest::MassCancel { client_order_id, instrument } => {
            let (client_order_id, instrument) = (client_order_id.0.into(), instrument.0.into());
            write(out, &MassCancel { client_order_id, instrument, reserved: 0.into() });
        }
    }
}

/// Appends a reply to `out` as a frame.
pub fn write_reply(out: &mut Vec<u8>, reply: &Reply) {
    match reply {
        Reply::Journalled { client_order_id, request } => {
            let (client_order_id, request_id) = (client_order_id.0.into(), request.to_bits().into());
            write(out, &Journalled { client_order_id, request_id });
        }
        Reply::Answer(answer) => write(out, &Answer::from(answer)),
        Reply::Trade(trade) => write(out, &Trade::from(trade)),
        Reply::Cancelled(cancelled) => write(out, &Cancelled::from(cancelled)),
        Reply::Rejected { client_order_id, reason } => {
            let (client_order_id, reason) = (client_order_id.0.into(), *reason as u8);
            write(out, &Rejected { client_order_id, reason, reserved: [0; 7] });
        }
    }
}

impl From<&domain::Answer> for Answer {
    fn from(answer: &domain::Answer) -> Self {
        Self {
            client_order_id: answer.client_order_id.0.into(),
            request_id: answer.request.to_bits().into(),
            order_id: answer.order.0.to_bits().into(),
            position: answer.position.0.into(),
            executed: answer.executed.0.into(),
            remaining: answer.remaining.0.into(),
            instrument: answer.instrument.0.into(),
            shard: answer.shard.0.into(),
            status: answer.status as u8,
            reason: answer.reason as u8,
            flags: if answer.repeat { ANSWER_REPEAT } else { 0 }.into(),
            events: answer.events.into(),
        }
    }
}

impl From<&domain::Trade> for Trade {
    fn from(trade: &domain::Trade) -> Self {
        Self {
            client_order_id: trade.client_order_id.0.into(),
            order_id: trade.order.0.to_bits().into(),
            position: trade.position.0.into(),
            price: trade.price.0.into(),
            quantity: trade.quantity.0.into(),
            remaining: trade.remaining.0.into(),
            instrument: trade.instrument.0.into(),
            shard: trade.shard.0.into(),
            side: trade.side as u8,
            role: trade.role as u8,
        }
    }
}

impl From<&domain::Cancellation> for Cancelled {
    fn from(cancelled: &domain::Cancellation) -> Self {
        Self {
            client_order_id: cancelled.client_order_id.0.into(),
            order_id: cancelled.order.0.to_bits().into(),
            position: cancelled.position.0.into(),
            quantity: cancelled.quantity.0.into(),
            instrument: cancelled.instrument.0.into(),
            shard: cancelled.shard.0.into(),
            cause: cancelled.cause as u8,
            reserved: 0,
        }
    }
}

fn sign_on(bytes: &[u8]) -> Result<SignOn, WireError> {
    let sign_on: SignOn = body(bytes)?;
    // A flag this build does not know would ask for something it does not do.
    if sign_on.flags.get() & !SIGN_ON_JOURNALLED != 0 {
        return Err(WireError::InvalidField("flags"));
    }
    Ok(sign_on)
}

fn enter(frame: &EnterOrder) -> Result<ClientRequest, WireError> {
    if frame.reserved != 0 {
        return Err(WireError::InvalidField("reserved"));
    }
    let (kind, post_only) = order_kind(frame.order_kind, frame.price.get())?;
    let order = NewOrder {
        side: side(frame.side)?,
        kind,
        time_in_force: time_in_force(frame.time_in_force)?,
        post_only,
        quantity: Quantity(frame.quantity.get()),
    };
    Ok(ClientRequest::Enter {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        instrument: InstrumentId(frame.instrument.get()),
        order,
    })
}

fn amend(frame: &AmendOrder) -> ClientRequest {
    ClientRequest::Amend {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        target: ClientOrderId(frame.target_client_order_id.get()),
        price: Price(frame.price.get()),
        quantity: Quantity(frame.quantity.get()),
    }
}

fn cancel(frame: &CancelOrder) -> ClientRequest {
    ClientRequest::Cancel {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        target: ClientOrderId(frame.target_client_order_id.get()),
    }
}

fn mass_cancel(frame: &MassCancel) -> Result<ClientRequest, WireError> {
    if frame.reserved.get() != 0 {
        return Err(WireError::InvalidField("reserved"));
    }
    Ok(ClientRequest::MassCancel {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        instrument: InstrumentId(frame.instrument.get()),
    })
}

fn request_id(bits: u64, field: &'static str) -> Result<RequestId, WireError> {
    RequestId::from_bits(bits).ok_or(WireError::InvalidField(field))
}

fn journalled(frame: &Journalled) -> Result<Reply, WireError> {
    Ok(Reply::Journalled {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        request: request_id(frame.request_id.get(), "request_id")?,
    })
}

fn rejected(frame: &Rejected) -> Result<Reply, WireError> {
    Ok(Reply::Rejected {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        reason: reason(frame.reason)?,
    })
}

fn answer(frame: &Answer) -> Result<domain::Answer, WireError> {
    Ok(domain::Answer {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        request: request_id(frame.request_id.get(), "request_id")?,
        order: OrderId(request_id(frame.order_id.get(), "order_id")?),
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        instrument: InstrumentId(frame.instrument.get()),
        status: status(frame.status)?,
        reason: reason(frame.reason)?,
        executed: Quantity(frame.executed.get()),
        remaining: Quantity(frame.remaining.get()),
        events: frame.events.get(),
        repeat: frame.flags.get() & ANSWER_REPEAT != 0,
    })
}

fn trade(frame: &Trade) -> Result<domain::Trade, WireError> {
    Ok(domain::Trade {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        order: OrderId(request_id(frame.order_id.get(), "order_id")?),
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        instrument: InstrumentId(frame.instrument.get()),
        side: side(frame.side)?,
        role: role(frame.role)?,
        price: Price(frame.price.get()),
        quantity: Quantity(frame.quantity.get()),
        remaining: Quantity(frame.remaining.get()),
    })
}

fn cancelled(frame: &Cancelled) -> Result<domain::Cancellation, WireError> {
    let cause: CancelCause = cause(frame.cause)?;
    Ok(domain::Cancellation {
        client_order_id: ClientOrderId(frame.client_order_id.get()),
        order: OrderId(request_id(frame.order_id.get(), "order_id")?),
        shard: ShardId(frame.shard.get()),
        position: Position(frame.position.get()),
        instrument: InstrumentId(frame.instrument.get()),
        quantity: Quantity(frame.quantity.get()),
        cause,
    })
}

fn role(code: u8) -> Result<Role, WireError> {
    match code {
        1 => Ok(Role::Resting),
        2 => Ok(Role::Incoming),
        _ => Err(WireError::InvalidField("role")),
    }
}
