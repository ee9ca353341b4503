//! Market data, followed by a process of the exchange: `pares web` for its books, and a gateway for its FIX sessions that ask (V).
//!
//! A gateway knows orders of its members and no book. So its process follows the market as any receiver does, on a thread beside the duty cycle, and only
//! while a session has asked: nobody's order waits for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pares_config::FeedConfig;
use pares_node::{HostWorld, Layout, NodeId, SystemConfig};
use pares_port::{DEPTH, Levels, MarketBook, MarketView};
use pares_receiver::{
    BookNews, BookWatch, FeedLines, FeedReceiver, ReceivedBook, ReceiverConfig, Trust, WatchedBook,
};
use pares_roles::World;
use pares_roles::world::{MarketFeed, Ring};
use pares_types::{ShardId, Side};

use crate::error::CommandError;

/// Before replayers are called again that were not there.
pub(super) const WAIT: Duration = Duration::from_millis(100);
/// A business day with more messages is received from now on: books would be late for the sake of old trades.
pub(super) const REPLAYED_MAX: u64 = 5_000_000;
/// A gateway continues for so long when no session asks any more: one that asks again has the day's trades at once.
const LINGER: Duration = Duration::from_secs(60);
/// Between two looks of a gateway at what changed.
const EVERY: Duration = Duration::from_millis(10);

/// A receiver of all that replayers tell, if they are there; of the business day also what they sent before, for its trades.
pub(super) fn open(layout: &Layout, config: &SystemConfig, feed: &FeedConfig) -> Option<FeedReceiver> {
    FeedReceiver::open(&by_tcp(layout, config, feed).ok()?).ok()
}

/// All by TCP: a line that is not multicast goes to one receiver of a host, and there may be any number of these.
fn by_tcp(layout: &Layout, config: &SystemConfig, feed: &FeedConfig) -> Result<ReceiverConfig, CommandError> {
    let replayers = pares_node::config::replayers(layout, config);
    let authority = pares_node::config::feed_authority(layout, feed);
    let believed = authority.as_deref().map(Trust::load).transpose();
    Ok(ReceiverConfig {
        shards: config.shards()?.into_keys().collect(),
        lines: FeedLines::None,
        requests: replayers.clone(),
        tcp: replayers,
        replayed_max: REPLAYED_MAX,
        tls: believed.map_err(|error| CommandError::Usage(error.to_string()))?,
        ..ReceiverConfig::default()
    })
}

/// The best prices of each side.
pub(super) fn levels(book: &ReceivedBook<'_>) -> Levels {
    let side = |side| book.levels(side).take(DEPTH).map(|(price, shares, _)| (price, shares)).collect();
    Levels { bids: side(Side::Buy), offers: side(Side::Sell) }
}

/// The world of a gateway, in which it can follow the market, if FIX sessions may ask for it.
///
/// # Errors
/// If there is no such system, or no room for another thread.
pub(super) fn world_of(node: NodeId, layout: &Layout) -> Result<HostWorld, CommandError> {
    let world = HostWorld::new(layout)?;
    let config = pares_node::config::load(&layout.config())?;
    let Some(feed) = config.feed.clone().filter(|_| !config.fix.is_empty()) else { return Ok(world) };
    let followed = Arc::<Followed>::default();
    let (told, layout, mut ringer) = (Arc::clone(&followed), layout.clone(), world.ringer());
    let run = move || loop {
        told.wait_until_wanted();
        if let Some(receiver) = open(&layout, &config, &feed) {
            let shards: Vec<ShardId> =
                config.shards().map(|all| all.into_keys().collect()).unwrap_or_default();
            told.watch(BookWatch::new(receiver, EVERY), &shards, || ringer.ring(node));
        }
        std::thread::sleep(WAIT);
    };
    let name = std::thread::Builder::new().name("market".into());
    name.spawn(run).map_err(CommandError::io("starting to follow market data"))?;
    Ok(world.with_market(followed))
}

/// The market as a gateway's process follows it.
#[derive(Debug, Default)]
struct Followed {
    /// By symbol; and of which instrument. Of two with one symbol the higher counts: the other was removed.
    books: RwLock<BTreeMap<String, (u16, Arc<MarketBook>)>>,
    is_whole: AtomicBool,
    version: AtomicU64,
    is_wanted: Mutex<bool>,
    wanted: Condvar,
}

impl Followed {
    fn is_wanted(&self) -> bool {
        *self.is_wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_wanted(&self) {
        let is_wanted = self.is_wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.wanted.wait_while(is_wanted, |is_wanted| !*is_wanted);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Until nobody has wanted it for a while, or the system does not say which sockets are ready.
    fn watch(&self, mut watch: BookWatch, shards: &[ShardId], mut ring: impl FnMut()) {
        let mut wanted = Instant::now();
        while wanted.elapsed() < LINGER {
            if self.is_wanted() {
                wanted = Instant::now();
            }
            let Ok(is_news) = watch.turn(|book| self.take(book)) else { break };
            let is_current = watch.are_current(shards.iter().copied());
            let was_whole = self.is_whole.load(Ordering::Relaxed);
            // Books that came with what made them current are here once all that came was handed on.
            let is_whole = is_current && (was_whole || watch.has_handed_on());
            self.is_whole.store(is_whole, Ordering::Release);
            if is_news || is_whole != was_whole {
                self.version.fetch_add(1, Ordering::Release);
                // Nobody is rung who looks at nothing.
                if self.is_wanted() {
                    ring();
                }
            }
        }
        self.is_whole.store(false, Ordering::Release);
        self.books.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Takes in how a book is now. One that is as before stays the same one.
    fn take(&self, watched: &WatchedBook<'_>) {
        let &WatchedBook { locate, book, is_current, news, .. } = watched;
        let mut books = self.books.write().unwrap_or_else(PoisonError::into_inner);
        let known = books.get(book.symbol).cloned();
        let (of, before) = known.clone().unwrap_or_default();
        if locate < of {
            return;
        }
        let told = news.iter().rev().find_map(BookNews::trade).map(|trade| trade.number);
        let trade = told.or(before.trade.filter(|_| of == locate));
        let now = MarketBook { is_current, levels: levels(&book), last: book.last, trade };
        if *before != now || of != locate || known.is_none() {
            books.insert(book.symbol.to_owned(), (locate, Arc::new(now)));
        }
    }
}

impl MarketView for Followed {
    fn book(&self, symbol: &str) -> Option<Arc<MarketBook>> {
        let books = self.books.read().unwrap_or_else(PoisonError::into_inner);
        books.get(symbol).map(|(_, book)| Arc::clone(book))
    }

    fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
    }
}

impl MarketFeed for Followed {
    fn follow(&self, is_wanted: bool) {
        *self.is_wanted.lock().unwrap_or_else(PoisonError::into_inner) = is_wanted;
        self.wanted.notify_one();
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}
