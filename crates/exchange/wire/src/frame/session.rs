//! Frames as domain types, for the two ends of a session.
//!
//! ```text
//! client   write_request(ClientRequest) ----> decode_client   gateway
//!          decode_gateway               <---- write_reply(Reply)
//! ```

use pares_types::{ClientOrderId, ClientRequest, Reply};

use super::reply::{answer, busted, cancelled, journalled, news, rejected, trade};
use super::{
    Answer, BeginDay, Cancelled, EndDay, EnterOrder, EnterOrderExtended, Journalled, MassCancel, Message,
    OrderNews, Ping, Pong, Rejected, SignOn, SignedOn, TellTime, Trade, TradeBusted, VERSION, body, request,
};
use crate::WireError;

/// [`SignOn::flags`]: also send [`Journalled`].
pub const SIGN_ON_JOURNALLED: u32 = 1;

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
    let more = EnterOrderExtended::KIND..=TellTime::KIND;
    let days = BeginDay::KIND..=EndDay::KIND;
    plain.contains(&kind) || more.contains(&kind) || days.contains(&kind)
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
        OrderNews::KIND => GatewayFrame::Reply(Reply::News(news(&body(bytes)?)?)),
        TradeBusted::KIND => GatewayFrame::Reply(Reply::Busted(busted(&body(bytes)?)?)),
        Pong::KIND => GatewayFrame::Pong(body(bytes)?),
        _ => return Err(WireError::UnknownSchema { schema: kind, version: VERSION }),
    })
}

fn sign_on(bytes: &[u8]) -> Result<SignOn, WireError> {
    let sign_on: SignOn = body(bytes)?;
    // A flag this build does not know would ask for something it does not do.
    if sign_on.flags.get() & !SIGN_ON_JOURNALLED != 0 {
        return Err(WireError::InvalidField("flags"));
    }
    Ok(sign_on)
}
