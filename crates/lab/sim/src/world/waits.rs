//! O1 to O3: where more is asked than the exchange takes, orders taken in wait little, cancels go first, and nobody is starved.
//!
//! A wait is from when a member asked to its answer, without what was refused: who is refused asks again later.

use pares_types::{ClientRequest, Reason};

use super::World;
use crate::client::{EXCHANGE, Open};
use crate::{Verdict, must};

/// An order is late if it waited for so many times the target: the network, the device and a stretch that shows too late are in it.
const LATE: u64 = 5;
/// Of all orders, one in so many may be: those that came before gateways knew how much is too much, and those beside repeats, which are never refused.
const LATE_PART: u64 = 8;
/// Each member has so large a part of the orders that members have on average answered. Only orders and amends count: a member with few orders also
/// cancels little, so all answers spread wider (seed 1795833086 of `flood`: 0.62 of the average in orders, 0.47 in answers). A half
/// would do for that member; a third leaves room for chance, since each has some 55 of them.
const SHARE_PART: u64 = 3;

/// What became of orders while members asked for more and more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits {
    orders: u64,
    late: u64,
}

/// Whether it adds to what waits; anything else reduces a risk.
pub(super) fn is_order(request: &ClientRequest) -> bool {
    request.adds_risk()
}

impl World<'_> {
    /// The answer to an open request has come.
    pub(super) fn note_wait(&mut self, client: usize, open: &Open) {
        if !self.calm && is_order(&open.request) {
            let waited_ns = self.now_ns.saturating_sub(open.asked_ns);
            self.clients[client].orders_answered += 1;
            self.waits.orders += 1;
            self.waits.late += u64::from(waited_ns > LATE * self.scenario.wait_target_ns);
        }
    }

    /// O2: a gateway has refused something for want of room.
    pub(super) fn check_refusal(&self, request: &ClientRequest, reason: Reason) -> Verdict {
        must(
            !self.scenario.floods || reason != Reason::Overloaded || is_order(request),
            "O2 cancels go first",
            || format!("{request:?} is refused as {reason}, and orders have less room"),
        )
    }

    /// O1 and O3, when members have stopped asking.
    pub(super) fn check_waits(&self) -> Verdict {
        let Waits { orders, late } = self.waits;
        if !self.scenario.floods {
            return Ok(());
        }
        must(late * LATE_PART <= orders, "O1 what is taken in waits little", || {
            format!("{late} of {orders} orders waited for more than {LATE} times the target")
        })?;
        let members = self.clients.iter().filter(|client| client.member != EXCHANGE);
        let answered: Vec<u64> = members.map(|client| client.orders_answered).collect();
        let (least, all) = (answered.iter().min().copied().unwrap_or_default(), answered.iter().sum::<u64>());
        must(least * SHARE_PART * answered.len() as u64 >= all, "O3 nobody is starved", || {
            format!("members had {answered:?} orders answered")
        })
    }
}
