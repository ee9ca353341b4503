//! What the member is told: its stream, answer by answer.
//!
//! The exchange tells what happened at a position first and its answer last; FIX wants to hear of an order before its trades. So what
//! belongs to an answer waits for it. Both come in one turn of the gateway.

use pares_types::{
    Answer, CancelCause, Cancelled, ClientOrderId, InstrumentId, OrderChange, OrderNews, Position, Quantity,
    Reason, Reply, Role, ShardId, Status, Trade, TradeBusted,
};

use crate::codes;
use crate::desk::{Asked, Desk, What};
use crate::orders::Known;
use crate::told::{CancelReject, ExecId, ExecKind, Execution, MassReport, Name, Told, Version, status};

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
fn order_of(reply: &Reply) -> Option<(ClientOrderId, InstrumentId)> {
    match reply {
        Reply::Trade(one) => Some((one.client_order_id, one.instrument)),
        Reply::Cancelled(one) => Some((one.client_order_id, one.instrument)),
        Reply::News(one) => Some((one.client_order_id, one.instrument)),
        Reply::Busted(one) => Some((one.client_order_id, one.instrument)),
        Reply::Answer(_) | Reply::Journalled { .. } | Reply::Rejected { .. } => None,
    }
}

/// Something of the member's streams, and whether it is told for the first time on this connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    reply: Reply,
    is_new: bool,
}

impl Heard {
    fn is_at(&self, here: At) -> bool {
        at(&self.reply).is_some_and(|at| at.shard == here.shard && at.position == here.position)
    }
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
        let waits = self.held.first().is_some_and(|held| held.is_at(here));
        match reply {
            // The whole of a request to all shards is told when every shard has answered.
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
        let order = order_of(reply).and_then(|(name, _)| self.orders.get(name));
        let is_settled = order.is_some_and(|order| order.is_answered && order.amending == 0);
        let is_live = at(reply).is_some_and(|at| !self.streams.is_replaying(at.shard));
        is_of_request && !(is_settled && is_live)
    }

    /// One of the member's orders traded, was cancelled or changed.
    fn on_event(&mut self, heard: &Heard) {
        let Some((entry, instrument)) = order_of(&heard.reply) else { return };
        let mut order = self.known(entry, instrument);
        self.tell_event(heard, &mut order);
    }

    /// What is known of an order; perhaps nothing but its name.
    fn known(&self, entry: ClientOrderId, instrument: InstrumentId) -> Known {
        self.orders.get(entry).copied().unwrap_or_else(|| Known::unknown(entry, instrument))
    }

