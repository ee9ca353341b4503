//! Amends in flight, and what the orders that they name count for meanwhile.
//!
//! An amend that is taken in counts by the shares that it adds to its order as that is known then. That alone would let a member
//! past its limit: two amends at once, to fewer shares and back to all of them, both add nothing; between their records the order is
//! small, and others are taken in beside it. So what a record takes from an order still counts while further amends of
//! it are in flight.
//!
//! ```text
//!  order of 100    amend to 10 and amend to 100 taken in    first recorded     second recorded
//!  counts 100      100 + 0 + 0                              10 + 90 kept       100
//! ```

use std::collections::BTreeMap;

use pares_types::{Command, OrderId, Quantity, Request};

use super::Names;
use super::at_work::{AtWork, Work};
use super::name::Name;

/// By order.
#[derive(Default)]
pub(super) struct Amends(BTreeMap<OrderId, OfOrder>);

struct OfOrder {
    in_flight: u32,
    /// What was taken from the order since the first of them.
    kept: Work,
}

impl Amends {
    fn begin(&mut self, order: &Name, at_work: Work) {
        let kept = Work { shares: Quantity::ZERO, is_order: false, ..at_work };
        self.0.entry(OrderId(order.id)).or_insert(OfOrder { in_flight: 0, kept }).in_flight += 1;
    }

    fn end(&mut self, order: OrderId, at_work: &mut AtWork) {
        let Some(of_order) = self.0.get_mut(&order) else { return };
        of_order.in_flight -= 1;
        if of_order.in_flight == 0 {
            self.forget(order, at_work);
        }
    }

    fn forget(&mut self, order: OrderId, at_work: &mut AtWork) {
        if let Some(OfOrder { kept, .. }) = self.0.remove(&order) {
            at_work.replace(counted(kept), None);
        }
    }

    /// A name changed. What is taken from an order is kept while amends of it are in flight; what they give back is not counted twice.
    pub(super) fn follow(&mut self, before: &Name, after: &Name, at_work: &mut AtWork) {
        if self.0.is_empty() {
            return;
        }
        if let Some(order) = before.amends().filter(|_| after.amends().is_none()) {
            self.end(order, at_work);
        }
        if !after.kind.is_order() {
            return;
        }
        let order = OrderId(after.id);
        if after.is_finished() {
            return self.forget(order, at_work);
        }
        let Some(OfOrder { kept, .. }) = self.0.get_mut(&order) else { return };
        let was = *kept;
        kept.shares = Quantity(was.shares.0.saturating_add(before.total()).saturating_sub(after.total()));
        at_work.replace(counted(was), counted(*kept));
    }

    /// Another request came first under the name.
    pub(super) fn replace(&mut self, before: &Name, at_work: &mut AtWork) {
        if let Some(order) = before.amends() {
            self.end(order, at_work);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn counted(work: Work) -> Option<Work> {
    Some(work).filter(|work| work.shares != Quantity::ZERO)
}

impl Names {
    /// What is to be kept of a request that is taken in, or met. An amend counts by what it adds to its order, if that is known here.
    pub(super) fn named(&mut self, request: &Request) -> Name {
        let mut named = Name::new(request, self.asked(request));
        let Command::Amend(amendment) = request.command else { return named };
        let Some(index) = self.find_order(amendment.target) else { return named };
        let order = &self.entries[index.0 as usize];
        if let (Some(work), true) = (order.work(), order.member == request.member) {
            let total = if amendment.reduces { Quantity::ZERO } else { amendment.quantity };
            named.set_amend(amendment.target, work.side, order.added_by(total));
            self.amends.begin(order, work);
        }
        named
    }

    /// Nothing that amends took from the order counts any more.
    pub(super) fn forget_amends(&mut self, order: OrderId) {
        self.amends.forget(order, &mut self.at_work);
    }

    /// Whether no order and no amend is in flight or lives.
    #[cfg(test)]
    pub(crate) fn is_at_rest(&self) -> bool {
        self.at_work.is_empty() && self.amends.is_empty()
    }
}

impl Name {
    /// The shares that an amend to that total would add to the order.
    pub(crate) fn added_by(&self, total: Quantity) -> Quantity {
        Quantity(total.0.saturating_sub(self.total()))
    }
}
