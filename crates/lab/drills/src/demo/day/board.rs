//! The phase and the prices of each instrument, for those who enter orders.
//!
//! Members read them from market data. Here the thread that reads the record writes them and the load generator's reads
//! them, a little later; who asks for what the phase no longer takes is refused, as on any exchange.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use pares_types::{InstrumentId, Phase, Price};

/// Says that there is no price.
const NONE: i64 = i64::MIN;

/// All instruments.
#[derive(Debug)]
pub struct Board(BTreeMap<InstrumentId, Quote>);

/// One instrument.
#[derive(Debug)]
pub struct Quote {
    phase: AtomicU8,
    last: AtomicI64,
    closing: AtomicI64,
    /// Its price step.
    pub tick: i64,
}

impl Board {
    /// A board of instruments with these ticks, all closed.
    pub fn new(instruments: impl IntoIterator<Item = (InstrumentId, Price)>) -> Self {
        let quote = |tick: Price| Quote {
            phase: AtomicU8::new(Phase::Closed as u8),
            last: AtomicI64::new(NONE),
            closing: AtomicI64::new(NONE),
            tick: tick.0,
        };
        Self(instruments.into_iter().map(|(id, tick)| (id, quote(tick))).collect())
    }

    /// An instrument's line.
    ///
    /// # Panics
    /// If it has none.
    pub fn quote(&self, instrument: InstrumentId) -> &Quote {
        self.0.get(&instrument).expect("every instrument of the load is on the board")
    }
}

impl Quote {
    /// Writes the line.
    pub fn set(&self, phase: Phase, last: Option<Price>, closing: Option<Price>) {
        self.last.store(last.map_or(NONE, |price| price.0), Ordering::Relaxed);
        self.closing.store(closing.map_or(NONE, |price| price.0), Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// The phase.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Acquire)) - 1]
    }

    /// The last trade's price.
    pub fn last(&self) -> Option<Price> {
        Some(self.last.load(Ordering::Relaxed)).filter(|&price| price != NONE).map(Price)
    }

    /// The closing price.
    pub fn closing(&self) -> Option<Price> {
        Some(self.closing.load(Ordering::Relaxed)).filter(|&price| price != NONE).map(Price)
    }
}