    /// Tells an event of an order, and remembers how the order is then, if that is news.
    fn tell_event(&mut self, heard: &Heard, order: &mut Known) {
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
                _ if has_ended => self.orders.remove(order.entry),
                _ if self.orders.get(order.entry).is_some() => self.orders.put(*order),
                _ => {}
            }
        }
        let is_possible_resend = self.streams.is_replaying(here.shard);
        self.told.push(Told::Execution(Box::new(Execution { is_possible_resend, ..execution })));
    }

    fn busted(&self, busted: &TradeBusted, order: &Known) -> Execution {
        let trade = ExecId::Trade(busted.shard, busted.traded_at, busted.index, busted.client_order_id);
        let known = self.orders.get(order.entry).map_or(status::DONE, Known::status);
        Execution {
            order: Some(busted.order),
            refers_to: Some(trade),
            last: Some((busted.price, busted.quantity)),
            ..Execution::of_order(ExecKind::Busted, known, ExecId::Number(busted.shard, busted.number), order)
        }
    }

    /// The answer to a request, and what happened at its position before.
    fn on_answer(&mut self, answer: &Answer, is_new: bool, held: &[Heard]) {
        let asked = self.asked.remove(&answer.client_order_id);
        self.end_amending(asked);
        let is_repeat = is_repeat(answer);
        let is_entry = answer.order.0 == answer.request;
        let is_mass = matches!(asked, Some(Asked { what: What::Mass { .. }, .. }));
        match () {
            () if is_repeat && asked.is_some_and(|asked| asked.is_duplicate) => {
                self.forget_unanswered(answer.client_order_id);
            }
            () if is_mass => self.on_mass_answer(answer, asked),
            () if answer.instrument.0 == 0 => {}
            () if matches!(answer.status, Status::MassCancelled | Status::Accepted) => {}
            () if is_entry => return self.on_entered(answer, is_new, held),
            () => return self.on_changed(answer, asked, is_new, held),
        }
        held.iter().for_each(|heard| self.on_event(heard));
    }

    fn end_amending(&mut self, asked: Option<Asked>) {
        if let Some(Asked { what: What::Replace { entry, .. }, .. }) = asked
            && let Some(order) = self.orders.get_mut(entry)
        {
            order.amending = order.amending.saturating_sub(1);
        }
    }

    /// Forgets an order that was asked for and is not what its name stands for.
    fn forget_unanswered(&mut self, entry: ClientOrderId) {
        if self.orders.get(entry).is_some_and(|order| !order.is_answered && order.order.is_none()) {
            self.orders.remove(entry);
        }
    }

    fn on_entered(&mut self, answer: &Answer, is_new: bool, held: &[Heard]) {
        let is_repeat = is_repeat(answer);
        let mut order = self.known(answer.client_order_id, answer.instrument);
        order.order = Some(answer.order);
        let id = ExecId::Answer(answer.shard, answer.position);
        if answer.status == Status::Refused {
            self.forget_unanswered(answer.client_order_id);
            return self.tell_refused_order(answer, &order, id, is_repeat);
        }
        let (traded, cancelled) = sums(held, order.entry);
        let all = Quantity(sum(answer.executed.0, sum(answer.remaining.0, cancelled)));
        let is_counted = order.is_answered && answer.position < order.counted;
        let mut then = Known { total: order.total.or(Some(all)), is_answered: true, ..order };
        then.executed = Quantity(answer.executed.0.saturating_sub(traded));
        if is_counted {
            then.total = Some(all);
        }
        let mut execution = Execution::of_order(ExecKind::New, then.status(), id, &then);
        execution.name = Some(Name::Of(then.entry));
        if is_repeat {
            execution.status = status_of(answer);
            execution.leaves = answer.remaining;
            self.forget_unanswered(answer.client_order_id);
        } else if is_new && !is_counted {
            self.orders.put(then);
        }
        execution.is_possible_resend = is_repeat || self.streams.is_replaying(answer.shard);
        self.told.push(Told::Execution(Box::new(execution)));
        self.tell_held(held, then, |_| true);
    }

    /// Tells what waited: of the order that was answered as it is after the answer's own report.
    fn tell_held(&mut self, held: &[Heard], mut order: Known, is_told: impl Fn(&Reply) -> bool) {
        for heard in held {
            match order_of(&heard.reply) {
                Some((entry, _)) if entry != order.entry => self.on_event(heard),
                _ if is_told(&heard.reply) => self.tell_event(heard, &mut order),
                _ => {}
            }
        }
    }

    fn tell_refused_order(&mut self, answer: &Answer, order: &Known, id: ExecId, is_repeat: bool) {
        let rejected = Some(codes::order_reject(answer.reason, self.version));
        let execution = Execution {
            name: Some(Name::Of(answer.client_order_id)),
            leaves: Quantity::ZERO,
            executed: Quantity::ZERO,
            rejected,
            text: codes::text(answer.reason),
            is_possible_resend: is_repeat || self.streams.is_replaying(answer.shard),
            ..Execution::of_order(ExecKind::Rejected, status::REJECTED, id, order)
        };
        self.told.push(Told::Execution(Box::new(execution)));
    }

    /// The answer to a replacement or a cancel, perhaps of another session or asked for through another gateway.
    fn on_changed(&mut self, answer: &Answer, asked: Option<Asked>, is_new: bool, held: &[Heard]) {
        let known = self.orders.by_id(answer.order).copied();
        let of_held = held.iter().find_map(|heard| match &heard.reply {
            Reply::Cancelled(one) if one.order == answer.order => Some(one.client_order_id),
            Reply::Trade(one) if one.order == answer.order => Some(one.client_order_id),
            _ => None,
        });
        let (original, by_asked, terms, asked_cancel) = match asked.map(|asked| asked.what) {
            Some(What::Cancel { entry, original }) => (Some(original), Some(entry), None, Some(true)),
            Some(What::Replace { entry, original, terms }) => {
                (Some(original), Some(entry), Some(terms), Some(false))
            }
            _ => (None, None, None, None),
        };
        let is_possible_resend = is_repeat(answer) || self.streams.is_replaying(answer.shard);
        let original = original.or(known.map(|order| order.newest)).map(Name::Of);
        if answer.status == Status::Refused {
            let responds_to = match asked_cancel {
                Some(true) => b'1',
                Some(false) => b'2',
                None => codes::responds_to(answer.reason),
            };
            self.told.push(Told::CancelReject(CancelReject {
                order: known.map(|order| answer_order(&order, answer)),
                name: Name::Of(answer.client_order_id),
                original,
                status: known.as_ref().map_or(status::REJECTED, Known::status),
                responds_to,
                reason: codes::cancel_reject(answer.reason),
                text: codes::text(answer.reason),
                is_possible_resend,
            }));
            return held.iter().for_each(|heard| self.on_event(heard));
        }
        let entry = known.map(|order| order.entry).or(of_held).or(by_asked);
        let mut order = known
            .unwrap_or_else(|| Known::unknown(entry.unwrap_or(answer.client_order_id), answer.instrument));
        order.order = Some(answer.order);
        let was_cancelled = held.iter().any(|heard| is_cancel(heard, answer));
        let is_cancel_answer = was_cancelled || asked_cancel == Some(true);
        let change = Changed { answer, original, terms, is_new, is_possible_resend };
        if is_cancel_answer || answer.status == Status::Cancelled && answer.reason == Reason::Requested {
            self.on_canceled(&change, order, held);
        } else {
            self.on_replaced(&change, order, held);
        }
    }

    fn on_canceled(&mut self, change: &Changed<'_>, order: Known, held: &[Heard]) {
        let answer = change.answer;
        let id = ExecId::Answer(answer.shard, answer.position);
        let execution = Execution {
            name: Some(Name::Of(answer.client_order_id)),
            original: change.original.clone(),
            leaves: Quantity::ZERO,
            executed: answer.executed,
            is_possible_resend: change.is_possible_resend,
            ..Execution::of_order(ExecKind::Canceled, status::CANCELED, id, &order)
        };
        self.told.push(Told::Execution(Box::new(execution)));
        if change.is_new {
            self.orders.remove(order.entry);
        }
        let is_told = |reply: &Reply| !matches!(reply, Reply::Cancelled(_));
        self.tell_held(held, order, is_told);
    }

    fn on_replaced(&mut self, change: &Changed<'_>, order: Known, held: &[Heard]) {
        let answer = change.answer;
        let (traded, cancelled) = sums(held, order.entry);
        let total = Quantity(sum(answer.executed.0, sum(answer.remaining.0, cancelled)));
        let then = Known {
            newest: answer.client_order_id,
            total: Some(total),
            executed: Quantity(answer.executed.0.saturating_sub(traded)),
            terms: change.terms.or(order.terms),
            is_answered: true,
            ..order
        };
        // FIX 4.2 has a status for it; more than that is being filled in part.
        let is_42 = self.version == Version::Fix42;
        let replaced = if is_42 && then.executed.is_zero() { status::REPLACED } else { then.status() };
        let id = ExecId::Answer(answer.shard, answer.position);
        let execution = Execution {
            original: change.original.clone(),
            is_possible_resend: change.is_possible_resend,
            ..Execution::of_order(ExecKind::Replaced, replaced, id, &then)
        };
        self.told.push(Told::Execution(Box::new(execution)));
        if change.is_new && answer.position >= order.counted && self.orders.get(order.entry).is_some() {
            self.orders.put(then);
        }
        let is_reduced =
            |reply: &Reply| matches!(reply, Reply::Cancelled(one) if one.cause == CancelCause::Reduced);
        self.tell_held(held, then, |reply| !is_reduced(reply));
    }

    fn on_mass_answer(&mut self, answer: &Answer, asked: Option<Asked>) {
        let Some(Asked { what: What::Mass { asked, instrument, side }, .. }) = asked else { return };
        let result = match answer.status {
            Status::Refused => Err(MASS_OTHER),
            _ => Ok(answer.executed.0),
        };
        self.told.push(Told::MassReport(MassReport {
            order: Some(answer.order),
            name: Name::Of(answer.client_order_id),
            asked,
            instrument,
            side,
            result,
            text: codes::text(answer.reason),
            is_possible_resend: answer.repeat,
        }));
    }

    /// The gateway did not take a request in.
    fn on_rejected(&mut self, name: ClientOrderId, reason: Reason) {
        let Some(asked) = self.asked.remove(&name) else { return };
        self.end_amending(Some(asked));
        let text = codes::text(reason);
        let (entry, original, responds_to) = match asked.what {
            What::Enter => {
                let order = self.known(name, InstrumentId(0));
                self.forget_unanswered(name);
                let rejected = Some(codes::order_reject(reason, self.version));
                let blank = self.blank(ExecKind::Rejected, status::REJECTED);
                let (leaves, executed) = (Quantity::ZERO, Quantity::ZERO);
                let of_order = Execution::of_order(ExecKind::Rejected, status::REJECTED, blank.id, &order);
                let name = Some(Name::Of(name));
                let execution = Execution { order: None, name, leaves, executed, rejected, text, ..of_order };
                return self.told.push(Told::Execution(Box::new(execution)));
            }
            What::Mass { asked, instrument, side } => {
                return self.told.push(Told::MassReport(MassReport {
                    order: None,
                    name: Name::Of(name),
                    asked,
                    instrument,
                    side,
                    result: Err(MASS_OTHER),
                    text,
                    is_possible_resend: false,
                }));
            }
            What::Cancel { entry, original } => (entry, original, b'1'),
            What::Replace { entry, original, .. } => (entry, original, b'2'),
        };
        let known = self.orders.get(entry);
        self.told.push(Told::CancelReject(CancelReject {
            order: known.and_then(|order| order.order),
            name: Name::Of(name),
            original: Some(Name::Of(original)),
            status: known.map_or(status::REJECTED, Known::status),
            responds_to,
            reason: codes::cancel_reject(reason),
            text,
            is_possible_resend: false,
        }));
    }
}

