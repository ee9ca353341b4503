//! What members over FIX must have been told, by the record.
//!
//! An ExecID is a function of the record: `SHARD-POSITION-A` of what became of a request, `SHARD-POSITION-INDEX-NAME` of a trade. So the
//! record alone says which ones each member must have.

use std::collections::BTreeMap;

use pares_load::{FixTold, LogNotes, Numbers};
use pares_types::{
    ClientOrderId, Command, Event, MemberId, OrderId, Outcome, Position, Reason, Request, ShardId, Status,
};
use pares_wire::WireError;
use pares_wire::record::ResultRecord;

/// What one log says of members 1 to `members`, whose names begin at 1.
#[derive(Clone, Debug, Default)]
pub(super) struct FixNotes {
    members: u32,
    recorded: Numbers,
    pub(super) executed_twice: u64,
    /// Names of orders.
    names: BTreeMap<OrderId, ClientOrderId>,
    /// The ExecIDs that each member must have.
    due: Vec<(MemberId, String)>,
}

impl FixNotes {
    pub(super) fn of(members: u32) -> Self {
        Self { members, ..Self::default() }
    }

    /// Requests that were answered, not by a reject of a change, and are not recorded.
    pub(super) fn missing(&self, answered: &Numbers, told: &FixTold) -> u64 {
        let mut known = self.recorded.clone();
        told.refused().into_iter().for_each(|name| _ = known.insert(name - 1));
        answered.count_missing_in(&known)
    }

    /// Executions that their member was not told.
    pub(super) fn untold(&self, told: &FixTold) -> u64 {
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

impl LogNotes for FixNotes {
    fn note(&mut self, (shard, position): (ShardId, Position), request: &Request, outcome: &Outcome) {
        let is_repeat = matches!(outcome.reason, Reason::DuplicateRequest | Reason::TooOld);
        if !self.is_ours(request.member) || is_repeat {
            return;
        }
        self.executed_twice += u64::from(!self.recorded.insert(request.client_order_id.0 - 1));
        let is_order = matches!(request.command, Command::Enter(_));
        if is_order {
            self.names.insert(outcome.order, request.client_order_id);
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
