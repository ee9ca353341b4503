//! Market data for those who ask by HTTP: handed on as books look, some hundred times a second.

use std::sync::Arc;
use std::time::Duration;

use pares_api::{BookTold, MarketBooks};
use pares_node::{Layout, SystemConfig};
use pares_receiver::{BookWatch, WatchedBook};

use crate::commands::market::{self, levels};
use crate::error::CommandError;

/// Between two looks at what changed.
const EVERY: Duration = Duration::from_millis(3);

/// Begins to receive, if the exchange publishes market data.
///
/// # Errors
/// If there is no room for another thread.
pub(super) fn receive(
    layout: &Layout,
    config: &SystemConfig,
) -> Result<Option<Arc<MarketBooks>>, CommandError> {
    let Some(feed) = &config.feed else { return Ok(None) };
    let market = Arc::<MarketBooks>::default();
    let (layout, config, feed, told) = (layout.clone(), config.clone(), feed.clone(), Arc::clone(&market));
    let run = move || loop {
        // Replayers may come up later than this, or elsewhere: then all begins anew.
        if let Some(receiver) = market::open(&layout, &config, &feed) {
            let mut watch = BookWatch::new(receiver, EVERY);
            while watch.turn(|book| hand_on(&told, book)).is_ok() {}
        }
        std::thread::sleep(market::WAIT);
    };
    let name = std::thread::Builder::new().name("market".into());
    name.spawn(run).map_err(CommandError::io("starting to receive market data"))?;
    Ok(Some(market))
}

fn hand_on(market: &MarketBooks, watched: &WatchedBook<'_>) {
    let &WatchedBook { book, number, is_current, .. } = watched;
    market.tell(book.symbol, BookTold { number, is_current, levels: levels(&book) });
}
