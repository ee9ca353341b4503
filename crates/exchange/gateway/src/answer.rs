//! From the committed stream to the session that asked: the one answer to a request.

use pares_stream::{Told, answer};
use pares_types::{
    Answer, ClientOrderId, Command, Event, MemberId, Outcome, Position, Quantity, Reason, Reply, Request,
    Status,
};

use crate::fan_out::Whole;
use crate::look_up::LookUp;
use crate::names::{Kind, NameIndex, State};
use crate::sessions::Listener;
use crate::streams::Follow;
use crate::{Gateway, GatewaySink, Place, SessionId, clock};

/// A name's first answer, as far as this gateway has read.
pub(crate) struct Settled {
    asker: Option<SessionId>,
    answer: Answer,
    /// The first answer lies before all that it has read, in full or in part.
    is_elsewhere: bool,
}

impl Gateway {
    /// A record of the committed stream: in order of position within its shard; positions seen before
    /// are ignored. Owners receive trades, cancels and news, then the asker the answer.
    ///
    /// # Panics
    /// If a position is skipped: a session would wait for ever.
    pub fn on_committed(
        &mut self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
        place: Place,
        sink: &mut impl GatewaySink,
    ) {
        if !self.follow(request, outcome, position) {
            return;
        }
        self.refuse_other(request, sink);
        let number = self.report(&Told { position, request, outcome, events }, sink);
        let answer = Answer { number, ..answer(position, request, outcome, events.len()) };
        let settled = self.settle(answer, request, place);
        self.refuse_lost(request, sink);
        self.follow_orders(request, outcome, events);
        self.listings.follow(request, outcome, events);
        if let Some(settled) = settled {
            self.deliver(settled, request, sink);
        }
        // The last that an operator hears who shuts himself out is that it is done.
        if let Some(change) = self.follow_register(request, outcome) {
            self.enforce(&change, sink);
        }
    }

    /// The answer that the record at an [`GatewaySink::answer_again`] place gives once more; `events` is
    /// the number of its events.
    #[must_use]
    pub fn replay_answer(
        &self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: usize,
    ) -> Answer {
        let mut answer = Answer { repeat: true, ..answer(position, request, outcome, events) };
        let entry = self.names.find(request.member, request.client_order_id).map(|name| self.names.get(name));
        if let Some(entry) = entry.filter(|entry| entry.kind == Kind::FanOut) {
            answer.executed = entry.executed;
        }
        answer
    }

    /// A record read before lies at another place now, since its recorder's log was taken away and filled again: a first answer
    /// that was kept there is read at the new place from now on.
    pub fn on_moved(
        &mut self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: usize,
        place: Place,
    ) {
        let Some(name) = self.names.find(request.member, request.client_order_id) else { return };
        let entry = self.names.get(name);
        let State::Answered(Some(before)) = entry.state() else { return };
        if before.recorder != place.recorder {
            return;
        }
        let place = match entry.kind {
            Kind::FanOut => {
                let answer = answer(position, request, outcome, events);
                self.settle_part(name, request, answer, place).and_then(|(_, place)| place)
            }
            // A refusal that stands behind it has the same name and is not the first answer.
            Kind::Enter { .. } | Kind::Amend(_) | Kind::Cancel | Kind::Other => {
                Some(place).filter(|_| entry.id == request.id)
            }
        };
        if let Some(place) = place {
            self.names.set_state(name, State::Answered(Some(place)));
        }
    }

    /// Where the first answer to a name of the session's member lies; `None` if there is none, or the session is gone.
    #[must_use]
    pub fn first_answer(&self, session: SessionId, name: ClientOrderId) -> Option<(MemberId, Place)> {
        let member = self.sessions.member(session)?;
        match self.names.get(self.names.find(member, name)?).state() {
            State::Answered(place) => Some((member, place?)),
            State::Pending(_) => None,
        }
    }

