//! Messages become books: what a receiver knows of each instrument.

use std::collections::BTreeMap;

use pares_types::{Price, Quantity, Side};

use crate::itch::{self, FeedMessage};

/// The books of a shard, as far as its messages have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedBooks {
    books: BTreeMap<u16, ReceivedBook>,
    /// Where each displayed order is.
    orders: BTreeMap<u64, Place>,
    /// Messages that fit nothing: of orders that are not there, of none of the kinds, with more shares than there are.
    pub misfits: u64,
}

/// One instrument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedBook {
    /// Its name.
    pub symbol: String,
    /// H halted or closed, Q a call, T trading.
    pub state: u8,
    /// Why, as [`itch::TradingAction::reason`].
    pub reason: [u8; 4],
    /// The last trade: price, shares.
    pub last: Option<(Price, Quantity)>,
    /// In a call, what its auction would do: price, shares.
    pub indicative: Option<(Price, Quantity)>,
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

impl ReceivedBook {
    /// The displayed orders of a side, as they would trade: price, shares, reference.
    pub fn orders(&self, side: Side) -> impl Iterator<Item = (Price, Quantity, u64)> + '_ {
        let price = move |rank: i64| Price(if side == Side::Buy { -rank } else { rank });
        self.side(side).iter().map(move |(&(rank, reference), &shares)| (price(rank), shares, reference))
    }

    fn side(&self, side: Side) -> &BTreeMap<Rank, Quantity> {
        if side == Side::Buy { &self.bids } else { &self.offers }
    }

    fn side_mut(&mut self, side: Side) -> &mut BTreeMap<Rank, Quantity> {
        if side == Side::Buy { &mut self.bids } else { &mut self.offers }
    }
}

impl ReceivedBooks {
    /// The book of an instrument.
    #[must_use]
    pub fn book(&self, locate: u16) -> Option<&ReceivedBook> {
        self.books.get(&locate)
    }

    /// All books, by locate.
    pub fn all(&self) -> impl Iterator<Item = (u16, &ReceivedBook)> {
        self.books.iter().map(|(locate, book)| (*locate, book))
    }

    /// The next message of the session. What fits nothing is counted and changes nothing.
    pub fn on_message(&mut self, bytes: &[u8]) {
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
                let place = self.take_off(of.reference.get(), shares)?;
                self.books.get_mut(&locate)?.last = Some((place.price, shares));
            }
            FeedMessage::ExecutedAt(of) => {
                let shares = Quantity(of.shares.get().into());
                self.take_off(of.reference.get(), shares)?;
                if of.printable == b'Y' {
                    self.books.get_mut(&locate)?.last = Some((Price(of.price.get().into()), shares));
                }
            }
            FeedMessage::Cancelled(of) => {
                self.take_off(of.reference.get(), Quantity(of.shares.get().into()))?;
            }
            FeedMessage::Deleted(of) => {
                self.remove(of.reference.get())?;
            }
            FeedMessage::Replaced(of) => {
                let place = self.remove(of.original.get())?;
                let place = Place { price: Price(of.price.get().into()), ..place };
                self.add(of.reference.get(), place, Quantity(of.shares.get().into()))?;
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

    fn add(&mut self, reference: u64, place: Place, shares: Quantity) -> Option<()> {
        let book = self.books.get_mut(&place.locate)?;
        if shares.is_zero() || self.orders.contains_key(&reference) {
            return None;
        }
        self.orders.insert(reference, place);
        book.side_mut(place.side).insert(place.rank(reference), shares);
        Some(())
    }

    fn remove(&mut self, reference: u64) -> Option<Place> {
        let place = self.orders.remove(&reference)?;
        self.books.get_mut(&place.locate)?.side_mut(place.side).remove(&place.rank(reference))?;
        Some(place)
    }

    fn take_off(&mut self, reference: u64, shares: Quantity) -> Option<Place> {
        let place = *self.orders.get(&reference)?;
        let there =
            self.books.get_mut(&place.locate)?.side_mut(place.side).get_mut(&place.rank(reference))?;
        let left = there.0.checked_sub(shares.0)?;
        *there = Quantity(left);
        if left == 0 {
            self.remove(reference)?;
        }
        Some(place)
    }
}
