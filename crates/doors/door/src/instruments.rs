//! Instruments, by number and by symbol.

use std::collections::BTreeMap;

use pares_types::{InstrumentId, Symbol};

/// Which instrument has which symbol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instruments {
    symbols: BTreeMap<InstrumentId, Symbol>,
    by_symbol: BTreeMap<Symbol, InstrumentId>,
}

impl Instruments {
    /// Adds one. If two shards have one of that symbol, the symbol is the first one's.
    pub(crate) fn add(&mut self, instrument: InstrumentId, symbol: Symbol) {
        self.symbols.insert(instrument, symbol);
        self.by_symbol.entry(symbol).or_insert(instrument);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    pub(crate) fn by_symbol(&self, symbol: &[u8]) -> Option<InstrumentId> {
        let symbol = Symbol::new(std::str::from_utf8(symbol).ok()?).ok()?;
        self.by_symbol.get(&symbol).copied()
    }

    pub(crate) fn has(&self, instrument: InstrumentId) -> bool {
        self.symbols.contains_key(&instrument)
    }

    /// The symbol; of one that is not known its number.
    pub(crate) fn symbol(&self, instrument: InstrumentId) -> String {
        self.symbols
            .get(&instrument)
            .map_or_else(|| format!("#{instrument}"), |symbol| symbol.as_str().to_owned())
    }
}
