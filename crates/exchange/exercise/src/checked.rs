//! A book whose every step is checked: shares conserved, refusals without effect, nothing corrupt, and the
//! record enough to build the book again.

use crate::accounts::ShareAccounts;
use crate::rebuilt::Rebuilt;
use pares_book::{Book, Instrument, Symbol, TickTable};
use pares_types::{
    Event, InstrumentId, Outcome, Position, Price, Quantity, Reason, Request, Status, Timestamp,
};

/// Ticks of a cent, lots of ten, prices from 1 to 100, at most 10,000 shares an order.
pub fn instrument(orders_max: u32) -> Instrument {
    Instrument::new(Instrument {
        ticks: TickTable::flat(Price(100)),
        lot: Quantity(10),
        quantity_max: Quantity(10_000),
        price_min: Price(10_000),
        price_max: Price(1_000_000),
        orders_max,
        ..Instrument::listed(InstrumentId(1), Symbol::new("TEST").unwrap())
    })
    .unwrap()
}

/// A book, and the account of all shares that ever came to it.
pub struct CheckedBook<B> {
    /// The book.
    pub book: B,
    accounts: ShareAccounts,
    rebuilt: Rebuilt,
}

impl<B: Book> CheckedBook<B> {
    /// An empty book.
    pub fn of(instrument: Instrument) -> Self {
        Self { book: B::new(instrument), accounts: ShareAccounts::default(), rebuilt: Rebuilt::default() }
    }

    /// Applies a request and checks what can be checked without knowing the rules.
    pub fn apply(&mut self, request: &Request) -> (Vec<Event>, Outcome) {
        let before = self.book.snapshot();
        let unfinished = self.book.deadline() == Timestamp(0);
        let (events, outcome) = self.apply_unchecked(request);
        self.book.audit();
        if outcome.status == Status::Refused && !unfinished {
            assert_eq!(self.book.snapshot(), before, "a refusal leaves the book as it was");
            assert!(events.is_empty(), "a refusal causes nothing");
        }
        self.check_step(&events);
        self.check_shares(request, &outcome, &events);
        self.rebuilt.apply(request, &outcome, &events, self.book.instrument());
        self.rebuilt.assert_like(&self.book);
        (events, outcome)
    }

    /// Applies a request, and checks nothing: what is checked from then on would not fit.
    pub fn apply_unchecked(&mut self, request: &Request) -> (Vec<Event>, Outcome) {
        let mut events = Vec::new();
        let outcome = self.book.apply(request, &mut events);
        (events, outcome)
    }

    pub(crate) fn apply_as(&mut self, request: &Request, is_checked: bool) -> (Vec<Event>, Outcome) {
        if is_checked { self.apply(request) } else { self.apply_unchecked(request) }
    }

    /// A step ends soon after its limit: what is under way is brought to its end, and pegs are withdrawn.
    fn check_step(&self, events: &[Event]) {
        let most = self.book.instrument().step_max as usize + pares_book::Trading::PEGS_MAX + 8;
        assert!(events.len() <= most, "{} events in a step", events.len());
    }

    /// entered = executed + cancelled + remaining, for every order, always (invariant I5); the outcome tells the totals of the order to
    /// those who may know it.
    fn check_shares(&mut self, request: &Request, outcome: &Outcome, events: &[Event]) {
        // A refusal comes before what else its step does.
        if outcome.status == Status::Refused && outcome.reason != Reason::UnknownOrder {
            self.accounts.settle(outcome).unwrap();
        }
        self.accounts.follow(Position(0), request, outcome, events).unwrap();
        self.accounts.orders.retain(|id, shares| {
            let resting = self.book.order(*id);
            assert_eq!(shares.remaining(), resting.map_or(0, |order| order.remaining.0), "shares of {id}");
            assert!(resting.is_none_or(|order| order.executed.0 == shares.executed), "executed of {id}");
            resting.is_some()
        });
    }
}
