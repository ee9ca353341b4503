//! Results as the checkers keep them.

use std::rc::Rc;

use pares_exercise::accounts::ShareAccounts;
use pares_types::{Epoch, Event, Outcome, Position, Request, ShardId};
use pares_wire::record::{self, ResultRecord};

/// A result as a venue hands it out and recorders pass it on, untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) epoch: Epoch,
    pub(crate) position: Position,
    pub(crate) state_hash: Option<u64>,
    pub(crate) request: Request,
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
}

impl Record {
    /// The result in a log's record, if it is one.
    pub(crate) fn of(payload: &[u8]) -> Option<Rc<Self>> {
        if record::schema(payload) != Some(record::RESULT) {
            return None;
        }
        let result = ResultRecord::read(payload).ok()?;
        Some(Rc::new(Self {
            epoch: result.epoch(),
            position: result.position(),
            state_hash: result.state_hash(),
            request: result.request().ok()?,
            outcome: result.outcome().ok()?,
            events: result.events().collect::<Result<_, _>>().ok()?,
        }))
    }

    pub(crate) fn follow(&self, accounts: &mut ShareAccounts) -> Result<(), String> {
        accounts.follow(self.position, &self.request, &self.outcome, &self.events)
    }

    pub(crate) fn shard(&self) -> ShardId {
        self.request.shard
    }
}
