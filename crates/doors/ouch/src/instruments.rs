//! Instruments, by symbol and by number. A client names one with each order, so both are looked up and never searched for.

use std::collections::BTreeMap;

use pares_types::{InstrumentId, ShardId, Symbol};

#[derive(Debug, Default)]
pub(crate) struct Instruments {
    by_symbol: BTreeMap<Symbol, InstrumentId>,
    shards: BTreeMap<InstrumentId, ShardId>,
}

impl Instruments {
    /// Adds one. If two shards have one of that symbol, it is that of the connection's own shard.
    pub(crate) fn list(
        &mut self,
        symbol: Symbol,
        (instrument, shard): (InstrumentId, ShardId),
        is_own: bool,
    ) {
        self.shards.insert(instrument, shard);
        if is_own || !self.by_symbol.contains_key(&symbol) {
            self.by_symbol.insert(symbol, instrument);
        }
    }

    /// One by its symbol, or by `#` and its number.
    pub(crate) fn find(&self, text: &str) -> Option<(InstrumentId, ShardId)> {
        let by_symbol = Symbol::new(text).ok().and_then(|symbol| self.by_symbol.get(&symbol).copied());
        let by_number = || {
            let number = text.strip_prefix('#')?.parse().ok().map(InstrumentId)?;
            (format!("#{number}") == text).then_some(number)
        };
        let instrument = by_symbol.or_else(by_number)?;
        self.shards.get(&instrument).map(|shard| (instrument, *shard))
    }
}

/// The id of [no instrument](InstrumentId::LISTED_MAX), which gateways route to that shard: an unknown id goes to the shard at the place of its remainder. The shard refuses
/// it in its record, so the refusal is Sequenced Data, which every client library delivers; some drop Debug packets.
pub(crate) fn unlisted(shard: ShardId, shards: &[ShardId]) -> InstrumentId {
    let count = u32::try_from(shards.len()).unwrap_or(u32::MAX).max(1);
    let place = shards.iter().filter(|other| **other < shard).count();
    let place = u32::try_from(place).expect("there are at most 65,536 shards");
    let rounded = u32::MAX - u32::MAX % count;
    InstrumentId(rounded.checked_add(place).unwrap_or_else(|| rounded - count + place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_id_is_routed_to_its_shard_and_of_no_instrument() {
        let shards = [7, 0, 3].map(ShardId);
        for (shard, place) in [(0, 0), (3, 1), (7, 2)] {
            let InstrumentId(id) = unlisted(ShardId(shard), &shards);
            assert_eq!((id % 3, id > u32::MAX - 3), (place, true), "{id}");
        }
        assert_eq!(unlisted(ShardId(0), &[ShardId(0)]), InstrumentId(u32::MAX));
        let most: Vec<_> = (0..=u16::MAX).map(ShardId).collect();
        let of = [0, 1, 65_534, 65_535].map(|shard| unlisted(ShardId(shard), &most));
        assert!(of.iter().all(|id| !id.may_be_listed()), "{of:?}");
    }

    #[test]
    fn instrument_found_by_shard_symbol_or_own_number() {
        let mut instruments = Instruments::default();
        let symbol = Symbol::new("ACME").expect("a symbol");
        for (instrument, shard, is_own) in [(1, 1, false), (2, 0, true), (3, 2, false)] {
            instruments.list(symbol, (InstrumentId(instrument), ShardId(shard)), is_own);
        }
        let found = |text| instruments.find(text).map(|(instrument, shard)| (instrument.0, shard.0));
        assert_eq!(found("ACME"), Some((2, 0)));
        assert_eq!([found("#1"), found("#2"), found("#3")], [Some((1, 1)), Some((2, 0)), Some((3, 2))]);
        assert_eq!([found("#4"), found("#"), found(""), found("#+1"), found("#01")], [None; 5]);
    }
}
