//! The market as a receiver of market data tells it, for all who look: of each instrument its book and its tape.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use axum::extract::ws::Utf8Bytes;
use pares_resources::tape::{TapeNews, TradeTape, kept_of_each};
use pares_types::{BusinessDay, Phase};
use tokio::sync::Notify;

use crate::books::{BookNow, BookTold};

/// What there is to say of an instrument.
#[derive(Clone, Debug)]
pub struct MarketTold {
    /// Its number in market data. Of two with one symbol the higher counts: the other was removed.
    pub instrument: u16,
    /// Its book.
    pub book: BookTold,
    /// Its phase, as far as it was received.
    pub phase: Option<Phase>,
    /// The business day that is on.
    pub day: BusinessDay,
    /// Whether all of that day was received.
    pub is_whole: bool,
    /// What its tape says since the last time.
    pub news: Vec<TapeNews>,
}

/// An instrument as it was received, and its subscribers.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) book: Arc<BookNow>,
    pub(crate) tape: TradeTape,
    pub(crate) phase: Option<Phase>,
    /// The text of its ticker, once a socket has looked since it changed.
    pub(crate) ticker: OnceLock<Utf8Bytes>,
    instrument: u16,
    listeners: Vec<Listener>,
}

/// One who is rung.
struct Listener {
    rung: Weak<Notify>,
    looks_at_book: bool,
}

impl Shelf {
    fn is_book_looked_at(&self) -> bool {
        self.listeners.iter().any(|one| one.looks_at_book && one.rung.strong_count() > 0)
    }
}

/// All instruments, by symbol, and those that have changed since their listeners were rung.
#[derive(Default)]
struct Shelves {
    by_symbol: BTreeMap<String, Shelf>,
    changed: Vec<String>,
}

/// All instruments.
#[derive(Default)]
pub struct ReceivedMarket(RwLock<Shelves>);

impl ReceivedMarket {
    fn read(&self) -> RwLockReadGuard<'_, Shelves> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shelves> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in how an instrument is. Subscribers hear of it when all of this turn are taken in: see [`ReceivedMarket::ring`]. What
    /// changes nothing rings no subscriber.
    pub fn tell(&self, symbol: &str, told: &MarketTold) {
        let before = self.of(symbol, |shelf| (Arc::clone(&shelf.book), shelf.is_book_looked_at()));
        let (before, is_looked_at) = before.unwrap_or_default();
        // The text of the change is written while all may look.
        let next = before.next(symbol, &told.book, is_looked_at);
        let mut shelves = self.write();
        let Shelves { by_symbol, changed } = &mut *shelves;
        let keep = kept_of_each(by_symbol.len());
        let shelf = by_symbol.entry(symbol.to_owned()).or_default();
        if told.instrument < shelf.instrument {
            return;
        }
        let of = std::mem::replace(&mut shelf.instrument, told.instrument);
        // No socket has read anything yet of one that comes for the first time.
        if of != told.instrument && shelf.tape.end() > 0 {
            shelf.tape = shelf.tape.of_another();
        }
        let is_same = next.is_none()
            && told.news.is_empty()
            && (shelf.phase, shelf.tape.day().day) == (told.phase, told.day);
        shelf.book = next.map_or(before, Arc::new);
        shelf.phase = told.phase;
        shelf.tape.on_day(told.day, told.is_whole);
        told.news.iter().for_each(|news| shelf.tape.take(*news, keep));
        if !is_same {
            shelf.ticker.take();
            changed.push(symbol.to_owned());
        }
    }

    /// Rings who listens to what has changed: once, however much that is.
    pub fn ring(&self) {
        let mut shelves = self.write();
        let Shelves { by_symbol, changed } = &mut *shelves;
        for symbol in changed.drain(..) {
            let Some(shelf) = by_symbol.get_mut(&symbol) else { continue };
            shelf.listeners.retain(|one| one.rung.upgrade().map(|rung| rung.notify_one()).is_some());
        }
    }

    /// Looks at that instrument, if it was received.
    pub(crate) fn of<T>(&self, symbol: &str, look: impl FnOnce(&Shelf) -> T) -> Option<T> {
        self.read().by_symbol.get(symbol).map(look)
    }

    /// Rings one whenever something of that instrument changes, who looks at its book, or not. Whether there is one.
    pub(crate) fn listen(&self, symbol: &str, rung: &Arc<Notify>, looks_at_book: bool) -> bool {
        let mut shelves = self.write();
        let Some(Shelf { listeners, .. }) = shelves.by_symbol.get_mut(symbol) else { return false };
        listeners.retain(|one| one.rung.strong_count() > 0);
        let rung = Arc::downgrade(rung);
        match listeners.iter_mut().find(|one| one.rung.ptr_eq(&rung)) {
            Some(known) => known.looks_at_book |= looks_at_book,
            None => listeners.push(Listener { rung, looks_at_book }),
        }
        true
    }
}
