//! All books of a shard as messages, and the number to continue at: GLIMPSE 5.0 (docs/protocols/market-data.md, *Snapshot*).
//!
//! A snapshot that is taken out of books that continue changing is of no moment. So the source has books of its own: it follows the
//! messages that are kept, as a receiver does, and stops while a snapshot is made of them, piece by piece, which holds up nothing but
//! itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use pares_types::Side;
use zerocopy::IntoBytes;

use crate::books::{ReceivedBook, ReceivedBooks};
use crate::itch::{self, AddOrder, FeedMessage, Head};
use crate::publication::Session;
use crate::soup;
use crate::store::{SessionStore, StoreError};

/// The state of a shard before one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSnapshot {
    /// Whose messages continue.
    pub session: Session,
    /// From which number on.
    pub next: u64,
    /// Its messages as SoupBinTCP packets, the end of the snapshot among them.
    pub packets: Arc<[u8]>,
}

/// The latest messages about an instrument, as they were.
#[derive(Clone, Debug, Default)]
struct Told {
    directory: Vec<u8>,
    action: Vec<u8>,
    /// Empty outside of calls.
    imbalance: Vec<u8>,
}

/// A snapshot that is being made.
#[derive(Debug)]
struct Making {
    packets: Vec<u8>,
    /// The next instrument, in the order of locates.
    from: u16,
}

/// Follows a shard's messages, and makes snapshots.
#[derive(Debug)]
pub struct SnapshotSource {
    seed: u64,
    session: Option<Session>,
    next: u64,
    books: ReceivedBooks,
    told: BTreeMap<u16, Told>,
    /// The last system event.
    event: Vec<u8>,
    /// The time of the last message.
    time: [u8; 6],
    making: Option<Making>,
}

impl SnapshotSource {
    /// A source that knows nothing yet. The seed is chosen by chance, as that of [`ReceivedBooks::new`].
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            session: None,
            next: 0,
            books: ReceivedBooks::with_seed(seed),
            told: BTreeMap::new(),
            event: Vec::new(),
            time: [0; 6],
            making: None,
        }
    }

    /// Takes in at most so many messages that are kept, of the session that is on; one after another, from the first. Says whether there were
    /// no more.
    ///
    /// # Errors
    /// If they cannot be read.
    ///
    /// # Panics
    /// If a snapshot is being made.
    pub fn follow(&mut self, store: &mut dyn SessionStore, messages_max: u64) -> Result<bool, StoreError> {
        assert!(self.making.is_none(), "the books stand still while a snapshot is made of them");
        let Some(current) = store.standing().last().copied() else { return Ok(true) };
        if self.session != Some(current.session) {
            *self = Self { session: Some(current.session), next: 1, ..Self::new(self.seed) };
        }
        let until = current.next.min(self.next.saturating_add(messages_max));
        let from = self.next;
        if from < until {
            store.read(current.session, from, &mut |message| {
                let is_wanted = self.next < until;
                if is_wanted {
                    self.on_message(message);
                }
                is_wanted
            })?;
            if self.next == from {
                return Err(StoreError::Unreadable);
            }
        }
        Ok(self.next >= current.next)
    }

    fn on_message(&mut self, bytes: &[u8]) {
        self.next += 1;
        self.books.on_message(bytes);
        let Some(message) = FeedMessage::read(bytes) else { return };
        self.time = message.head().time;
        let locate = message.head().locate.get();
        match message {
            FeedMessage::SystemEvent(_) => self.event = bytes.to_vec(),
            FeedMessage::Directory(_) => self.told.entry(locate).or_default().directory = bytes.to_vec(),
            FeedMessage::TradingAction(_) => {
                let told = self.told.entry(locate).or_default();
                told.action = bytes.to_vec();
                told.imbalance.clear();
            }
            FeedMessage::Imbalance(_) => self.told.entry(locate).or_default().imbalance = bytes.to_vec(),
            _ => {}
        }
    }

    /// Begins a snapshot of what has come. Says whether there is a session, and so one is made.
    pub fn begin(&mut self) -> bool {
        let mut packets = Vec::new();
        put(&mut packets, &self.event);
        self.making = self.session.map(|_| Making { packets, from: 0 });
        self.making.is_some()
    }

    /// Continues the snapshot: whole books, until so many orders were written. The snapshot, once it is finished.
    pub fn piece(&mut self, orders_max: usize) -> Option<FeedSnapshot> {
        let (session, mut making) = (self.session?, self.making.take()?);
        let mut orders = 0;
        for (&locate, told) in self.told.range(making.from..) {
            if orders >= orders_max {
                making.from = locate;
                self.making = Some(making);
                return None;
            }
            orders += self.put_instrument(&mut making.packets, locate, told);
        }
        let end = [&[soup::END_OF_SNAPSHOT][..], &soup::digits(self.next)].concat();
        put(&mut making.packets, &end);
        Some(FeedSnapshot { session, next: self.next, packets: making.packets.into() })
    }

    /// Writes an instrument; says how many orders.
    fn put_instrument(&self, packets: &mut Vec<u8>, locate: u16, told: &Told) -> usize {
        put(packets, &told.directory);
        put(packets, &told.action);
        let mut orders = 0;
        if let Some((book, stock)) = self.books.book(locate).zip(stock(&told.directory)) {
            for side in [Side::Buy, Side::Sell] {
                orders += self.put_side(packets, (locate, stock), &book, side);
            }
        }
        put(packets, &told.imbalance);
        orders
    }

    fn put_side(
        &self,
        packets: &mut Vec<u8>,
        (locate, stock): (u16, [u8; 8]),
        book: &ReceivedBook<'_>,
        side: Side,
    ) -> usize {
        let head = Head { kind: AddOrder::KIND, locate: locate.into(), tracking: 0.into(), time: self.time };
        let mut orders = 0;
        for (price, shares, reference) in book.orders(side) {
            let (shares, price) = (itch::shares(shares), itch::price(price));
            let add =
                AddOrder { head, reference: reference.into(), side: itch::side(side), shares, stock, price };
            put(packets, add.as_bytes());
            orders += 1;
        }
        orders
    }
}

/// The name in a directory message.
fn stock(directory: &[u8]) -> Option<[u8; 8]> {
    match FeedMessage::read(directory)? {
        FeedMessage::Directory(of) => Some(of.stock),
        _ => None,
    }
}

/// Writes a message, if there is one.
fn put(packets: &mut Vec<u8>, message: &[u8]) {
    if !message.is_empty() {
        soup::write(packets, b'S', message);
    }
}
