//! Messages become books: what a receiver knows of each instrument.
//!
//! Maps of maps would be right and slow: with millions of orders each step down a tree misses the cache. Here a message finds its order by one
//! probe of a table and touches the order, its price and its neighbours (`queues`), and of the book only what is best (`prices`). Messages
//! that come together are looked ahead at, so that they miss the cache together ([`ReceivedBooks::on_messages`]).

mod ahead;
mod prices;
mod queues;

use pares_table::SlabIndex;
use pares_types::{Phase, Price, Quantity, Side};

use crate::itch::{self, FeedMessage};
pub(crate) use ahead::AHEAD;
use ahead::Ahead;
use prices::{Prices, Rank};
use queues::{Level, Order, Queues};

/// The most orders that books hold unless it is said otherwise: some 4 GiB.
pub const ORDERS_MAX: usize = 1 << 26;

/// The books of a shard, as far as its messages have come.
#[derive(Clone, Debug)]
pub struct ReceivedBooks {
    /// Whether a message has named it, by locate.
    listed: Vec<bool>,
    /// By locate.
    books: Vec<Book>,
    /// By locate.
    told: Vec<Told>,
    queues: Queues,
    ahead: Box<Ahead>,
    /// What the messages that came last traded.
    traded: Vec<BookTrade>,
    /// Messages that fit nothing: of orders that are not there or of another instrument, of none of the kinds, with more shares than there are.
    pub misfits: u64,
}

/// A trade of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookTrade {
    /// Its number, which rises within a shard and is never used twice: position * 65,536 + event.
    pub number: u64,
    /// Its price.
    pub price: Price,
    /// Its shares.
    pub shares: Quantity,
    /// The side of the order that was there; of an auction none.
    pub resting: Option<Side>,
}

/// The prices of an instrument: bids, offers. One cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Book([Prices; 2]);

/// What else is known of an instrument.
#[derive(Clone, Debug, Default)]
struct Told {
    state: u8,
    reason: [u8; 4],
    last: Option<(Price, Quantity)>,
    indicative: Option<(Price, Quantity)>,
    symbol: String,
}

/// One instrument.
#[derive(Clone, Copy)]
pub struct ReceivedBook<'a> {
    /// Its name.
    pub symbol: &'a str,
    /// H halted or closed, Q a call, T trading.
    pub state: u8,
    /// Why, as [`itch::TradingAction::reason`].
    pub reason: [u8; 4],
    /// The last trade: price, shares.
    pub last: Option<(Price, Quantity)>,
    /// In a call, what its auction would do: price, shares.
    pub indicative: Option<(Price, Quantity)>,
    book: &'a Book,
    queues: &'a Queues,
}

impl Book {
    fn side(&self, side: Side) -> &Prices {
        &self.0[usize::from(side == Side::Sell)]
    }

    fn side_mut(&mut self, side: Side) -> &mut Prices {
        &mut self.0[usize::from(side == Side::Sell)]
    }

    /// Touches the best prices: see [`ahead`].
    #[inline]
    fn glance(&self) -> u64 {
        self.0[0].glance() ^ self.0[1].glance()
    }
}

impl<'a> ReceivedBook<'a> {
    /// Its phase; none if no message has told it, or in a way that is not ours.
    #[must_use]
    pub fn phase(self) -> Option<Phase> {
        itch::phase_of(self.state, self.reason)
    }

    /// The displayed orders of a side, as they would trade: price, shares, reference.
    pub fn orders(self, side: Side) -> impl Iterator<Item = (Price, Quantity, u64)> + 'a {
        self.book.side(side).iter().flat_map(move |level| self.queues.queue(level))
    }

    /// The prices of a side, best first: price, shares, orders.
    pub fn levels(self, side: Side) -> impl Iterator<Item = (Price, Quantity, u64)> + 'a {
        self.book.side(side).iter().map(move |level| self.queues.told(level))
    }

    /// The best price of a side: price, shares, orders.
    #[must_use]
    pub fn best(self, side: Side) -> Option<(Price, Quantity, u64)> {
        self.book.side(side).best().map(|level| self.queues.told(level))
    }
}

impl PartialEq for ReceivedBook<'_> {
    fn eq(&self, other: &Self) -> bool {
        let known = |of: &Self| (of.state, of.reason, of.last, of.indicative);
        let alike = |side| self.orders(side).eq(other.orders(side));
        self.symbol == other.symbol && known(self) == known(other) && alike(Side::Buy) && alike(Side::Sell)
    }
}

