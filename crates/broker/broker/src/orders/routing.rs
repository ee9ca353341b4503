//! One router at a time, and the names that it gives.
//!
//! That a router is silent is no matter of times here: clocks differ, and one that is an hour ahead would keep its seat for an hour after its death. So claims are counted, and whether the
//! count stalls is seen by the router that waits, with his own clock.

use super::asked::OrderReply;
use super::rows::{self as order_rows, OrderStage, Queue, Seat};
use super::terms::CustomerOrderId;
use crate::execute::{Stopped, Turn};
use crate::ledger::Ledger;
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::rows;

/// The series of the names of orders on the exchange, in the upper 16 bits.
const ORDERS_SERIES: u64 = 1 << 48;

impl<L: Ledger> Turn<'_, L> {
    /// A router begins, or works on. Orders that were named are their member's: under another one they would be unknown to the exchange, and sent to it again.
    pub(super) fn claim(&mut self, router: u64, member: u32, seen: u64) -> Stopped<BrokerReply, L> {
        let mut seat = self.seat()?;
        let was: Option<u32> = rows::take(self.ledger, &order_rows::member())?;
        if seat.names > 0 && was.is_some_and(|was| was != member) {
            return Err(Refusal::OtherMember.into());
        }
        if seat.router != router {
            if seat.claims != seen {
                return Err(Refusal::RouterAlive.into());
            }
            (seat.router, seat.term) = (router, seat.term + 1);
        }
        seat.claims += 1;
        rows::put(self.ledger, &order_rows::seat(), &seat);
        if was != Some(member) {
            rows::put(self.ledger, &order_rows::member(), &member);
        }
        Ok(BrokerReply::Order { reply: OrderReply::Claimed { term: seat.term } })
    }

    fn seat(&mut self) -> Stopped<Seat, L> {
        Ok(rows::take(self.ledger, &order_rows::seat())?.unwrap_or_default())
    }

    /// The active router, if `term` is its.
    pub(super) fn of_term(&mut self, term: u64) -> Stopped<Seat, L> {
        let seat = self.seat()?;
        if seat.term == term && term > 0 { Ok(seat) } else { Err(Refusal::NotRouter.into()) }
    }

    /// Names those that wait still: from then on only the exchange ends them.
    pub(super) fn name(&mut self, term: u64, orders: &[CustomerOrderId]) -> Stopped<BrokerReply, L> {
        let mut seat = self.of_term(term)?;
        let mut names = Vec::with_capacity(orders.len());
        for of in orders {
            let found = rows::take::<super::Order, L>(self.ledger, &order_rows::order(of))?;
            let Some(mut order) = found.filter(|order| order.state == OrderStage::Waiting) else { continue };
            seat.names += 1;
            (order.name, order.state) = (ORDERS_SERIES | seat.names, OrderStage::Routed);
            self.ledger.delete(&order_rows::waiting(of));
            rows::put(self.ledger, &order_rows::queued(Queue::Open, order.name), of);
            rows::put(self.ledger, &order_rows::queued(Queue::Named, order.name), of);
            self.put_order(of, &order);
            names.push((of.clone(), order.name));
        }
        rows::put(self.ledger, &order_rows::seat(), &seat);
        Ok(BrokerReply::Order { reply: OrderReply::Named { names } })
    }

    /// The exchange does not list its stock, or says that its name is too old to be used for the first time.
    pub(super) fn turn_away(
        &mut self,
        term: u64,
        of: &CustomerOrderId,
        name: u64,
        reason: u8,
    ) -> Stopped<BrokerReply, L> {
        self.of_term(term)?;
        let order = self.find_order(of)?;
        if order.state > OrderStage::Routed || order.name != name {
            return Ok(BrokerReply::Unchanged);
        }
        let mut at = self.touch(of, order)?;
        self.refused(&mut at, reason)?;
        Ok(self.put_touched(at))
    }
}
