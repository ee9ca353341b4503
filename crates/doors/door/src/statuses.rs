//! How orders are, told to a member who asks: no executions.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use pares_types::{OrderKey, OrderState, OrderStatus, Reason};

use crate::desk::{Desk, Found, ListAsked};
use crate::orders::Known;
use crate::told::{ExecId, ExecKind, Execution, Name, Question, Told, Version, status};

/// A question for the status of one order.
#[derive(Debug)]
pub(crate) struct StatusAsked {
    pub(crate) name: Name,
    pub(crate) question: Question,
}

/// Questions that wait. Answers need not come in their order, and one that is looked for long may have thousands behind it: they are found by what they ask for.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    by_key: BTreeMap<OrderKey, VecDeque<(u64, StatusAsked)>>,
    count: usize,
    /// How many there have been.
    number: u64,
}

impl Questions {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn put(&mut self, key: OrderKey, asked: StatusAsked) {
        (self.count, self.number) = (self.count + 1, self.number + 1);
        self.by_key.entry(key).or_default().push_back((self.number, asked));
    }

    /// Takes the oldest of those that ask for either.
    fn take(&mut self, key: OrderKey, other: Option<OrderKey>) -> Option<StatusAsked> {
        let oldest =
            |key: &OrderKey| self.by_key.get(key).and_then(VecDeque::front).map(|(number, _)| *number);
        let key =
            [Some(key), other].into_iter().flatten().min_by_key(|key| oldest(key).unwrap_or(u64::MAX))?;
        let waiting = self.by_key.get_mut(&key)?;
        let (_, asked) = waiting.pop_front()?;
        if waiting.is_empty() {
            self.by_key.remove(&key);
        }
        self.count -= 1;
        Some(asked)
    }
}

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

    /// There is no such order, as far as anybody knows.
    pub(crate) fn tell_unknown(&mut self, name: Option<Name>, question: Question) {
        let blank = self.blank(ExecKind::Status, status::REJECTED);
        let rejected = Some(UNKNOWN_ORDER);
        let text = "no order of that name is known".into();
        self.told.push(Told::Execution(Box::new(Execution { name, question, rejected, text, ..blank })));
    }

    fn tell_status(&mut self, told: &OrderStatus, name: Option<Name>, question: Question) {
        let known = self.orders.get(told.client_order_id).copied();
        let mut order = known.unwrap_or_else(|| Known::listed(told));
        order.side = order.side.or(told.side);
        if let Some(known) = self.orders.get_mut(told.client_order_id) {
            known.side = order.side;
        }
        if told.state == OrderState::Ended {
            // What was taken from it is told no more.
            (order.total, order.executed) = (None, told.executed);
        }
        let (ord_status, text) = match told.state {
            OrderState::InFlight => (status::PENDING_NEW, ""),
            OrderState::Working => (Known { is_answered: true, ..order }.status(), ""),
            OrderState::Ended => (status::DONE, "it has ended; its reports have said how"),
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

#[cfg(test)]
mod tests {
    use pares_types::{ClientOrderId, GatewayId, OrderId, RequestId};

    use super::*;

    #[test]
    fn an_answer_is_the_oldest_question_s_for_its_order_whatever_waits_before_it() {
        let by_name = |name| OrderKey::Name(ClientOrderId(name));
        let by_id = OrderKey::Id(OrderId(RequestId::new(GatewayId(1), 9)));
        let mut questions = Questions::default();
        let keys = (1..=1_000).map(by_name).chain([by_id, by_name(7), by_name(7)]);
        for (number, key) in (0..).zip(keys) {
            let name = Name::Of(ClientOrderId(number));
            questions.put(key, StatusAsked { name, question: Question::default() });
        }
        let mut take = |key, other| questions.take(key, other).map(|asked| asked.name);
        let named = |number| Some(Name::Of(ClientOrderId(number)));
        // A question by id is answered under the order's name, too.
        let all = [(); 4].map(|()| take(by_name(7), Some(by_id)));
        assert_eq!(all, [named(6), named(1_000), named(1_001), named(1_002)]);
        assert_eq!(take(by_name(7), Some(by_id)), None);
        assert_eq!((questions.len(), questions.by_key.len()), (999, 999));
    }
}
