//! What becomes of orders in a record: docs/rules.md, section 9, and docs/protocols/market-data.md, *From a record to messages*.

use pares_types::{
    Command, Event, IncomingCause, OrderId, Outcome, Price, Quantity, Request, RestCause, Status,
};

use crate::itch::{self, Broken, Cancelled, Executed, ExecutedAt, Replaced, Trade};
use crate::living::{Amended, Order, Shown};
use crate::publication::{FeedSink, Publication};
use crate::step::Step;

/// The order that matches with those on the book.
pub(crate) enum Incoming {
    Nobody,
    /// It is on no book meanwhile. If it is an amended one that will be displayed again: as what it was.
    Away(Order, Option<Shown>),
    /// The buy order of an auction's trades keeps its place.
    InPlace(OrderId),
}

impl Publication {
    /// The request's own order, then the events.
    pub(crate) fn follow(
        &mut self,
        step: &mut Step<'_, impl FeedSink>,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
    ) {
        let own_events = events.iter().take_while(|event| !matches!(event, Event::Incoming { .. })).count();
        let (own, others) = events.split_at(own_events);
        let mut incoming = Incoming::Nobody;
        if outcome.status != Status::Refused {
            incoming = self.own(step, request, outcome, own);
        }
        for event in own {
            self.follow_event(step, &mut incoming, event);
            step.index += 1;
        }
        self.settle(step, incoming, outcome);
        let mut incoming = Incoming::Nobody;
        for event in others {
            self.follow_event(step, &mut incoming, event);
            step.index += 1;
        }
    }

    /// The order that the request brings to match.
    fn own(
        &mut self,
        step: &mut Step<'_, impl FeedSink>,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
    ) -> Incoming {
        let Some((locate, listing)) = step.locate.and_then(|at| Some((at, self.listings.get(at)?))) else {
            return Incoming::Nobody;
        };
        let amendment = match request.command {
            Command::Enter(new) => {
                return Incoming::Away(Order::entered(OrderId(request.id), locate, &new), None);
            }
            Command::Amend(amendment) => amendment,
            _ => return Incoming::Nobody,
        };
        match self.living.amend(&amendment, &listing.rules) {
            None => Incoming::Nobody,
            Some(Amended::Kept(order, less)) => {
                tell_less(step, order.locate, order.shown, less);
                Incoming::Nobody
            }
            Some(Amended::Off(order, was)) => {
                let trades = events.iter().any(|event| matches!(event, Event::Fill { .. }));
                if outcome.status == Status::Resting && !trades {
                    return Incoming::Away(order, was);
                }
                step.delete(locate, was);
                Incoming::Away(order, None)
            }
        }
    }

    /// The outcome says what became of the request's own order, unless an event has.
    fn settle(&mut self, step: &mut Step<'_, impl FeedSink>, incoming: Incoming, outcome: &Outcome) {
        let Incoming::Away(mut order, was) = incoming else { return };
        let place = order.at_its_limit().filter(|_| outcome.status == Status::Resting);
        match (place, was) {
            (Some((price, shares)), Some(was @ Shown { told: true, .. })) => {
                let reference = step.reference();
                order.shown = Some(Shown { reference, price, shares, ..was });
                let head = step.head(Replaced::KIND, order.locate);
                let (price, shares) = (itch::price(price), itch::shares(shares));
                let original = was.reference.into();
                step.send(&Replaced { head, original, reference: reference.into(), shares, price });
            }
            (Some((price, shares)), _) => self.show(step, &mut order, price, shares),
            _ => step.delete(order.locate, was),
        }
        self.living.put(order);
    }

    fn follow_event(&mut self, step: &mut Step<'_, impl FeedSink>, incoming: &mut Incoming, event: &Event) {
        match *event {
            Event::Fill { resting, price, quantity, .. } => {
                self.fill(step, incoming, resting, price, quantity);
            }
            Event::Cancelled { order, quantity, .. } => match incoming {
                Incoming::Away(away, _) if away.id == order => away.lose(quantity),
                _ => self.cancel(step, order, quantity),
            },
            Event::Incoming { order, cause: IncomingCause::Auction, .. } => {
                *incoming = Incoming::InPlace(order);
            }
            Event::Incoming { order, .. } => {
                *incoming = Incoming::Nobody;
                if let Some(mut order) = self.living.take(order) {
                    step.delete(order.locate, order.shown.take());
                    *incoming = Incoming::Away(order, None);
                }
            }
            Event::Rested { .. } => self.rest(step, incoming, event),
            Event::PhaseEntered { phase, .. } => self.enter_phase(step, phase),
            Event::Auction { .. } => self.tell_auction(step, event),
            Event::Busted { position, index, .. } => {
                if let Some(locate) = step.locate.filter(|at| self.is_published(*at)) {
                    let match_number = (position.0 << 16 | u64::from(index)).into();
                    step.send(&Broken { head: step.head(Broken::KIND, locate), match_number });
                }
            }
            Event::Instrument(instrument) => step.locate = itch::locate(instrument),
            Event::DayPrices { .. } | Event::DayVolume { .. } | Event::DayEnded { .. } => {}
        }
    }

