//! Books that are obviously right: the twin of those that are fast.

use std::collections::BTreeMap;

use pares_feed::books::ReceivedBooks;
use pares_feed::itch::{self, FeedMessage};
use pares_types::{Price, Quantity, Side};

/// The books of a shard, as far as its messages have come.
#[derive(Default)]
pub(crate) struct TwinBooks {
    orders_max: usize,
    books: BTreeMap<u16, TwinBook>,
    /// Where each displayed order is.
    orders: BTreeMap<u64, Place>,
    /// Messages that fit nothing: of orders that are not there, of none of the kinds, with more shares than there are.
    misfits: u64,
}

/// One instrument.
#[derive(Default)]
struct TwinBook {
    /// Its name.
    symbol: String,
    /// H halted or closed, Q a call, T trading.
    state: u8,
    /// Why, as [`itch::TradingAction::reason`].
    reason: [u8; 4],
    /// The last trade: price, shares.
    last: Option<(Price, Quantity)>,
    /// In a call, what its auction would do: price, shares.
    indicative: Option<(Price, Quantity)>,
    bids: BTreeMap<Rank, Quantity>,
    offers: BTreeMap<Rank, Quantity>,
}

/// Better prices first, then lower references: the order of the queues, since a reference is given out as its order joins.
type Rank = (i64, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    locate: u16,
    side: Side,
    price: Price,
}

impl Place {
    fn rank(&self, reference: u64) -> Rank {
        (if self.side == Side::Buy { -self.price.0 } else { self.price.0 }, reference)
    }
}

impl TwinBook {
    /// The displayed orders of a side, as they would trade: price, shares, reference.
    fn orders(&self, side: Side) -> impl Iterator<Item = (Price, Quantity, u64)> + '_ {
        let price = move |rank: i64| Price(if side == Side::Buy { -rank } else { rank });
        self.side(side).iter().map(move |(&(rank, reference), &shares)| (price(rank), shares, reference))
    }

    fn levels(&self, side: Side) -> Vec<(Price, Quantity, u64)> {
        let mut levels: Vec<(Price, Quantity, u64)> = Vec::new();
        for (price, shares, _) in self.orders(side) {
            match levels.last_mut().filter(|level| level.0 == price) {
                Some(level) => (level.1.0, level.2) = (level.1.0 + shares.0, level.2 + 1),
                None => levels.push((price, shares, 1)),
            }
        }
        levels
    }

    fn side(&self, side: Side) -> &BTreeMap<Rank, Quantity> {
        if side == Side::Buy { &self.bids } else { &self.offers }
    }

    fn side_mut(&mut self, side: Side) -> &mut BTreeMap<Rank, Quantity> {
        if side == Side::Buy { &mut self.bids } else { &mut self.offers }
    }
}

impl TwinBooks {
    pub(crate) fn new(orders_max: usize) -> Self {
        Self { orders_max, ..Self::default() }
    }

    /// The next message of the session. What fits nothing is counted and changes nothing.
    pub(crate) fn on_message(&mut self, bytes: &[u8]) {
        let fits = FeedMessage::read(bytes).is_some_and(|message| self.apply(&message).is_some());
        self.misfits += u64::from(!fits);
    }

