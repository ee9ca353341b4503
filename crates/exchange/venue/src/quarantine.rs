//! Instruments that take no requests because the matching engine failed at one of theirs.
//!
//! A request that no venue survives is declared void ([`pares_sequencer`]), and the exchange continues. But the next request for
//! the same book, by the same member in the same minute, is likely to be the same again; each costs the whole shard a restore
//! from its checkpoint. So with the void its instrument is put into quarantine: whatever members ask for it is refused until the
//! exchange has looked and asks for something there itself (`pares admin release`, which tells that instrument the time, or a phase). The other instruments of the
//! shard continue; what concerns all of them, the time and the kill switch, reaches the book as before.
//!
//! A request for all instruments names no culprit. When the time itself brings the engine down (an auction is due, say), so
//! will the next, a second later (`clock_ms`). Then the whole shard is in quarantine, which is written as instrument 0, the time
//! included, until the exchange asks for something there.
//!
//! It is state like the books: decided at a position, equal on every venue, part of the hash and of the checkpoint.

use pares_types::{Command, InstrumentId, MemberId, Reason, Request};

/// Who may lift a quarantine.
const EXCHANGE: MemberId = MemberId(0);
/// The whole shard.
const ALL: InstrumentId = InstrumentId(0);

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

    /// Why the request may not be executed. Any of the exchange that names an instrument may, and has lifted the quarantine of
    /// that and of the whole shard then; the time asks for nothing else, and is refused if there was none.
    pub(crate) fn refusal(&mut self, request: &Request) -> Option<Reason> {
        let stands = self.contains(ALL) || self.contains(request.instrument);
        let is_time = matches!(request.command, Command::Time { .. });
        if request.member == EXCHANGE && request.instrument != ALL {
            self.instruments.retain(|&instrument| instrument != ALL && instrument != request.instrument);
            return (is_time && !stands).then_some(Reason::NotQuarantined);
        }
        (stands && (request.member != EXCHANGE || is_time)).then_some(Reason::Quarantined)
    }

    fn contains(&self, instrument: InstrumentId) -> bool {
        self.instruments.binary_search(&instrument).is_ok()
    }
}
