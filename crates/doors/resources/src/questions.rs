//! What changes nothing: how an order is, lists, limits. A gateway answers in the order it was asked, and tells one list at a time.
//!
//! A list's orders look as the answers about single orders do. So a list is asked for alone: what comes until its end is of it.

use std::collections::VecDeque;

use pares_types::{InstrumentId, InstrumentStatus, List, ListRequest, OrderKey, OrderStatus, Price, Reason};
use pares_wire::frame::{self, GatewayFrame};

use crate::line::LineTold;

/// What a gateway is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// How an order of the member is.
    Order(OrderKey),
    /// Which orders of the member are in flight or work, of one instrument or all.
    Orders(Option<InstrumentId>),
    /// Which instruments there are.
    Instruments,
    /// That instrument, if it is there.
    Instrument(InstrumentId),
    /// What the session may do.
    Limits,
}

/// An instrument, with the rows of its tick table: from which price on which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentTold {
    /// All else.
    pub status: InstrumentStatus,
    /// The rows, lowest prices first.
    pub ticks: Vec<(Price, Price)>,
}

impl Question {
    fn is_list(self) -> bool {
        matches!(self, Self::Orders(_) | Self::Instruments | Self::Instrument(_))
    }

    fn write(self, out: &mut Vec<u8>) {
        let list = |list, instrument| ListRequest { token: 0, list, instrument };
        match self {
            Self::Order(key) => frame::write_order_status_request(out, key),
            Self::Orders(instrument) => frame::write_list_request(out, &list(List::Orders, instrument)),
            Self::Instruments => frame::write_list_request(out, &list(List::Instruments, None)),
            Self::Instrument(one) => frame::write_list_request(out, &list(List::Instruments, Some(one))),
            Self::Limits => frame::write_limits_request(out, 0),
        }
    }
}

/// Questions, the first asked first.
pub(crate) struct Questions<W> {
    asked: VecDeque<(Question, W)>,
    /// So many of the first were sent.
    sent: usize,
    /// What came of the list that is being told.
    orders: Vec<OrderStatus>,
    instruments: Vec<InstrumentTold>,
}

impl<W> Default for Questions<W> {
    fn default() -> Self {
        Self { asked: VecDeque::new(), sent: 0, orders: Vec::new(), instruments: Vec::new() }
    }
}

impl<W> Questions<W> {
    pub(crate) fn len(&self) -> usize {
        self.asked.len()
    }

    pub(crate) fn ask(&mut self, question: Question, waiter: W) {
        self.asked.push_back((question, waiter));
    }

    /// Sends what may be sent now.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) {
        while let Some((question, _)) = self.asked.get(self.sent) {
            let is_alone = question.is_list() || self.asked.front().is_some_and(|(first, _)| first.is_list());
            if is_alone && self.sent > 0 {
                break;
            }
            question.write(out);
            self.sent += 1;
        }
    }

    /// Forgets those that nobody waits for; but not what was sent, since answers come in order.
    pub(crate) fn forget(&mut self, is_gone: fn(&W) -> bool) {
        let mut at = 0;
        self.asked.retain(|(_, waiter)| {
            at += 1;
            at <= self.sent || !is_gone(waiter)
        });
    }

    /// The connection is another one: nothing was sent on it.
    pub(crate) fn begin_anew(&mut self) {
        self.sent = 0;
        self.orders.clear();
        self.instruments.clear();
    }

    /// Takes in what may be an answer; gives who waits for it once it is whole.
    pub(crate) fn on_frame(&mut self, frame: &GatewayFrame) -> Option<(W, LineTold)> {
        let (first, _) = self.asked.front().filter(|_| self.sent > 0)?;
        let told = match (*frame, first) {
            (GatewayFrame::OrderStatus(_, Some(status)), Question::Orders(_)) => {
                self.orders.push(status);
                return None;
            }
            (GatewayFrame::OrderStatus(_, status), Question::Order(_)) => LineTold::Order(status),
            (GatewayFrame::InstrumentStatus(status), Question::Instruments | Question::Instrument(_)) => {
                self.instruments.push(InstrumentTold { status, ticks: Vec::new() });
                return None;
            }
            (GatewayFrame::TickRow { from, tick, .. }, Question::Instruments | Question::Instrument(_)) => {
                self.instruments.last_mut()?.ticks.push((from, tick));
                return None;
            }
            (GatewayFrame::ListEnd(end), question) if question.is_list() => self.end(end.reason),
            (GatewayFrame::OwnLimits(own), Question::Limits) => LineTold::Limits(own),
            _ => return None,
        };
        self.sent -= 1;
        self.asked.pop_front().map(|(_, waiter)| (waiter, told))
    }

    fn end(&mut self, reason: Reason) -> LineTold {
        let orders = std::mem::take(&mut self.orders);
        let instruments = std::mem::take(&mut self.instruments);
        let is_of_orders = matches!(self.asked.front(), Some((Question::Orders(_), _)));
        match reason {
            Reason::None if is_of_orders => LineTold::Orders(orders),
            Reason::None => LineTold::Instruments(instruments),
            reason => LineTold::Rejected(reason),
        }
    }

    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = W> {
        self.begin_anew();
        std::mem::take(&mut self.asked).into_iter().map(|(_, waiter)| waiter)
    }
}
