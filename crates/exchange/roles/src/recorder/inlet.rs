//! Another node's log as a recorder reads it: whatever is wrong there stops nobody here.
//!
//! A flipped bit, a record of a newer build or a file that cannot be mapped would otherwise end every recorder, and end it again
//! as it starts anew, although the other venues have the same results. So it is passed over, counted, told to the
//! operator, and the log's node is asked to repair it. What is missing then is waited for: another log has it.

use pares_log::{Offset, ReadError, Record};
use pares_wire::WireError;

use crate::tail::Tail;
use crate::world::World;
use crate::{NodeId, repair_asked};

/// A log that a recorder reads.
pub(super) struct Inlet<W: World> {
    world: W,
    log: NodeId,
    tail: Tail<W>,
    /// Records that this build does not understand, and times the log could not be read.
    strange: u64,
    /// Whether it cannot be read just now, which the operator was told.
    unreadable: bool,
}

impl<W: World> Inlet<W> {
    /// That node's log, from the beginning.
    pub(super) fn new(world: &W, log: NodeId) -> Self {
        let tail = Tail::new(world, log, Offset::START);
        Self { world: world.clone(), log, tail, strange: 0, unreadable: false }
    }

    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        let next = self.tail.next();
        self.unreadable &= next.is_err();
        next
    }

    /// As [`Tail::look`].
    pub(super) fn look(&mut self) {
        self.tail.look();
    }

    /// The record there is to be read again.
    pub(super) fn step_back(&mut self, to: Offset) -> Result<(), ReadError> {
        self.tail.seek(to)
    }

    /// The record just read is none that this build understands.
    pub(super) fn on_strange(&mut self, what: &WireError) {
        self.strange += 1;
        // A log may be full of them.
        if self.strange.is_power_of_two() {
            let (log, strange) = (self.log, self.strange);
            self.world.complain(&format_args!("record {strange} of {log} that is passed over: {what}"));
        }
    }

    /// The next record cannot be read. Says whether it was passed over, so that there may be more.
    pub(super) fn on_unreadable(&mut self, error: ReadError) -> bool {
        let Err(error) = self.tail.pass_over(error) else { return true };
        if !std::mem::replace(&mut self.unreadable, true) {
            self.strange += 1;
            self.world.complain(&format_args!("the log of {} cannot be read for now: {error}", self.log));
            if matches!(error, ReadError::Foreign { .. }) {
                repair_asked::ask(&self.world, self.log);
            }
        }
        false
    }

    /// How often something in it was passed over.
    pub(super) fn damaged(&self) -> u64 {
        self.tail.damaged() + self.strange
    }
}
