//! Frames as domain types, for the two ends of a session.
//!
//! ```text
//! client   write_request(ClientRequest) ----> decode_client   gateway
//!          decode_gateway               <---- write_reply(Reply)
//! ```

use pares_types::{
    ClientOrderId, ClientRequest, InstrumentId, InstrumentStatus, ListEnd, ListRequest, OrderKey,
    OrderStatus, OwnLimits, Price, Reason, Reply, ShardId,
};

use super::reply::{journalled, rejected};
use super::{
    Answer, BeginDay, CancelAfter, Cancelled, Challenge, ChangeRegister, EndDay, EnterOrder,
    EnterOrderExtended, Journalled, LimitsRequest, MassCancel, Message, OrderNews, OrderStatusRequest, Ping,
    Pong, Proof, Rejected, Resume, Resumed, SignOn, SignedOn, TickRow, Trade, TradeBusted, VERSION, body,
    queries, request, write,
};
use crate::WireError;
use crate::field::{Field, coded};

/// [`SignOn::flags`]: also send [`Journalled`].
pub const SIGN_ON_JOURNALLED: u32 = 1;

/// [`SignOn::flags`]: tell nothing of the member's streams before they are resumed.
pub const SIGN_ON_RESUMES: u32 = 2;

/// [`Resume::next`]: nothing more of what was missed is wanted, until something is resumed again.
pub const RESUME_NOTHING: u64 = u64::MAX;

/// What a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// Who is speaking.
    SignOn(SignOn),
    /// That it is the one.
    Proof(Proof),
    /// A request.
    Request(ClientRequest),
    /// Tell me my member's stream of a shard, or of all, from a number on; 0: from now on; [`RESUME_NOTHING`]: no more of what I missed.
    Resume {
        /// The shard; `None` for each of them.
        shard: Option<ShardId>,
        /// The number.
        next: u64,
    },
    /// Unless told again within so many milliseconds, cancel what this session guards; 0: do not.
    CancelAfter {
        /// Milliseconds.
        after_ms: u32,
    },
    /// How is that order of mine?
    OrderStatusRequest(OrderKey),
    /// A list, please.
    ListRequest(ListRequest),
    /// What may this session do?
    LimitsRequest {
        /// Echoed.
        token: u64,
    },
    /// Are you there?
    Ping(Ping),
}

/// What a gateway may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayFrame {
    /// Prove who you are.
    Challenge(Challenge),
    /// Signed on.
    SignedOn(SignedOn),
    /// News of the member's requests and orders.
    Reply(Reply),
    /// The gateway sends the member's stream of a shard live, or does not.
    Resumed {
        /// The shard.
        shard: ShardId,
        /// The number of the next message; if it is not told, the lowest that is kept, 0 if none is.
        next: u64,
        /// [`Reason::None`], or why it is not told.
        reason: Reason,
    },
    /// How an order is; `None` if the gateway knows of none with that key.
    OrderStatus(OrderKey, Option<OrderStatus>),
    /// The end of a list.
    ListEnd(ListEnd),
    /// An instrument, of a list.
    InstrumentStatus(InstrumentStatus),
    /// A row of an instrument's tick table.
    TickRow {
        /// The instrument.
        instrument: InstrumentId,
        /// Where the row begins.
        from: Price,
        /// The smallest price step from there on.
        tick: Price,
    },
    /// What the session may do.
    OwnLimits(OwnLimits),
    /// I am.
    Pong(Pong),
}

