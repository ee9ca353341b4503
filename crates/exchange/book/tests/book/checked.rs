//! A book whose every step is checked: shares conserved, refusals without effect, nothing corrupt, and the
//! record enough to build the book again.

use crate::rebuilt::Rebuilt;
use pares_book::{Book, Instrument, Snapshot, Symbol, TickTable};
use pares_types::{
    Command, Event, InstrumentId, OrderId, Outcome, Price, Quantity, Reason, Request, Status, Timestamp,
};
use std::collections::BTreeMap;

/// Ticks of a cent, lots of ten, prices from 1 to 100, at most 10,000 shares an order.
pub(crate) fn instrument(orders_max: u32) -> Instrument {
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
    rebuilt: Rebuilt,
}

impl<B: Book> Checked<B> {
    pub(crate) fn of(instrument: Instrument) -> Self {
        Self { book: B::new(instrument), shares: BTreeMap::new(), rebuilt: Rebuilt::default() }
    }

    /// Applies a request and checks what can be checked without knowing the rules.
    pub(crate) fn apply(&mut self, request: &Request) -> (Vec<Event>, Outcome) {
        let before = self.book.snapshot();
        let unfinished = self.book.deadline() == Timestamp(0);
        let (events, outcome) = self.apply_unchecked(request);
        self.book.audit();
        if outcome.status == Status::Refused && !unfinished {
            assert_eq!(self.book.snapshot(), before, "a refusal leaves the book as it was");
            assert!(events.is_empty(), "a refusal causes nothing");
        }
        self.check_step(&events);
        self.enter_shares(request, &before, &outcome);
        self.check_shares(&events, &outcome);
        self.rebuilt.apply(request, &outcome, &events, self.book.instrument());
        self.rebuilt.assert_like(&self.book);
        (events, outcome)
    }

    pub(crate) fn apply_unchecked(&mut self, request: &Request) -> (Vec<Event>, Outcome) {
        let mut events = Vec::new();
        let outcome = self.book.apply(request, &mut events);
        (events, outcome)
    }

    /// A step ends soon after its limit: what is under way is brought to its end, and pegs are withdrawn.
    fn check_step(&self, events: &[Event]) {
        let most = self.book.instrument().step_max as usize + pares_book::Trading::PEGS_MAX + 8;
        assert!(events.len() <= most, "{} events in a step", events.len());
    }

    /// Shares come into the world by an order, or by an amend to a larger total; by nothing else.
    fn enter_shares(&mut self, request: &Request, before: &Snapshot, outcome: &Outcome) {
        if outcome.status == Status::Refused {
            return;
        }
        match request.command {
            Command::Enter(order) => self.of_order(OrderId(request.id)).entered = order.quantity.0,
            Command::Amend(amendment) => {
                let order = before.orders.iter().find(|order| order.order == amendment.target).unwrap();
                let total = order.executed.0 + order.remaining.0;
                self.of_order(amendment.target).entered += amendment.quantity.0.saturating_sub(total);
            }
            _ => {}
        }
    }

    /// entered = executed + cancelled + remaining, for every order, always (invariant I5).
    fn check_shares(&mut self, events: &[Event], outcome: &Outcome) {
        let mut incoming = outcome.order;
        // A refusal comes before what goes on in its step.
        let mut own_part = outcome.status != Status::Refused;
        if !own_part {
            self.check_outcome(outcome);
        }
        for event in events {
            match *event {
                Event::Fill { resting, quantity, .. } => {
                    self.of_order(resting).executed += quantity.0;
                    self.of_order(incoming).executed += quantity.0;
                }
                Event::Cancelled { order, quantity, .. } => self.of_order(order).cancelled += quantity.0,
                Event::Incoming { order, .. } => {
                    if own_part {
                        self.check_outcome(outcome);
                    }
                    own_part = false;
                    incoming = order;
                }
                _ => {}
            }
        }
        if own_part {
            self.check_outcome(outcome);
        }
        self.shares.retain(|id, shares| {
            let resting = self.book.order(*id);
            let remaining = resting.map_or(0, |order| order.remaining.0);
            assert_eq!(shares.entered, shares.executed + shares.cancelled + remaining, "shares of {id}");
            assert!(resting.is_none_or(|order| order.executed.0 == shares.executed), "executed of {id}");
            resting.is_some()
        });
    }

    /// The outcome tells the totals of the order when its own matching is over, to those who may know it.
    fn check_outcome(&self, outcome: &Outcome) {
        let Some(shares) = self.shares.get(&outcome.order) else { return };
        if outcome.reason != Reason::UnknownOrder {
            assert_eq!(outcome.executed.0, shares.executed);
            assert_eq!(outcome.remaining.0, shares.entered - shares.executed - shares.cancelled);
        }
    }

    fn of_order(&mut self, order: OrderId) -> &mut Shares {
        self.shares.entry(order).or_default()
    }
}
