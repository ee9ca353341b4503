//! Books with a defect planted in each, to show that a comparison finds it.
//!
//! Each is a [`NaiveBook`] that does one thing wrong, and only that: what it does wrong is done from outside, by a
//! request changed on its way in, or a state changed before or after.

use core::marker::PhantomData;

use pares_book::{Book, Indication, Instrument, Level, NaiveBook, Priority, RestingOrder, RestoreError};
use pares_book::{Snapshot, Trading};
use pares_types::{
    Band, CancelCause, Command, Event, EventSink, IncomingCause, MemberId, NewOrder, OrderId, Outcome, Price,
    Request, RestCause, SelfTrade, Side, Status, TimeInForce, Timestamp,
};

/// One thing done wrong.
pub trait BookDefect {
    /// As a book with this defect applies a request.
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome;

    /// As it says when it has something to do.
    fn deadline(book: &NaiveBook) -> Timestamp {
        book.deadline()
    }
}

/// What the book inside answers.
macro_rules! as_naive {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&self, $($argument: $type),*) -> $answer {
            self.book.$name($($argument),*)
        }
    )*};
}

/// A book with a defect.
pub struct WrongBook<D> {
    book: NaiveBook,
    defect: PhantomData<D>,
}

impl<D: BookDefect> Book for WrongBook<D> {
    fn new(instrument: Instrument) -> Self {
        Self { book: NaiveBook::new(instrument), defect: PhantomData }
    }

    fn restore(instrument: Instrument, snapshot: &Snapshot) -> Result<Self, RestoreError> {
        Ok(Self { book: NaiveBook::restore(instrument, snapshot)?, defect: PhantomData })
    }

    fn apply(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        let mut events = Vec::new();
        let outcome = D::apply(&mut self.book, request, &mut events);
        events.into_iter().for_each(|event| sink.event(event));
        outcome
    }

    fn deadline(&self) -> Timestamp {
        D::deadline(&self.book)
    }

    as_naive! {
        instrument() -> &Instrument;
        trading() -> &Trading;
        best(side: Side) -> Option<Level>;
        depth(side: Side, levels: usize, visit: &mut impl FnMut(Level)) -> ();
        order(order: OrderId) -> Option<RestingOrder>;
        front(side: Side, price: Price) -> Option<OrderId>;
        orders_len() -> usize;
        has_orders_of(member: MemberId) -> bool;
        for_each_order(side: Side, visit: &mut impl FnMut(&RestingOrder)) -> ();
        for_each_held(visit: &mut impl FnMut(&RestingOrder)) -> ();
        priority_next() -> Priority;
        indication() -> Option<Indication>;
        state_hash() -> u64;
    }
}

/// Puts a book into another state, under other rules.
fn change(book: &mut NaiveBook, rules: Instrument, change: impl FnOnce(&mut Snapshot)) {
    let mut snapshot = book.snapshot();
    change(&mut snapshot);
    *book = NaiveBook::restore(rules, &snapshot).expect("a wrong state, but one that a book can be in");
}

/// Gives an order back the place it had before.
fn give_back_place(book: &mut NaiveBook, before: &RestingOrder) {
    let rules = *book.instrument();
    change(book, rules, |state| {
        for order in &mut state.orders {
            if order.order == before.order && order.price == before.price && !before.is_held() {
                order.priority = before.priority;
            }
        }
    });
}

/// None: what shows that a defect is caught, and not the wrapping.
pub struct NoDefect;

impl BookDefect for NoDefect {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let rules = *book.instrument();
        change(book, rules, |_| {});
        book.apply(request, events)
    }
}

/// An iceberg that shows more keeps its place in the queue.
pub struct RefillsInPlace;

impl BookDefect for RefillsInPlace {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let before = book.snapshot();
        let outcome = book.apply(request, events);
        for event in events.iter() {
            let Event::Rested { order, cause: RestCause::Refilled, .. } = *event else { continue };
            if let Some(before) = before.orders.iter().find(|before| before.order == order) {
                give_back_place(book, before);
            }
        }
        outcome
    }
}

/// The last of several stops that a request triggers is left waiting.
pub struct LeavesTheLastStop;

impl BookDefect for LeavesTheLastStop {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let (rules, mut before) = (*book.instrument(), book.clone());
        let outcome = book.apply(request, events);
        let triggered =
            |event: &Event| matches!(event, Event::Incoming { cause: IncomingCause::Triggered, .. });
        let last = events.iter().rposition(triggered).filter(|last| *last > 0);
        let Some(last) = last.filter(|_| *book.instrument() == rules) else { return outcome };
        events.clear();
        change(&mut before, Instrument { step_max: last as u32, ..rules }, |_| {});
        let outcome = before.apply(request, events);
        change(&mut before, rules, |_| {});
        *book = before;
        outcome
    }
}

