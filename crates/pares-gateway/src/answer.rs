//! From the committed stream to those concerned: trades and cancels to their owners, the answer to
//! whoever asked.

use pares_types::{
    Answer, Cancellation, ClientOrderId, Command, Event, InstrumentId, MemberId, OrderId, Outcome, Position,
    Quantity, Reply, Request, Role, Status, Trade,
};

use crate::fan_out::FanOut;
use crate::names::{Kind, NameIndex, State};
use crate::{Gateway, GatewaySink, Place, SessionId};

/// The answer a committed record gives.
pub(crate) fn of(position: Position, request: &Request, outcome: &Outcome, events: usize) -> Answer {
    // A mass cancel's events are its cancels, one per order.
    let mass = outcome.status == Status::MassCancelled;
    Answer {
        client_order_id: request.client_order_id,
        request: request.id,
        order: outcome.order,
        shard: request.shard,
        position,
        instrument: request.instrument,
        status: outcome.status,
        reason: outcome.reason,
        executed: if mass { Quantity(events as u64) } else { outcome.executed },
        remaining: outcome.remaining,
        events: u32::try_from(events).expect("a record holds at most 65,535 events"),
        repeat: false,
    }
}

impl Gateway {
    /// A record of the committed stream: in order of position within its shard; positions seen before
    /// are ignored. Owners are told of trades and cancels, then the asker of the answer.
    ///
    /// # Panics
    /// If a position is skipped, or a shard commits a later request of this gateway before an earlier
    /// one: somebody would wait for ever.
    pub fn on_committed(
        &mut self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
        place: Place,
        sink: &mut impl GatewaySink,
    ) {
        if !self.follow(request, position) {
            return;
        }
        self.report(position, request, outcome, events, sink);
        let answer = of(position, request, outcome, events.len());
        if let Some((asker, answer)) = self.settle(answer, request, place) {
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
        let mut answer = Answer { repeat: true, ..of(position, request, outcome, events) };
        let entry = self.names.find(request.member, request.client_order_id).map(|name| self.names.get(name));
        if let Some(entry) = entry.filter(|entry| entry.kind == Kind::FanOut) {
            answer.executed = Quantity(entry.cancelled.into());
        }
        answer
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
        let name = self.names.find_or_insert(request);
        let State::Pending(asker) = self.names.get(name).state() else { return None };
        self.names.identify(name, request);
        let (answer, place) = match self.names.get(name).kind {
            Kind::FanOut => self.settle_part(name, answer, place)?,
            Kind::Enter | Kind::Other => {
                self.fan_outs.remove(&name);
                (answer, place)
            }
        };
        self.names.get_mut(name).set_state(State::Answered(place));
        Some((asker, answer))
    }

    /// Notes a part of a mass cancel of everything; the whole answer if it was the last one.
    fn settle_part(&mut self, name: NameIndex, answer: Answer, place: Place) -> Option<(Answer, Place)> {
        let shards = self.shards.len();
        let shard = self.shard_index(answer.shard)?;
        let fan_out = self.fan_outs.entry(name).or_insert_with(|| FanOut::new(shards));
        fan_out.on_committed(shard, answer, place);
        let (spoken, place, cancelled) = fan_out.complete()?;
        self.fan_outs.remove(&name);
        let cancelled = u32::try_from(cancelled).expect("all books together hold fewer than 2^32 orders");
        self.names.get_mut(name).cancelled = cancelled;
        Some((Answer { executed: Quantity(cancelled.into()), ..spoken }, place))
    }

    /// To the session that asked last; if it is gone, or this gateway's request has nobody waiting since a
    /// restart, to the member's newest. Another gateway answers its own.
    fn deliver(
        &mut self,
        asker: Option<SessionId>,
        request: &Request,
        answer: Answer,
        sink: &mut impl GatewaySink,
    ) {
        let here = asker.is_some() || request.id.gateway() == self.config.id;
        let alive = asker.filter(|&asker| self.sessions.end(asker));
        let newest = || self.sessions.of_member(request.member).last().copied().filter(|_| here);
        if let Some(session) = alive.or_else(newest) {
            sink.reply(session, Reply::Answer(answer));
        }
    }

    fn report(
        &self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
        sink: &mut impl GatewaySink,
    ) {
        let mut left = left_to_match(request, outcome, events);
        for event in events {
            match *event {
                Event::Fill {
                    resting,
                    resting_member,
                    resting_client_order_id,
                    resting_side,
                    price,
                    quantity,
                    resting_remaining,
                } => {
                    left = left.minus(quantity);
                    let resting = Trade {
                        client_order_id: resting_client_order_id,
                        order: resting,
                        shard: request.shard,
                        position,
                        instrument: request.instrument,
                        side: resting_side,
                        role: Role::Resting,
                        price,
                        quantity,
                        remaining: resting_remaining,
                    };
                    let incoming = self.incoming(request, outcome.order, left, &resting);
                    self.tell(request.member, Reply::Trade(incoming), sink);
                    self.tell(resting_member, Reply::Trade(resting), sink);
                }
                Event::Cancelled { order, member, client_order_id, quantity, cause } => {
                    let instrument = self.instrument_of(request, order);
                    let shard = request.shard;
                    let cancelled =
                        Cancellation { client_order_id, order, shard, position, instrument, quantity, cause };
                    self.tell(member, Reply::Cancelled(cancelled), sink);
                }
            }
        }
    }

    /// The other side of a resting order's trade, which leaves the incoming order `left` to match.
    fn incoming(&self, request: &Request, order: OrderId, left: Quantity, resting: &Trade) -> Trade {
        Trade {
            client_order_id: self.incoming_name(request),
            order,
            side: resting.side.opposite(),
            role: Role::Incoming,
            remaining: left,
            ..*resting
        }
    }

    /// The member's name for the order a request brings to match.
    fn incoming_name(&self, request: &Request) -> ClientOrderId {
        match request.command {
            Command::Amend { target, .. } => {
                let order = self.names.find_order(target);
                order.map_or(request.client_order_id, |entry| entry.client_order_id)
            }
            _ => request.client_order_id,
        }
    }

    /// A mass cancel of everything does not say which instrument each order was in; its name does.
    fn instrument_of(&self, request: &Request, order: OrderId) -> InstrumentId {
        if request.instrument != InstrumentId(0) {
            return request.instrument;
        }
        self.names.find_order(order).map_or(InstrumentId(0), |entry| entry.instrument)
    }

    /// All sessions of the member.
    fn tell(&self, member: MemberId, reply: Reply, sink: &mut impl GatewaySink) {
        for &session in self.sessions.of_member(member) {
            sink.reply(session, reply);
        }
    }
}

/// Shares the incoming order had left when it met the first resting one.
///
/// # Panics
/// If the record's fills add up to more than its order.
fn left_to_match(request: &Request, outcome: &Outcome, events: &[Event]) -> Quantity {
    let total = match request.command {
        Command::Enter(order) => order.quantity,
        Command::Amend { quantity, .. } => quantity,
        Command::Cancel { .. } | Command::MassCancel => return Quantity::ZERO,
    };
    let fills = events.iter().map(|event| match *event {
        Event::Fill { quantity, .. } => quantity,
        Event::Cancelled { .. } => Quantity::ZERO,
    });
    let filled_now = fills.fold(Quantity::ZERO, Quantity::plus);
    if filled_now.is_zero() { Quantity::ZERO } else { total.minus(outcome.executed.minus(filled_now)) }
}
