//! Which shard trades which instruments.

use std::collections::{BTreeMap, BTreeSet};

use pares_book::Instrument;
use pares_types::{InstrumentId, ShardId};

use crate::{ConfigError, SystemConfig};

impl SystemConfig {
    /// The instruments of each shard.
    ///
    /// # Errors
    /// If an instrument is not valid, its id is none or used twice, or its symbol is, in whatever case.
    pub fn shards(&self) -> Result<BTreeMap<ShardId, Vec<Instrument>>, ConfigError> {
        let mut shards: BTreeMap<ShardId, Vec<Instrument>> = BTreeMap::new();
        let (mut ids, mut symbols) = (BTreeSet::new(), BTreeSet::new());
        for (index, config) in self.instruments.iter().enumerate() {
            let (id, symbol) = (config.id, &config.symbol);
            if id == 0 || !ids.insert(id) {
                return Err(ConfigError(format!(
                    "instrument `{symbol}`: `id` is missing, 0 or already in use ({id})"
                )));
            }
            if !InstrumentId(id).may_be_listed() {
                let most = InstrumentId::LISTED_MAX;
                return Err(ConfigError(format!(
                    "instrument `{symbol}`: `id` must be 1 to {most}, not {id}"
                )));
            }
            if !symbols.insert(config.symbol.to_ascii_uppercase()) {
                return Err(ConfigError(format!("instrument {id}: the symbol `{symbol}` is already in use")));
            }
            let own = u16::try_from(index).map_err(|_| ConfigError("too many instruments".into()))?;
            shards.entry(ShardId(config.shard.unwrap_or(own))).or_default().push(config.instrument()?);
        }
        match shards.is_empty() {
            true => Err(ConfigError("no instruments".into())),
            false => Ok(shards),
        }
    }
}