impl Eq for ReceivedBook<'_> {}

impl std::fmt::Debug for ReceivedBook<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceivedBook")
            .field("symbol", &self.symbol)
            .field("state", &char::from(self.state))
            .field("reason", &self.reason)
            .field("last", &self.last)
            .field("indicative", &self.indicative)
            .field("bids", &self.orders(Side::Buy).collect::<Vec<_>>())
            .field("offers", &self.orders(Side::Sell).collect::<Vec<_>>())
            .finish()
    }
}

/// They are equal if they show the same and as much fitted nothing.
impl PartialEq for ReceivedBooks {
    fn eq(&self, other: &Self) -> bool {
        self.misfits == other.misfits && self.all().eq(other.all())
    }
}

impl Eq for ReceivedBooks {}

impl ReceivedBooks {
    /// Books that hold at most so many orders. What is in them does not depend on the seed, but how long it takes to find an order does:
    /// let no sender know it.
    #[must_use]
    pub fn new(orders_max: usize, seed: u64) -> Self {
        let queues = Queues::new(orders_max, seed);
        let ahead = Box::new(Ahead::new());
        let (listed, books, told, traded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { listed, books, told, queues, ahead, traded, misfits: 0 }
    }

    /// Books that hold as many orders as there may be.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self::new(ORDERS_MAX, seed)
    }