    fn fill(
        &mut self,
        step: &mut Step<'_, impl FeedSink>,
        incoming: &mut Incoming,
        resting: OrderId,
        price: Price,
        quantity: Quantity,
    ) {
        let in_auction = matches!(incoming, Incoming::InPlace(_));
        self.fill_displayed(step, resting, price, quantity, in_auction);
        match incoming {
            Incoming::Nobody => {}
            Incoming::Away(order, _) => order.trade(quantity),
            Incoming::InPlace(order) => {
                let order = *order;
                self.fill_displayed(step, order, price, quantity, true);
            }
        }
    }

    /// An order trades where it rests.
    fn fill_displayed(
        &mut self,
        step: &mut Step<'_, impl FeedSink>,
        id: OrderId,
        price: Price,
        quantity: Quantity,
        in_auction: bool,
    ) {
        let Some(order) = self.living.find(id) else { return };
        order.trade(quantity);
        let (locate, side, gone, shown) = (order.locate, order.side, order.remaining.is_zero(), order.shown);
        order.shown = shown.and_then(|shown| less(shown, quantity));
        if gone {
            self.living.remove(id);
        }
        let stock = self.listings.stock(locate);
        let (Some(shown @ Shown { told: true, .. }), Some(stock)) = (shown, stock) else { return };
        let (reference, match_number) = (shown.reference.into(), step.match_number().into());
        if quantity > shown.shares {
            step.delete(locate, Some(shown));
            let (price, shares) = (itch::price(price), itch::shares(quantity));
            let head = step.head(Trade::KIND, locate);
            let side = itch::side(side);
            step.send(&Trade { head, reference: 0.into(), side, shares, stock, price, match_number });
        } else if price == shown.price && !in_auction {
            let head = step.head(Executed::KIND, locate);
            step.send(&Executed { head, reference, shares: itch::shares(quantity), match_number });
        } else {
            let head = step.head(ExecutedAt::KIND, locate);
            let printable = if in_auction { b'N' } else { b'Y' };
            let (price, shares) = (itch::price(price), itch::shares(quantity));
            step.send(&ExecutedAt { head, reference, shares, match_number, printable, price });
        }
    }

    /// An order that is not matching loses shares, hidden ones first.
    fn cancel(&mut self, step: &mut Step<'_, impl FeedSink>, id: OrderId, quantity: Quantity) {
        let Some(order) = self.living.find(id) else { return };
        order.lose(quantity);
        let left = order.remaining;
        let fewer = order.shown.map_or(0, |shown| shown.shares.0.saturating_sub(left.0));
        if let Some(shown) = &mut order.shown {
            shown.shares = shown.shares.min(left);
        }
        let (locate, shown) = (order.locate, order.shown);
        if left.is_zero() {
            self.living.remove(id);
            return step.delete(locate, shown);
        }
        tell_less(step, locate, shown, Quantity(fewer));
    }

    /// An order joins a queue, or is set aside.
    fn rest(&mut self, step: &mut Step<'_, impl FeedSink>, incoming: &mut Incoming, event: &Event) {
        let Event::Rested { order: id, price, quantity, shown, cause, .. } = *event else { return };
        let away = matches!(incoming, Incoming::Away(order, _) if order.id == id);
        let taken = match std::mem::replace(incoming, Incoming::Nobody) {
            Incoming::Away(order, _) if away => Some(order),
            other => {
                *incoming = other;
                self.living.take(id)
            }
        };
        let Some(mut order) = taken else { return };
        step.delete(order.locate, order.shown.take());
        order.remaining = quantity;
        if cause == RestCause::Priced {
            order.set_limit(price);
        }
        let aside = matches!(cause, RestCause::Withdrawn | RestCause::Unfinished) || order.is_at_market();
        if !aside {
            self.show(step, &mut order, price, shown);
        }
        self.living.put(order);
    }

    /// An order joins a queue, under a new reference.
    fn show(&self, step: &mut Step<'_, impl FeedSink>, order: &mut Order, price: Price, shares: Quantity) {
        let stock = self.listings.stock(order.locate);
        let shown = Shown { reference: step.reference(), price, shares, told: stock.is_some() };
        order.shown = Some(shown);
        if let Some(stock) = stock {
            step.add(stock, order, shown);
        }
    }
}

/// A displayed order shows fewer shares.
fn tell_less(step: &mut Step<'_, impl FeedSink>, locate: u16, shown: Option<Shown>, fewer: Quantity) {
    let Some(shown) = shown.filter(|shown| shown.told && !fewer.is_zero()) else { return };
    let head = step.head(Cancelled::KIND, locate);
    let (reference, shares) = (shown.reference.into(), itch::shares(fewer));
    step.send(&Cancelled { head, reference, shares });
}

/// What is left of it after a trade.
fn less(shown: Shown, quantity: Quantity) -> Option<Shown> {
    let shares = Quantity(shown.shares.0.saturating_sub(quantity.0));
    (!shares.is_zero()).then_some(Shown { shares, ..shown })
}
