//! What the member receives: its stream, answer by answer.
//!
//! The exchange tells what happened at a position first and its answer last; FIX wants to hear of an order before its trades. So what
//! belongs to an answer waits for it. Both come in one turn of the gateway.

use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, InstrumentId, OrderChange, OrderId, OrderKey, OrderNews,
    Position, Quantity, Reply, Role, ShardId, Trade, TradeBusted,
};

use crate::codes;
use crate::desk::Desk;
use crate::orders::Known;
use crate::outbound::{Execution, Told};
use crate::types::Heard;
use crate::types::{ExecId, ExecKind, status};

/// What waits for its answer is of one position, which has few events; beyond this it waits no longer.
const HELD_MAX: usize = 1 << 14;
/// ExecRestatementReason (378) in FIX 4.2 and 4.4: a new price, less of the order, and the exchange's own doing, for which 4.2 has only the broker's.
const REPRICED: (u8, u8) = (3, 3);
const DECLINED_IN_PART: (u8, u8) = (5, 5);
const BY_THE_MARKET: (u8, u8) = (4, 8);

/// Where something in a stream happened, and its number there.
#[derive(Clone, Copy)]
struct At {
    shard: ShardId,
    position: Position,
    number: u64,
}

fn at(reply: &Reply) -> Option<At> {
    let (shard, position, number) = match reply {
        Reply::Answer(Answer { shard, position, number, .. })
        | Reply::Trade(Trade { shard, position, number, .. })
        | Reply::Cancelled(Cancelled { shard, position, number, .. })
        | Reply::News(OrderNews { shard, position, number, .. })
        | Reply::Busted(TradeBusted { shard, position, number, .. }) => (*shard, *position, *number),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    };
    Some(At { shard, position, number })
}

/// The order that an event is about.
pub(crate) fn order_of(reply: &Reply) -> Option<(OrderId, ClientOrderId, InstrumentId)> {
    match reply {
        Reply::Trade(one) => Some((one.order, one.client_order_id, one.instrument)),
        Reply::Cancelled(one) => Some((one.order, one.client_order_id, one.instrument)),
        Reply::News(one) => Some((one.order, one.client_order_id, one.instrument)),
        Reply::Busted(one) => Some((one.order, one.client_order_id, one.instrument)),
        Reply::Answer(_) | Reply::Journalled { .. } | Reply::Rejected { .. } => None,
    }
}

/// Whether it happened there.
fn is_at(heard: &Heard, here: At) -> bool {
    at(&heard.reply).is_some_and(|at| at.shard == here.shard && at.position == here.position)
}

impl Desk {
    /// Something that a gateway tells the member.
    pub(crate) fn on_reply(&mut self, reply: Reply) {
        let Some(here) = at(&reply) else {
            if let Reply::Rejected { client_order_id, reason } = reply {
                self.on_rejected(client_order_id, reason);
            }
            return;
        };
        let heard = Heard { reply, is_new: self.streams.take(here.shard, here.number) };
        self.report_trade(&heard, (here.shard, here.number));
        // It was reported, and comes again for its trades only.
        if !heard.is_new && self.streams.is_for_trades(here.shard) {
            return;
        }
        let waits = self.held.first().is_some_and(|held| is_at(held, here));
        match reply {
            // A request to all shards is reported as a whole when every shard has answered.
            Reply::Answer(answer) if answer.is_part() => {}
            Reply::Answer(answer) => {
                let held = if waits { std::mem::take(&mut self.held) } else { Vec::new() };
                self.on_answer(&answer, heard.is_new, &held);
            }
            _ if waits || self.must_wait(&reply) => {
                if !waits || self.held.len() >= HELD_MAX {
                    self.release();
                }
                self.held.push(heard);
            }
            _ => {
                let is_of_shard = |held: &Heard| at(&held.reply).is_some_and(|at| at.shard == here.shard);
                if self.held.first().is_some_and(is_of_shard) {
                    self.release();
                }
                self.on_event(&heard);
            }
        }
    }

    /// Tells what waited for an answer that does not come.
    pub(crate) fn release(&mut self) {
        for heard in std::mem::take(&mut self.held) {
            self.on_event(&heard);
        }
    }

    /// Whether something waits for its answer that is reported as it happens.
    pub(crate) fn waits_live(&self) -> bool {
        let first = self.held.first().and_then(|held| at(&held.reply));
        first.is_some_and(|at| !self.streams.is_replaying(at.shard))
    }

    /// Whether an answer at the same position may say what an event comes of.
    fn must_wait(&self, reply: &Reply) -> bool {
        let is_of_request = match reply {
            Reply::Trade(trade) => trade.role == Role::Incoming,
            Reply::Cancelled(cancelled) => match cancelled.cause {
                CancelCause::Requested | CancelCause::Reduced => return true,
                CancelCause::Remainder | CancelCause::FillOrKill | CancelCause::Minimum => true,
                CancelCause::SelfTrade | CancelCause::PriceBand => true,
                _ => false,
            },
            _ => false,
        };
        let order = order_of(reply).and_then(|(id, ..)| self.orders.by_key(OrderKey::Id(id)));
        let is_settled = order.is_some_and(|order| order.is_answered && order.amending == 0);
        let is_live = at(reply).is_some_and(|at| !self.streams.is_replaying(at.shard));
        is_of_request && !(is_settled && is_live)
    }

