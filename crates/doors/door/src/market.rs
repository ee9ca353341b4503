//! Market data for a session that asks (V): whole books (W), what changed of them (X), or why not (Y).
//!
//! Sending every change to every subscriber makes one that reads slowly fall behind for ever, and costs memory meanwhile. Here nothing is queued. A
//! subscription remembers the books that it was sent last, which all sessions share; whenever it may be sent more, it receives the
//! difference to the books of now, however much lies between. So what a subscriber holds and the next X make the market's book, however seldom it reads.
//!
//! ```text
//!   V --> waiting, until the books it names are there --W--> open --X, W--> ... --V 263=2--> gone
//!           +--Y: no such symbol, or nothing came for five seconds
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pares_fix::dictionary::tag;
use pares_fix::message::FixMessage;
use pares_port::{Levels, MarketBook, MarketSubscription, MarketView};
use pares_types::{InstrumentId, Price, Quantity};

use crate::instruments::Instruments;
use crate::market_told::{MarketEntry, MarketReject, MarketTold, entry, update};
use crate::outbound::Told;
use crate::request::NO_INSTRUMENT;

/// Prices of each side that are sent.
const DEPTH_MAX: usize = 50;
/// Symbols of a session's subscriptions, and requests that wait, together.
const SYMBOLS_MAX: usize = 256;
/// Entries of an X: some 60 bytes each, and peers take messages of 8 KiB.
const ENTRIES_MAX: usize = 100;
/// A longer MDReqID is refused.
const ID_BYTES_MAX: usize = 64;
/// The feed has no name for an instrument with a longer symbol, and is silent on it.
const SYMBOL_BYTES_MAX: usize = 8;
/// How long a request waits for books that are not there.
const PATIENCE_NS: u64 = 5_000_000_000;

/// MDReqRejReason (281).
mod reject {
    pub(super) const UNKNOWN_SYMBOL: u8 = b'0';
    pub(super) const DUPLICATE_ID: u8 = b'1';
    pub(super) const BANDWIDTH: u8 = b'2';
    pub(super) const DEPTH: u8 = b'5';
    pub(super) const UPDATE_TYPE: u8 = b'6';
    pub(super) const AGGREGATED: u8 = b'7';
    pub(super) const ENTRY_TYPE: u8 = b'8';
}

/// What a request asks for.
#[derive(Clone, Debug)]
struct Wanted {
    /// MDReqID.
    id: Vec<u8>,
    lasts: bool,
    /// Each time whole, instead of what changed.
    is_whole: bool,
    depth: usize,
    bids: bool,
    offers: bool,
    trades: bool,
    symbols: Vec<Arc<str>>,
}

/// A request that waits, and how long it does.
#[derive(Debug)]
struct Waiting {
    wanted: Wanted,
    until_ns: u64,
}

/// A subscription, and the books that it was sent last.
#[derive(Debug)]
struct Subscription {
    wanted: Wanted,
    told: Vec<Arc<MarketBook>>,
}

/// What a session has asked of the market.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    waiting: Vec<Waiting>,
    open: BTreeMap<Vec<u8>, Subscription>,
}

