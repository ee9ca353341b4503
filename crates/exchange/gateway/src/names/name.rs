//! One name, and what became of its request.

use pares_types::{
    ClientOrderId, Command, InstrumentId, MemberId, OpenOrder, OrderId, Quantity, RecorderId, Request,
    RequestDigest, RequestId, Side,
};

use super::asked::Asked;
use super::kind::Kind;
use crate::{Place, SessionId};

/// What became of a name's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Journalled by some gateway, not committed yet; the session that asked here last waits for it.
    Pending(Option<SessionId>),
    /// Committed: the first answer lies there; `None` before all that this gateway has read.
    Answered(Option<Place>),
}

/// [`State`] without its payload, which shares a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Pending,
    Asked,
    Refused,
    Answered,
    AnsweredBefore,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    /// The request that was committed under it, or until then the first one seen.
    pub(crate) id: RequestId,
    pub(crate) client_order_id: ClientOrderId,
    /// The asking session while pending, the record's offset once answered.
    word: u64,
    pub(crate) member: MemberId,
    pub(crate) instrument: InstrumentId,
    /// Shares of an order that are in flight, on the book, or held; those that an amend in flight would add.
    pub(crate) remaining: Quantity,
    /// What its answer says is executed: shares of an order, and more as they trade; orders that a fan-out cancelled. Of an amend in
    /// flight, which nothing has executed, the order that it names.
    pub(crate) executed: Quantity,
    recorder: RecorderId,
    tag: Tag,
    pub(crate) kind: Kind,
    /// What its request asks, by [`Asked`].
    asked: RequestDigest,
}
/// What a name takes, its places in two indexes aside, bytes.
pub const NAME_BYTES: usize = size_of::<Name>();
const _: () = assert!(NAME_BYTES == 56);

impl Name {
    pub(super) fn new(request: &Request, asked: Asked) -> Self {
        let remaining = match request.command {
            Command::Enter(order) => order.quantity,
            _ => Quantity::ZERO,
        };
        Self {
            id: request.id,
            client_order_id: request.client_order_id,
            word: 0,
            member: request.member,
            instrument: request.instrument,
            remaining,
            executed: Quantity::ZERO,
            recorder: RecorderId(0),
            tag: Tag::Pending,
            kind: Kind::of(request),
            asked: asked.digest,
        }
    }

    /// Of an order that was there before all that this gateway has read.
    pub(super) fn living(order: &OpenOrder) -> Self {
        Self {
            id: order.order.0,
            client_order_id: order.client_order_id,
            word: 0,
            member: order.member,
            instrument: order.instrument,
            remaining: order.remaining,
            executed: order.executed,
            recorder: RecorderId(0),
            tag: Tag::AnsweredBefore,
            kind: Kind::Enter { side: order.side, at_market: order.at_market },
            asked: RequestDigest::UNKNOWN,
        }
    }

    pub(crate) fn state(&self) -> State {
        match self.tag {
            Tag::Pending | Tag::Refused => State::Pending(None),
            Tag::Asked => State::Pending(Some(SessionId(self.word))),
            Tag::Answered => State::Answered(Some(Place { recorder: self.recorder, offset: self.word })),
            Tag::AnsweredBefore => State::Answered(None),
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.tag, Tag::Answered | Tag::AnsweredBefore)
    }

    /// Whether something else is in flight under the name. A cancel of an order that is not known here counts as the same as any other cancel.
    pub(crate) fn asks_otherwise(&self, asked: Asked) -> bool {
        let is_cancel = self.kind == Kind::Cancel;
        !self.is_answered() && (is_cancel != asked.is_cancel || self.asked.differs(asked.digest))
    }

    /// Whether it is a cancel that was answered, of another order than is asked, as far as both are known.
    pub(crate) fn has_cancelled_another(&self, asked: Asked) -> bool {
        let are_cancels = self.kind == Kind::Cancel && asked.is_cancel;
        self.is_answered() && are_cancels && self.asked.differs(asked.digest)
    }

    /// Another request comes first under the name. The session that waited was refused, and nobody receives that one's answer as its own.
    pub(super) fn refuse(&mut self, asked: RequestDigest) {
        (self.tag, self.asked) = (Tag::Refused, asked);
    }

    pub(super) fn asked(&self) -> RequestDigest {
        self.asked
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.tag == Tag::Refused
    }

    /// Another request has the name, and all that this one does is elsewhere.
    pub(super) fn leave(&mut self) {
        (self.kind, self.tag) = (Kind::Other, Tag::Pending);
        (self.remaining, self.executed) = (Quantity::ZERO, Quantity::ZERO);
    }

    /// It is an amend, which adds so many shares to an order of that side that is known here.
    pub(super) fn set_amend(&mut self, order: OrderId, side: Side, added: Quantity) {
        (self.kind, self.remaining) = (Kind::Amend(side), added);
        self.executed = Quantity(order.0.to_bits());
    }

    pub(super) fn amends(&self) -> Option<OrderId> {
        let in_flight = matches!(self.kind, Kind::Amend(_)) && !self.is_answered();
        RequestId::from_bits(self.executed.0).filter(|_| in_flight).map(OrderId)
    }

    /// All shares of an order, traded or not.
    pub(super) fn total(&self) -> u64 {
        self.executed.0.saturating_add(self.remaining.0)
    }

    /// Nobody needs it but for a repeat.
    pub(super) fn is_finished(&self) -> bool {
        self.is_answered() && self.remaining == Quantity::ZERO
    }

    pub(super) fn set_state(&mut self, state: State) {
        match state {
            State::Pending(None) => self.tag = Tag::Pending,
            State::Pending(Some(session)) => (self.tag, self.word) = (Tag::Asked, session.0),
            State::Answered(Some(place)) => {
                (self.tag, self.word, self.recorder) = (Tag::Answered, place.offset, place.recorder);
            }
            State::Answered(None) => self.tag = Tag::AnsweredBefore,
        }
    }
}
