//! What is asked of orders, and answered, as bytes.

use pares_wice::{fields, kinds};

use super::rows::{CustomerLimits, Order};
use super::terms::{CustomerOrderId, OrderTerms};
use crate::command::UserName;

/// What the exchange tells of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEvent {
    /// It has it.
    Accepted,
    /// It does not take it, and never will.
    Refused {
        /// The exchange's code.
        reason: u8,
    },
    /// It traded.
    Traded {
        /// Hundredths of a cent for a share.
        price: u64,
        /// How many.
        shares: u64,
    },
    /// So much of it will not trade.
    Cancelled {
        /// The exchange's code.
        cause: u8,
        /// How many.
        shares: u64,
    },
    /// A trade of it is void.
    Void {
        /// Hundredths of a cent for a share.
        price: u64,
        /// How many.
        shares: u64,
    },
}

/// A message of the exchange about an order, with its place in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The router's term.
    pub term: u64,
    /// The exchange's shard.
    pub shard: u32,
    /// The message's number there, from 1: applied only if it is the next one.
    pub number: u64,
    /// Which order.
    pub of: CustomerOrderId,
    /// What it says.
    pub event: OrderEvent,
}

/// A request about orders. Limits and blocks are for supervisors, of others: refused unless `by` is one when it is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderAsked {
    /// Hold for an order; its number is the request's.
    Place {
        /// Whose.
        user: UserName,
        /// What.
        terms: OrderTerms,
    },
    /// Cancel what is left of it.
    Cancel {
        /// Which.
        of: CustomerOrderId,
    },
    /// Set a customer's limits.
    Limit {
        /// Whose.
        user: UserName,
        /// All of them.
        limits: CustomerLimits,
        /// The supervisor: he stands in the log.
        by: UserName,
    },
    /// The kill switch.
    Block {
        /// Whose.
        user: UserName,
        /// On or off.
        is_blocked: bool,
        /// The supervisor: he stands in the log.
        by: UserName,
    },
    /// A router wants to work, or works on.
    Claim {
        /// Its number: no two have one.
        router: u64,
        /// As which member it signs on at the exchange: once an order has a name, no other will do.
        member: u32,
        /// So many claims it has seen counted ([`OrderRead::Router`](super::OrderRead::Router)): another router's seat is taken if none has come since. Of the active router it is not looked at.
        seen: u64,
    },
    /// Give names on the exchange to those of these that wait.
    Name {
        /// The router's term.
        term: u64,
        /// Which.
        orders: Vec<CustomerOrderId>,
    },
    /// The exchange never had it and never will.
    TurnAway {
        /// The router's term.
        term: u64,
        /// Which.
        of: CustomerOrderId,
        /// Its name there; 0 if it has none.
        name: u64,
        /// The exchange's code for why.
        reason: u8,
    },
    /// Apply a message of the exchange.
    Settle {
        /// The message.
        settlement: Settlement,
    },
    /// Count messages that have no effect.
    Pass {
        /// The router's term.
        term: u64,
        /// The exchange's shard.
        shard: u32,
        /// The first of them.
        from: u64,
        /// The next one behind them.
        to: u64,
    },
}

impl OrderAsked {
    /// Whose log it is noted in.
    #[must_use]
    pub fn user(&self) -> Option<&UserName> {
        match self {
            Self::Place { user, .. } | Self::Limit { user, .. } | Self::Block { user, .. } => Some(user),
            Self::Cancel { of } | Self::TurnAway { of, .. } => Some(&of.user),
            Self::Settle { settlement } => Some(&settlement.of.user),
            Self::Claim { .. } | Self::Name { .. } | Self::Pass { .. } => None,
        }
    }

    /// Whether a router asks it: what it asks a second time changes nothing.
    #[must_use]
    pub fn is_of_router(&self) -> bool {
        matches!(
            self,
            Self::Claim { .. }
                | Self::Name { .. }
                | Self::TurnAway { .. }
                | Self::Settle { .. }
                | Self::Pass { .. }
        )
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderReply {
    /// Its funds or shares are held.
    Placed {
        /// Its number.
        order: u64,
    },
    /// The cancel is on its way: it may trade until the exchange says that it does not.
    Cancelling,
    /// So the order is now.
    Now {
        /// The order.
        order: Order,
    },
    /// The router works.
    Claimed {
        /// Its term.
        term: u64,
    },
    /// These have names now; the others did not wait any more.
    Named {
        /// Each with its name.
        names: Vec<(CustomerOrderId, u64)>,
    },
    /// The count is this far: the next message's number.
    Passed {
        /// The number.
        next: u64,
    },
}

kinds!(OrderEvent, "message of the exchange" {
    1 => Accepted,
    2 => Refused { reason },
    3 => Traded { price, shares },
    4 => Cancelled { cause, shares },
    5 => Void { price, shares },
});
kinds!(OrderAsked, "request of orders" {
    1 => Place { user, terms },
    2 => Cancel { of },
    3 => Limit { user, limits, by },
    4 => Block { user, is_blocked, by },
    5 => Claim { router, member, seen },
    6 => Name { term, orders },
    7 => TurnAway { term, of, name, reason },
    8 => Settle { settlement },
    9 => Pass { term, shard, from, to },
});
kinds!(OrderReply, "reply of orders" {
    1 => Placed { order },
    2 => Cancelling,
    3 => Now { order },
    4 => Claimed { term },
    5 => Named { names },
    6 => Passed { next },
});
fields! { Settlement { term, shard, number, of, event } }
