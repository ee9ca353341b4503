//! The market as a receiver of market data tells it, for all who look: of each instrument its book and its tape.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use axum::http::StatusCode;
use pares_http::problem::Problem;
use pares_resources::tape::{Tape, TapeNews, kept_of_each};
use pares_types::{BusinessDay, Phase, Reason};
use tokio::sync::Notify;

use crate::app::App;
use crate::books::{BookNow, BookTold};
use crate::refused;

/// What there is to say of an instrument.
#[derive(Clone, Debug)]
pub struct MarketTold {
    /// Its book.
    pub book: BookTold,
    /// Its phase, as far as it was told.
    pub phase: Option<Phase>,
    /// The business day that is on.
    pub day: BusinessDay,
    /// Whether all of that day was received.
    pub is_whole: bool,
    /// What its tape says since the last time.
    pub news: Vec<TapeNews>,
}

/// What is known of an instrument, and who wants to hear of it.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) book: Arc<BookNow>,
    pub(crate) tape: Tape,
    pub(crate) phase: Option<Phase>,
    listeners: Vec<Weak<Notify>>,
}

/// All instruments, by symbol.
#[derive(Default)]
pub struct Market(RwLock<BTreeMap<String, Shelf>>);

impl Market {
    /// Takes in what is told of an instrument. What leaves it as it was is told to nobody.
    pub fn tell(&self, symbol: &str, told: &MarketTold) {
        let mut shelves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let keep = kept_of_each(shelves.len());
        let shelf = shelves.entry(symbol.to_owned()).or_default();
        let next = shelf.book.next(symbol, &told.book);
        let is_same = next.is_none()
            && told.news.is_empty()
            && (shelf.phase, shelf.tape.day().day) == (told.phase, told.day);
        shelf.book = next.map_or_else(|| Arc::clone(&shelf.book), Arc::new);
        shelf.phase = told.phase;
        shelf.tape.on_day(told.day, told.is_whole);
        told.news.iter().for_each(|news| shelf.tape.take(*news, keep));
        if !is_same {
            shelf
                .listeners
                .retain(|listener| listener.upgrade().map(|listener| listener.notify_one()).is_some());
        }
    }

    /// Looks at what is known of that instrument.
    pub(crate) fn of<T>(&self, symbol: &str, look: impl FnOnce(&Shelf) -> T) -> Option<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(symbol).map(look)
    }

    /// Rings `listener` whenever something of that instrument changes.
    pub(crate) fn listen(&self, symbol: &str, listener: &Arc<Notify>) {
        let mut shelves = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(Shelf { listeners, .. }) = shelves.get_mut(symbol) else { return };
        listeners.retain(|listener| listener.strong_count() > 0);
        let listener = Arc::downgrade(listener);
        if !listeners.iter().any(|other| other.ptr_eq(&listener)) {
            listeners.push(listener);
        }
    }
}

impl App {
    /// Looks at what is known of that instrument.
    pub(crate) fn of_market<T>(&self, symbol: &str, look: impl FnOnce(&Shelf) -> T) -> Result<T, Problem> {
        let market = self.settings.market.as_ref().ok_or_else(no_market_data)?;
        market.of(symbol, look).ok_or_else(|| refused::refused(Reason::UnknownInstrument))
    }
}

fn no_market_data() -> Problem {
    Problem::of(StatusCode::NOT_FOUND, "the exchange publishes no market data").reason("no_market_data")
}
