//! What a book can do, whatever it is made of.

use crate::{Instrument, RestoreError, Snapshot, hash};
use pares_types::{ClientOrderId, EventSink, MemberId, OrderId, Outcome, Price, Quantity, Request, Side};

/// The place of an order in a book's queue: the book counts the orders it puts to rest, so of two
/// orders at one price the one with the lower number is older and trades first. An order that loses
/// its priority gets a new number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u64);

impl Priority {
    /// The number after this one.
    #[must_use]
    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("a book rests fewer than 2^64 orders"))
    }
}

/// One price of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: Price,
    /// Shares resting there.
    pub quantity: Quantity,
    /// Orders resting there.
    pub orders: u32,
}

/// An order on the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestingOrder {
    /// Its id: that of the request that entered it.
    pub order: OrderId,
    /// Its owner.
    pub member: MemberId,
    /// The owner's name for it.
    pub client_order_id: ClientOrderId,
    /// Bid or offer.
    pub side: Side,
    /// Its limit price.
    pub price: Price,
    /// Shares still to trade; never zero.
    pub remaining: Quantity,
    /// Shares traded so far.
    pub executed: Quantity,
    /// Its place in the queue of its price.
    pub priority: Priority,
}

/// A matching order book of one instrument with price-time priority.
///
/// # The rules
/// - A trade happens at the resting order's price; at one price the oldest order trades first.
/// - A market order accepts any price and never rests. `Day` with market means the same as `Ioc`.
/// - `Fok` trades all of its quantity or none of it.
/// - `post_only` is about entering: an amend of the order later may take liquidity.
/// - Amend (see [`Command::Amend`](pares_types::Command::Amend)): a smaller total at the same price
///   keeps the priority. Anything else takes the order off the book and enters what is left of it at
///   the new terms under its old id; its executed total goes on counting. Whenever the total shrinks
///   the difference is reported as cancelled.
/// - Only the owner may amend or cancel; to anyone else the order is unknown.
/// - A mass cancel takes the member's orders of both sides off in order of [`Priority`].
/// - A refused request leaves the book as it was. Refusing an amend reports the order's totals.
pub trait Book: Sized {
    /// An empty book.
    ///
    /// # Panics
    /// If `instrument` did not pass [`Instrument::new`].
    fn new(instrument: Instrument) -> Self;

    /// Rebuilds the book that `snapshot` was taken of. The two behave alike from then on, and their
    /// [`Book::state_hash`] is equal.
    ///
    /// # Errors
    /// [`RestoreError`] if no book of `instrument` can be in that state. Nothing was built.
    ///
    /// # Panics
    /// If `instrument` did not pass [`Instrument::new`].
    fn restore(instrument: Instrument, snapshot: &Snapshot) -> Result<Self, RestoreError>;

    /// The instrument traded here.
    fn instrument(&self) -> &Instrument;

    /// Applies the next request of the total order and says what became of it.
    ///
    /// # Panics
    /// If the request is for another instrument (or for all of them and not a mass cancel), has no
    /// id, or enters an order whose id is on the book: the layers below route and deduplicate, and
    /// going on would fork the replicas.
    fn apply(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome;

    /// The best level of a side: the highest bid or the lowest offer.
    fn best(&self, side: Side) -> Option<Level>;

    /// Visits the best `levels` levels of a side, best first.
    fn depth(&self, side: Side, levels: usize, visit: &mut impl FnMut(Level));

    /// The resting order of that id.
    fn order(&self, order: OrderId) -> Option<RestingOrder>;

    /// The oldest order of a side at a price: the next one to trade there.
    fn front(&self, side: Side, price: Price) -> Option<OrderId>;

    /// How many orders rest.
    fn orders_len(&self) -> usize;

    /// Visits the orders of a side as they would trade: best price first, oldest first.
    fn for_each_order(&self, side: Side, visit: &mut impl FnMut(&RestingOrder));

    /// The priority the next order put to rest will get.
    fn priority_next(&self) -> Priority;

    /// A digest of the whole state, equal for equal states whatever the implementation and however
    /// the state was reached. Cheap: it is kept up to date as orders come and go.
    ///
    /// It is the wrapping sum of a 64-bit hash of every resting order, mixed with
    /// [`Book::priority_next`]. Two books that differ by a bug or a flipped bit agree by accident
    /// with probability 2^-64 at each comparison, and a divergence stays in the state to be caught
    /// by the next one. It is no defence against somebody who can choose the state of a replica;
    /// that person need not bother with hashes.
    fn state_hash(&self) -> u64;

    /// Everything needed to rebuild the book: bids, then offers, as they would trade. To stream a
    /// large book use [`Book::for_each_order`] and [`Book::priority_next`].
    fn snapshot(&self) -> Snapshot {
        let mut orders = Vec::with_capacity(self.orders_len());
        for side in [Side::Buy, Side::Sell] {
            self.for_each_order(side, &mut |order| orders.push(*order));
        }
        Snapshot { priority_next: self.priority_next(), orders }
    }

    /// Walks the whole book and checks what must always hold: never crossed, strict price-time
    /// order, a correct hash, every order found by its id. For tests, the simulator and operators.
    ///
    /// # Panics
    /// If anything does not hold: the book is corrupt and must not be used.
    fn audit(&self) {
        let snapshot = self.snapshot();
        if let Err(broken) = snapshot.check(self.instrument()) {
            panic!("corrupt book: {broken}");
        }
        for pair in snapshot.orders.windows(2) {
            assert!(trades_before(&pair[0], &pair[1]), "{:?} must trade before {:?}", pair[1], pair[0]);
        }
        for order in &snapshot.orders {
            assert_eq!(self.order(order.order), Some(*order), "found by its id");
        }
        assert_eq!(snapshot.orders.len(), self.orders_len());
        assert_eq!(self.state_hash(), hash::state(&snapshot.orders, snapshot.priority_next));
    }
}

/// Whether `a` comes before `b` in a snapshot: bids first, better price first, older first.
fn trades_before(a: &RestingOrder, b: &RestingOrder) -> bool {
    match (a.side, b.side) {
        (Side::Buy, Side::Sell) => true,
        (Side::Sell, Side::Buy) => false,
        _ if a.price == b.price => a.priority < b.priority,
        (side, _) => side.crosses(a.price, b.price),
    }
}
