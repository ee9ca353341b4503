//! What changes nothing: questions, and their answers.

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Message;
use crate::frame::{FRAME_MAX, HEAD_BYTES};

message! {
    /// Client to gateway: how is that order of mine?
    27 OrderStatusRequest (16) {
        /// The name under which the order was entered; 0: by its id.
        client_order_id: U64,
        /// The order's id; 0: by its name.
        order_id: U64,
    }
}
message! {
    /// Gateway to client, in answer to [`OrderStatusRequest`]: how the order is, as far as the gateway has read the record.
    146 OrderStatus (48) {
        /// The name under which the order was entered; if it is unknown, as asked.
        client_order_id: U64,
        /// The order; if it is unknown, as asked.
        order_id: U64,
        /// The shard's position to come at this gateway: what lies before it is counted in.
        next_position: U64,
        /// Shares of the order still there; of one in flight, those it asks for.
        remaining: U64,
        /// The instrument; 0 if the order is unknown.
        instrument: U32,
        /// The shard; 0 if the order is unknown.
        shard: U16,
        /// Order state code.
        state: u8,
        /// 1 buy, 2 sell; 0 if the order is unknown.
        side: u8,
        /// Shares of the order that have traded.
        executed: U64,
    }
}
message! {
    /// Client to gateway: a list.
    28 ListRequest (16) {
        /// Echoed in [`ListEnd`].
        token: U64,
        /// Only of this instrument; 0 for all.
        instrument: U32,
        /// List code.
        list: u8,
        /// Zero.
        reserved: [u8; 3],
    }
}
message! {
    /// Gateway to client, behind a list: the end of it.
    147 ListEnd (24) {
        /// The request's token.
        token: U64,
        /// Orders or instruments that were sent.
        count: U32,
        /// As asked.
        instrument: U32,
        /// List code.
        list: u8,
        /// Reason code: 0, or why there is no list.
        reason: u8,
        /// Zero.
        reserved: [u8; 6],
    }
}
message! {
    /// Gateway to client, in answer to [`ListRequest`]: an instrument, its rules and how it trades.
    149 InstrumentStatus (112) {
        /// Its symbol: 1 to 16 printable ASCII characters, then zeros.
        symbol: [u8; 16],
        /// The shard's position to come at this gateway: what lies before it is counted in.
        next_position: U64,
        /// The smallest quantity step, shares.
        lot: U64,
        /// The largest order, shares.
        quantity_max: U64,
        /// The largest order, price units times shares; 0 for no limit.
        value_max: U64,
        /// The lowest legal limit price, price units.
        price_min: I64,
        /// The highest.
        price_max: I64,
        /// The price of the last trade, price units; 0 unless bit 0 of `flags` is set.
        last: I64,
        /// The reference price, price units; 0 unless bit 1 of `flags` is set.
        reference: I64,
        /// How long a volatility call lasts, ns; 0 for none.
        call_ns: U64,
        /// The instrument.
        instrument: U32,
        /// The most orders that may be there at one time.
        orders_max: U32,
        /// How far from the reference price trades may be, hundredths of a percent; 0 for no limit.
        static_band: U32,
        /// How far from the last trade trades may be, hundredths of a percent; 0 for no limit.
        dynamic_band: U32,
        /// The shard.
        shard: U16,
        /// Phase code.
        phase: u8,
        /// Bit 0: there is a last trade. Bit 1: there is a reference price. Bit 2: it is quarantined.
        flags: u8,
        /// How many `TickRow` follow it.
        tick_rows: u8,
        /// Zero.
        reserved: [u8; 3],
    }
}
message! {
    /// Gateway to client, behind an [`InstrumentStatus`]: a row of its tick table, lowest prices first.
    150 TickRow (24) {
        /// The first price of the row, price units.
        from: I64,
        /// The smallest price step from there up to the next row, price units.
        tick: I64,
        /// The instrument.
        instrument: U32,
        /// Zero.
        reserved: U32,
    }
}
message! {
    /// Client to gateway: what may this session do, and how much of that is used?
    29 LimitsRequest (8) {
        /// Echoed in [`OwnLimits`].
        token: U64,
    }
}
message! {
    /// Gateway to client, in answer to [`LimitsRequest`]: what the session may do, and what is used of it.
    151 OwnLimits (80) {
        /// The request's token.
        token: U64,
        /// The position to come, at this gateway, of the shard that keeps the register.
        next_position: U64,
        /// Shares of one order; 0 for no limit.
        quantity_max: U64,
        /// Price times quantity of one order, price units times shares; 0 for no limit.
        value_max: U64,
        /// Shares of an instrument that the member may have bought more than sold today, or sold more than bought; 0 for no limit.
        position_max: U64,
        /// The member.
        member: U32,
        /// What the session may ask for: bits as in the register.
        rights: U32,
        /// Hundredths of a percent that a limit may lie beyond the last trade, or before one the reference price; 0 for no limit.
        collar: U32,
        /// Open orders the member may have; 0 for no limit.
        orders_max: U32,
        /// Orders and amends the session may send in a second; 0 for no limit.
        rate_max: U32,
        /// How many of them at once.
        burst_max: U32,
        /// Orders of the member that are in flight or work.
        orders: U32,
        /// Requests of the session that are unanswered.
        in_flight: U32,
        /// How many of them there may be.
        in_flight_max: U16,
        /// Which of the member's sessions.
        session: U16,
        /// Zero.
        reserved: [u8; 4],
    }
}
