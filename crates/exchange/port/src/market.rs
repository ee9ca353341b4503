//! The market, as a gateway shows it to a door whose session asks.

use std::sync::Arc;

use pares_types::{Price, Quantity};

use crate::levels::Levels;

/// A book as market data tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketBook {
    /// Whether it is the market's: not while data are missing.
    pub is_current: bool,
    /// Its prices.
    pub levels: Levels,
    /// The last trade.
    pub last: Option<(Price, Quantity)>,
    /// The number of the last trade that came as news; none if none has since the books began.
    pub trade: Option<u64>,
}

/// The market, as far as the gateway's process follows it.
pub trait MarketView {
    /// The book of that symbol. While it is as it was, it is the same one.
    fn book(&self, symbol: &str) -> Option<Arc<MarketBook>>;

    /// Whether all books are there, so that a symbol without one is no symbol.
    fn is_whole(&self) -> bool;
}

/// Whether a door is to be told of the market.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarketSubscription {
    /// Nobody has asked.
    #[default]
    Nothing,
    /// When something changes.
    Changes,
    /// At once: a question waits.
    Now,
}