/// A larger total costs no priority.
pub struct GrowsInPlace;

impl BookDefect for GrowsInPlace {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let Command::Amend(amendment) = request.command else { return book.apply(request, events) };
        let before = book.order(amendment.target);
        let outcome = book.apply(request, events);
        if let (Some(before), Status::Resting) = (before, outcome.status) {
            give_back_place(book, &before);
        }
        outcome
    }
}

/// An order good till a date is still there at that very date.
pub struct ExpiresLate;

impl BookDefect for ExpiresLate {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let rules = *book.instrument();
        let now = book.trading().time.max(request.stamp);
        let on_time = TimeInForce::Gtd { until: now };
        let late = TimeInForce::Gtd { until: now.plus_ns(1) };
        let replace = |state: &mut Snapshot, from, to| {
            for order in state.orders.iter_mut().filter(|order| order.time_in_force == from) {
                order.time_in_force = to;
            }
        };
        if !matches!(request.command, Command::Time { .. }) {
            return book.apply(request, events);
        }
        change(book, rules, |state| replace(state, on_time, late));
        let outcome = book.apply(request, events);
        change(book, rules, |state| replace(state, late, on_time));
        outcome
    }
}

/// Decrement cancels both.
pub struct DecrementsTooMuch;

impl BookDefect for DecrementsTooMuch {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let rules = *book.instrument();
        let Command::Enter(order @ NewOrder { self_trade: SelfTrade::Decrement, .. }) = request.command
        else {
            return book.apply(request, events);
        };
        let command = Command::Enter(NewOrder { self_trade: SelfTrade::CancelBoth, ..order });
        let outcome = book.apply(&Request { command, ..*request }, events);
        change(book, rules, |state| {
            let entered = state.orders.iter_mut().filter(|order| order.order == OrderId(request.id));
            entered.for_each(|order| order.self_trade = SelfTrade::Decrement);
        });
        outcome
    }
}

/// An auction does not look at the reference price.
pub struct AuctionsAtTheLowest;

impl BookDefect for AuctionsAtTheLowest {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let (rules, reference) = (*book.instrument(), book.trading().reference);
        let may_end = matches!(request.command, Command::Time { .. } | Command::SetPhase(_));
        if !may_end || !book.trading().phase.is_call() {
            return book.apply(request, events);
        }
        change(book, rules, |state| state.trading.reference = None);
        let outcome = book.apply(request, events);
        change(book, rules, |state| state.trading.reference = state.trading.reference.or(reference));
        outcome
    }
}

/// The dynamic band is not looked at.
pub struct HasNoDynamicBand;

impl BookDefect for HasNoDynamicBand {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let rules = *book.instrument();
        if matches!(request.command, Command::SetRule(_)) {
            return book.apply(request, events);
        }
        change(book, Instrument { dynamic_band: Band::NONE, ..rules }, |_| {});
        let outcome = book.apply(request, events);
        change(book, rules, |_| {});
        outcome
    }
}

/// Busted trades are remembered beyond the business day.
pub struct RemembersBusts;

impl BookDefect for RemembersBusts {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let (rules, busts) = (*book.instrument(), book.trading().busts.clone());
        let outcome = book.apply(request, events);
        if matches!(request.command, Command::BeginDay { .. }) {
            change(book, rules, |state| state.trading.busts = busts);
        }
        outcome
    }
}

/// A mass cancel tells its orders as they lie in the book, not by age.
pub struct MassCancelsAsTheyLie;

impl BookDefect for MassCancelsAsTheyLie {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let before = book.snapshot();
        let outcome = book.apply(request, events);
        let place = |event: &Event| match *event {
            Event::Cancelled { order, cause: CancelCause::MassCancel, .. } => {
                before.orders.iter().position(|before| before.order == order)
            }
            _ => None,
        };
        let count = events.iter().take_while(|event| place(event).is_some()).count();
        events[..count].sort_by_key(place);
        outcome
    }
}

/// It does not say when a volatility call ends.
pub struct ForgetsTheCall;

impl BookDefect for ForgetsTheCall {
    fn apply(book: &mut NaiveBook, request: &Request, events: &mut Vec<Event>) -> Outcome {
        book.apply(request, events)
    }

    fn deadline(book: &NaiveBook) -> Timestamp {
        if book.deadline() == book.trading().until { Timestamp::NEVER } else { book.deadline() }
    }
}
