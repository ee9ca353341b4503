//! How the market data of a shard are, for traders.

use pares_types::coded;

coded! {
    /// How a shard's market data are.
    pub enum MarketState {
        /// All that was sent, as far as any process knows.
        Current = 1 "current",
        /// Messages are missing, and asked for.
        Gap = 2 "gap",
        /// Replayers are asked what is true.
        Recovering = 3 "recovering",
        /// No source was heard for long, or ever.
        Stale = 4 "stale",
        /// The business day is over.
        Over = 5 "over",
    }
}

#[allow(clippy::derivable_impls)] // a list of codes has no place for it
impl Default for MarketState {
    fn default() -> Self {
        Self::Stale
    }
}
