//! The book as a reader rebuilds it who has only the record: requests, outcomes and events, and section 9 of
//! docs/rules.md. It knows nothing of matching.

use pares_book::{Book, Instrument, RestingOrder};
use pares_types::{
    Amendment, CancelCause, Command, Event, IncomingCause, NewOrder, OrderId, OrderKind, Outcome, Price,
    Quantity, Request, RestCause, Side, Status,
};

/// An order of the record.
#[derive(Clone, Copy, Debug)]
struct Order {
    id: OrderId,
    side: Side,
    kind: OrderKind,
    executed: Quantity,
    remaining: Quantity,
    display: Quantity,
    trigger: Option<Price>,
    /// Price and shown shares; `None` while it is aside.
    place: Option<(Price, Quantity)>,
}

/// The incoming order of what follows.
enum Incoming {
    /// It is off its place, limited to that price.
    InTheAir(Order, Price),
    /// It keeps its place: an auction's buy order.
    InPlace(OrderId),
}

/// The orders of the record, each behind all that came to their place before it.
#[derive(Default)]
pub struct Rebuilt {
    orders: Vec<Order>,
}

impl Rebuilt {
    /// One record.
    pub fn apply(&mut self, request: &Request, outcome: &Outcome, events: &[Event], rules: &Instrument) {
        let own_events = events.iter().take_while(|event| !matches!(event, Event::Incoming { .. })).count();
        let (own, others) = events.split_at(own_events);
        self.check_reduced(own);
        let own_order = self.own_order(request, outcome, rules);
        let mut incoming = own_order.map(|order| Incoming::InTheAir(order, price_of(&order)));
        for event in own {
            self.event(event, &mut incoming);
        }
        if let Some(Incoming::InTheAir(order, _)) = incoming {
            self.outcome(outcome, order, rules);
        }
        let mut incoming = None;
        for event in others {
            self.event(event, &mut incoming);
        }
        put_down(incoming);
    }

    /// The request's own order, if it comes in.
    fn own_order(&mut self, request: &Request, outcome: &Outcome, rules: &Instrument) -> Option<Order> {
        match request.command {
            _ if outcome.status == Status::Refused => None,
            Command::Enter(new) => Some(entered(request, &new)),
            Command::Amend(amendment) => self.amended(&amendment, rules),
            _ => None,
        }
    }

    /// What an amend takes off is reported at where the order was before.
    fn check_reduced(&mut self, own: &[Event]) {
        for event in own {
            if let Event::Cancelled { order, side, price, cause: CancelCause::Reduced, .. } = *event {
                let order = self.find(order);
                assert_eq!((side, price), (order.side, price_of(order)), "{event:?}");
            }
        }
    }

    /// An order at its new terms: off its place if it lost its priority.
    fn amended(&mut self, amendment: &Amendment, rules: &Instrument) -> Option<Order> {
        let at = self.orders.iter().position(|order| order.id == amendment.target).unwrap();
        let order = &mut self.orders[at];
        let (old, total) = (*order, order.executed.plus(order.remaining));
        order.kind = amendment.kind_of(order.kind);
        order.display = amendment.display.unwrap_or(order.display);
        order.trigger = amendment.trigger.or(order.trigger);
        let larger = amendment.quantity > total;
        let less = !order.display.is_zero() && (old.display.is_zero() || order.display < old.display);
        let display = order.display != old.display && !(less && rules.display_decrease_keeps);
        let lost = larger || order.kind != old.kind || display || order.trigger != old.trigger;
        if let (Some((_, shown)), true) = (&mut order.place, less) {
            *shown = (*shown).min(order.display);
        }
        if amendment.quantity != total && order.display >= amendment.quantity {
            order.display = Quantity::ZERO;
        }
        if larger {
            order.remaining = amendment.quantity.minus(order.executed);
        }
        lost.then(|| Order { place: None, ..self.orders.remove(at) })
    }

    fn outcome(&mut self, outcome: &Outcome, mut order: Order, rules: &Instrument) {
        assert_eq!(outcome.executed, order.executed);
        assert_eq!(outcome.remaining, order.remaining);
        match outcome.status {
            Status::Resting => {
                let price = match (order.kind, order.side) {
                    (OrderKind::Limit { price }, _) => price,
                    (OrderKind::Market, Side::Buy) => rules.price_max,
                    (OrderKind::Market, Side::Sell) => rules.price_min,
                    (OrderKind::Pegged { .. }, _) => panic!("a pegged order is held first"),
                };
                let display = if order.display.is_zero() { order.remaining } else { order.display };
                order.place = Some((price, display.min(order.remaining)));
                self.orders.push(order);
            }
            Status::Held => {
                order.place = None;
                self.orders.push(order);
            }
            _ => assert!(order.remaining.is_zero()),
        }
    }