/// MDReqRejReason, if there is one for it, and words.
type Refused = (Option<u8>, &'static str);

const NO_SYMBOL: Refused = (Some(reject::UNKNOWN_SYMBOL), NO_INSTRUMENT);

impl Wanted {
    fn read(message: &FixMessage<'_>, lasts: bool, instruments: &Instruments) -> Result<Self, Refused> {
        let id = message.text(tag::MD_REQ_ID).unwrap_or_default().to_vec();
        let depth = message.text(tag::MARKET_DEPTH).unwrap_or_default();
        let depth = match std::str::from_utf8(depth).ok().and_then(|text| text.parse().ok()) {
            Some(0) => DEPTH_MAX,
            Some(depth @ 1..=DEPTH_MAX) => depth,
            _ => return Err((Some(reject::DEPTH), "MarketDepth (264) must be 0 to 50")),
        };
        let is_whole = match message.text(tag::MD_UPDATE_TYPE) {
            Some(b"0") => true,
            Some(_) => false,
            None if lasts => return Err((Some(reject::UPDATE_TYPE), "MDUpdateType (265) must be 0 or 1")),
            None => false,
        };
        if message.text(tag::AGGREGATED_BOOK) == Some(b"N") {
            return Err((Some(reject::AGGREGATED), "AggregatedBook (266) must be Y: price levels only"));
        }
        let kinds: Vec<&[u8]> = values(message, tag::MD_ENTRY_TYPE).collect();
        if kinds.is_empty() || kinds.iter().any(|kind| !matches!(kind, [entry::BID..=entry::TRADE])) {
            return Err((Some(reject::ENTRY_TYPE), "MDEntryType (269) must be 0, 1 or 2"));
        }
        let [bids, offers, trades] =
            [entry::BID, entry::OFFER, entry::TRADE].map(|kind| kinds.contains(&&[kind][..]));
        let symbols = symbols(message, instruments)?;
        let is_silent = |symbol: &Arc<str>| {
            symbol.len() > SYMBOL_BYTES_MAX && instruments.by_symbol(symbol.as_bytes()).is_some()
        };
        if symbols.iter().any(is_silent) {
            let text = "market data cover only a Symbol (55) of up to 8 characters";
            return Err((Some(reject::UNKNOWN_SYMBOL), text));
        }
        if id.len() > ID_BYTES_MAX || symbols.is_empty() {
            return Err((None, "MDReqID (262): at most 64 bytes; NoRelatedSym (146): at least 1"));
        }
        Ok(Self { id, lasts, is_whole, depth, bids, offers, trades, symbols })
    }

    /// What it receives of a book. A book that is not current shows nothing.
    fn shown(&self, book: &MarketBook) -> Levels {
        let side = |is_wanted: bool, levels: &[(Price, Quantity)]| {
            let depth = if is_wanted && book.is_current { self.depth } else { 0 };
            levels.iter().take(depth).copied().collect()
        };
        Levels { bids: side(self.bids, &book.levels.bids), offers: side(self.offers, &book.levels.offers) }
    }

    fn snapshot(&self, symbol: &Arc<str>, book: &MarketBook) -> Told {
        let Levels { bids, offers } = self.shown(book);
        let last = book.last.filter(|_| self.trades && book.is_current);
        let sides = [(entry::BID, bids), (entry::OFFER, offers), (entry::TRADE, last.into_iter().collect())];
        let entries = sides.into_iter().flat_map(|(kind, levels)| {
            levels.into_iter().map(move |(price, quantity)| MarketEntry {
                kind,
                update: None,
                price,
                quantity,
            })
        });
        let (id, symbol, entries) = (self.id.clone(), Arc::clone(symbol), entries.collect());
        Told::Market(MarketTold::Snapshot { id, symbol, entries })
    }

    /// What changed of a book.
    fn changes(&self, symbol: &Arc<str>, before: &MarketBook, now: &MarketBook) -> Vec<MarketEntry> {
        let (old, new) = (self.shown(before), self.shown(now));
        let changed = new.since(&old);
        let is_news = now.trade.is_some() && now.trade != before.trade;
        let last = now.last.filter(|_| self.trades && is_news);
        let sides = [
            (entry::BID, &old.bids, changed.bids),
            (entry::OFFER, &old.offers, changed.offers),
            (entry::TRADE, &Vec::new(), last.into_iter().collect()),
        ];
        let mut entries = Vec::new();
        for (kind, old, changed) in sides {
            entries.extend(changed.into_iter().map(|(price, quantity)| {
                let action = match old.iter().any(|(known, _)| *known == price) {
                    _ if quantity.is_zero() => update::DELETE,
                    true => update::CHANGE,
                    false => update::NEW,
                };
                MarketEntry { kind, update: Some((action, Arc::clone(symbol))), price, quantity }
            }));
        }
        entries
    }
}

impl Subscriptions {
    /// MarketDataRequest. Gives its refusal.
    pub(crate) fn on_question(
        &mut self,
        message: &FixMessage<'_>,
        has_market: bool,
        (instruments, utc_ns): (&Instruments, u64),
    ) -> Option<Told> {
        let id = message.text(tag::MD_REQ_ID).unwrap_or_default();
        let refused = match message.text(tag::SUBSCRIPTION_REQUEST_TYPE) {
            Some(b"2") => self.end(id),
            _ if !has_market => Err((Some(reject::UNKNOWN_SYMBOL), "the exchange publishes no market data")),
            kind => {
                let wanted = Wanted::read(message, kind == Some(b"1"), instruments);
                wanted.and_then(|wanted| self.ask(wanted, utc_ns))
            }
        };
        refused.err().map(|why| rejected(id[..id.len().min(ID_BYTES_MAX)].to_vec(), why))
    }

    /// Tells what there is to tell of the market by now.
    pub(crate) fn tell(&mut self, view: &dyn MarketView, instruments: &Instruments, told: &mut Vec<Told>) {
        self.answer(view, instruments, told);
        self.open.values_mut().for_each(|subscription| subscription.tell(view, told));
    }

    pub(crate) fn wish(&self) -> MarketSubscription {
        match () {
            () if !self.waiting.is_empty() => MarketSubscription::Now,
            () if !self.open.is_empty() => MarketSubscription::Changes,
            () => MarketSubscription::Nothing,
        }
    }

    /// When a request has waited long enough.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.waiting.iter().map(|waiting| waiting.until_ns).min()
    }

    fn ask(&mut self, wanted: Wanted, now_ns: u64) -> Result<(), Refused> {
        let asked = self.waiting.iter().map(|waiting| &waiting.wanted);
        let mut asked = asked.chain(self.open.values().map(|open| &open.wanted));
        if asked.clone().map(|asked| asked.symbols.len()).sum::<usize>() + wanted.symbols.len() > SYMBOLS_MAX
        {
            return Err((Some(reject::BANDWIDTH), "a session may subscribe to at most 256 books"));
        }
        if asked.any(|asked| asked.id == wanted.id) {
            return Err((Some(reject::DUPLICATE_ID), "that MDReqID (262) is already in use"));
        }
        self.waiting.push(Waiting { wanted, until_ns: now_ns.saturating_add(PATIENCE_NS) });
        Ok(())
    }

    fn end(&mut self, id: &[u8]) -> Result<(), Refused> {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.wanted.id != id);
        let was_there = self.open.remove(id).is_some() || self.waiting.len() < before;
        if was_there { Ok(()) } else { Err((None, "no subscription has that MDReqID (262)")) }
    }

    /// Answers the requests whose books are there.
    fn answer(&mut self, view: &dyn MarketView, instruments: &Instruments, told: &mut Vec<Told>) {
        // Asked before the books: a market that is whole then has them.
        let is_whole = view.is_whole();
        for Waiting { wanted, until_ns } in std::mem::take(&mut self.waiting) {
            // Of an instrument that is there and of which nothing was ever told, the book is empty.
            let is_known = |symbol: &str| is_whole && instruments.by_symbol(symbol.as_bytes()).is_some();
            let empty = || Arc::new(MarketBook { is_current: true, ..MarketBook::default() });
            let book = |symbol: &Arc<str>| view.book(symbol).or_else(|| is_known(symbol).then(empty));
            let books = wanted.symbols.iter().map(book).collect::<Option<Vec<_>>>();
            // Books may have gone meanwhile: then they were not empty.
            let is_whole = is_whole && view.is_whole();
            match books
                .filter(|_| is_whole || wanted.symbols.iter().all(|symbol| view.book(symbol).is_some()))
            {
                Some(books) if books.iter().all(|book| book.is_current) => self.open(wanted, books, told),
                None if is_whole => told.push(rejected(wanted.id, NO_SYMBOL)),
                _ => self.waiting.push(Waiting { wanted, until_ns }),
            }
        }
    }

    fn open(&mut self, wanted: Wanted, books: Vec<Arc<MarketBook>>, told: &mut Vec<Told>) {
        told.extend(wanted.symbols.iter().zip(&books).map(|(symbol, book)| wanted.snapshot(symbol, book)));
        if wanted.lasts {
            self.open.insert(wanted.id.clone(), Subscription { wanted, told: books });
        }
    }

    /// Gives up what waited without success: for an instrument that is not listed, or while market data were not there.
    pub(crate) fn give_up(&mut self, now_ns: u64, instruments: &Instruments, told: &mut Vec<Told>) {
        for Waiting { wanted, .. } in self.waiting.extract_if(.., |waiting| waiting.until_ns <= now_ns) {
            let is_known = |symbol: &Arc<str>| instruments.by_symbol(symbol.as_bytes()).is_some();
            let why = match wanted.symbols.iter().all(is_known) {
                true => (Some(reject::BANDWIDTH), "market data are not available now: try again"),
                false => NO_SYMBOL,
            };
            told.push(rejected(wanted.id, why));
        }
    }
}

