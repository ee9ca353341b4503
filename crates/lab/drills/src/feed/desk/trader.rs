//! A trader that talks, and notes all that it receives, wherever it is signed on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_desk::market::MarketState;
use pares_load::{LabError, Worker};
use pares_member::{TraderClient, TraderNews, TraderOptions};
use pares_os::clock::now_ns;
use pares_types::Position;

use crate::feed::truth::{BookKey, view_sum};

/// Between two messages of a trader.
const SAYS_EVERY: Duration = Duration::from_millis(5);

/// An item that came from the server which took it in: nobody else's clock or way is in its delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) server: u16,
    pub(super) stamp_ns: u64,
    pub(super) read_ns: u64,
}

/// What a trader received.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// Checksums of items, by position.
    pub(super) items: BTreeMap<Position, u32>,
    /// Items that came at a position at which one had come, or behind a gap.
    pub(super) out_of_turn: u64,
    /// Items of streams that were given up.
    pub(super) lost: u64,
    pub(super) reads: Vec<Read>,
    /// Where it is signed on.
    pub(super) server: Option<u16>,
    /// What of its own was not taken in.
    pub(super) refused: BTreeSet<u64>,
    /// How much it has said.
    pub(super) said: u64,
    /// What it said and has not seen.
    pub(super) unplaced: usize,
    /// What books show.
    pub(super) views: BTreeMap<BookKey, u32>,
    /// Shards whose data are current.
    pub(super) current: BTreeSet<u16>,
    /// What books showed while they were called current.
    pub(super) shown: BTreeSet<(BookKey, u32)>,
}

/// The checksum of an item as it stands in the stream.
pub(super) fn item_sum(item: &OrderedItem<'_>) -> u32 {
    let mut bytes = Vec::new();
    item.write(&mut bytes);
    crc32c::crc32c(&bytes)
}

impl Noted {
    fn on_news(&mut self, news: &TraderNews<'_>) {
        match news {
            TraderNews::SignedOn { server, .. } => self.server = Some(*server),
            TraderNews::Item(item) => self.on_item(item),
            TraderNews::Refused { number, .. } => drop(self.refused.insert(*number)),
            TraderNews::Lost => self.lost += std::mem::take(&mut self.items).len() as u64,
            // Another server says again what its books are worth.
            TraderNews::Away => {
                self.server = None;
                self.current.clear();
                self.views.clear();
            }
            TraderNews::Book(told) => {
                let sum = view_sum(&told.view);
                self.views.insert(told.key, sum);
                if self.current.contains(&told.key.0) {
                    self.shown.insert((told.key, sum));
                }
            }
            TraderNews::Market { shard, state } => self.on_state(shard.0, *state),
            TraderNews::Placed { .. } | TraderNews::Renumbered { .. } => {}
        }
    }

    fn on_item(&mut self, item: &OrderedItem<'_>) {
        let next = self.items.last_key_value().map_or(Position(0), |(position, _)| position.next());
        self.out_of_turn += u64::from(item.position != next);
        self.items.insert(item.position, item_sum(item));
        let taken_in = item.item.request.gateway().0;
        if self.server == Some(taken_in) && item.repeats.is_none() {
            let (stamp_ns, read_ns) = (item.item.stamp_ns, now_ns());
            self.reads.push(Read { server: taken_in, stamp_ns, read_ns });
        }
    }

    fn on_state(&mut self, shard: u16, state: MarketState) {
        match state {
            MarketState::Current | MarketState::Over => {
                self.current.insert(shard);
                let views = self.views.range((shard, 0)..=(shard, u16::MAX));
                self.shown.extend(views.map(|(key, sum)| (*key, *sum)));
            }
            _ => drop(self.current.remove(&shard)),
        }
    }

    /// Books that are not called current, or show something else than they should.
    pub(super) fn books_differing(&self, last: &[(BookKey, u32)]) -> u64 {
        let is_right =
            |(key, sum): &(BookKey, u32)| self.current.contains(&key.0) && self.views.get(key) == Some(sum);
        last.iter().filter(|view| !is_right(view)).count() as u64
    }
}

/// An active trader.
pub(super) struct DeskTrader {
    hush: Arc<AtomicBool>,
    noted: Arc<Mutex<Noted>>,
    worker: Worker<()>,
}

impl DeskTrader {
    /// Lets a trader in at the first of the servers that answers.
    pub(super) fn start(servers: &[SocketAddr], trader: TraderId) -> Result<Self, LabError> {
        let options = TraderOptions { books: true, ..TraderOptions::default() };
        let client = TraderClient::connect_with(servers, trader, options);
        let client = client.map_err(LabError::io("signing a trader on"))?;
        let (hush, noted) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Noted::default())));
        let (is_silent, notes) = (Arc::clone(&hush), Arc::clone(&noted));
        let worker = Worker::start("trader", move |stop| talk(client, [stop, &is_silent], &notes))?;
        Ok(Self { hush, noted, worker })
    }

    /// What it received until now.
    pub(super) fn heard(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It says nothing more.
    pub(super) fn hush(&self) {
        self.hush.store(true, Ordering::Relaxed);
    }

    /// Whether it has all before that position, and has seen all that it said.
    pub(super) fn has(&self, next: u64) -> bool {
        let noted = self.heard();
        let last = noted.items.last_key_value().map(|(position, _)| position.next());
        noted.unplaced == 0 && last.is_some_and(|last| last.0 >= next)
    }

    /// Whether its books are those of the market.
    pub(super) fn shows(&self, last: &[(BookKey, u32)]) -> bool {
        self.heard().books_differing(last) == 0
    }

    /// Ends it: what it received.
    pub(super) fn stop(self) -> Noted {
        self.worker.finish();
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn talk(mut client: TraderClient, [stop, hush]: [&AtomicBool; 2], notes: &Mutex<Noted>) {
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let mut noted = notes.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= due && !hush.load(Ordering::Relaxed) {
            let text = format!("the {} of trader {}", noted.said + 1, client.trader());
            client.submit(&ItemBody::Message { to: TraderId(0), text: &text }).expect("no text is that long");
            noted.said += 1;
            due = now + SAYS_EVERY;
        }
        client.poll(|news| noted.on_news(&news));
        noted.unplaced = client.unplaced();
        drop(noted);
        client
            .wait(due.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), SAYS_EVERY));
    }
}
