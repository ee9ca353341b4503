//! What a shard keeps beside its ordering and its market: all of it is small, and written at once with a checkpoint.

use pares_register::Register;
use pares_stream::{Positions, StreamNumbers};

use crate::names::Names;
use crate::quarantine::Quarantine;

/// Equal on all venues at equal positions.
pub(crate) struct Notes {
    pub(crate) names: Names,
    /// What members were told.
    pub(crate) numbers: StreamNumbers,
    /// What they bought and sold on the day.
    pub(crate) positions: Positions,
    pub(crate) quarantine: Quarantine,
    pub(crate) register: Register,
}

impl Notes {
    pub(crate) fn new() -> Self {
        Self {
            names: Names::new(),
            numbers: StreamNumbers::default(),
            positions: Positions::default(),
            quarantine: Quarantine::default(),
            register: Register::new(None),
        }
    }
}
