//! What is asked for, as it travels from a gateway through the total order into the record.

use crate::{
    BusinessDay, ClientOrderId, InstrumentId, MemberId, OrderId, OrderKind, Phase, Position, Price, Quantity,
    Registration, RequestId, Rule, SelfTrade, ShardId, Side, Symbol, TimeInForce, Timestamp,
};

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
    /// The instrument concerned; 0 (all of the shard) only where the command says so.
    pub instrument: InstrumentId,
    /// The total order it belongs to.
    pub shard: ShardId,
    /// What is asked.
    pub command: Command,
}

impl Request {
    /// Whether an operator asks for it: the exchange does, and no gateway by itself.
    #[must_use]
    #[inline]
    pub fn is_of_operator(&self) -> bool {
        self.member == MemberId(0) && !self.client_order_id.is_of_gateways()
    }
}

/// What a request asks. The rules of each are in docs/rules.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Enter an order; its [`OrderId`] is the request's id.
    Enter(NewOrder),
    /// Change an order of the same member and instrument.
    Amend(Amendment),
    /// Cancel what is left of an order of the same member and instrument.
    Cancel {
        /// The order to cancel.
        target: OrderId,
    },
    /// Cancel the member's orders in the instrument, or with instrument 0 in the whole shard.
    MassCancel {
        /// Only bids, or only offers; both if `None`.
        side: Option<Side>,
    },
    /// The time is the request's stamp: do what is due. Issued by gateways (member 0), for instrument 0.
    Time {
        /// Drawn at random by the gateway, from all 64-bit numbers alike: whether calls end that end at random. An operator
        /// who tells the time draws nothing (0), his gateway does.
        draw: u64,
    },
    /// Bring the instrument into a phase. The exchange (member 0) only.
    SetPhase(Phase),
    /// Change one rule of the instrument. The exchange only.
    SetRule(Rule),
    /// List a new instrument under the request's instrument id; it starts closed, with
    /// default rules. The exchange only.
    AddInstrument(Symbol),
    /// Cancel all orders of a closed or halted instrument, then remove it. The exchange only.
    RemoveInstrument,
    /// The kill switch: cancel all orders of a member in the shard (instrument 0) and take no more from it.
    /// The exchange, or the member for itself.
    Block {
        /// The member.
        member: MemberId,
    },
    /// Take orders of a blocked member again. The exchange only.
    Unblock {
        /// The member.
        member: MemberId,
    },
    /// Declare a trade void. The exchange only.
    Bust(BustedTrade),
    /// Begin a business day: orders are taken again. The exchange only, for instrument 0.
    BeginDay {
        /// The day: later than any before.
        day: BusinessDay,
    },
    /// End the business day: close every instrument without a trade and record its prices. The exchange only, for
    /// instrument 0.
    EndDay {
        /// The day that is on.
        day: BusinessDay,
    },
    /// Change the register, which the lowest shard keeps. The exchange only, for instrument 0.
    Register(Registration),
    /// Cancel what a session left that has ended. Issued by gateways (member 0), for instrument 0.
    CancelGuarded(Guarded),
}

impl Command {
    /// The time with the lowest draw, which ends every call whose end may come.
    pub const TIME: Self = Self::Time { draw: 0 };

    /// Whether gateways ask for it by themselves, and hearing it again is harmless: no shard remembers its name.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        matches!(self, Self::Time { .. } | Self::CancelGuarded(_))
    }
}

/// The guarded orders that a session entered on connections that have ended, all through one gateway (decision 22). An order that is entered
/// later is not among them, so cancelling them once more cancels nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guarded {
    /// Whose session.
    pub member: MemberId,
    /// Its number; the orders' names are of its guarded series ([`ClientOrderId::guarded`]).
    pub session: u16,
    /// The last request of that gateway that may have entered one.
    pub last: RequestId,
}

impl Guarded {
    /// Whether an order of the member is one of them.
    #[must_use]
    pub fn has(&self, order: OrderId, name: ClientOrderId) -> bool {
        let OrderId(id) = order;
        id.gateway() == self.last.gateway() && id <= self.last && name.guard() == Some(self.session)
    }
}

