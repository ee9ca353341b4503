//! Instruments as an operator names them.

use pares_node::{Layout, SystemConfig};
use pares_types::{InstrumentId, Reason, Symbol};

use crate::error::{CommandError, CommandResult};
use crate::standing::Standing;

/// What instruments are called now: as the record has it, or as configured if it cannot be read.
pub(super) struct Listed(Vec<(InstrumentId, Symbol)>);

impl Listed {
    pub(super) fn read(config: &SystemConfig, layout: &Layout) -> Self {
        if let Ok(standing) = Standing::read(config, layout) {
            return Self(standing.instruments().map(|one| (one.id, one.symbol)).collect());
        }
        let symbol = |text| Symbol::new(text).expect("a configuration is checked when it is loaded");
        Self(config.instruments.iter().map(|one| (InstrumentId(one.id), symbol(&one.symbol))).collect())
    }

    /// The instrument of that symbol, else of that id: it may have been added in this moment.
    pub(super) fn find(&self, text: &str) -> Result<InstrumentId, CommandError> {
        let called = self.0.iter().find(|(_, symbol)| symbol.as_str().eq_ignore_ascii_case(text));
        let id = || text.parse().ok().filter(|&id| id != 0).map(InstrumentId);
        called.map(|(id, _)| *id).or_else(id).ok_or_else(|| {
            CommandError::Usage(format!("there is no instrument `{text}`; `pares instruments` lists them"))
        })
    }

    /// A shard knows the symbols of its own instruments only. Those of all others are compared here.
    pub(super) fn check_free(&self, symbol: &Symbol, new: InstrumentId) -> CommandResult {
        match self.0.iter().find(|(id, other)| *id != new && other.reads_as(symbol)) {
            None => Ok(()),
            Some((id, _)) => {
                let taken = Reason::SymbolInUse;
                Err(CommandError::Failed(format!("refused: {taken}: {symbol} is instrument {id}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruments_go_by_symbol_or_by_id() {
        let dir = tempfile::tempdir().unwrap();
        let listed = Listed::read(&SystemConfig::default(), &Layout::new(dir.path()));
        assert_eq!(listed.find("bravo").unwrap(), InstrumentId(2));
        assert_eq!(listed.find("999").unwrap(), InstrumentId(999));
        assert!(listed.find("ZULU").is_err() && listed.find("0").is_err());
    }

    #[test]
    fn a_symbol_that_another_instrument_has_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let listed = Listed::read(&SystemConfig::default(), &Layout::new(dir.path()));
        let free = |symbol, id| listed.check_free(&Symbol::new(symbol).unwrap(), InstrumentId(id));
        assert!(free("ZULU", 99).is_ok());
        // Of the same id, the shard says that it exists.
        assert!(free("BRAVO", 2).is_ok());
        assert!(free("bravo", 99).unwrap_err().to_string().contains("symbol_in_use"));
    }
}
