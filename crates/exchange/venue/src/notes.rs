//! What a shard keeps beside its ordering and its market: all of it is small, and written at once with a checkpoint.

use pares_register::Register;
use pares_stream::{Positions, StreamNumbers};
use pares_types::{Reason, Request, Timestamp};

use crate::names::Names;
use crate::quarantine::Quarantine;

/// By how much operators' requests may be ordered otherwise than they were taken in, ns: far more than it takes to order one, and
/// less than an operator waits before asking for something else instead.
const OVERTAKEN_NS: u64 = 1_000_000_000;

/// Equal on all venues at equal positions.
pub(crate) struct Notes {
    pub(crate) names: Names,
    /// How many messages each member's stream has.
    pub(crate) numbers: StreamNumbers,
    /// What they bought and sold on the day.
    pub(crate) positions: Positions,
    pub(crate) quarantine: Quarantine,
    pub(crate) register: Register,
    /// The latest stamp of an operator's request.
    pub(crate) operator_stamp_max: Timestamp,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            names: Names::new(),
            numbers: StreamNumbers::default(),
            positions: Positions::default(),
            quarantine: Quarantine::default(),
            register: Register::new(None),
            operator_stamp_max: Timestamp(0),
        }
    }

    /// Refuses an operator's request that lay at a gateway while others went past it: it would undo what was asked for instead
    /// of it (R7 of decision 19).
    pub(crate) fn check_overtaken(&mut self, request: &Request) -> Result<(), Reason> {
        if !request.is_of_operator() {
            return Ok(());
        }
        if self.operator_stamp_max.0 > request.stamp.0.saturating_add(OVERTAKEN_NS) {
            return Err(Reason::Overtaken);
        }
        self.operator_stamp_max = self.operator_stamp_max.max(request.stamp);
        Ok(())
    }
}
