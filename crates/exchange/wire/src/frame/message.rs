//! The messages of the order entry protocol, client's first. docs/protocols/order-entry.md shows them.

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FRAME_MAX, HEAD_BYTES};

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
        /// The member; trusted where sign-on is open.
        member: U32,
        /// Bit 0: also send [`Journalled`] for each request. Bit 1: tell nothing of the member's streams before [`Resume`].
        flags: U32,
        /// Echoed in [`SignedOn`].
        token: U64,
        /// Which of the member's sessions, from 1; where sign-on is open 0 will do.
        session: U16,
        /// The heartbeat the client wants, ms; 0: none.
        heartbeat_ms: U32,
        /// Zero.
        reserved: [u8; 26],
    }
}
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
        /// 1 only bids, 2 only offers, 0 both.
        side: u8,
        /// Zero.
        reserved: [u8; 3],
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
    /// Client to gateway: unless told again before, cancel then what this session guards.
    19 CancelAfter (8) {
        /// From now on, ms; 0: not at all.
        after_ms: U32,
        /// Zero.
        reserved: U32,
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
        /// Bit 0: there is a trigger. Bit 1: there is a display.
        flags: u8,
        /// Zero.
        reserved: [u8; 6],
    }
}
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
message! {
    /// Client to gateway: the answer to [`Challenge`].
    26 Proof (64) {
        /// The first half of the Ed25519 signature of the transcript; with a shared secret all of the proof.
        first: [u8; 32],
        /// The second half; zero with a shared secret.
        second: [u8; 32],
    }
}
message! {
    /// Client to gateway: tell me my member's stream of a shard from this number on.
    18 Resume (16) {
        /// The number of the first message wanted, from 1; 0: what comes from now on.
        next: U64,
        /// The shard; 65535 for each of them.
        shard: U16,
        /// Zero.
        reserved: [u8; 6],
    }
}
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
    /// Client to gateway: what may this session do, and how much of that is used?
    29 LimitsRequest (8) {
        /// Echoed in [`OwnLimits`].
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
        /// The heartbeat in force, ms; 0: none.
        heartbeat_ms: U32,
        /// The member whose streams and orders the session is told instead of its own's, and then it may ask for nothing; 0: its own.
        copied: U32,
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
        /// Bit 0: this repeats an earlier answer.
        flags: U32,
        /// Events recorded beside this answer, of any member.
        events: U32,
        /// Its place in what the member is told of the shard, from 1; 0: outside of that.
        number: U64,
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
        /// Its place in what the member is told of the shard, from 1.
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
        /// Its place in what the member is told of the shard, from 1.
        number: U64,
        /// Price units: where the order rests when they leave; its limit if it is not on the book, 0 for a market order.
        price: I64,
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
        /// Its place in what the member is told of the shard, from 1.
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
        /// Its place in what the member is told of the shard, from 1.
        number: U64,
    }
}
message! {
    /// Gateway to client: the member's stream of a shard is told live from here on, or is not told.
    139 Resumed (24) {
        /// The number of the next message; if it is not told, the lowest number that is kept, 0 if none is.
        next: U64,
        /// The shard.
        shard: U16,
        /// Reason code: 0, or why it is not told.
        reason: u8,
        /// Zero.
        reserved: [u8; 13],
    }
}
message! {
    /// Gateway to client, in answer to [`SignOn`]: prove who you are.
    138 Challenge (40) {
        /// What the gateway has made up for this sign-on.
        nonce: [u8; 32],
        /// Which gateway.
        gateway: U16,
        /// Zero.
        reserved: [u8; 6],
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
    /// Gateway to client, behind a list: the end of it.
    147 ListEnd (24) {
        /// The request's token.
        token: U64,
        /// Orders or instruments that were told.
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
        /// Orders the member may have at work; 0 for no limit.
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
