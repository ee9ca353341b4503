//! MarketBooks data for those who ask by HTTP: received on a thread of its own, and handed on as books look, some hundred times a second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_api::{BookTold, MarketBooks};
use pares_node::config::FeedConfig;
use pares_node::{Layout, SystemConfig};
use pares_receiver::{
    FeedEvent, FeedLines, FeedReceiver, Received, ReceivedBook, ReceivedFrom, ReceiverConfig,
    SubscriptionState, Trust,
};
use pares_resources::book::{DEPTH, Levels};
use pares_types::{ShardId, Side};

use crate::error::CommandError;

/// Between two looks at what changed.
const EVERY: Duration = Duration::from_millis(3);
const WAIT: Duration = Duration::from_millis(100);

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
        let opened = by_tcp(&layout, &config, &feed).ok().and_then(|by_tcp| FeedReceiver::open(&by_tcp).ok());
        if let Some(receiver) = opened {
            Watch::new(receiver, Arc::clone(&told)).run();
        }
        std::thread::sleep(WAIT);
    };
    let name = std::thread::Builder::new().name("market".into());
    name.spawn(run).map_err(CommandError::io("starting to receive market data"))?;
    Ok(Some(market))
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
        tls: believed.map_err(|error| CommandError::Usage(error.to_string()))?,
        ..ReceiverConfig::default()
    })
}

struct Watch {
    receiver: FeedReceiver,
    market: Arc<MarketBooks>,
    /// What comes next, by shard.
    numbers: BTreeMap<ShardId, u64>,
    /// Books that changed since they were handed on: shard, locate.
    changed: BTreeSet<(ShardId, u16)>,
    next: Instant,
}

impl Watch {
    fn new(receiver: FeedReceiver, market: Arc<MarketBooks>) -> Self {
        Self { receiver, market, numbers: BTreeMap::new(), changed: BTreeSet::new(), next: Instant::now() }
    }

    /// Until the system does not say any more which sockets are ready.
    fn run(&mut self) {
        loop {
            let wait = if self.changed.is_empty() { WAIT } else { EVERY };
            let (changed, numbers) = (&mut self.changed, &mut self.numbers);
            if self.receiver.poll(wait, |from| note(changed, numbers, &from)).is_err() {
                break;
            }
            if !self.changed.is_empty() && Instant::now() >= self.next {
                self.next = Instant::now() + EVERY;
                self.hand_on();
            }
        }
    }

    fn hand_on(&mut self) {
        for (shard, locate) in std::mem::take(&mut self.changed) {
            let Some(book) = self.receiver.books(shard).and_then(|books| books.book(locate)) else {
                continue;
            };
            let is_current = self.receiver.state(shard) == Some(SubscriptionState::Current);
            let number = self.numbers.get(&shard).copied().unwrap_or_default();
            self.market.tell(book.symbol, BookTold { number, is_current, levels: levels(&book) });
        }
        self.market.ring();
    }
}

fn levels(book: &ReceivedBook<'_>) -> Levels {
    let side = |side| book.levels(side).take(DEPTH).map(|(price, shares, _)| (price, shares)).collect();
    Levels { bids: side(Side::Buy), offers: side(Side::Sell) }
}

fn note(
    changed: &mut BTreeSet<(ShardId, u16)>,
    numbers: &mut BTreeMap<ShardId, u64>,
    from: &ReceivedFrom<'_>,
) {
    let shard = from.shard;
    match from.received {
        Received::Event(FeedEvent::Message { number, bytes }) => {
            numbers.insert(shard, number + 1);
            changed.extend(locate(bytes).map(|locate| (shard, locate)));
        }
        Received::Event(event) => {
            if let FeedEvent::Reset { next } = event {
                numbers.insert(shard, next);
            }
            changed.extend(from.books.all().map(|(locate, _)| (shard, locate)));
        }
        Received::State(_) => changed.extend(from.books.all().map(|(locate, _)| (shard, locate))),
    }
}

/// The instrument a message is about, if it is about one: that the day ends is about none.
fn locate(message: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes([*message.get(1)?, *message.get(2)?])).filter(|locate| *locate > 0)
}
