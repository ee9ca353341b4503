//! First answers that lie before all that this gateway remembers.
//!
//! A name below the floor of its series may have been used: it was forgotten, or lies before the checkpoints from which the gateway started.
//! So its records are looked for on disk, which takes a while; meanwhile the gateway continues. What is found is the first answer. What is not
//! found may be a request that is merely late, and its shard alone can tell: it executes what it never executed, and refuses what it may
//! have (decision 15).
//!
//! ```text
//!  below the floor, unknown --look_up--> found:     the first answer, once more
//!                                        in part:   a request to all shards that was never taken in whole: the rest is
//!                                        not found: as a new name, its shard decides
//!  known, its record dropped --look_up--> found:    the first answer, of another recorder
//!                                         not found: too old
//! ```

use pares_types::{
    Answer, ClientOrderId, ClientRequest, MemberId, Outcome, Position, Quantity, Reason, Reply, Request,
    Timestamp,
};

use crate::fan_out::{FanOut, Whole};
use crate::intake::Asking;
use crate::names::{Kind, NameIndex, State};
use crate::{Gateway, GatewaySink, Place, SessionId};

/// A name whose records are to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// Who asks.
    pub session: SessionId,
    /// Whose name it is.
    pub member: MemberId,
    /// The name.
    pub client_order_id: ClientOrderId,
    otherwise: Otherwise,
}

/// What is done if there is no answer to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Otherwise {
    /// The request goes to its shard.
    Ask(ClientRequest),
    /// This is the next best: a refusal as duplicate, or a part's answer.
    Reply(Answer),
    /// The name was used, and what was answered cannot be told.
    Reject,
}

impl LookUp {
    /// For a name that may have been used.
    pub(crate) fn before_asking(session: SessionId, member: MemberId, request: ClientRequest) -> Self {
        let client_order_id = request.client_order_id();
        Self { session, member, client_order_id, otherwise: Otherwise::Ask(request) }
    }

    /// For a name that was used.
    pub(crate) fn of_known(session: SessionId, member: MemberId, client_order_id: ClientOrderId) -> Self {
        Self { session, member, client_order_id, otherwise: Otherwise::Reject }
    }

    /// For a request that was answered, though not first or not in full. Numbered 0: the stream has told it.
    pub(crate) fn instead_of(session: SessionId, request: &Request, answer: Answer) -> Self {
        let Request { member, client_order_id, .. } = *request;
        let otherwise = Otherwise::Reply(Answer { number: 0, ..answer });
        Self { session, member, client_order_id, otherwise }
    }
}

/// A committed record of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRecord {
    /// Its place in its shard.
    pub position: Position,
    /// What was asked.
    pub request: Request,
    /// What came of it.
    pub outcome: Outcome,
    /// How many events that had.
    pub events: usize,
    /// Where the record lies.
    pub place: Place,
}

impl FoundRecord {
    fn answer(&self) -> Answer {
        pares_stream::answer(self.position, &self.request, &self.outcome, self.events)
    }
}

impl Gateway {
    /// `found` are the committed records of the name, in any order; none of them refused as a duplicate or as too old.
    pub fn on_looked_up(
        &mut self,
        now: Timestamp,
        look_up: &LookUp,
        found: &[FoundRecord],
        sink: &mut impl GatewaySink,
    ) {
        let LookUp { session, member, client_order_id, otherwise } = *look_up;
        if self.sessions.member(session) != Some(member) {
            return;
        }
        if let Some(answer) = self.first_found(look_up, found) {
            return sink.reply(session, Reply::Answer(Answer { repeat: true, ..answer }));
        }
        let asking = Asking { now, session, member, client_order_id };
        let done = match otherwise {
            Otherwise::Ask(request) => self.ask_shard(asking, request, found, sink),
            Otherwise::Reply(answer) => {
                sink.reply(session, Reply::Answer(answer));
                Ok(())
            }
            Otherwise::Reject => Err(Reason::TooOld),
        };
        if let Err(reason) = done {
            self.reject(now, session, client_order_id, reason, sink);
        }
    }

    /// The recorder that had the first answer to the session's name has dropped it: it is looked for elsewhere. If nobody has it, the name is
    /// too old.
    pub fn on_dropped(
        &mut self,
        session: SessionId,
        client_order_id: ClientOrderId,
        sink: &mut impl GatewaySink,
    ) {
        let Some(member) = self.sessions.member(session) else { return };
        if let Some(name) = self.names.find(member, client_order_id) {
            self.names.set_state(name, State::Answered(None));
        }
        sink.look_up(LookUp::of_known(session, member, client_order_id));
    }

    /// The first answer, if all of it was found; a name that is known is answered from there the next time.
    fn first_found(&mut self, look_up: &LookUp, found: &[FoundRecord]) -> Option<Answer> {
        // Two gateways may have taken the same name in for two shards at once.
        let first = found.iter().min_by_key(|one| (one.request.stamp, one.request.id))?;
        let (answer, place) = match Kind::of(&first.request) {
            Kind::FanOut => self.whole(first, found)?,
            Kind::Enter { .. } | Kind::Amend(_) | Kind::Cancel | Kind::Other => (first.answer(), first.place),
        };
        if let Some(name) = self.names.find(look_up.member, look_up.client_order_id)
            && self.names.get(name).state() == State::Answered(None)
        {
            if self.names.get(name).kind == Kind::FanOut {
                self.names.set_cancelled(name, answer.executed);
            }
            self.names.set_state(name, State::Answered(Some(place)));
        }
        Some(answer)
    }

    /// The answer of a request to all shards, if all its parts were found.
    fn whole(&self, first: &FoundRecord, found: &[FoundRecord]) -> Option<(Answer, Place)> {
        let mut parts = FanOut::new(self.shards.iter().map(|_| false), first.request.command);
        for part in found {
            parts.on_committed(self.shard_index(part.request.shard)?, part.answer(), part.place);
        }
        match parts.complete()? {
            Whole::Answer(answer, place, cancelled) => {
                Some((Answer { executed: Quantity(cancelled), ..answer }, place))
            }
            Whole::Elsewhere => None,
        }
    }

    fn ask_shard(
        &mut self,
        asking: Asking,
        request: ClientRequest,
        found: &[FoundRecord],
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        // It may have been asked for once more while it was looked for.
        let known = self.names.find(asking.member, asking.client_order_id);
        let name = known.or_else(|| self.take_parts(found));
        self.take_or_repeat(asking, name, request, sink)
    }

    /// Remembers the parts of a request to all shards that was never taken in whole.
    fn take_parts(&mut self, found: &[FoundRecord]) -> Option<NameIndex> {
        let name = self.names.insert(&found.first()?.request);
        for part in found {
            self.settle_part(name, &part.request, part.answer(), part.place);
        }
        Some(name)
    }
}
