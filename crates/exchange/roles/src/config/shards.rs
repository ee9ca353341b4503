//! Which shard trades which instruments.

use std::collections::{BTreeMap, BTreeSet};

use pares_book::Instrument;
use pares_types::ShardId;

use super::SystemConfig;
use crate::NodeError;

impl SystemConfig {
    /// The instruments of each shard.
    ///
    /// # Errors
    /// If an instrument is not valid, its id is used twice, or its symbol is, in whatever case.
    pub fn shards(&self) -> Result<BTreeMap<ShardId, Vec<Instrument>>, NodeError> {
        let mut shards: BTreeMap<ShardId, Vec<Instrument>> = BTreeMap::new();
        let (mut ids, mut symbols) = (BTreeSet::new(), BTreeSet::new());
        for (index, config) in self.instruments.iter().enumerate() {
            let (id, symbol) = (config.id, &config.symbol);
            if id == 0 || !ids.insert(id) {
                return Err(NodeError::Config(format!(
                    "instrument `{symbol}`: `id` is missing, 0 or another one's ({id})"
                )));
            }
            if !symbols.insert(config.symbol.to_ascii_uppercase()) {
                return Err(NodeError::Config(format!(
                    "instrument {id}: `{symbol}` is another one's symbol"
                )));
            }
            let own = u16::try_from(index).map_err(|_| NodeError::Config("too many instruments".into()))?;
            shards.entry(ShardId(config.shard.unwrap_or(own))).or_default().push(config.instrument()?);
        }
        match shards.is_empty() {
            true => Err(NodeError::Config("no instruments".into())),
            false => Ok(shards),
        }
    }
}
