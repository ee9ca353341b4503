//! The market, received on a thread of its own (`pares-receiver`) and handed to the server as what is shown of each book.
//!
//! A book changes a hundred times while a person looks at it once. The thread keeps whole books and hands on, a few hundred times a second,
//! what those look like that changed since; a server that takes its time is handed later states, never more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use pares_desk::view::BookView;
use pares_feed::itch;
use pares_receiver::{
    FeedEvent, FeedLines, FeedReceiver, Received, ReceivedFrom, ReceiverConfig, SubscriptionState, TlsError,
    Trust,
};
use pares_types::ShardId;
use serde::{Deserialize, Serialize};

use crate::sources::{Handed, MarketNews, MarketState, handing};

/// News on their way to the server.
const ROOM: usize = 4_096;
/// Between two looks at what changed: well below the longest time between two batches.
const EVERY: Duration = Duration::from_millis(3);
const WAIT: Duration = Duration::from_millis(100);

/// Where the market comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarketConfig {
    /// Which shards.
    pub shards: Vec<u16>,
    /// Lines A and B of shard 0; those of another shard have its number added to the port. None: all comes by TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(SocketAddr, SocketAddr)>,
    /// The address of the interface by which lines come in; none: the system chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<Ipv4Addr>,
    /// Where replayers answer requests, by UDP.
    #[serde(default)]
    pub requests: Vec<SocketAddr>,
    /// Where replayers serve replays and snapshots, by TCP.
    #[serde(default)]
    pub tcp: Vec<SocketAddr>,
    /// The certificate of the exchange's authority, if its replayers serve TCP by TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
}

impl MarketConfig {
    fn receiver(&self) -> Result<ReceiverConfig, TlsError> {
        Ok(ReceiverConfig {
            shards: self.shards.iter().map(|&shard| ShardId(shard)).collect(),
            lines: self.lines.map_or(FeedLines::None, |(a, b)| FeedLines::From(a, b)),
            interface: self.interface.unwrap_or(Ipv4Addr::UNSPECIFIED),
            requests: self.requests.clone(),
            tcp: self.tcp.clone(),
            tls: self.authority.as_deref().map(Trust::load).transpose()?,
            ..ReceiverConfig::default()
        })
    }
}

/// Receives it. `ring` wakes the server; `complain` tells the operator.
///
/// # Errors
/// If a socket cannot be opened, the authority's certificate cannot be read, or there is no room for another thread.
pub fn receive(
    config: &MarketConfig,
    ring: impl FnMut() + Send + 'static,
    complain: impl Fn(String) + Send + 'static,
) -> std::io::Result<Handed<MarketNews>> {
    let config = config.receiver().map_err(std::io::Error::other)?;
    let receiver = FeedReceiver::open(&config).map_err(std::io::Error::other)?;
    let (sender, handed) = handing(ROOM);
    let mut watch = Watch {
        receiver,
        sender,
        ring: Box::new(ring),
        changed: Changed::default(),
        next: Instant::now(),
        failures: config.shards.iter().map(|shard| (shard.0, BTreeSet::new())).collect(),
        is_open: true,
    };
    let run = move || {
        while watch.is_open {
            if let Err(error) = watch.turn() {
                return complain(format!(
                    "receiving market data: {error}; this server shows no market data from now on"
                ));
            }
            watch.note_failures(&complain);
        }
    };
    std::thread::Builder::new().name("market".into()).spawn(run)?;
    Ok(handed)
}

/// What changed since it was handed on.
#[derive(Default)]
struct Changed {
    books: BTreeSet<(u16, u16)>,
    states: BTreeSet<u16>,
    /// All that were ever handed on: one that is not there any more has changed too.
    known: BTreeSet<(u16, u16)>,
}

impl Changed {
    fn note(&mut self, from: &ReceivedFrom<'_>) {
        let shard = from.shard.0;
        match from.received {
            Received::State(_) => drop(self.states.insert(shard)),
            Received::Event(FeedEvent::Message { bytes, .. }) => {
                self.books.extend(itch::about(bytes).map(|locate| (shard, locate)));
            }
            // Books began again: all of them are what they are now.
            Received::Event(_) => {
                self.books.extend(from.books.all().map(|(locate, _)| (shard, locate)));
                self.books.extend(self.known.range((shard, 0)..=(shard, u16::MAX)));
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.books.is_empty() && self.states.is_empty()
    }
}

struct Watch {
    receiver: FeedReceiver,
    sender: SyncSender<MarketNews>,
    ring: Box<dyn FnMut() + Send>,
    changed: Changed,
    next: Instant,
    /// What was complained of since a shard's data were current.
    failures: BTreeMap<u16, BTreeSet<String>>,
    /// Whether the server still listens.
    is_open: bool,
}

impl Watch {
    fn turn(&mut self) -> Result<(), pares_receiver::ReceiverError> {
        let wait = if self.changed.is_empty() { WAIT } else { EVERY };
        let changed = &mut self.changed;
        self.receiver.poll(wait, |from| changed.note(&from))?;
        if !self.changed.is_empty() && Instant::now() >= self.next {
            self.next = Instant::now() + EVERY;
            self.hand_on();
            (self.ring)();
        }
        Ok(())
    }

    /// Complains of what keeps a shard's data from coming: of each thing once, until they are current again.
    fn note_failures(&mut self, complain: &impl Fn(String)) {
        for (&shard, told) in &mut self.failures {
            if self.receiver.state(ShardId(shard)) == Some(SubscriptionState::Current) {
                told.clear();
            }
            if let Some(why) = self.receiver.failure(ShardId(shard))
                && told.insert(why.to_owned())
            {
                complain(format!("shard {shard}: {why}"));
            }
        }
    }

    /// Hands on what there is room for; the rest later, as it is then. That data are current is said after what makes them so, that they
    /// are not before all else.
    fn hand_on(&mut self) {
        self.hand_on_states(false);
        while let Some((shard, locate)) = self.changed.books.pop_first() {
            let books = self.receiver.books(ShardId(shard));
            let view = books.and_then(|books| books.book(locate)).map(BookView::of).unwrap_or_default();
            if !self.hand(MarketNews::Book { shard: ShardId(shard), locate, view }) {
                self.changed.books.insert((shard, locate));
                return;
            }
            self.changed.known.insert((shard, locate));
        }
        self.hand_on_states(true);
    }

    fn hand_on_states(&mut self, current: bool) {
        let changed: Vec<u16> = self.changed.states.iter().copied().collect();
        for shard in changed {
            let state = self.receiver.state(ShardId(shard)).map_or(MarketState::Stale, state);
            let is_said = (state != MarketState::Current || current)
                && self.hand(MarketNews::State { shard: ShardId(shard), state });
            if is_said {
                self.changed.states.remove(&shard);
            }
        }
    }

    fn hand(&mut self, news: MarketNews) -> bool {
        match self.sender.try_send(news) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Disconnected(_)) => {
                self.is_open = false;
                false
            }
        }
    }
}

fn state(state: SubscriptionState) -> MarketState {
    match state {
        SubscriptionState::Current => MarketState::Current,
        SubscriptionState::Gap { .. } => MarketState::Gap,
        SubscriptionState::Recovering => MarketState::Recovering,
        SubscriptionState::Stale => MarketState::Stale,
        SubscriptionState::Over => MarketState::Over,
    }
}
