//! The answers to requests, each with what happened at its position: first what became of the request, then what came of it.

use pares_types::{Answer, CancelCause, ClientOrderId, OrderKey, Quantity, Reason, Reply, Side, Status};

use crate::codes;
use crate::desk::Desk;
use crate::orders::{Known, Standing};
use crate::outbound::{CancelReject, Execution, MassReport, Told};
use crate::pending::{Asked, Change, Mass, What};
use crate::refusals::MASS_OTHER;
use crate::reports::order_of;
use crate::types::{ExecId, ExecKind, Heard, Name, Terms, Version, status};

/// The answer to a change, and what is known of the question.
struct Changed<'a> {
    answer: &'a Answer,
    question: Option<Change>,
    /// The order as it was.
    known: Option<Known>,
    is_new: bool,
    is_possible_resend: bool,
}

impl Changed<'_> {
    /// The name that the order had.
    fn original(&self) -> Option<Name> {
        let asked = self.question.map(|question| question.original);
        asked.or(self.known.map(|order| order.newest)).map(Name::Of)
    }

    /// The order as it was, perhaps with nothing but its name.
    fn order(&self, held: &[Heard]) -> Known {
        let of_held = || held.iter().find_map(|heard| name_of(heard, self.answer));
        let of_asked = || self.question.map(|question| question.entry);
        let entry = || of_held().or_else(of_asked).unwrap_or(self.answer.client_order_id);
        let order = self.known.unwrap_or_else(|| Known::unknown(entry(), self.answer.instrument));
        let side = order.side.or_else(|| held.iter().find_map(|heard| side_of(heard, self.answer)));
        Known { order: Some(self.answer.order), side, ..order }
    }

    /// The terms that it gave the order. What another session or door has asked for is not known; and what a question did not say of them is known,
    /// of one that was answered before, while the order is as that left it.
    fn terms(&self, order: &Known) -> Option<Terms> {
        match self.is_possible_resend {
            true => order.terms.filter(|_| order.newest == self.answer.client_order_id),
            false => self.question.and_then(|question| question.terms),
        }
    }

    /// Whether the order has ended by it, at its owner's wish: by a cancel, or an amend to what is executed already.
    fn is_cancel(&self) -> bool {
        self.answer.status == Status::Cancelled && self.answer.reason == Reason::Requested
    }
}

impl Desk {
    /// The answer to a request, and what happened at its position before.
    pub(crate) fn on_answer(&mut self, answer: &Answer, is_new: bool, held: &[Heard]) {
        let waiting = self.asked.get(&answer.client_order_id).copied();
        let asked = waiting.filter(|asked| self.is_answer_to(answer, asked, held));
        if asked.is_none() && answer.number > 0 {
            // Of another request. What waits under its name is refused, or has an answer of its own.
            return self.tell_answer(answer, None, is_new, held);
        }
        self.asked.remove(&answer.client_order_id);
        self.end_amending(waiting);
        match waiting {
            Some(other) if asked.is_none() => {
                self.tell_name_used(answer.client_order_id, other.what);
                // A repeat is the asker's alone; any other is news to the member.
                match is_repeat(answer) {
                    true => held.iter().for_each(|heard| self.on_event(heard)),
                    false => self.tell_answer(answer, None, is_new, held),
                }
            }
            _ => self.tell_answer(answer, asked, is_new, held),
        }
    }

    fn tell_answer(&mut self, answer: &Answer, asked: Option<Asked>, is_new: bool, held: &[Heard]) {
        match asked.map(|asked| asked.what) {
            // The stream does not tell how many a mass cancel of everything has cancelled.
            Some(What::Mass(mass)) => self.on_mass_answer(answer, mass),
            _ if is_repeat(answer) && asked.is_some_and(|asked| asked.is_duplicate) => {
                self.forget_unanswered(answer.client_order_id);
            }
            _ if answer.instrument.0 == 0 => {}
            _ if answer.status == Status::MassCancelled => {
                // FIX 4.2 has no such report; and who asked for a repeat has heard by now that the name is used.
                if self.version == Version::Fix44 && !is_repeat(answer) {
                    let instrument = Some(answer.instrument);
                    let mass = Mass { asked: b'1', instrument, side: None };
                    self.on_mass_answer(answer, mass);
                }
            }
            _ if answer.status == Status::Accepted => {}
            // A change that is refused before its order is looked for is answered as its own.
            what if answer.order.0 == answer.request && !matches!(what, Some(What::Change(_))) => {
                let entered =
                    what.and_then(|what| if let What::Enter(order) = what { Some(order) } else { None });
                return self.on_entered((answer, entered), is_new, held);
            }
            what => {
                let question =
                    what.and_then(|what| if let What::Change(change) = what { Some(change) } else { None });
                let known = self.orders.by_key(OrderKey::Id(answer.order)).copied();
                let is_possible_resend = self.is_possible_resend(answer);
                return self
                    .on_changed(&Changed { answer, question, known, is_new, is_possible_resend }, held);
            }
        }
        held.iter().for_each(|heard| self.on_event(heard));
    }