impl Subscription {
    /// Tells the difference to the books that were sent last: one X, or one W for each book.
    fn tell(&mut self, view: &dyn MarketView, told: &mut Vec<Told>) {
        let Self { wanted, told: last } = self;
        let mut entries = Vec::new();
        for (symbol, before) in wanted.symbols.iter().zip(last) {
            let now = view.book(symbol).unwrap_or_default();
            if Arc::ptr_eq(&now, before) {
                continue;
            }
            let changes = wanted.changes(symbol, before, &now);
            if wanted.is_whole && !changes.is_empty() {
                told.push(wanted.snapshot(symbol, &now));
            } else {
                entries.extend(changes);
            }
            *before = now;
        }
        told.extend(entries.chunks(ENTRIES_MAX).map(|entries| {
            Told::Market(MarketTold::Refresh { id: wanted.id.clone(), entries: entries.to_vec() })
        }));
    }
}

fn rejected(id: Vec<u8>, (reason, text): Refused) -> Told {
    Told::MarketReject(MarketReject { id, reason, text })
}

/// The values of a field of groups.
fn values<'a>(message: &FixMessage<'a>, tag: u16) -> impl Iterator<Item = &'a [u8]> {
    message
        .body()
        .filter(move |field| field.is_in_group && field.tag == i32::from(tag))
        .map(|field| field.value)
}