/// Reads a frame's body (see [`super::split`]) as a client's message.
///
/// # Errors
/// [`WireError::UnknownSchema`] if a client may not send that kind: the connection is lost. Anything else
/// concerns this frame alone: reject it under the name [`request_name`] finds, and continue.
pub fn decode_client(kind: u8, bytes: &[u8]) -> Result<ClientFrame, WireError> {
    Ok(match kind {
        SignOn::KIND => ClientFrame::SignOn(sign_on(bytes)?),
        Proof::KIND => ClientFrame::Proof(body(bytes)?),
        Resume::KIND => resume(&body(bytes)?)?,
        CancelAfter::KIND => {
            ClientFrame::CancelAfter { after_ms: body::<CancelAfter>(bytes)?.after_ms.get() }
        }
        OrderStatusRequest::KIND => ClientFrame::OrderStatusRequest(order_key(&body(bytes)?)?),
        super::ListRequest::KIND => ClientFrame::ListRequest(queries::list_request(&body(bytes)?)?),
        LimitsRequest::KIND => {
            ClientFrame::LimitsRequest { token: body::<LimitsRequest>(bytes)?.token.get() }
        }
        Ping::KIND => ClientFrame::Ping(body(bytes)?),
        _ if is_request(kind) => ClientFrame::Request(request::decode(kind, bytes)?),
        _ => return Err(WireError::UnknownSchema { schema: kind, version: VERSION }),
    })
}

/// The name of the request in a frame that [`decode_client`] could not read; 0 if even that is missing.
#[must_use]
pub fn request_name(kind: u8, bytes: &[u8]) -> ClientOrderId {
    // Every request begins with its name.
    let name = bytes.first_chunk().filter(|_| is_request(kind));
    ClientOrderId(name.map_or(0, |name| u64::from_le_bytes(*name)))
}

fn is_request(kind: u8) -> bool {
    let plain = EnterOrder::KIND..=MassCancel::KIND;
    let more = EnterOrderExtended::KIND..=ChangeRegister::KIND;
    let days = BeginDay::KIND..=EndDay::KIND;
    plain.contains(&kind) || more.contains(&kind) || days.contains(&kind)
}

/// Reads a frame's body as a gateway's message.
///
/// # Errors
/// If it is none, or a field is outside its legal range.
pub fn decode_gateway(kind: u8, bytes: &[u8]) -> Result<GatewayFrame, WireError> {
    Ok(match kind {
        Challenge::KIND => GatewayFrame::Challenge(body(bytes)?),
        SignedOn::KIND => GatewayFrame::SignedOn(body(bytes)?),
        Journalled::KIND => GatewayFrame::Reply(journalled(&body(bytes)?)?),
        Answer::KIND => GatewayFrame::Reply(Reply::Answer(carried::<Answer, _>(bytes)?)),
        Trade::KIND => GatewayFrame::Reply(Reply::Trade(carried::<Trade, _>(bytes)?)),
        Cancelled::KIND => GatewayFrame::Reply(Reply::Cancelled(carried::<Cancelled, _>(bytes)?)),
        Rejected::KIND => GatewayFrame::Reply(rejected(&body(bytes)?)?),
        OrderNews::KIND => GatewayFrame::Reply(Reply::News(carried::<OrderNews, _>(bytes)?)),
        TradeBusted::KIND => GatewayFrame::Reply(Reply::Busted(carried::<TradeBusted, _>(bytes)?)),
        Resumed::KIND => resumed(&body(bytes)?)?,
        super::OrderStatus::KIND => order_status(&body(bytes)?)?,
        super::ListEnd::KIND => GatewayFrame::ListEnd(queries::list_end(&body(bytes)?)?),
        super::InstrumentStatus::KIND => {
            GatewayFrame::InstrumentStatus(carried::<super::InstrumentStatus, _>(bytes)?)
        }
        TickRow::KIND => queries::tick_row(&body(bytes)?),
        super::OwnLimits::KIND => GatewayFrame::OwnLimits(carried::<super::OwnLimits, _>(bytes)?),
        Pong::KIND => GatewayFrame::Pong(body(bytes)?),
        _ => return Err(WireError::UnknownSchema { schema: kind, version: VERSION }),
    })
}

/// What a frame's body carries.
fn carried<M, T>(bytes: &[u8]) -> Result<T, WireError>
where
    M: Message,
    T: for<'a> TryFrom<&'a M, Error = WireError>,
{
    T::try_from(&body::<M>(bytes)?)
}

