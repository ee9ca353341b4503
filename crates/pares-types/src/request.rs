//! What members ask for, as it travels from a gateway through the total order into the record.

use crate::{ClientOrderId, InstrumentId, MemberId, OrderId, Price, Quantity, RequestId, ShardId, Timestamp};

/// One numbered request. The gateway that took it in stamps and numbers it; nothing changes it after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// `[gateway, sequence]`: the identity the sequencer decides on.
    pub id: RequestId,
    /// When the gateway took it in. The only time the venues know.
    pub stamp: Timestamp,
    /// Who asks.
    pub member: MemberId,
    /// The member's own name for this request; unique per member, repeats return the first answer.
    pub client_order_id: ClientOrderId,
    /// The instrument concerned; 0 (all of the shard) only with [`Command::MassCancel`].
    pub instrument: InstrumentId,
    /// The total order it belongs to.
    pub shard: ShardId,
    /// What is asked.
    pub command: Command,
}

/// What a request asks of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Enter an order; its [`OrderId`] is the request's id.
    Enter(NewOrder),
    /// Change a resting order of the same member and instrument.
    ///
    /// `quantity` is the order's new *total*, executed part included, so that a fill racing with
    /// the amend can never make the member trade more than it named. A smaller total at the same
    /// price keeps the order's priority; anything else loses it, and a new price may match at once.
    Amend {
        /// The order to change.
        target: OrderId,
        /// The new limit price.
        price: Price,
        /// The new total quantity, executed part included.
        quantity: Quantity,
    },
    /// Cancel what is left of a resting order of the same member and instrument.
    Cancel {
        /// The order to cancel.
        target: OrderId,
    },
    /// Cancel all resting orders of the member in the instrument, or in the whole shard.
    MassCancel,
}

/// A new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NewOrder {
    /// Buy or sell.
    pub side: Side,
    /// Limit or market.
    pub kind: OrderKind,
    /// How long what does not match at once stays.
    pub time_in_force: TimeInForce,
    /// Refuse the order rather than let it take liquidity. Limit day orders only.
    pub post_only: bool,
    /// Shares wanted: a positive multiple of the lot, at most the instrument's maximum.
    pub quantity: Quantity,
}

/// Buy or sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// Bids.
    Buy = 1,
    /// Offers (asks).
    Sell = 2,
}

impl Side {
    /// The other side.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }

    /// Whether an incoming order of this side limited to `limit` may trade at `resting`.
    #[must_use]
    pub fn crosses(self, limit: Price, resting: Price) -> bool {
        match self {
            Self::Buy => limit >= resting,
            Self::Sell => limit <= resting,
        }
    }
}

/// At what price an order may trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderKind {
    /// At `price` or better.
    Limit {
        /// The worst price accepted.
        price: Price,
    },
    /// At whatever the book offers; never rests: what does not match is cancelled.
    Market,
}

/// What happens to the part of an order that does not match at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TimeInForce {
    /// It rests on the book (the trading day's end arrives as a request of its own, later).
    Day = 1,
    /// Immediate or cancel: it is cancelled.
    Ioc = 2,
    /// Fill or kill: unless all of it matches at once, none of it trades.
    Fok = 3,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buy_crosses_offers_at_or_below_its_limit() {
        assert!(Side::Buy.crosses(Price(10), Price(10)));
        assert!(!Side::Buy.crosses(Price(9), Price(10)));
    }

    #[test]
    fn a_sell_crosses_bids_at_or_above_its_limit() {
        assert!(Side::Sell.crosses(Price(10), Price(10)));
        assert!(!Side::Sell.crosses(Price(11), Price(10)));
    }
}