    /// `None` if it fits nothing.
    fn apply(&mut self, message: &FeedMessage<'_>) -> Option<()> {
        let locate = message.head().locate.get();
        match message {
            FeedMessage::SystemEvent(_) | FeedMessage::Broken(_) => {}
            FeedMessage::Directory(of) => {
                let symbol = String::from_utf8_lossy(&of.stock).trim_end().to_owned();
                self.books.entry(locate).or_default().symbol = symbol;
            }
            FeedMessage::TradingAction(of) => {
                let book = self.books.get_mut(&locate)?;
                (book.state, book.reason, book.indicative) = (of.state, of.reason, None);
            }
            FeedMessage::AddOrder(of) => {
                let place =
                    Place { locate, side: itch::side_of(of.side)?, price: Price(of.price.get().into()) };
                self.add(of.reference.get(), place, Quantity(of.shares.get().into()))?;
            }
            FeedMessage::Executed(of) => {
                let shares = Quantity(of.shares.get().into());
                let place = self.take_off(locate, of.reference.get(), shares)?;
                self.books.get_mut(&locate)?.last = Some((place.price, shares));
            }
            FeedMessage::ExecutedAt(of) => {
                let shares = Quantity(of.shares.get().into());
                self.take_off(locate, of.reference.get(), shares)?;
                if of.printable == b'Y' {
                    self.books.get_mut(&locate)?.last = Some((Price(of.price.get().into()), shares));
                }
            }
            FeedMessage::Cancelled(of) => {
                self.take_off(locate, of.reference.get(), Quantity(of.shares.get().into()))?;
            }
            FeedMessage::Deleted(of) => {
                self.remove(locate, of.reference.get())?;
            }
            FeedMessage::Replaced(of) => {
                let (original, reference) = (of.original.get(), of.reference.get());
                let is_new = reference == original || !self.orders.contains_key(&reference);
                let place = self.find(locate, original).filter(|_| is_new && of.shares.get() > 0)?;
                self.remove(locate, original)?;
                let place = Place { price: Price(of.price.get().into()), ..place };
                self.add(reference, place, Quantity(of.shares.get().into()))?;
            }
            FeedMessage::Trade(of) => {
                let trade = (Price(of.price.get().into()), Quantity(of.shares.get().into()));
                self.books.get_mut(&locate)?.last = Some(trade);
            }
            FeedMessage::Cross(of) => {
                let trade = (Price(of.price.get().into()), Quantity(of.shares.get()));
                self.books.get_mut(&locate)?.last = Some(trade);
            }
            FeedMessage::Imbalance(of) => {
                let told = (Price(of.near.get().into()), Quantity(of.paired.get()));
                self.books.get_mut(&locate)?.indicative = Some(told).filter(|_| of.direction != b'O');
            }
        }
        Some(())
    }

    fn find(&self, locate: u16, reference: u64) -> Option<Place> {
        self.orders.get(&reference).copied().filter(|place| place.locate == locate)
    }

    fn add(&mut self, reference: u64, place: Place, shares: Quantity) -> Option<()> {
        let book = self.books.get_mut(&place.locate)?;
        let is_full = self.orders.len() >= self.orders_max;
        if shares.is_zero() || is_full || self.orders.contains_key(&reference) {
            return None;
        }
        self.orders.insert(reference, place);
        book.side_mut(place.side).insert(place.rank(reference), shares);
        Some(())
    }

    fn remove(&mut self, locate: u16, reference: u64) -> Option<()> {
        let place = self.find(locate, reference)?;
        self.orders.remove(&reference)?;
        self.books.get_mut(&place.locate)?.side_mut(place.side).remove(&place.rank(reference))?;
        Some(())
    }

    fn take_off(&mut self, locate: u16, reference: u64, shares: Quantity) -> Option<Place> {
        let place = self.find(locate, reference)?;
        let there =
            self.books.get_mut(&place.locate)?.side_mut(place.side).get_mut(&place.rank(reference))?;
        let left = there.0.checked_sub(shares.0)?;
        *there = Quantity(left);
        if left == 0 {
            self.remove(locate, reference)?;
        }
        Some(place)
    }

    /// Whether the fast books show the same.
    pub(crate) fn assert_shown_by(&self, fast: &ReceivedBooks) {
        assert_eq!(self.misfits, fast.misfits);
        assert!(self.books.keys().copied().eq(fast.all().map(|(locate, _)| locate)));
        for ((_, twin), (locate, fast)) in self.books.iter().zip(fast.all()) {
            assert_eq!(fast.symbol, twin.symbol);
            assert_eq!((fast.state, fast.reason), (twin.state, twin.reason));
            assert_eq!((fast.last, fast.indicative), (twin.last, twin.indicative));
            for side in [Side::Buy, Side::Sell] {
                let (orders, levels) = (twin.orders(side).collect::<Vec<_>>(), twin.levels(side));
                assert_eq!(fast.orders(side).collect::<Vec<_>>(), orders, "instrument {locate}");
                assert_eq!(fast.levels(side).collect::<Vec<_>>(), levels);
                assert_eq!(fast.best(side), levels.first().copied());
            }
        }
    }
}