    /// The book of an instrument.
    #[must_use]
    pub fn book(&self, locate: u16) -> Option<ReceivedBook<'_>> {
        let at = usize::from(locate);
        let told = self.told.get(at).filter(|_| self.is_listed(locate))?;
        let (book, queues) = (&self.books[at], &self.queues);
        let Told { state, reason, last, indicative, ref symbol } = *told;
        Some(ReceivedBook { symbol, state, reason, last, indicative, book, queues })
    }

    /// All books, by locate.
    pub fn all(&self) -> impl Iterator<Item = (u16, ReceivedBook<'_>)> {
        let locates = (0..=u16::MAX).take(self.listed.len());
        locates.filter_map(|locate| Some((locate, self.book(locate)?)))
    }

    /// The trade that a message tells, if it is one of those that came last.
    #[must_use]
    pub fn traded(&self, bytes: &[u8]) -> Option<BookTrade> {
        let number = match FeedMessage::read(bytes)? {
            FeedMessage::Executed(of) => of.match_number,
            FeedMessage::ExecutedAt(of) => of.match_number,
            FeedMessage::Trade(of) => of.match_number,
            FeedMessage::Cross(of) => of.match_number,
            _ => return None,
        };
        self.traded.iter().find(|trade| trade.number == number.get()).copied()
    }

    /// The next message of the session. What fits nothing is counted and changes nothing.
    pub fn on_message(&mut self, bytes: &[u8]) {
        self.traded.clear();
        self.take(bytes);
    }

    #[inline]
    fn take(&mut self, bytes: &[u8]) {
        let fits = FeedMessage::read(bytes).is_some_and(|message| self.apply(&message).is_some());
        self.misfits += u64::from(!fits);
    }

    /// The next messages of the session: the same as one after the other, but sooner done.
    pub fn on_messages(&mut self, messages: &[&[u8]]) {
        self.traded.clear();
        for together in messages.chunks(AHEAD) {
            self.ahead.look(together, &self.books, &self.queues);
            together.iter().for_each(|message| self.take(message));
        }
    }

    /// `None` if it fits nothing.
    #[inline]
    fn apply(&mut self, message: &FeedMessage<'_>) -> Option<()> {
        let locate = message.head().locate.get();
        match message {
            FeedMessage::AddOrder(of) => {
                let (side, price) = (itch::side_of(of.side)?, of.price.get());
                self.add(of.reference.get(), (locate, side, price), of.shares.get())?;
            }
            FeedMessage::Executed(of) => {
                let (side, price) = self.take_off(locate, of.reference.get(), of.shares.get())?;
                self.trade(locate, (of.match_number.get(), Some(side)), (price, of.shares.get().into()))?;
            }
            FeedMessage::ExecutedAt(of) => {
                let (side, _) = self.take_off(locate, of.reference.get(), of.shares.get())?;
                if of.printable == b'Y' {
                    let told = (of.price.get(), of.shares.get().into());
                    self.trade(locate, (of.match_number.get(), Some(side)), told)?;
                }
            }
            FeedMessage::Cancelled(of) => {
                self.take_off(locate, of.reference.get(), of.shares.get())?;
            }
            FeedMessage::Deleted(of) => {
                let (order, _) = self.find(locate, of.reference.get())?;
                self.remove(order);
            }
            FeedMessage::Replaced(of) => self.replace(locate, of)?,
            FeedMessage::Trade(of) => {
                let by = (of.match_number.get(), itch::side_of(of.side));
                self.trade(locate, by, (of.price.get(), of.shares.get().into()))?;
            }
            FeedMessage::Cross(of) => {
                self.trade(locate, (of.match_number.get(), None), (of.price.get(), of.shares.get()))?;
            }
            FeedMessage::SystemEvent(_) | FeedMessage::Broken(_) => {}
            FeedMessage::Directory(of) => self.list(locate, of.stock),
            FeedMessage::TradingAction(of) => {
                let told = self.told_mut(locate)?;
                (told.state, told.reason, told.indicative) = (of.state, of.reason, None);
            }
            FeedMessage::Imbalance(of) => {
                let told = (Price(of.near.get().into()), Quantity(of.paired.get()));
                self.told_mut(locate)?.indicative = Some(told).filter(|_| of.direction != b'O');
            }
        }
        Some(())
    }

    #[cold]
    fn list(&mut self, locate: u16, stock: [u8; 8]) {
        let at = usize::from(locate);
        if at >= self.told.len() {
            self.books.resize_with(at + 1, Book::default);
            self.told.resize_with(at + 1, Told::default);
            self.listed.resize(at + 1, false);
        }
        let symbol = String::from_utf8_lossy(&stock).trim_end().to_owned();
        (self.listed[at], self.told[at].symbol) = (true, symbol);
    }

    fn told_mut(&mut self, locate: u16) -> Option<&mut Told> {
        if self.is_listed(locate) { self.told.get_mut(usize::from(locate)) } else { None }
    }

    #[inline]
    fn is_listed(&self, locate: u16) -> bool {
        self.listed.get(usize::from(locate)).is_some_and(|listed| *listed)
    }

    fn trade(
        &mut self,
        locate: u16,
        (number, resting): (u64, Option<Side>),
        (price, shares): (u32, u64),
    ) -> Option<()> {
        let (price, shares) = (Price(price.into()), Quantity(shares));
        self.told_mut(locate)?.last = Some((price, shares));
        self.traded.push(BookTrade { number, price, shares, resting });
        Some(())
    }

    /// The order of a reference and its level, if it is of that instrument.
    #[inline]
    fn find(&self, locate: u16, reference: u64) -> Option<(SlabIndex<Order>, &Level)> {
        let order = self.queues.find(reference)?;
        let level = self.queues.level(self.queues.order(order).level);
        (level.locate == locate).then_some((order, level))
    }

    #[inline]
    fn add(&mut self, reference: u64, (locate, side, price): (u16, Side, u32), shares: u32) -> Option<()> {
        if shares == 0
            || !self.is_listed(locate)
            || self.queues.is_full()
            || self.queues.find(reference).is_some()
        {
            return None;
        }
        let prices = self.books[usize::from(locate)].side_mut(side);
        let rank = Rank::of(side, price);
        let level = prices.get(rank).unwrap_or_else(|| {
            let level = self.queues.open(locate, side, price);
            prices.insert(rank, level);
            level
        });
        self.queues.push(reference, shares, level);
        Some(())
    }

    fn replace(&mut self, locate: u16, of: &itch::Replaced) -> Option<()> {
        let (original, reference, shares) = (of.original.get(), of.reference.get(), of.shares.get());
        let (order, level) = self.find(locate, original)?;
        let side = level.side;
        if shares == 0 || (reference != original && self.queues.find(reference).is_some()) {
            return None;
        }
        self.remove(order);
        self.add(reference, (locate, side, of.price.get()), shares)
    }

    #[inline]
    fn remove(&mut self, order: SlabIndex<Order>) {
        if let Some(Level { locate, side, price, .. }) = self.queues.remove(order) {
            self.books[usize::from(locate)].side_mut(side).remove(Rank::of(side, price));
        }
    }

    /// Takes shares off an order, and it off its book if none are left. Its side and price.
    #[inline]
    fn take_off(&mut self, locate: u16, reference: u64, shares: u32) -> Option<(Side, u32)> {
        let (order, &Level { side, price, .. }) = self.find(locate, reference)?;
        match self.queues.order(order).shares.checked_sub(shares)? {
            0 => self.remove(order),
            _ => self.queues.reduce(order, shares),
        }
        Some((side, price))
    }
}
