//! What a member asks for.

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Message;
use crate::frame::{FRAME_MAX, HEAD_BYTES};

message! {
    /// Client to gateway: enter an order.
    2 EnterOrder (32) {
        /// Unique per member for life; a repeat returns the first answer.
        client_order_id: U64,
        /// Price units (1/10,000), a multiple of the tick: the limit; 0 for market orders.
        price: I64,
        /// Shares, a positive multiple of the lot.
        quantity: U64,
        /// The instrument.
        instrument: U32,
        /// 1 buy, 2 sell.
        side: u8,
        /// Order kind code.
        order_kind: u8,
        /// Time in force code; not 5, good till date, which needs a date.
        time_in_force: u8,
        /// Self-trade prevention code.
        self_trade: u8,
    }
}
message! {
    /// Client to gateway: enter an order that says more than [`EnterOrder`] can.
    7 EnterOrderExtended (72) {
        /// As in [`EnterOrder`].
        client_order_id: U64,
        /// The limit; 0 for market orders.
        price: I64,
        /// Shares.
        quantity: U64,
        /// Shares an iceberg shows at a time; 0 shows everything.
        display: U64,
        /// Shares that must match at once; 0 for no such wish.
        minimum: U64,
        /// The price a stop order waits for; 0 unless bit 0 of `flags` is set.
        trigger: I64,
        /// When a good-till-date order expires, ns since the Unix epoch; 0 for others.
        until_ns: U64,
        /// The instrument.
        instrument: U32,
        /// 1 buy, 2 sell.
        side: u8,
        /// Order kind code.
        order_kind: u8,
        /// Time in force code.
        time_in_force: u8,
        /// Self-trade prevention code.
        self_trade: u8,
        /// Bit 0: there is a trigger.
        flags: u8,
        /// Zero.
        reserved: [u8; 7],
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
    /// Client to gateway: change what [`AmendOrder`] cannot.
    8 AmendOrderExtended (64) {
        /// The name of this request.
        client_order_id: U64,
        /// The name under which the order was entered.
        target_client_order_id: U64,
        /// New price, price units.
        price: I64,
        /// New total quantity, executed part included.
        quantity: U64,
        /// Shares to show at a time, 0 for everything; 0 unless bit 1 of `flags` is set.
        display: U64,
        /// The new trigger of an order that waits for it; 0 unless bit 0 of `flags` is set.
        trigger: I64,
        /// The new date, ns since the Unix epoch; 0 unless good till date.
        until_ns: U64,
        /// Time in force code; 0 leaves it as it is.
        time_in_force: u8,
        /// Bit 0: there is a trigger. Bit 1: there is a display. Bit 2: the amend only reduces; its price is ignored, and it changes nothing else.
        flags: u8,
        /// Zero.
        reserved: [u8; 6],
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
        /// 1 only bids, 2 only offers, 0 both.
        side: u8,
        /// Zero.
        reserved: [u8; 3],
    }
}