/// What an entry of a request names.
struct Named<'a> {
    /// Symbol (55), which begins it.
    symbol: &'a [u8],
    /// SecurityID (48).
    number: Option<&'a [u8]>,
    /// Whether that is the exchange's own: SecurityIDSource (22) is 8.
    is_ours: bool,
}

impl Named<'_> {
    /// The symbol; of a number that no instrument has there is none.
    fn symbol(&self, instruments: &Instruments) -> Option<Arc<str>> {
        let Some(number) = self.number.filter(|_| self.is_ours) else {
            return Some(String::from_utf8_lossy(self.symbol).into());
        };
        let instrument = std::str::from_utf8(number).ok()?.parse().ok().map(InstrumentId)?;
        instruments.has(instrument).then(|| instruments.symbol(instrument).into())
    }
}

/// The symbols that a request names, each once: by number (48, if 22 is 8), or else by Symbol (55).
fn symbols(message: &FixMessage<'_>, instruments: &Instruments) -> Result<Vec<Arc<str>>, Refused> {
    let mut named: Vec<Named<'_>> = Vec::new();
    for field in message.body().filter(|field| field.is_in_group) {
        let tag = u16::try_from(field.tag);
        if tag == Ok(tag::SYMBOL) {
            named.push(Named { symbol: field.value, number: None, is_ours: false });
        }
        let Some(last) = named.last_mut() else { continue };
        match tag {
            Ok(tag::SECURITY_ID) => last.number = Some(field.value),
            Ok(tag::SECURITY_ID_SOURCE) => last.is_ours = field.value == b"8",
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    let symbols: Option<Vec<_>> = named.iter().map(|one| one.symbol(instruments)).collect();
    Ok(symbols.ok_or(NO_SYMBOL)?.into_iter().filter(|symbol| seen.insert(Arc::clone(symbol))).collect())
}
