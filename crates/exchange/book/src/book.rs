//! What a book can do, whatever it is made of.

use pares_types::{EventSink, MemberId, OrderId, Outcome, Price, Quantity, Request, Side, Timestamp};

use crate::doomed::Doomed;
use crate::{Indication, Instrument, Priority, RestingOrder, RestoreError, Snapshot, Trading, hash};

/// One price of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: Price,
    /// Shares shown there.
    pub quantity: Quantity,
    /// Orders resting there.
    pub orders: u32,
}

/// A matching order book of one instrument. The rules are in docs/rules.md.
pub trait Book: Sized {
    /// An empty book in the instrument's first phase.
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

    /// Phase, prices and time.
    fn trading(&self) -> &Trading;

    /// Applies the next request of the total order and says what became of it. Commands that concern more
    /// than one book (`AddInstrument`, `Unblock`) do nothing here and are [`Status::Accepted`](pares_types::Status);
    /// `Block` is a mass cancel of the member it names, `CancelGuarded` one of what a session left, `RemoveInstrument` one of all members.
    ///
    /// # Panics
    /// If the request is for another instrument (or for all of them and none of `MassCancel`, `Block`, `CancelGuarded`, `Time`, `BeginDay`, `EndDay`), has no
    /// id, or enters an order whose id is on the book: the layers below route and deduplicate, and
    /// to continue would fork the replicas.
    fn apply(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome;

    /// Does beforehand what takes as long as the book is large, so that the next order finds room. It changes nothing that can be seen.
    fn make_room(&mut self) {}

    /// The best level of a side: the highest bid or the lowest offer.
    fn best(&self, side: Side) -> Option<Level>;

    /// Visits the best `levels` levels of a side, best first.
    fn depth(&self, side: Side, levels: usize, visit: &mut impl FnMut(Level));

    /// The order of that id: on the book, held, or unfinished.
    fn order(&self, order: OrderId) -> Option<RestingOrder>;

    /// The oldest order of a side at a price: the next one to trade there.
    fn front(&self, side: Side, price: Price) -> Option<OrderId>;

    /// How many orders are on the book or held.
    fn orders_len(&self) -> usize;

    /// Whether the member has an order on the book or held.
    fn has_orders_of(&self, member: MemberId) -> bool;

    /// Visits the orders of a side on the book as they would trade: best price first, oldest first.
    fn for_each_order(&self, side: Side, visit: &mut impl FnMut(&RestingOrder));

    /// Visits the held orders, in order of priority.
    fn for_each_held(&self, visit: &mut impl FnMut(&RestingOrder));

    /// The priority the next order that joins a queue will get.
    fn priority_next(&self) -> Priority;

    /// What an auction would do now: price, volume and surplus. `None` unless the book is crossed.
    fn indication(&self) -> Option<Indication>;

    /// When the book has something to do by itself: [`Timestamp`] zero for now, [`Timestamp::NEVER`] for nothing.
    /// It is done by the first `Time` request at or after it.
    fn deadline(&self) -> Timestamp;

    /// A digest of the whole state, equal for equal states whatever the implementation and however
    /// the state was reached. Cheap: it is kept up to date as orders come and go.
    ///
    /// It is the wrapping sum of a 64-bit hash of every order, mixed with the rest of the state.
    /// Two books that differ by a bug or a flipped bit agree by accident
    /// with probability 2^-64 at each comparison, and a divergence stays in the state to be caught
    /// by the next one. It is no defence against an attacker who can choose the state of a replica;
    /// such an attacker need not bother with hashes.
    fn state_hash(&self) -> u64;

    /// Everything needed to rebuild the book: bids, then offers, as they would trade, then held orders.
    fn snapshot(&self) -> Snapshot {
        let mut orders = Vec::with_capacity(self.orders_len());
        for side in [Side::Buy, Side::Sell] {
            self.for_each_order(side, &mut |order| orders.push(*order));
        }
        self.for_each_held(&mut |order| orders.push(*order));
        Snapshot { priority_next: self.priority_next(), trading: self.trading().clone(), orders }
    }

    /// Walks the whole book and checks what must always hold: strict price-time
    /// order, uncrossed where orders match, a correct hash, every order found by its id. For tests, the simulator and operators.
    ///
    /// # Panics
    /// If anything does not hold: the book is corrupt and must not be used.
    fn audit(&self) {
        let snapshot = self.snapshot();
        if let Err(broken) = snapshot.check(self.instrument()) {
            panic!("corrupt book: {broken}");
        }
        for pair in snapshot.orders.windows(2) {
            assert!(comes_before(&pair[0], &pair[1]), "{:?} must come before {:?}", pair[1], pair[0]);
        }
        for order in &snapshot.orders {
            assert_eq!(self.order(order.order), Some(*order), "found by its id");
        }
        assert_eq!(snapshot.orders.len(), self.orders_len());
        let orders = snapshot.orders.iter().map(hash::order).fold(0, u64::wrapping_add);
        let state = hash::finish(orders, snapshot.priority_next, self.trading(), self.instrument());
        assert_eq!(self.state_hash(), state);
    }
}

/// Whether `a` comes before `b` in a snapshot: bids, offers, held; better price first, older first.
fn comes_before(a: &RestingOrder, b: &RestingOrder) -> bool {
    let rank = |order: &RestingOrder| match (order.is_held(), order.side) {
        (true, _) => 2,
        (false, Side::Buy) => 0,
        (false, Side::Sell) => 1,
    };
    if rank(a) != rank(b) {
        return rank(a) < rank(b);
    }
    if a.is_held() || a.price == b.price { a.priority < b.priority } else { a.side.crosses(a.price, b.price) }
}

/// # Panics
/// If the request does not belong in the book of `instrument`; see [`Book::apply`].
#[inline]
pub(crate) fn assert_routed(instrument: &Instrument, request: &Request) {
    if request.instrument != instrument.id {
        assert_for_all(instrument, request);
    }
    assert!(request.id != pares_types::RequestId::NONE, "a request has an id");
}

#[cold]
fn assert_for_all(instrument: &Instrument, request: &Request) {
    use pares_types::Command::{BeginDay, EndDay, Time};
    let to_all = Doomed::by(request).is_some()
        || matches!(request.command, Time { .. } | BeginDay { .. } | EndDay { .. });
    assert!(
        request.instrument.0 == 0 && to_all,
        "request {} for instrument {} came to the book of {}",
        request.id,
        request.instrument,
        instrument.id
    );
}