    /// Notes a committed answer under its name. If that is the name's first, returns it with the session
    /// waiting for it. A refusal as duplicate or as too old comes after the answer it stands behind, in the same shard; it is the first
    /// here only if that one lies before all that this gateway has read, or, of one that is too old, if there is none.
    pub(crate) fn settle(&mut self, answer: Answer, request: &Request, place: Place) -> Option<Settled> {
        if clock::is_unasked(request) {
            return None;
        }
        let (name, asker) = self.name_to_settle(&answer, request, place)?;
        self.names.identify(name, request);
        let is_refused = self.names.get(name).is_refused();
        let (answer, place) = match self.names.get(name).kind {
            Kind::FanOut => self.settle_part(name, request, answer, place)?,
            Kind::Enter { .. } | Kind::Amend(_) | Kind::Cancel | Kind::Other => {
                self.fan_outs.remove(&name);
                let stands_behind = matches!(answer.reason, Reason::DuplicateRequest | Reason::TooOld);
                (answer, Some(place).filter(|_| !stands_behind))
            }
        };
        self.names.answer(name, place, (answer.executed, left_of(&answer, request)));
        (!is_refused).then_some(Settled { asker, answer, is_elsewhere: place.is_none() })
    }

    /// Notes a part of a request to all shards; the whole answer if it was the last one.
    pub(crate) fn settle_part(
        &mut self,
        name: NameIndex,
        request: &Request,
        answer: Answer,
        place: Place,
    ) -> Option<(Answer, Option<Place>)> {
        let shard = self.shard_index(answer.shard)?;
        let fan_out = self.fan_out(name, request);
        fan_out.on_committed(shard, answer, place);
        let whole = fan_out.complete()?;
        self.fan_outs.remove(&name);
        let Whole::Answer(spoken, place, cancelled) = whole else { return Some((answer, None)) };
        Some((Answer { executed: Quantity(cancelled), number: 0, ..spoken }, Some(place)))
    }

    /// Another request came first under a name, under which a session here asked for something else: that is refused before the session reads of
    /// the first one, which it would take for its own.
    fn refuse_other(&mut self, request: &Request, sink: &mut impl GatewaySink) {
        let Some(name) = self.names.find(request.member, request.client_order_id) else { return };
        let entry = self.names.get(name);
        let State::Pending(Some(asker)) = entry.state() else { return };
        if entry.id == request.id {
            return;
        }
        // Another shard executes what it was asked under the same name, unless that is lost.
        let is_executed = self.is_of_another_shard(name, request) && !self.is_lost(name);
        let is_refused = entry.kind == Kind::FanOut || !is_executed;
        let asked = self.names.asked(request);
        if is_refused && entry.asks_otherwise(asked) {
            self.names.refuse(name, asked);
            self.refuse_asker(asker, request.client_order_id, sink);
        }
    }

    /// The session waits no longer: the name stands for another request, and nothing of its own is done.
    pub(crate) fn refuse_asker(
        &mut self,
        asker: SessionId,
        client_order_id: ClientOrderId,
        sink: &mut impl GatewaySink,
    ) {
        if self.sessions.end(asker) {
            sink.reply(asker, Reply::Rejected { client_order_id, reason: Reason::DuplicateRequest });
        }
    }

    /// To the session that asked last; if it is gone, or this gateway's request has nobody waiting since a
    /// restart, to the member's newest. Another gateway answers its own. A session that follows the member's stream has its
    /// answer there.
    fn deliver(&mut self, settled: Settled, request: &Request, sink: &mut impl GatewaySink) {
        let Settled { asker, answer, is_elsewhere } = settled;
        // What a gateway asks by itself has no receiver.
        if clock::is_reserved(request.member, request.client_order_id) {
            return;
        }
        let here = asker.is_some() || request.id.gateway() == self.config.id;
        let alive = asker.filter(|&asker| self.sessions.end(asker));
        let listeners = self.sessions.listeners(request.member);
        let own = || listeners.iter().rev().find(|one| !one.is_copy);
        let newest = || own().map(|newest| newest.session).filter(|_| here);
        let Some(session) = alive.or_else(newest) else { return };
        let at = self.shard_index(request.shard);
        let follows = |one: &Listener| one.session == session && one.follow(at) != Follow::Own;
        if is_elsewhere {
            sink.look_up(LookUp::instead_of(session, request, answer));
        } else if answer.number == 0 || !listeners.iter().any(follows) {
            sink.reply(session, Reply::Answer(answer));
        }
    }
}

pub(crate) fn left_of(answer: &Answer, request: &Request) -> Quantity {
    let lives = matches!(request.command, Command::Enter(_)) && answer.status != Status::Refused;
    if lives { answer.remaining } else { Quantity::ZERO }
}
