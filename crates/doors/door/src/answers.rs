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

    /// The order's terms after it: those that this connection asked for. If it may have been told before, the order's terms as they are, unless a later
    /// change has given it others.
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
                self.orders.forget_asked(answer.client_order_id);
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
            Some(What::Enter(order)) => return self.on_entered((answer, Some(order)), is_new, held),
            None if answer.order.0 == answer.request => return self.on_entered((answer, None), is_new, held),
            // A change that is refused before its order is looked for is answered as its own.
            Some(What::Change(change)) => return self.on_changed((answer, Some(change)), is_new, held),
            None => return self.on_changed((answer, None), is_new, held),
        }
        held.iter().for_each(|heard| self.on_event(heard));
    }

    /// Whether an answer is one to what was asked: its name may stand for another request, of another time, session or protocol.
    fn is_answer_to(&self, answer: &Answer, asked: &Asked, held: &[Heard]) -> bool {
        let is_about = match asked.what {
            What::Enter(_) | What::Mass(_) => true,
            What::Change(change) => {
                let known = || self.orders.names_of(OrderKey::Id(answer.order)).map(|(_, entry)| entry);
                let name = held.iter().find_map(|heard| name_of(heard, answer)).or_else(known);
                let may_be = || match self.orders.standing(OrderKey::Name(change.entry)) {
                    // The stream tells an order's answer before that to its change.
                    Some(Standing { order: None, .. }) => answer.number == 0,
                    standing => standing.is_none(),
                };
                answer.order.0 == answer.request || name.map_or_else(may_be, |name| name == change.entry)
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

    /// The order that an answer is about: as this connection has asked for it, if that was it, or as it was heard of. A repeated one may have been changed since.
    fn entered(&mut self, answer: &Answer, asked: Option<Known>) -> Known {
        let name = answer.client_order_id;
        let is_it = |known: &&Known| known.order.is_some() || asked.is_some();
        let known = self.orders.find(answer.order, name).filter(is_it).copied().or(asked);
        if asked.is_some() {
            self.orders.forget_asked(name);
        }
        let blank = Known { order: Some(answer.order), ..Known::unknown(name, answer.instrument) };
        match known {
            Some(known) if is_repeat(answer) => Known { side: known.side, ..blank },
            Some(known) => Known { order: blank.order, ..known },
            None => blank,
        }
    }

    fn on_entered(&mut self, (answer, asked): (&Answer, Option<Known>), is_new: bool, held: &[Heard]) {
        let order = self.entered(answer, asked);
        if answer.status == Status::Refused {
            self.tell_refused_order(answer, &order);
            return held.iter().for_each(|heard| self.on_event(heard));
        }
        let (traded, all) = traded_and_all(answer, held, order.entry);
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
                Some((id, ..)) if Some(id) != order.order => self.on_event(heard),
                _ if is_told(&heard.reply) => self.tell_event(heard, &mut order),
                _ => {}
            }
        }
    }

    fn tell_refused_order(&mut self, answer: &Answer, order: &Known) {
        // A repeat (number 0) may be about a name whose order lives: only the stream's own answer ends it.
        if answer.number > 0 {
            self.orders.end(order, status::REJECTED);
        }
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
    fn on_changed(&mut self, (answer, question): (&Answer, Option<Change>), is_new: bool, held: &[Heard]) {
        let known = self.orders.by_key(OrderKey::Id(answer.order)).copied();
        let is_possible_resend = self.is_possible_resend(answer);
        let change = &Changed { answer, question, known, is_new, is_possible_resend };
        if answer.status == Status::Refused {
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
        let (traded, all) = traded_and_all(answer, held, order.entry);
        let then = Known {
            newest: answer.client_order_id,
            total: Some(all),
            executed: Quantity(answer.executed.0.saturating_sub(traded)),
            terms: change.terms(&order),
            is_answered: true,
            ..order
        };
        // FIX 4.2 has a status for it; to be filled in part is more.
        let is_42 = self.version == Version::Fix42;
        let replaced = if is_42 && then.executed.is_zero() { status::REPLACED } else { then.status() };
        let id = ExecId::Answer(answer.shard, answer.position);
        let (original, is_possible_resend) = (change.original(), change.is_possible_resend);
        let execution = Execution::of_order(ExecKind::Replaced, replaced, id, &then);
        self.told.push(Told::Execution(Box::new(Execution { original, is_possible_resend, ..execution })));
        match self.orders.find(answer.order, order.entry).copied().filter(|_| change.is_new) {
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
    order_of(&heard.reply).filter(|(id, ..)| *id == answer.order).map(|(_, entry, _)| entry)
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

/// Shares of an order that were traded as it was answered, and all that it has or had; those that an amend took away are not of its new total.
fn traded_and_all(answer: &Answer, held: &[Heard], entry: ClientOrderId) -> (u64, Quantity) {
    let already = answer.executed.0.saturating_add(answer.remaining.0);
    let (traded, all) = held.iter().fold((0_u64, already), |(traded, all), heard| match &heard.reply {
        Reply::Trade(one) if one.client_order_id == entry => (traded.saturating_add(one.quantity.0), all),
        Reply::Cancelled(one) if one.client_order_id == entry && one.cause != CancelCause::Reduced => {
            (traded, all.saturating_add(one.quantity.0))
        }
        _ => (traded, all),
    });
    (traded, Quantity(all))
}
