//! What brings a matching engine down here.
//!
//! Poison is in the request: whoever executes it falls, so nobody may. A venue may also fail for reasons of its own (memory, a bit), and
//! then the others have executed, or will execute, what it failed at. Which of the two it was nobody can tell from inside. A
//! failure unwinds out of the rules, as a panic of the engine does, and its node catches it; or it ends the process.
//!
//! One venue at a time fails for reasons of its own in a shard: two at once may wait for each other's checkpoints until one of
//! them is started anew (docs/decisions/0010).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use pares_types::{Command, Event, Outcome, Position, Request, ShardId};
use pares_venue::{ResultAt, VenueSink};

use crate::bug::Bug;
use crate::build::Build;
use crate::defects;
use crate::random::mix;
use crate::record::{Record, VenueEntry};

/// How an engine fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It panics; or does not come back, and another thread takes the venue over.
    Panics,
    /// Its process ends: no memory, no stack.
    Ends,
}

/// Which requests are poison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poison {
    /// Of 1,000 orders.
    pub(crate) permille: u64,
    /// Only orders for the first so many shards are.
    pub(crate) shards: usize,
}

impl Poison {
    /// What the request does to any engine: a matter of its content alone.
    pub(crate) fn harm(self, request: &Request) -> Option<Harm> {
        let Command::Enter(order) = request.command else { return None };
        let name = u64::from(request.member.0) << 48 ^ request.client_order_id.0;
        let dice = mix(mix(name) ^ order.quantity.0 << 32 ^ u64::from(request.instrument.0));
        let poisonous = usize::from(request.shard.0) < self.shards && dice % 1_000 < self.permille;
        let harm = if dice >> 32 & 3 == 0 { Harm::Ends } else { Harm::Panics };
        poisonous.then_some(harm)
    }
}

/// The engine failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub(crate) shard: ShardId,
    pub(crate) position: Position,
    pub(crate) harm: Harm,
    /// For no reason in the request.
    pub(crate) by_itself: bool,
}

/// What a venue's engine can fail at.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    pub(crate) poison: Poison,
    /// Executions until it fails by itself.
    pub(crate) fails_in: Option<u32>,
    /// By shard: another venue is not over a failure of its own.
    pub(crate) spared: Vec<bool>,
}

impl Engine {
    fn execute(&mut self, shard: ShardId, position: Position, request: &Request) {
        if let Some(harm) = self.poison.harm(request) {
            resume_unwind(Box::new(Failed { shard, position, harm, by_itself: false }));
        }
        match &mut self.fails_in {
            Some(0) if !self.spared[usize::from(shard.0)] => {
                self.fails_in = None;
                let harm = Harm::Panics;
                resume_unwind(Box::new(Failed { shard, position, harm, by_itself: true }));
            }
            Some(left) => *left = left.saturating_sub(1),
            None => {}
        }
    }
}

/// Does what may make the engine fail. Other panics are the rules' own assertions and go on.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> Result<T, Failed> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|payload| match payload.downcast::<Failed>() {
        Ok(failed) => *failed,
        Err(assertion) => resume_unwind(assertion),
    })
}

/// Results not handed out yet: the venue has to vouch for them first.
pub(crate) struct Draft<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) room: bool,
    pub(crate) results: Vec<VenueEntry>,
    pub(crate) build: Build,
    pub(crate) bug: Option<Bug>,
}

impl VenueSink for Draft<'_> {
    fn has_room(&mut self) -> bool {
        self.room
    }

    fn executing(&mut self, shard: ShardId, position: Position, request: &Request) {
        self.engine.execute(shard, position, request);
    }

    fn result(&mut self, at: ResultAt, request: &Request, outcome: &Outcome, events: &[Event]) {
        let mut events = events.to_vec();
        if self.bug == Some(Bug::WrongPrices) {
            events.iter_mut().for_each(defects::misprice);
        }
        self.results.push(VenueEntry::Result(Rc::new(Record {
            epoch: at.epoch,
            position: at.position,
            state_hash: at.state_hash,
            request: self.build.understands(request),
            outcome: *outcome,
            events,
        })));
    }
}
