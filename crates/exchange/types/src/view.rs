//! A shard as one of its checkpoints has it, as far as a gateway must know.

use crate::{
    BusinessDay, ClientOrderId, DayStage, GatewayId, InstrumentId, MemberId, OrderId, Position, Quantity,
    Side, Timestamp,
};

/// What a shard's checkpoint says to a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardView {
    /// The next position to execute.
    pub position: Position,
    /// The highest sequence executed of each gateway.
    pub through: Vec<(GatewayId, u64)>,
    /// Of each series of a member the number below which every name counts as used.
    pub floors: Vec<((MemberId, u16), u64)>,
    /// The names executed last, oldest first.
    pub kept: Vec<(MemberId, ClientOrderId)>,
    /// The shard's time.
    pub time: Timestamp,
    /// The latest stamp of an operator's request.
    pub operator_stamp_max: Timestamp,
    /// Its business day.
    pub day: BusinessDay,
    /// How far that has come.
    pub stage: DayStage,
    /// How many messages each member's stream has.
    pub told: Vec<(MemberId, u64)>,
    /// What members bought and sold since the day began.
    pub positions: NetPositions,
    /// Instruments that are quarantined; 0 is all of the shard.
    pub quarantined: Vec<InstrumentId>,
    /// Whether something can become due in it by itself.
    pub timed: bool,
    /// The orders on its books, and those that are held.
    pub orders: Vec<OpenOrder>,
}

/// An order of which something remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// Whose.
    pub member: MemberId,
    /// The member's name for it.
    pub client_order_id: ClientOrderId,
    /// The exchange's.
    pub order: OrderId,
    /// Of what.
    pub instrument: InstrumentId,
    /// Buy or sell.
    pub side: Side,
    /// Whether it has no price of its own.
    pub at_market: bool,
    /// Shares, shown or not.
    pub remaining: Quantity,
    /// Shares of it that have traded.
    pub executed: Quantity,
}

/// What members bought of a shard's instruments on a business day, less what they sold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetPositions {
    /// The day.
    pub day: BusinessDay,
    /// Where it began: trades before that do not count.
    pub since: Position,
    /// Shares, by instrument and member, ascending; none of 0.
    pub nets: Vec<(InstrumentId, MemberId, i64)>,
}
