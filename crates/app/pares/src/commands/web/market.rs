//! Market data for those who ask by HTTP: received on a thread of its own, and handed on 200 times a second: books as they look then, and every trade.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pares_api::{BookTold, MarketTold, ReceivedMarket};
use pares_node::{Layout, SystemConfig};
use pares_os::scheduling;
use pares_receiver::{BookNews, BookWatch, FeedStanding, WatchedBook};
use pares_resources::tape::{MarketTrade, TapeNews};
use pares_types::{BusinessDay, DAY_NS, Side, Timestamp};

use crate::commands::market::{self, WAIT, levels};
use crate::error::CommandError;

/// Between two looks at what changed.
const EVERY: Duration = Duration::from_millis(5);

/// Begins to receive, if the exchange publishes market data.
///
/// # Errors
/// If there is no room for another thread.
pub(super) fn receive(
    layout: &Layout,
    config: &SystemConfig,
) -> Result<Option<Arc<ReceivedMarket>>, CommandError> {
    let Some(feed) = &config.feed else { return Ok(None) };
    let market = Arc::<ReceivedMarket>::default();
    let (layout, config, feed, told) = (layout.clone(), config.clone(), feed.clone(), Arc::clone(&market));
    let run = move || {
        scheduling::ordinary();
        loop {
            // Replayers may come up later than this, or elsewhere: then all begins again.
            if let Some(receiver) = market::open(&layout, &config, &feed) {
                watch(BookWatch::new(receiver, EVERY), &told);
            }
            std::thread::sleep(WAIT);
        }
    };
    let name = std::thread::Builder::new().name("market".into());
    name.spawn(run).map_err(CommandError::io("starting to receive market data"))?;
    Ok(Some(market))
}

/// Until the system does not say any more which sockets are ready.
fn watch(mut watch: BookWatch, market: &ReceivedMarket) {
    while let Ok(is_news) = watch.turn(|watched| tell(market, watched)) {
        if is_news {
            market.ring();
        }
    }
}

fn tell(market: &ReceivedMarket, watched: &WatchedBook<'_>) {
    let &WatchedBook { book, locate, is_current, standing, news } = watched;
    let FeedStanding { day, number, is_whole } = standing;
    let (symbol, phase, news) = (book.symbol, book.phase(), news.iter().map(tape_news).collect());
    let book = BookTold { number, is_current, levels: levels(&book) };
    market.tell(symbol, &MarketTold { instrument: locate, book, phase, day, is_whole, news });
}

fn tape_news(news: &BookNews) -> TapeNews {
    match *news {
        BookNews::Traded { trade, day, time_ns } => TapeNews::Trade(MarketTrade {
            number: trade.number,
            at: time_of(day, time_ns),
            price: trade.price,
            quantity: trade.shares,
            taker: trade.resting.map(Side::opposite),
        }),
        BookNews::Busted(number) => TapeNews::Busted(number),
        BookNews::Gap => TapeNews::Gap,
    }
}

/// Messages tell the time of day alone, their session the day. Before the first business day it is the day on which it is nearest to now.
fn time_of(day: BusinessDay, time_ns: u64) -> Timestamp {
    if day != BusinessDay::NONE {
        return Timestamp(day.midnight().0 + time_ns);
    }
    let now_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let now_ns = u64::try_from(now_ns).unwrap_or(u64::MAX);
    let half = DAY_NS / 2;
    let day = now_ns.saturating_add(half).saturating_sub(time_ns) / DAY_NS;
    Timestamp(day * DAY_NS + time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_day_is_of_the_day_on_which_it_is_nearest() {
        let now_ns =
            u64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos());
        let now_ns = now_ns.unwrap();
        for away_ns in [0, DAY_NS / 3] {
            let at = now_ns - away_ns;
            assert_eq!(time_of(BusinessDay::NONE, at % DAY_NS), Timestamp(at));
        }
        assert_eq!(time_of(BusinessDay(2), 5), Timestamp(2 * DAY_NS + 5));
    }
}