/// MassCancelRejectReason: anything else.
const MASS_OTHER: u8 = 99;

/// The answer to a change, and what is known of the question.
struct Changed<'a> {
    answer: &'a Answer,
    original: Option<Name>,
    terms: Option<crate::told::Terms>,
    is_new: bool,
    is_possible_resend: bool,
}

/// Whether it repeats what the stream tells, or has told.
fn is_repeat(answer: &Answer) -> bool {
    answer.number == 0 && answer.repeat
}

fn answer_order(order: &Known, answer: &Answer) -> pares_types::OrderId {
    order.order.unwrap_or(answer.order)
}

fn is_cancel(heard: &Heard, answer: &Answer) -> bool {
    let Reply::Cancelled(one) = heard.reply else { return false };
    one.order == answer.order && one.cause == CancelCause::Requested
}

/// OrdStatus (39) that an answer tells of.
fn status_of(answer: &Answer) -> u8 {
    match answer.status {
        Status::Filled => status::FILLED,
        Status::Cancelled => status::CANCELED,
        Status::Refused => status::REJECTED,
        _ if answer.executed.is_zero() => status::NEW,
        _ => status::PARTIAL,
    }
}

/// Nothing that a frame says can be too much to add.
fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other)
}

/// Shares of an order that were traded and cancelled; those that an amend took away are not of its new total.
fn sums(held: &[Heard], entry: ClientOrderId) -> (u64, u64) {
    held.iter().fold((0, 0), |(traded, cancelled), heard| match &heard.reply {
        Reply::Trade(one) if one.client_order_id == entry => (sum(traded, one.quantity.0), cancelled),
        Reply::Cancelled(one) if one.client_order_id == entry && one.cause != CancelCause::Reduced => {
            (traded, sum(cancelled, one.quantity.0))
        }
        _ => (traded, cancelled),
    })
}

fn traded(trade: &Trade, order: &mut Known, is_new: bool) -> Execution {
    order.side = Some(trade.side);
    order.order = Some(trade.order);
    let executed = match order.total {
        // It is counted in already: how much it was then is known by what was left.
        Some(total) if !is_new => Quantity(total.0.saturating_sub(trade.remaining.0)),
        _ => Quantity(sum(order.executed.0, trade.quantity.0)),
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
    order.order = Some(cancelled.order);
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
        OrderChange::Repriced => "rests at a new price",
        OrderChange::Refilled => "shows more",
        OrderChange::Released => "joined the call",
        OrderChange::Withdrawn => "left the book until there is a price to follow",
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
