//! What an order is, apart from its place.

use super::node::Special;
use crate::RestingOrder;
use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Price, Quantity, SelfTrade, Side, TimeInForce, Timestamp,
};

/// What an order is, apart from its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) order: OrderId,
    pub(super) member: MemberId,
    pub(super) client_order_id: ClientOrderId,
    pub(super) side: Side,
    pub(super) kind: OrderKind,
    pub(super) remaining: Quantity,
    pub(super) executed: Quantity,
    pub(super) display: Quantity,
    pub(super) time_in_force: TimeInForce,
    pub(super) self_trade: SelfTrade,
    pub(super) trigger: Option<Price>,
    pub(super) elected: bool,
    pub(super) post_only: bool,
}

impl Terms {
    /// What it has beyond a node's fields, if anything.
    #[inline]
    pub(super) fn special(&self) -> Option<Special> {
        let plain_stay = matches!(self.time_in_force, TimeInForce::Day | TimeInForce::Gtc);
        if matches!(self.kind, OrderKind::Limit { .. })
            && plain_stay
            && self.display.is_zero()
            && self.trigger.is_none()
        {
            return None;
        }
        let until = match self.time_in_force {
            TimeInForce::Gtd { until } => until,
            _ => Timestamp::NEVER,
        };
        let Self { kind, display, trigger, elected, .. } = *self;
        Some(Special { kind, display, hidden: Quantity::ZERO, until, trigger, elected })
    }

    pub(super) fn of(order: &RestingOrder) -> Self {
        Self {
            order: order.order,
            member: order.member,
            client_order_id: order.client_order_id,
            side: order.side,
            kind: order.kind,
            remaining: order.remaining,
            executed: order.executed,
            display: order.display,
            time_in_force: order.time_in_force,
            self_trade: order.self_trade,
            trigger: order.trigger,
            elected: order.elected,
            post_only: order.post_only,
        }
    }
}