    /// One of the member's orders traded, was cancelled or changed.
    pub(crate) fn on_event(&mut self, heard: &Heard) {
        let Some((id, entry, instrument)) = order_of(&heard.reply) else { return };
        let heard_of = self.orders.by_key(OrderKey::Id(id)).copied();
        self.tell_event(heard, &mut heard_of.unwrap_or_else(|| Known::unknown(entry, instrument)));
    }

    /// Tells an event of an order, and remembers how the order is then, if that is news.
    pub(crate) fn tell_event(&mut self, heard: &Heard, order: &mut Known) {
        let reply = &heard.reply;
        let Some(here) = at(reply) else { return };
        let is_new = heard.is_new && here.position >= order.counted;
        let execution = match reply {
            Reply::Trade(trade) => traded(trade, order, is_new),
            Reply::Cancelled(cancelled) => cancelled_shares(cancelled, order, is_new),
            Reply::News(news) if news.change == OrderChange::Refilled => return,
            Reply::News(news) => changed(news, order),
            Reply::Busted(busted) => self.busted(busted, order),
            Reply::Answer(_) | Reply::Journalled { .. } | Reply::Rejected { .. } => return,
        };
        if is_new {
            let has_ended = matches!(execution.status, status::FILLED | status::CANCELED | status::EXPIRED);
            match reply {
                Reply::Busted(_) => {}
                _ if has_ended => self.orders.end(order, execution.status),
                _ if order.order.is_some_and(|id| self.orders.by_key(OrderKey::Id(id)).is_some()) => {
                    self.orders.put(*order);
                }
                _ => {}
            }
        }
        let is_possible_resend = self.streams.is_told_again(here.shard);
        self.told.push(Told::Execution(Box::new(Execution { is_possible_resend, ..execution })));
    }

    fn busted(&self, busted: &TradeBusted, order: &Known) -> Execution {
        let trade = ExecId::Trade(busted.shard, busted.traded_at, busted.index, busted.client_order_id);
        let known = self.orders.standing(OrderKey::Id(busted.order));
        let known = known.map_or(status::DONE, |standing| standing.status);
        Execution {
            order: Some(busted.order),
            refers_to: Some(trade),
            last: Some((busted.price, busted.quantity)),
            ..Execution::of_order(ExecKind::Busted, known, ExecId::Number(busted.shard, busted.number), order)
        }
    }
}

fn traded(trade: &Trade, order: &mut Known, is_new: bool) -> Execution {
    order.side = Some(trade.side);
    order.order = Some(trade.order);
    let executed = match order.total {
        // It is counted in already: how much it was then is known by what was left.
        Some(total) if !is_new => Quantity(total.0.saturating_sub(trade.remaining.0)),
        _ => Quantity(order.executed.0.saturating_add(trade.quantity.0)),
    };
    if is_new || order.total.is_none() {
        order.executed = executed;
    }
    let id = ExecId::Trade(trade.shard, trade.position, trade.index, trade.client_order_id);
    let status = if trade.remaining.is_zero() { status::FILLED } else { status::PARTIAL };
    Execution {
        last: Some((trade.price, trade.quantity)),
        leaves: trade.remaining,
        executed,
        ..Execution::of_order(ExecKind::Trade, status, id, order)
    }
}

fn cancelled_shares(cancelled: &Cancelled, order: &mut Known, is_new: bool) -> Execution {
    (order.side, order.order) = (Some(cancelled.side), Some(cancelled.order));
    let id = match cancelled.cause {
        CancelCause::Requested => ExecId::Answer(cancelled.shard, cancelled.position),
        _ => ExecId::Number(cancelled.shard, cancelled.number),
    };
    let text = cancelled.cause.word();
    let left = order.leaves().0.saturating_sub(cancelled.quantity.0);
    let may_be_part = matches!(cancelled.cause, CancelCause::SelfTrade | CancelCause::Reduced);
    if may_be_part && (left > 0 || !is_new && order.is_answered && order.total.is_some()) {
        if is_new {
            let total = order.total.map(|total| total.0.saturating_sub(cancelled.quantity.0));
            order.total = total.map(Quantity);
        }
        let restated = Some(DECLINED_IN_PART);
        let execution = Execution::of_order(ExecKind::Restated, order.status(), id, order);
        return Execution { restated, text: text.into(), ..execution };
    }
    let kind = codes::cancel_kind(cancelled.cause);
    let status = if kind == ExecKind::Expired { status::EXPIRED } else { status::CANCELED };
    let execution = Execution::of_order(kind, status, id, order);
    Execution { leaves: Quantity::ZERO, text: text.into(), ..execution }
}

fn changed(news: &OrderNews, order: &mut Known) -> Execution {
    order.side = Some(news.side);
    order.order = Some(news.order);
    let restated = if news.change == OrderChange::Repriced { REPRICED } else { BY_THE_MARKET };
    let text = match news.change {
        OrderChange::Triggered => "triggered",
        OrderChange::Rested => "rests on the book",
        OrderChange::Repriced => "was repriced",
        OrderChange::Refilled => "shows more",
        OrderChange::Released => "joined the call",
        OrderChange::Withdrawn => "left the book until its reference price returns",
    };
    let is_working = !matches!(news.change, OrderChange::Withdrawn | OrderChange::Triggered);
    let id = ExecId::Number(news.shard, news.number);
    let status = if order.executed.is_zero() { status::NEW } else { status::PARTIAL };
    Execution {
        restated: Some(restated),
        leaves: news.remaining,
        is_working: Some(is_working),
        text: text.into(),
        ..Execution::of_order(ExecKind::Restated, status, id, order)
    }
}
