//! What became of requests and orders.

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Message;
use crate::frame::{FRAME_MAX, HEAD_BYTES};

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
    131 Answer (72) {
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
        /// Shares of the order still there; for a mass cancel the orders left to cancel.
        remaining: U64,
        /// The instrument (0: all).
        instrument: U32,
        /// The shard.
        shard: U16,
        /// Status code.
        status: u8,
        /// Reason code.
        reason: u8,
        /// Bit 0: this repeats an earlier answer. Bits 8 to 31: what was asked (a digest; 0: not told).
        flags: U32,
        /// Events recorded beside this answer, of any member.
        events: U32,
        /// Its place in the member's stream of the shard, from 1; 0: outside of that.
        number: U64,
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
    /// Gateway to client: one of the member's orders traded.
    132 Trade (72) {
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
        /// 1: the member's order was resting (in an auction: it sold); 2: it was incoming (it bought).
        role: u8,
        /// Which event of that position it was, from 0; `TradeBusted` names it by both.
        index: U16,
        /// Zero.
        reserved: [u8; 6],
        /// Its place in the member's stream of the shard, from 1.
        number: U64,
    }
}
message! {
    /// Gateway to client: shares of one of the member's orders were cancelled.
    133 Cancelled (56) {
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
        /// The order's side: 1 buy, 2 sell.
        side: u8,
        /// Its place in the member's stream of the shard, from 1.
        number: U64,
        /// Price units: where the order rests when they leave; its limit if it is not on the book, 0 for a market order.
        price: I64,
    }
}
message! {
    /// Gateway to client: one of the member's orders did something that nobody asked for just now.
    136 OrderNews (64) {
        /// The name of the member's order.
        client_order_id: U64,
        /// The order.
        order_id: U64,
        /// Where in the total order it happened.
        position: U64,
        /// The price it is limited to, or rests at, price units.
        price: I64,
        /// Shares it has left, hidden ones included.
        remaining: U64,
        /// Shares it shows; 0 if it is not on the book.
        shown: U64,
        /// The instrument.
        instrument: U32,
        /// The shard.
        shard: U16,
        /// The order's side: 1 buy, 2 sell.
        side: u8,
        /// Change code.
        change: u8,
        /// Its place in the member's stream of the shard, from 1.
        number: U64,
    }
}
message! {
    /// Gateway to client: a trade of one of the member's orders was declared void.
    137 TradeBusted (64) {
        /// The name of the member's order.
        client_order_id: U64,
        /// The order.
        order_id: U64,
        /// Where in the total order the trade was declared void.
        position: U64,
        /// Where in it the trade was.
        traded_at: U64,
        /// The trade's price, price units.
        price: I64,
        /// Shares traded.
        quantity: U64,
        /// The instrument.
        instrument: U32,
        /// The shard.
        shard: U16,
        /// Which event of its position the trade was, from 0.
        index: U16,
        /// Its place in the member's stream of the shard, from 1.
        number: U64,
    }
}
