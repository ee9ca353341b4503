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

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::WireError;

mod session;

pub use session::{
    ANSWER_REPEAT, ClientFrame, GatewayFrame, SIGN_ON_JOURNALLED, decode_client, decode_gateway,
    request_name, write_reply, write_request,
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

/// A message that fits a frame.
pub trait Message: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {
    /// The `kind` byte of its frames.
    const KIND: u8;
}

macro_rules! message {
    ($(#[$doc:meta])* $kind:literal $name:ident ($size:literal) { $($(#[$field_doc:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }
        const _: () = assert!(size_of::<$name>() == $size && HEAD_BYTES + $size <= FRAME_MAX);
        impl Message for $name { const KIND: u8 = $kind; }
        impl $name {
            /// The message's fields, in order: name and Rust type. The protocol page is checked against them.
            pub const FIELDS: &'static [(&'static str, &'static str)] = &[$((stringify!($field), stringify!($ty)),)*];
        }
    };
}

message! {
    /// Client to gateway, first on every connection: who is speaking.
    1 SignOn (48) {
        /// The member. Loopback trusts it; a credential comes with the sign-on issue.
        member: U32,
        /// Bit 0: also send [`Journalled`] for each request.
        flags: U32,
        /// Echoed in [`SignedOn`].
        token: U64,
        /// Zero; the place of a credential.
        credential: [u8; 32],
    }
}
message! {
    /// Client to gateway: enter an order.
    2 EnterOrder (32) {
        /// Unique per member for life; a repeat returns the first answer.
        client_order_id: U64,
        /// Price units (1/10,000), a multiple of the tick; 0 for market orders.
        price: I64,
        /// Shares, a positive multiple of the lot.
        quantity: U64,
        /// The instrument.
        instrument: U32,
        /// 1 buy, 2 sell.
        side: u8,
        /// 1 limit, 2 market, 3 post-only limit; 4, post-only market, is refused by the venue.
        order_kind: u8,
        /// 1 day, 2 immediate or cancel, 3 fill or kill.
        time_in_force: u8,
        /// Zero.
        reserved: u8,
    }
}
message! {
    /// Client to gateway: change a resting order.
    3 AmendOrder (32) {
        /// The name of this request.
        client_order_id: U64,
        /// The name under which the order was entered.
        target_client_order_id: U64,
        /// New price, price units.
        price: I64,
        /// New total quantity, executed part included.
        quantity: U64,
    }
}
message! {
    /// Client to gateway: cancel a resting order.
    4 CancelOrder (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The name under which the order was entered.
        target_client_order_id: U64,
    }
}
message! {
    /// Client to gateway: cancel all the member's orders.
    5 MassCancel (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The instrument, or 0 for all.
        instrument: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway: are you there?
    6 Ping (8) {
        /// Echoed in [`Pong`].
        token: U64,
    }
}
message! {
    /// Gateway to client: signed on.
    129 SignedOn (24) {
        /// The sign-on's token.
        token: U64,
        /// The gateway.
        gateway: U16,
        /// Requests this session may have in flight.
        in_flight_max: U16,
        /// The member.
        member: U32,
        /// Zero.
        reserved: U64,
    }
}
message! {
    /// Gateway to client: the request is in the gateway's journal (and will be ordered); sent on request only.
    130 Journalled (16) {
        /// The request's name.
        client_order_id: U64,
        /// Its identity in the exchange.
        request_id: U64,
    }
}
message! {
    /// Gateway to client: the one answer to a request. Its position and all it says are recorded.
    131 Answer (64) {
        /// The request's name.
        client_order_id: U64,
        /// Its identity in the exchange.
        request_id: U64,
        /// The order concerned.
        order_id: U64,
        /// Its place in the shard's total order.
        position: U64,
        /// Shares of the order executed so far; for a mass cancel the orders cancelled.
        executed: U64,
        /// Shares of the order still on the book.
        remaining: U64,
        /// The instrument (0: all).
        instrument: U32,
        /// The shard.
        shard: U16,
        /// Status code.
        status: u8,
        /// Reason code.
        reason: u8,
        /// Bit 0: this repeats an earlier answer.
        flags: U32,
        /// Trades and cancels reported beside this answer, to all members.
        events: U32,
    }
}
message! {
    /// Gateway to client: one of the member's orders traded.
    132 Trade (56) {
        /// The name of the member's order.
        client_order_id: U64,
        /// The order.
        order_id: U64,
        /// Where in the total order it traded.
        position: U64,
        /// At what price, price units.
        price: I64,
        /// Shares.
        quantity: U64,
        /// Shares of the order left on the book; for the incoming side, left to match.
        remaining: U64,
        /// The instrument.
        instrument: U32,
        /// The shard.
        shard: U16,
        /// The member's side: 1 buy, 2 sell.
        side: u8,
        /// 1: the member's order was resting; 2: it was incoming.
        role: u8,
    }
}
message! {
    /// Gateway to client: shares of one of the member's orders were cancelled.
    133 Cancelled (40) {
        /// The name of the member's order.
        client_order_id: U64,
        /// The order.
        order_id: U64,
        /// Where in the total order it happened.
        position: U64,
        /// Shares cancelled.
        quantity: U64,
        /// The instrument.
        instrument: U32,
        /// The shard.
        shard: U16,
        /// Cancel cause code.
        cause: u8,
        /// Zero.
        reserved: u8,
    }
}
message! {
    /// Gateway to client: the gateway did not take the request in; nothing was recorded.
    134 Rejected (16) {
        /// The request's name, 0 if it could not be read.
        client_order_id: U64,
        /// Reason code.
        reason: u8,
        /// Zero.
        reserved: [u8; 7],
    }
}
message! {
    /// Gateway to client: I am.
    135 Pong (8) {
        /// The ping's token.
        token: U64,
    }
}

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