    /// Whether an answer is one to what was asked: its name may stand for another request, of another time, session or protocol.
    fn is_answer_to(&self, answer: &Answer, asked: &Asked, held: &[Heard]) -> bool {
        let is_about = match asked.what {
            What::Enter(_) | What::Mass(_) => true,
            What::Change(change) => {
                let standing = self.orders.standing(OrderKey::Name(change.entry));
                let id = standing.and_then(|standing| standing.order);
                let name = held.iter().find_map(|heard| name_of(heard, answer));
                let may_be = || self.orders.names_of(OrderKey::Id(answer.order)).is_none();
                answer.order.0 == answer.request
                    || name.map_or_else(
                        || id.map_or_else(may_be, |id| id == answer.order),
                        |name| name == change.entry,
                    )
            }
        };
        is_about && answer.can_be_of(&asked.request)
    }

    /// Whether it may have been told before. What is in no stream was, if it says so.
    fn is_possible_resend(&self, answer: &Answer) -> bool {
        is_repeat(answer) || answer.number > 0 && self.streams.is_told_again(answer.shard)
    }

    pub(crate) fn end_amending(&mut self, asked: Option<Asked>) {
        if let Some(Asked { what: What::Change(change), .. }) = asked
            && let Some(order) = self.orders.get_mut(change.entry).filter(|_| change.terms.is_some())
        {
            order.amending = order.amending.saturating_sub(1);
        }
    }

    /// Forgets an order that was asked for and is not what its name stands for.
    pub(crate) fn forget_unanswered(&mut self, entry: ClientOrderId) {
        if self.orders.get(entry).is_some_and(|order| !order.is_answered && order.order.is_none()) {
            self.orders.remove(entry);
        }
    }

    /// The order that an answer is about: as this connection has asked for it, if that was it, or as it was heard of.
    fn entered(&self, answer: &Answer, asked: Option<Known>) -> Known {
        let is_it = |known: &&Known| known.order.map_or(asked.is_some(), |id| id == answer.order);
        let known = self.orders.get(answer.client_order_id).filter(is_it).copied();
        known.or(asked).unwrap_or_else(|| Known::unknown(answer.client_order_id, answer.instrument))
    }