    fn event(&mut self, event: &Event, incoming: &mut Option<Incoming>) {
        match *event {
            Event::Incoming { order, cause: IncomingCause::Auction, .. } => {
                put_down(incoming.replace(Incoming::InPlace(order)));
            }
            Event::Incoming { order, price, .. } => {
                let order = Order { place: None, ..self.take(order) };
                put_down(incoming.replace(Incoming::InTheAir(order, price)));
            }
            Event::Fill { resting, quantity, resting_remaining, .. } => {
                fill(self.find(resting), quantity);
                assert_eq!(self.find(resting).remaining, resting_remaining);
                match incoming.as_mut().expect("a trade has an incoming order") {
                    Incoming::InTheAir(order, _) => fill(order, quantity),
                    Incoming::InPlace(order) => fill(self.find(*order), quantity),
                }
            }
            Event::Cancelled { order, side, price, quantity, cause, .. } => {
                let (order, known) = match incoming {
                    Some(Incoming::InTheAir(incoming, price)) if incoming.id == order => (incoming, *price),
                    _ => {
                        let order = self.find(order);
                        let price = price_of(order);
                        (order, price)
                    }
                };
                assert_eq!(side, order.side, "{event:?}");
                assert!(cause == CancelCause::Reduced || price == known, "{event:?}, not {known}");
                take_off(order, quantity);
            }
            Event::Rested { order, price, quantity, shown, cause, .. } => {
                let mut rested = match incoming.take_if(|incoming| incoming.is_in_the_air(order)) {
                    Some(Incoming::InTheAir(order, _)) => order,
                    _ => self.take(order),
                };
                assert_eq!(rested.remaining, quantity);
                let aside = matches!(cause, RestCause::Withdrawn | RestCause::Unfinished);
                rested.place = (!aside).then_some((price, shown));
                if matches!(cause, RestCause::Triggered | RestCause::Unfinished | RestCause::Priced) {
                    rested.trigger = None;
                }
                if cause == RestCause::Priced {
                    rested.kind = OrderKind::Limit { price };
                }
                self.orders.push(rested);
            }
            // Of the market, not of an order.
            _ => {}
        }
        self.orders.retain(|order| !order.remaining.is_zero());
    }

    fn find(&mut self, id: OrderId) -> &mut Order {
        self.orders.iter_mut().find(|order| order.id == id).unwrap_or_else(|| panic!("{id} is there"))
    }

    fn take(&mut self, id: OrderId) -> Order {
        let at = self.orders.iter().position(|order| order.id == id);
        self.orders.remove(at.unwrap_or_else(|| panic!("{id} is there")))
    }

    /// # Panics
    /// If `book` is not the book of the record.
    pub fn assert_like(&self, book: &impl Book) {
        let mut orders: Vec<RestingOrder> = Vec::new();
        for side in [Side::Buy, Side::Sell] {
            book.for_each_order(side, &mut |order| orders.push(*order));
        }
        // The record does not say which of two held orders is older.
        let on_book = orders.len();
        book.for_each_held(&mut |order| orders.push(*order));
        orders.extend(book.trading().unfinished.map(|unfinished| unfinished.order));
        orders[on_book..].sort_by_key(|order| order.order);
        let told = |order: &RestingOrder| {
            let place = (!order.is_held()).then_some((order.price, order.shown));
            (order.order, place, order.executed, order.remaining)
        };
        let known = |order: &Order| (order.id, order.place, order.executed, order.remaining);
        let mut rebuilt = self.orders.clone();
        rebuilt.sort_by_key(rank);
        assert_eq!(
            rebuilt.iter().map(known).collect::<Vec<_>>(),
            orders.iter().map(told).collect::<Vec<_>>(),
            "the book of the record is the book"
        );
    }
}

impl Incoming {
    fn is_in_the_air(&self, id: OrderId) -> bool {
        matches!(self, Self::InTheAir(order, _) if order.id == id)
    }
}

/// The part of an incoming order is over: nothing of it may be in the air.
fn put_down(incoming: Option<Incoming>) {
    if let Some(Incoming::InTheAir(order, _)) = incoming {
        assert!(order.remaining.is_zero(), "{order:?} is nowhere");
    }
}

/// Bids, offers, held; best price first; held ones by id.
fn rank(order: &Order) -> (u8, i64, Option<OrderId>) {
    match (order.place, order.side) {
        (Some((price, _)), Side::Buy) => (0, !price.0, None),
        (Some((price, _)), Side::Sell) => (1, price.0, None),
        (None, _) => (2, 0, Some(order.id)),
    }
}

fn entered(request: &Request, new: &NewOrder) -> Order {
    Order {
        id: OrderId(request.id),
        side: new.side,
        kind: new.kind,
        executed: Quantity::ZERO,
        remaining: new.quantity,
        display: new.display,
        trigger: new.trigger,
        place: None,
    }
}

fn fill(order: &mut Order, quantity: Quantity) {
    order.executed = order.executed.plus(quantity);
    order.remaining = order.remaining.minus(quantity);
    if let Some((_, shown)) = &mut order.place {
        // Of an iceberg that has its turn again, hidden ones too.
        *shown = shown.minus(quantity.min(*shown));
    }
}

/// Where an order is, or what it is limited to, 0 at market.
fn price_of(order: &Order) -> Price {
    let limit = match order.kind {
        OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => price,
        OrderKind::Market => Price(0),
    };
    order.place.map_or(limit, |(price, _)| price)
}

/// Hidden shares go first.
fn take_off(order: &mut Order, quantity: Quantity) {
    order.remaining = order.remaining.minus(quantity);
    if let Some((_, shown)) = &mut order.place {
        *shown = (*shown).min(order.remaining);
    }
}
