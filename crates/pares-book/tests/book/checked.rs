//! A book whose every step is checked: shares conserved, refusals without effect, nothing corrupt.

use pares_book::{Book, Instrument, Snapshot, Symbol};
use pares_types::{Command, Event, InstrumentId, OrderId, Outcome, Price, Quantity, Reason, Request, Status};
use std::collections::BTreeMap;

/// Ticks of a cent, lots of ten, prices from 1 to 100, at most 10,000 shares an order.
pub(crate) fn instrument(orders_max: u32) -> Instrument {
    Instrument::new(Instrument {
        id: InstrumentId(1),
        symbol: Symbol::new("TEST").unwrap(),
        tick: Price(100),
        lot: Quantity(10),
        quantity_max: Quantity(10_000),
        price_min: Price(10_000),
        price_max: Price(1_000_000),
        orders_max,
    })
    .unwrap()
}

/// What became of an order's shares.
#[derive(Clone, Copy, Default)]
struct Shares {
    entered: u64,
    executed: u64,
    cancelled: u64,
}

/// A book, and the account of all shares that ever came to it.
pub(crate) struct Checked<B> {
    pub(crate) book: B,
    shares: BTreeMap<OrderId, Shares>,
}

impl<B: Book> Checked<B> {
    pub(crate) fn new(orders_max: u32) -> Self {
        Self { book: B::new(instrument(orders_max)), shares: BTreeMap::new() }
    }

    /// Applies a request and checks what can be checked without knowing the rules.
    pub(crate) fn apply(&mut self, request: &Request) -> (Vec<Event>, Outcome) {
        let before = self.book.snapshot();
        let (events, outcome) = self.apply_unchecked(request);
        self.book.audit();
        if outcome.status == Status::Refused {
            assert_eq!(self.book.snapshot(), before, "a refusal leaves the book as it was");
            assert!(events.is_empty(), "a refusal causes nothing");
        }
        self.enter_shares(request, &before, &outcome);
        self.check_shares(&events, &outcome);
        (events, outcome)
    }

    pub(crate) fn apply_unchecked(&mut self, request: &Request) -> (Vec<Event>, Outcome) {
        let mut events = Vec::new();
        let outcome = self.book.apply(request, &mut events);
        (events, outcome)
    }

    /// Shares come into the world by an order, or by an amend to a larger total; by nothing else.
    fn enter_shares(&mut self, request: &Request, before: &Snapshot, outcome: &Outcome) {
        if outcome.status == Status::Refused {
            return;
        }
        match request.command {
            Command::Enter(order) => self.of(OrderId(request.id)).entered = order.quantity.0,
            Command::Amend { target, quantity, .. } => {
                let order = before.orders.iter().find(|order| order.order == target).unwrap();
                let total = order.executed.0 + order.remaining.0;
                self.of(target).entered += quantity.0.saturating_sub(total);
            }
            Command::Cancel { .. } | Command::MassCancel => {}
        }
    }

    /// entered = executed + cancelled + remaining, for every order, always (invariant I5).
    fn check_shares(&mut self, events: &[Event], outcome: &Outcome) {
        for event in events {
            match *event {
                Event::Fill { resting, quantity, .. } => {
                    self.of(resting).executed += quantity.0;
                    self.of(outcome.order).executed += quantity.0;
                }
                Event::Cancelled { order, quantity, .. } => self.of(order).cancelled += quantity.0,
            }
        }
        for (id, shares) in &self.shares {
            let resting = self.book.order(*id);
            let remaining = resting.map_or(0, |order| order.remaining.0);
            assert_eq!(shares.entered, shares.executed + shares.cancelled + remaining, "shares of {id}");
            assert!(resting.is_none_or(|order| order.executed.0 == shares.executed), "executed of {id}");
        }
        self.check_outcome(outcome);
    }

    /// The outcome tells the totals of the order, to those who may know it.
    fn check_outcome(&self, outcome: &Outcome) {
        let Some(shares) = self.shares.get(&outcome.order) else { return };
        if outcome.reason != Reason::UnknownOrder {
            assert_eq!(outcome.executed.0, shares.executed);
            assert_eq!(
                outcome.remaining,
                self.book.order(outcome.order).map_or(Quantity::ZERO, |o| o.remaining)
            );
        }
    }

    fn of(&mut self, order: OrderId) -> &mut Shares {
        self.shares.entry(order).or_default()
    }
}
