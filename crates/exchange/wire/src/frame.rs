//! The binary order entry protocol: frames between a client and a gateway over TCP.
//!
//! ```text
//!  0        2      3         4
//! +--------+------+---------+------------------------------+
//! | length | kind | version | body, little-endian          |
//! +--------+------+---------+------------------------------+
//!   length counts the whole frame, head included
//! ```
//! A frame longer than [`FRAME_MAX`] or of an unknown kind closes the connection: nothing after it
//! can be trusted. docs/protocols/order-entry.md is the full description.

use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::WireError;

mod message;
mod queries;
mod reply;
mod request;
mod session;

pub use message::{
    AddInstrument, AmendOrder, AmendOrderExtended, Answer, BeginDay, BlockMember, BustTrade, CancelAfter,
    CancelOrder, Cancelled, Challenge, ChangeRegister, EndDay, EnterOrder, EnterOrderExtended,
    InstrumentStatus, Journalled, LimitsRequest, ListEnd, ListRequest, MassCancel, Message, OrderNews,
    OrderStatus, OrderStatusRequest, OwnLimits, Ping, Pong, Proof, Rejected, RemoveInstrument, Resume,
    Resumed, SetPhase, SetRule, SignOn, SignedOn, TellTime, TickRow, Trade, TradeBusted, UnblockMember,
};
pub use queries::{
    write_instrument_status, write_limits_request, write_list_end, write_list_request, write_own_limits,
    write_tick_row,
};
pub use reply::{ANSWER_REPEAT, write_reply};
pub use request::write_request;
pub use session::{
    ClientFrame, GatewayFrame, RESUME_NOTHING, SIGN_ON_JOURNALLED, SIGN_ON_RESUMES, decode_client,
    decode_gateway, request_name, write_order_status, write_order_status_request, write_resume,
    write_resumed,
};

/// The version of the protocol in this build.
pub const VERSION: u8 = 1;
/// Bytes of a frame's head.
pub const HEAD_BYTES: usize = size_of::<FrameHead>();
/// No frame is longer.
pub const FRAME_MAX: usize = 128;

/// The head of every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FrameHead {
    /// Bytes of the whole frame.
    pub length: U16,
    /// Which message follows.
    pub kind: u8,
    /// [`VERSION`].
    pub version: u8,
}
const _: () = assert!(HEAD_BYTES == 4);

/// Appends `message` to `out` as a frame.
pub fn write<M: Message>(out: &mut Vec<u8>, message: &M) {
    let length = u16::try_from(HEAD_BYTES + size_of::<M>()).expect("frames are far shorter than 64 KiB");
    let head = FrameHead { length: length.into(), kind: M::KIND, version: VERSION };
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(message.as_bytes());
}

/// The first frame of `bytes`: its kind, its body and the bytes that follow it. `Ok(None)` while the
/// frame is not whole yet.
///
/// # Errors
/// If what is there can not become a legal frame: the connection is lost.
#[allow(clippy::type_complexity)]
pub fn split(bytes: &[u8]) -> Result<Option<(u8, &[u8], &[u8])>, WireError> {
    let Ok((head, _)) = FrameHead::ref_from_prefix(bytes) else { return Ok(None) };
    let length = usize::from(head.length.get());
    if head.version != VERSION {
        return Err(WireError::UnknownSchema { schema: head.kind, version: head.version });
    }
    if !(HEAD_BYTES..=FRAME_MAX).contains(&length) {
        return Err(WireError::InvalidField("length"));
    }
    if bytes.len() < length {
        return Ok(None);
    }
    let (frame, rest) = bytes.split_at(length);
    Ok(Some((head.kind, &frame[HEAD_BYTES..], rest)))
}

/// Reads a frame's body as `M`. Longer bodies are newer versions of the same message: the known
/// fields come first, the rest is ignored.
///
/// # Errors
/// If the body is too short.
pub fn body<M: Message>(bytes: &[u8]) -> Result<M, WireError> {
    M::read_from_prefix(bytes).map(|(message, _)| message).map_err(|_| WireError::Truncated)
}