/// A new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NewOrder {
    /// Buy or sell.
    pub side: Side,
    /// Limit, market or pegged.
    pub kind: OrderKind,
    /// How long what does not match at once stays.
    pub time_in_force: TimeInForce,
    /// Refuse the order rather than let it take liquidity. Plain limit orders that may rest only.
    pub post_only: bool,
    /// What happens when it meets an order of the same member.
    pub self_trade: SelfTrade,
    /// Shares wanted: a positive multiple of the lot, at most the instrument's maximum.
    pub quantity: Quantity,
    /// An iceberg shows no more than this at a time; zero shows everything.
    pub display: Quantity,
    /// Unless so many shares match at once, none does; zero for no such wish.
    pub minimum: Quantity,
    /// A stop order waits until the last trade is at this price or beyond.
    pub trigger: Option<Price>,
}

impl NewOrder {
    /// A plain day order.
    #[must_use]
    #[inline]
    pub const fn limit(side: Side, price: Price, quantity: Quantity) -> Self {
        Self {
            side,
            kind: OrderKind::Limit { price },
            time_in_force: TimeInForce::Day,
            post_only: false,
            self_trade: SelfTrade::Allow,
            quantity,
            display: Quantity::ZERO,
            minimum: Quantity::ZERO,
            trigger: None,
        }
    }

    /// A plain market order.
    #[must_use]
    #[inline]
    pub const fn market(side: Side, quantity: Quantity) -> Self {
        Self {
            kind: OrderKind::Market,
            time_in_force: TimeInForce::Ioc,
            ..Self::limit(side, Price(0), quantity)
        }
    }
}

/// The new terms of an order. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Amendment {
    /// The order to change.
    pub target: OrderId,
    /// Its owner's name for it, for those who receive its trades; 0 if it is not known.
    pub target_name: ClientOrderId,
    /// The new limit price.
    pub price: Price,
    /// The new *total* quantity, executed part included, so that a fill racing with the amend can
    /// never make the member trade more than it named.
    pub quantity: Quantity,
    /// The new size of what an iceberg shows; zero shows everything.
    pub display: Option<Quantity>,
    /// The new trigger of a stop order that still waits.
    pub trigger: Option<Price>,
    /// How long it stays: day, good till cancelled or good till a date.
    pub time_in_force: Option<TimeInForce>,
    /// Only fewer shares, whatever the order has when this is executed: it keeps its price and all other terms. Records of earlier builds say `false`.
    pub reduces: bool,
}

impl Amendment {
    /// A new price and total quantity, all else as it is.
    #[must_use]
    #[inline]
    pub const fn new(target: OrderId, price: Price, quantity: Quantity) -> Self {
        Self {
            target,
            target_name: ClientOrderId(0),
            price,
            quantity,
            display: None,
            trigger: None,
            time_in_force: None,
            reduces: false,
        }
    }

    /// What becomes of an order's kind: its limit is the new one, if it has a limit.
    #[must_use]
    #[inline]
    pub const fn kind_of(&self, before: OrderKind) -> OrderKind {
        match before {
            OrderKind::Limit { .. } if !self.reduces => OrderKind::Limit { price: self.price },
            OrderKind::Pegged { to, .. } if !self.reduces => OrderKind::Pegged { to, limit: self.price },
            _ => before,
        }
    }
}

/// A trade of the record that the exchange declares void, with what it was, for those who receive the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BustedTrade {
    /// Where in the shard's total order it happened.
    pub position: Position,
    /// Which event of that position it was, from 0.
    pub index: u16,
    /// The resting order (of an auction's trade: the sell order).
    pub resting: OrderId,
    /// The incoming order (of an auction's trade: the buy order).
    pub incoming: OrderId,
    /// Its price.
    pub price: Price,
    /// Shares traded.
    pub quantity: Quantity,
    /// Whether it bought or sold.
    pub resting_side: Side,
    /// Who owned the resting order, and its name for it.
    pub resting_owner: (MemberId, ClientOrderId),
    /// Who owned the incoming order, and its name for it.
    pub incoming_owner: (MemberId, ClientOrderId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_large_as_its_largest_order() {
        assert!(size_of::<Registration>() <= size_of::<NewOrder>());
    }
}
