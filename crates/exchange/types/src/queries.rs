//! What a member can ask a gateway besides how one order is: lists, and its own limits. A gateway answers from what it knows of the
//! committed stream; nothing is recorded.

use crate::coded::coded;
use crate::{
    InstrumentId, Limits, MemberId, Phase, Position, Price, Quantity, Reason, Rights, ShardId, Symbol,
};

coded! {
    /// What can be listed.
    pub enum List {
        /// The member's orders that are in flight or work.
        Orders = 1 "orders",
        /// Instruments.
        Instruments = 2 "instruments",
    }
}

/// A question for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// The asker's, given back at the end.
    pub token: u64,
    /// Of what.
    pub list: List,
    /// Only what is of this one; `None` for all.
    pub instrument: Option<InstrumentId>,
}

/// The end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListEnd {
    /// What was asked.
    pub request: ListRequest,
    /// How many orders or instruments were sent.
    pub count: u32,
    /// [`Reason::None`], or why there is no list.
    pub reason: Reason,
}

/// An instrument as a member must know it: its rules, and how it trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentStatus {
    /// Its number in requests.
    pub instrument: InstrumentId,
    /// Its name.
    pub symbol: Symbol,
    /// Its shard.
    pub shard: ShardId,
    /// The position to come there: what lies before it is counted in.
    pub next: Position,
    /// Its phase.
    pub phase: Phase,
    /// Whether it takes no requests because the matching engine failed at one.
    pub quarantined: bool,
    /// The price of the last trade.
    pub last: Option<Price>,
    /// What the static band and auctions refer to.
    pub reference: Option<Price>,
    /// The smallest quantity step, shares.
    pub lot: Quantity,
    /// The largest order, shares.
    pub quantity_max: Quantity,
    /// The largest order, price units times shares; 0 for no limit.
    pub value_max: u64,
    /// The lowest legal limit price.
    pub price_min: Price,
    /// The highest legal limit price.
    pub price_max: Price,
    /// The most orders that may be there at one time.
    pub orders_max: u32,
    /// How far from the reference price trades may be, hundredths of a percent; 0 for no limit.
    pub static_band: u32,
    /// How far from the last trade trades may be, hundredths of a percent; 0 for no limit.
    pub dynamic_band: u32,
    /// How long a volatility call lasts, nanoseconds; 0 for none.
    pub call_ns: u64,
    /// Rows of its tick table, which follow it.
    pub tick_rows: u8,
}

/// What a session may do, and what is used of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnLimits {
    /// The asker's.
    pub token: u64,
    /// The position to come in the shard that keeps the register.
    pub next: Position,
    /// The member.
    pub member: MemberId,
    /// Which of its sessions.
    pub session: u16,
    /// What the session may ask for.
    pub rights: Rights,
    /// How much: what member, session and the gateway's settings allow.
    pub limits: Limits,
    /// What [`Entry::SetPositionMax`](crate::Entry::SetPositionMax) allows; 0 is no limit.
    pub position_max: u64,
    /// Orders of the member that are in flight or work.
    pub orders: u32,
    /// Requests of the session that are unanswered.
    pub in_flight: u32,
    /// How many of them there may be.
    pub in_flight_max: u16,
}