fn sign_on(bytes: &[u8]) -> Result<SignOn, WireError> {
    let sign_on: SignOn = body(bytes)?;
    // A flag this build does not know would ask for something it does not do.
    if sign_on.flags.get() & !(SIGN_ON_JOURNALLED | SIGN_ON_RESUMES) != 0 {
        return Err(WireError::InvalidField("flags"));
    }
    if sign_on.reserved != [0; 26] {
        return Err(WireError::InvalidField("reserved"));
    }
    Ok(sign_on)
}

/// [`Resume::shard`]: each of them.
const ALL_SHARDS: u16 = u16::MAX;

fn resume(frame: &Resume) -> Result<ClientFrame, WireError> {
    request::zero(&frame.reserved)?;
    let shard = Some(frame.shard.get()).filter(|shard| *shard != ALL_SHARDS).map(ShardId);
    Ok(ClientFrame::Resume { shard, next: frame.next.get() })
}

/// Appends a [`Resume`] to `out`.
pub fn write_resume(out: &mut Vec<u8>, shard: Option<ShardId>, next: u64) {
    let shard = shard.map_or(ALL_SHARDS, |shard| shard.0).into();
    write(out, &Resume { next: next.into(), shard, reserved: [0; 6] });
}

fn resumed(frame: &Resumed) -> Result<GatewayFrame, WireError> {
    let (shard, next) = (ShardId(frame.shard.get()), frame.next.get());
    Ok(GatewayFrame::Resumed { shard, next, reason: coded(frame.reason)? })
}

/// Appends a [`Resumed`] to `out`.
pub fn write_resumed(out: &mut Vec<u8>, shard: ShardId, next: u64, reason: Reason) {
    let (shard, next) = (shard.0.into(), next.into());
    write(out, &Resumed { next, shard, reason: reason as u8, reserved: [0; 13] });
}

fn order_key(frame: &OrderStatusRequest) -> Result<OrderKey, WireError> {
    match (frame.client_order_id.get(), frame.order_id.get()) {
        (name, 0) => Ok(OrderKey::Name(ClientOrderId(name))),
        (0, _) => Ok(OrderKey::Id(Field::read(frame.order_id, "order_id")?)),
        _ => Err(WireError::InvalidField("order_id")),
    }
}

/// The key as name and id, of which one is 0.
fn key_fields(key: OrderKey) -> (u64, u64) {
    match key {
        OrderKey::Name(name) => (name.0, 0),
        OrderKey::Id(order) => (0, order.0.to_bits()),
    }
}

/// Appends an [`OrderStatusRequest`] to `out`.
pub fn write_order_status_request(out: &mut Vec<u8>, key: OrderKey) {
    let (name, id) = key_fields(key);
    write(out, &OrderStatusRequest { client_order_id: name.into(), order_id: id.into() });
}

fn order_status(frame: &super::OrderStatus) -> Result<GatewayFrame, WireError> {
    if frame.state == 0 {
        let (client_order_id, order_id) = (frame.client_order_id, frame.order_id);
        let key = order_key(&OrderStatusRequest { client_order_id, order_id })?;
        return Ok(GatewayFrame::OrderStatus(key, None));
    }
    let status = OrderStatus::try_from(frame)?;
    Ok(GatewayFrame::OrderStatus(OrderKey::Name(status.client_order_id), Some(status)))
}

/// Appends an [`OrderStatus`](super::OrderStatus) to `out`: what is known of the order that was asked for by `key`.
pub fn write_order_status(out: &mut Vec<u8>, key: OrderKey, status: Option<OrderStatus>) {
    let (name, id) = key_fields(key);
    let unknown =
        || super::OrderStatus { client_order_id: name.into(), order_id: id.into(), ..Default::default() };
    write(out, &status.as_ref().map_or_else(unknown, super::OrderStatus::from));
}