    fn on_entered(&mut self, (answer, asked): (&Answer, Option<Known>), is_new: bool, held: &[Heard]) {
        let mut order = self.entered(answer, asked);
        if is_repeat(answer) {
            // It may have been changed since.
            order = Known { side: order.side, ..Known::unknown(answer.client_order_id, answer.instrument) };
        }
        order.order = Some(answer.order);
        if answer.status == Status::Refused {
            // A repeat (number 0) may be about a name whose order lives: only the stream's own answer ends it.
            if answer.number > 0 {
                self.orders.end(&order, status::REJECTED);
            }
            if asked.is_some() {
                self.forget_unanswered(answer.client_order_id);
            }
            self.tell_refused_order(answer, &order);
            return held.iter().for_each(|heard| self.on_event(heard));
        }
        let (traded, cancelled) = sums(held, order.entry);
        let all = Quantity(sum(answer.executed.0, sum(answer.remaining.0, cancelled)));
        // An order that was listed may have changed since.
        let is_counted = order.is_answered && answer.position < order.counted;
        let total = if is_counted || is_repeat(answer) { Some(all) } else { order.total.or(Some(all)) };
        let executed = Quantity(answer.executed.0.saturating_sub(traded));
        let then = Known { total, executed, is_answered: true, ..order };
        let id = ExecId::Answer(answer.shard, answer.position);
        let mut execution = Execution::of_order(ExecKind::New, then.status(), id, &then);
        execution.name = Some(Name::Of(then.entry));
        execution.is_possible_resend = self.is_possible_resend(answer);
        if is_repeat(answer) {
            (execution.status, execution.leaves) = (status_of(answer), answer.remaining);
            if asked.is_some() {
                self.forget_unanswered(answer.client_order_id);
            }
        } else if is_new && !is_counted {
            self.orders.put(then);
        }
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

    fn tell_refused_order(&mut self, answer: &Answer, order: &Known) {
        let id = ExecId::Answer(answer.shard, answer.position);
        let execution = Execution {
            name: Some(Name::Of(answer.client_order_id)),
            leaves: Quantity::ZERO,
            executed: Quantity::ZERO,
            rejected: Some(codes::order_reject(answer.reason, self.version)),
            text: codes::text(answer.reason),
            is_possible_resend: self.is_possible_resend(answer),
            ..Execution::of_order(ExecKind::Rejected, status::REJECTED, id, order)
        };
        self.told.push(Told::Execution(Box::new(execution)));
    }

    /// The answer to a replacement or a cancel, perhaps of another session or asked for through another gateway.
    fn on_changed(&mut self, change: &Changed<'_>, held: &[Heard]) {
        if change.answer.status == Status::Refused {
            self.tell_refused_change(change);
            return held.iter().for_each(|heard| self.on_event(heard));
        }
        let order = change.order(held);
        if change.is_cancel() {
            self.on_canceled(change, order, held)
        } else {
            self.on_replaced(change, order, held)
        }
    }

    fn tell_refused_change(&mut self, change: &Changed<'_>) {
        let Changed { answer, question, is_possible_resend, .. } = *change;
        let responds_to = question.map_or_else(|| codes::responds_to(answer.reason), Change::responds_to);
        self.told.push(Told::CancelReject(CancelReject {
            original: change.original(),
            responds_to,
            reason: codes::cancel_reject(answer.reason),
            text: codes::text(answer.reason),
            is_possible_resend,
            ..CancelReject::of(self.standing_of(change), Name::Of(answer.client_order_id))
        }));
    }

    /// How the order stands whose change is refused.
    fn standing_of(&self, change: &Changed<'_>) -> Option<Standing> {
        let Changed { answer, question, .. } = *change;
        if answer.order.0 == answer.request {
            // It was not looked for.
            return self.orders.standing(OrderKey::Name(question?.entry));
        }
        let status = match answer.reason {
            Reason::UnknownOrder => status::DONE,
            _ if answer.executed.is_zero() => status::NEW,
            _ => status::PARTIAL,
        };
        let answered = Standing { order: Some(answer.order), status };
        Some(self.orders.standing(OrderKey::Id(answer.order)).unwrap_or(answered))
    }

    fn on_canceled(&mut self, change: &Changed<'_>, order: Known, held: &[Heard]) {
        let answer = change.answer;
        let id = ExecId::Answer(answer.shard, answer.position);
        let execution = Execution {
            name: Some(Name::Of(answer.client_order_id)),
            original: change.original(),
            leaves: Quantity::ZERO,
            executed: answer.executed,
            is_possible_resend: change.is_possible_resend,
            ..Execution::of_order(ExecKind::Canceled, status::CANCELED, id, &order)
        };
        self.told.push(Told::Execution(Box::new(execution)));
        if change.is_new {
            self.orders.end(&order, status::CANCELED);
        }
        self.tell_held(held, order, |reply| !matches!(reply, Reply::Cancelled(_)));
    }

    fn on_replaced(&mut self, change: &Changed<'_>, order: Known, held: &[Heard]) {
        let answer = change.answer;
        let (traded, cancelled) = sums(held, order.entry);
        let total = Quantity(sum(answer.executed.0, sum(answer.remaining.0, cancelled)));
        let then = Known {
            newest: answer.client_order_id,
            total: Some(total),
            executed: Quantity(answer.executed.0.saturating_sub(traded)),
            terms: change.terms(&order),
            is_answered: true,
            ..order
        };
        // FIX 4.2 has a status for it; to be filled in part is more.
        let is_42 = self.version == Version::Fix42;
        let replaced = if is_42 && then.executed.is_zero() { status::REPLACED } else { then.status() };
        let id = ExecId::Answer(answer.shard, answer.position);
        let execution = Execution {
            original: change.original(),
            is_possible_resend: change.is_possible_resend,
            ..Execution::of_order(ExecKind::Replaced, replaced, id, &then)
        };
        self.told.push(Told::Execution(Box::new(execution)));
        match self.orders.get(order.entry).copied().filter(|_| change.is_new) {
            Some(_) if answer.position >= order.counted => self.orders.put(then),
            // Its shares are counted, its name is news.
            Some(now) => self.orders.put(Known { newest: then.newest, ..now }),
            None => {}
        }
        let is_reduced =
            |reply: &Reply| matches!(reply, Reply::Cancelled(one) if one.cause == CancelCause::Reduced);
        self.tell_held(held, then, |reply| !is_reduced(reply));
    }

    fn on_mass_answer(&mut self, answer: &Answer, mass: Mass) {
        let is_refused = answer.status == Status::Refused;
        let result = if is_refused { Err(MASS_OTHER) } else { Ok(answer.executed.0) };
        self.told.push(Told::MassReport(MassReport {
            order: Some(answer.order),
            text: codes::text(answer.reason),
            is_possible_resend: self.is_possible_resend(answer),
            ..MassReport::of(mass, Name::Of(answer.client_order_id), result)
        }));
    }
}

/// Whether it repeats what the stream tells, or has told.
fn is_repeat(answer: &Answer) -> bool {
    answer.number == 0 && answer.repeat
}

/// The name of the order that is answered, if something is about it.
fn name_of(heard: &Heard, answer: &Answer) -> Option<ClientOrderId> {
    match &heard.reply {
        Reply::Cancelled(one) if one.order == answer.order => Some(one.client_order_id),
        Reply::Trade(one) if one.order == answer.order => Some(one.client_order_id),
        _ => None,
    }
}

/// The side of the order that is answered, if something cancelled of it says so.
fn side_of(heard: &Heard, answer: &Answer) -> Option<Side> {
    match &heard.reply {
        Reply::Cancelled(one) if one.order == answer.order => Some(one.side),
        Reply::Trade(one) if one.order == answer.order => Some(one.side),
        _ => None,
    }
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
