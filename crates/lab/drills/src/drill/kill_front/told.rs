//! What members over a standard protocol must have been told, by the record.
//!
//! What they are told has a place there, which FIX has as ExecID: `SHARD-POSITION-A` of what became of a request, `SHARD-POSITION-INDEX-NAME` of a trade. So the
//! record alone says which ones each member must have.

use std::collections::BTreeMap;

use pares_load::{FrontTold, LogNotes, Numbers};
use pares_types::{
    ClientOrderId, Command, Event, MemberId, OrderId, Outcome, Position, Reason, Request, ShardId, Status,
};
use pares_wire::WireError;
use pares_wire::record::ResultRecord;

/// In the series of what an OUCH session asks without a name.
const CHANGES: u16 = 0x4000;

/// What one log says of members 1 to `members`, whose names begin at 1.
#[derive(Clone, Debug, Default)]
pub(super) struct FrontNotes {
    members: u32,
    recorded: Numbers,
    pub(super) executed_twice: u64,
    /// Names of orders.
    names: BTreeMap<OrderId, ClientOrderId>,
    /// The places that each member must have been told of.
    due: Vec<(MemberId, String)>,
}

impl FrontNotes {
    pub(super) fn of(members: u32) -> Self {
        Self { members, ..Self::default() }
    }

    /// Requests that were answered by what says that they are recorded, and are not.
    pub(super) fn missing(&self, answered: &Numbers, told: &FrontTold) -> u64 {
        let mut known = self.recorded.clone();
        told.refused().into_iter().for_each(|name| _ = known.insert(name - 1));
        answered.count_missing_in(&known)
    }

    /// Executions that their member was not told.
    pub(super) fn untold(&self, told: &FrontTold) -> u64 {
        self.due.iter().filter(|(member, exec_id)| !told.has(*member, exec_id)).count() as u64
    }

    fn is_ours(&self, member: MemberId) -> bool {
        (1..=self.members).contains(&member.0)
    }

    fn must_have(&mut self, member: MemberId, exec_id: String) {
        if self.is_ours(member) {
            self.due.push((member, exec_id));
        }
    }
}

impl LogNotes for FrontNotes {
    fn note(&mut self, (shard, position): (ShardId, Position), request: &Request, outcome: &Outcome) {
        let is_repeat = matches!(outcome.reason, Reason::DuplicateRequest | Reason::TooOld);
        if !self.is_ours(request.member) || is_repeat {
            return;
        }
        let name = request.client_order_id;
        // An OUCH session's cancels are named by a clock, in a series of their own.
        if name.series() & CHANGES == 0 {
            self.executed_twice += u64::from(!self.recorded.insert(name.number() - 1));
        }
        let is_order = matches!(request.command, Command::Enter(_));
        if is_order {
            self.names.insert(outcome.order, name);
        }
        // A cancel or amend that is refused is answered by a reject, which has no ExecID.
        if is_order || outcome.status != Status::Refused {
            self.must_have(request.member, format!("{shard}-{position}-A"));
        }
    }

    fn note_events(
        &mut self,
        result: &ResultRecord<'_>,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), WireError> {
        let (shard, position) = (result.shard(), result.position());
        let mut incoming = (request.member, self.names.get(&outcome.order).copied());
        for (index, event) in result.events().enumerate() {
            match event? {
                Event::Fill { resting_member, resting_client_order_id: resting, .. } => {
                    self.must_have(resting_member, format!("{shard}-{position}-{index}-{resting}"));
                    if let (member, Some(name)) = incoming {
                        self.must_have(member, format!("{shard}-{position}-{index}-{name}"));
                    }
                }
                Event::Incoming { member, client_order_id, .. } => incoming = (member, Some(client_order_id)),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pares_types::{GatewayId, InstrumentId, NewOrder, Price, Quantity, RequestId, Side, Timestamp};

    use super::*;

    const SESSION: u64 = 1 << 48;

    fn note(notes: &mut FrontNotes, position: u64, name: u64, status: Status, reason: Reason) {
        let (id, member) = (RequestId::new(GatewayId(0), position), MemberId(1));
        let order = NewOrder::limit(Side::Buy, Price(10_000), Quantity(1));
        let request = Request {
            id,
            stamp: Timestamp(0),
            member,
            client_order_id: ClientOrderId(name),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command: Command::Enter(order),
        };
        let (executed, remaining) = (Quantity::ZERO, Quantity(1));
        let outcome = Outcome { order: OrderId(id), status, reason, executed, remaining };
        notes.note((ShardId(0), Position(position)), &request, &outcome);
    }

    /// The record of three orders and a repeat, and a member who was told all of it.
    fn told_all() -> (FrontNotes, FrontTold, Numbers) {
        let (mut notes, told, mut answered) = (FrontNotes::of(4), FrontTold::default(), Numbers::default());
        for number in 1..=3 {
            note(&mut notes, number, SESSION | number, Status::Resting, Reason::None);
            told.note(MemberId(1), format!("0-{number}-A"), false);
            answered.insert(number - 1);
        }
        note(&mut notes, 9, SESSION | 3, Status::Refused, Reason::DuplicateRequest);
        (notes, told, answered)
    }

    #[test]
    fn who_was_told_all_once_lacks_nothing() {
        let (notes, told, answered) = told_all();
        let counts = (notes.missing(&answered, &told), notes.untold(&told), notes.executed_twice);
        assert_eq!((counts, told.repeated()), ((0, 0, 0), 0));
    }

    #[test]
    fn what_is_lost_doubled_or_untold_is_counted_as_that() {
        let (mut notes, told, mut answered) = told_all();
        // Answered, and in no record.
        answered.insert(6);
        assert_eq!(notes.missing(&answered, &told), 1);
        // Recorded, and nobody was told.
        note(&mut notes, 4, SESSION | 4, Status::Resting, Reason::None);
        assert_eq!(notes.untold(&told), 1);
        // Executed under a name that was executed.
        note(&mut notes, 5, SESSION | 2, Status::Resting, Reason::None);
        assert_eq!(notes.executed_twice, 1);
        // Told twice: without saying so, and saying so.
        told.note(MemberId(1), "0-2-A".into(), false);
        told.note(MemberId(1), "0-2-A".into(), true);
        assert_eq!((told.repeated(), told.marked()), (1, 1));
    }
}
