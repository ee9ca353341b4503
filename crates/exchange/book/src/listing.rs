//! An instrument as those see it who trade it.

use pares_types::{InstrumentId, Phase, Price, Symbol};

use crate::Instrument;

/// Its rules, its phase and its prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The rules in force.
    pub instrument: Instrument,
    /// What it is doing.
    pub phase: Phase,
    /// The price of the last trade.
    pub last: Option<Price>,
    /// What the static band and auctions refer to.
    pub reference: Option<Price>,
}

impl Listing {
    /// Of an instrument that a shard begins with.
    #[must_use]
    pub fn first(instrument: Instrument) -> Self {
        Self { instrument, phase: instrument.first_phase(), last: None, reference: None }
    }

    /// As [`pares_types::Command::AddInstrument`] lists it: closed, since nothing is known yet of when it is to trade.
    #[must_use]
    pub fn added(id: InstrumentId, symbol: Symbol) -> Self {
        Self { phase: Phase::Closed, ..Self::first(Instrument::listed(id, symbol)) }
    }
}
