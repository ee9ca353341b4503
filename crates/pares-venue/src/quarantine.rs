//! Instruments that take no requests because the matching engine failed at one of theirs.
//!
//! A request that no venue survives is declared void ([`pares_sequencer`]), and the exchange goes on. But the next request for
//! the same book, by the same member in the same minute, is likely to be the same again; each costs the whole shard a restore
//! from its checkpoint. So with the void its instrument is put into quarantine: whatever members ask for it is refused until the
//! exchange has looked and asks for something there itself (`pares admin release`, or a phase). The other instruments of the shard go on. What
//! concerns all instruments, the time and the kill switch, reaches the book as before.
//!
//! It is state like the books: decided at a position, equal on every venue, part of the hash and of the checkpoint.

use pares_types::{InstrumentId, MemberId, Request};

/// Who may lift a quarantine.
const EXCHANGE: MemberId = MemberId(0);

/// See module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quarantine {
    /// In ascending order; mostly none.
    instruments: Vec<InstrumentId>,
}

impl Quarantine {
    /// The quarantine of these instruments; `None` unless they are in ascending order.
    pub(crate) fn of(instruments: Vec<InstrumentId>) -> Option<Self> {
        instruments.is_sorted_by(|a, b| a < b).then_some(Self { instruments })
    }

    pub(crate) fn instruments(&self) -> &[InstrumentId] {
        &self.instruments
    }

    pub(crate) fn enter(&mut self, instrument: InstrumentId) {
        if let Err(at) = self.instruments.binary_search(&instrument) {
            self.instruments.insert(at, instrument);
        }
    }

    /// Whether the request may go to its book. The one that lifts the quarantine does, and has lifted it then.
    pub(crate) fn admits(&mut self, request: &Request) -> bool {
        if self.instruments.is_empty() {
            return true;
        }
        let Ok(at) = self.instruments.binary_search(&request.instrument) else { return true };
        let lifts = request.member == EXCHANGE;
        if lifts {
            self.instruments.remove(at);
        }
        lifts
    }
}
