//! What the exchange itself asks for.

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Message;
use crate::frame::{FRAME_MAX, HEAD_BYTES};

message! {
    /// Client to gateway, the exchange only: bring an instrument into a phase.
    9 SetPhase (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The instrument.
        instrument: U32,
        /// Phase code.
        phase: u8,
        /// Zero.
        reserved: [u8; 3],
    }
}
message! {
    /// Client to gateway, the exchange only: change a rule of an instrument.
    10 SetRule (32) {
        /// The name of this request.
        client_order_id: U64,
        /// The rule's first operand.
        first: I64,
        /// Its second; 0 if it has none.
        second: I64,
        /// The instrument.
        instrument: U32,
        /// Rule code.
        rule: u8,
        /// Zero.
        reserved: [u8; 3],
    }
}
message! {
    /// Client to gateway, the exchange only: list an instrument.
    11 AddInstrument (32) {
        /// The name of this request.
        client_order_id: U64,
        /// Its symbol: 1 to 16 printable ASCII characters, then zeros.
        symbol: [u8; 16],
        /// Its id; not 0.
        instrument: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway, the exchange only: cancel a closed instrument's orders and remove it.
    12 RemoveInstrument (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The instrument.
        instrument: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway, the exchange or the member for itself: cancel all its orders and take no more.
    13 BlockMember (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The member.
        member: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway, the exchange only: take a blocked member's orders again.
    14 UnblockMember (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The member.
        member: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway, the exchange only: declare a trade void.
    15 BustTrade (80) {
        /// The name of this request.
        client_order_id: U64,
        /// Where in the instrument's total order it happened.
        position: U64,
        /// The id of the resting order (in an auction: the sell order).
        resting_order_id: U64,
        /// The id of the incoming order (in an auction: the buy order).
        incoming_order_id: U64,
        /// The trade's price, price units.
        price: I64,
        /// Shares traded.
        quantity: U64,
        /// The instrument.
        instrument: U32,
        /// Which event of that position it was, from 0.
        index: U16,
        /// 1 if the resting order bought, 2 if it sold.
        resting_side: u8,
        /// Zero.
        reserved: u8,
        /// The name of the resting order.
        resting_client_order_id: U64,
        /// The name of the incoming order.
        incoming_client_order_id: U64,
        /// The owner of the resting order.
        resting_member: U32,
        /// The owner of the incoming order.
        incoming_member: U32,
    }
}
message! {
    /// Client to gateway, the exchange only: it is now; do what is due. Gateways do so by themselves.
    16 TellTime (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The instrument, or 0 for all.
        instrument: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway, the exchange only: begin a business day in all shards.
    24 BeginDay (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The day, days since the Unix epoch; later than any before.
        day: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway, the exchange only: end the business day in all shards.
    25 EndDay (16) {
        /// The name of this request.
        client_order_id: U64,
        /// The day that is on, days since the Unix epoch.
        day: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway, the exchange: change an entry of the register.
    17 ChangeRegister (48) {
        /// The name of this request.
        client_order_id: U64,
        /// What is entered, as the entry says.
        value: [u8; 32],
        /// The member.
        member: U32,
        /// Which of its sessions; 0 is the member as a whole.
        session: U16,
        /// Entry code.
        entry: u8,
        /// Zero.
        reserved: u8,
    }
}
