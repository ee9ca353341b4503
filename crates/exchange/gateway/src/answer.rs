//! From the committed stream to the session that asked: the one answer to a request.

use pares_stream::{Told, answer};
use pares_types::{
    Answer, ClientOrderId, Command, Event, MemberId, Outcome, Position, Quantity, Reply, Request, Status,
};

use crate::fan_out::FanOut;
use crate::names::{Kind, NameIndex, State};
use crate::sessions::Listener;
use crate::streams::Follow;
use crate::{Gateway, GatewaySink, Place, SessionId, clock};

impl Gateway {
    /// A record of the committed stream: in order of position within its shard; positions seen before
    /// are ignored. Owners are told of trades, cancels and news, then the asker of the answer.
    ///
    /// # Panics
    /// If a position is skipped: somebody would wait for ever.
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
        let number = self.report(&Told { position, request, outcome, events }, sink);
        let answer = Answer { number, ..answer(position, request, outcome, events.len()) };
        let settled = self.settle(answer, request, place);
        self.follow_orders(request, outcome, events);
        if let Some((asker, answer)) = settled {
            self.deliver(asker, request, answer, sink);
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
            answer.executed = Quantity(entry.cancelled.into());
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
        let State::Answered(before) = entry.state() else { return };
        if before.recorder != place.recorder {
            return;
        }
        let place = match entry.kind {
            Kind::FanOut => {
                let answer = answer(position, request, outcome, events);
                self.settle_part(name, request, answer, place).map(|(_, place)| place)
            }
            // A refusal as duplicate has the same name and is not the first answer.
            Kind::Enter | Kind::Other => Some(place).filter(|_| entry.id == request.id),
        };
        if let Some(place) = place {
            self.names.set_state(name, State::Answered(place));
        }
    }

    /// Where the first answer to a name of the session's member lies; `None` if there is none, or the session is gone.
    #[must_use]
    pub fn first_answer(&self, session: SessionId, name: ClientOrderId) -> Option<(MemberId, Place)> {
        let member = self.sessions.member(session)?;
        match self.names.get(self.names.find(member, name)?).state() {
            State::Answered(place) => Some((member, place)),
            State::Pending(_) => None,
        }
    }

    /// Notes a committed answer under its name. If that is the name's first, returns it with the session
    /// waiting for it. A refusal as duplicate comes after the answer it stands behind, in the same shard, so
    /// it is never the first, unless the record of that answer was no longer there to recover from.
    pub(crate) fn settle(
        &mut self,
        answer: Answer,
        request: &Request,
        place: Place,
    ) -> Option<(Option<SessionId>, Answer)> {
        if clock::made(request) {
            return None;
        }
        let name = self.names.find_or_insert(request);
        let State::Pending(asker) = self.names.get(name).state() else { return None };
        self.names.identify(name, request);
        let (answer, place) = match self.names.get(name).kind {
            Kind::FanOut => self.settle_part(name, request, answer, place)?,
            Kind::Enter | Kind::Other => {
                self.fan_outs.remove(&name);
                (answer, place)
            }
        };
        let lives = matches!(request.command, Command::Enter(_)) && answer.status != Status::Refused;
        self.names.answer(name, place, if lives { answer.remaining } else { Quantity::ZERO });
        Some((asker, answer))
    }

    /// Notes a part of a request to all shards; the whole answer if it was the last one.
    fn settle_part(
        &mut self,
        name: NameIndex,
        request: &Request,
        answer: Answer,
        place: Place,
    ) -> Option<(Answer, Place)> {
        let shards = self.shards.len();
        let shard = self.shard_index(answer.shard)?;
        let fan_out = self.fan_outs.entry(name).or_insert_with(|| FanOut::new(shards, request.command));
        fan_out.on_committed(shard, answer, place);
        let (spoken, place, cancelled) = fan_out.complete()?;
        self.fan_outs.remove(&name);
        // All books together hold fewer than 2^32 orders; a venue that is wrong may say anything.
        let cancelled = u32::try_from(cancelled).unwrap_or(u32::MAX);
        self.names.set_cancelled(name, cancelled);
        Some((Answer { executed: Quantity(cancelled.into()), number: 0, ..spoken }, place))
    }

    /// To the session that asked last; if it is gone, or this gateway's request has nobody waiting since a
    /// restart, to the member's newest. Another gateway answers its own. A session that follows the member's stream has its
    /// answer there.
    fn deliver(
        &mut self,
        asker: Option<SessionId>,
        request: &Request,
        answer: Answer,
        sink: &mut impl GatewaySink,
    ) {
        let here = asker.is_some() || request.id.gateway() == self.config.id;
        let alive = asker.filter(|&asker| self.sessions.end(asker));
        let listeners = self.sessions.of_member(request.member);
        let newest = || listeners.last().map(|newest| newest.session).filter(|_| here);
        let Some(session) = alive.or_else(newest) else { return };
        let at = self.shard_index(request.shard);
        let follows = |one: &Listener| one.session == session && one.follow(at) != Follow::Own;
        if answer.number == 0 || !listeners.iter().any(follows) {
            sink.reply(session, Reply::Answer(answer));
        }
    }
}
