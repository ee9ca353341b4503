//! How orders are, told to a member who asks: no executions.

use std::borrow::Cow;

use pares_types::{OrderKey, OrderState, OrderStatus, Reason};

use crate::desk::Desk;
use crate::orders::Known;
use crate::outbound::{Execution, Told};
use crate::pending::{Found, ListAsked};
use crate::types::{ExecId, ExecKind, Name, Question, Version, status};

/// OrdRejReason: no such order.
const UNKNOWN_ORDER: u8 = 5;

impl Desk {
    /// How an order is: in answer to a question for it, or of a list.
    pub(crate) fn on_status(&mut self, key: OrderKey, status: Option<&OrderStatus>) {
        let asked = self.status_asked.take(key, status.map(|status| OrderKey::Id(status.order)));
        match (asked, status) {
            (Some(asked), Some(status)) => self.tell_status(status, Some(asked.name), asked.question),
            (Some(asked), None) => self.tell_unknown(Some(asked.name), asked.question),
            (None, Some(status)) => self.on_listed(status),
            (None, None) => {}
        }
    }

    fn on_listed(&mut self, status: &OrderStatus) {
        let Some(ListAsked { id, found: Found::Orders(last), .. }) = self.lists.front_mut() else { return };
        let id = id.clone();
        if let Some(before) = last.replace(*status) {
            self.tell_of_list(&before, id, false);
        }
    }

    fn tell_of_list(&mut self, status: &OrderStatus, id: Vec<u8>, is_last: bool) {
        self.tell_status(status, None, Question { status_id: None, mass: Some((id, is_last)) });
    }

    /// The end of a list of orders.
    pub(crate) fn on_orders_end(&mut self, id: Vec<u8>, last: Option<OrderStatus>, reason: Reason) {
        match last {
            Some(last) => self.tell_of_list(&last, id, true),
            None if reason == Reason::None => self.tell_none_of_list(id, "no orders".into()),
            None => self.tell_none_of_list(id, crate::codes::text(reason)),
        }
    }

    pub(crate) fn tell_none_of_list(&mut self, id: Vec<u8>, text: Cow<'static, str>) {
        let question = Question { status_id: None, mass: Some((id, true)) };
        let blank = self.blank(ExecKind::Status, status::REJECTED);
        self.told.push(Told::Execution(Box::new(Execution { question, text, ..blank })));
    }

    /// There is no such order, as far as the gateway knows.
    pub(crate) fn tell_unknown(&mut self, name: Option<Name>, question: Question) {
        let blank = self.blank(ExecKind::Status, status::REJECTED);
        let rejected = Some(UNKNOWN_ORDER);
        let text = "there is no order with that name".into();
        self.told.push(Told::Execution(Box::new(Execution { name, question, rejected, text, ..blank })));
    }

    fn tell_status(&mut self, told: &OrderStatus, name: Option<Name>, question: Question) {
        let known = self.orders.by_key(OrderKey::Id(told.order)).copied();
        let mut order = known.unwrap_or_else(|| Known::listed(told));
        order.side = order.side.or(told.side);
        if known.is_some() {
            self.orders.put(order);
        }
        if told.state == OrderState::Ended {
            // What was taken from it is not reported any more.
            (order.total, order.executed) = (None, told.executed);
        }
        let (ord_status, text) = match told.state {
            OrderState::InFlight => (status::PENDING_NEW, ""),
            OrderState::Working => (Known { is_answered: true, ..order }.status(), ""),
            OrderState::Ended => (status::DONE, "the order has ended; its earlier reports say how"),
        };
        let of_order = Execution::of_order(ExecKind::Status, ord_status, ExecId::Status, &order);
        self.told.push(Told::Execution(Box::new(Execution {
            order: Some(told.order),
            name: name.or(of_order.name.clone()),
            leaves: told.remaining,
            question: if self.version == Version::Fix42 { Question::default() } else { question },
            text: text.into(),
            ..of_order
        })));
    }
}
