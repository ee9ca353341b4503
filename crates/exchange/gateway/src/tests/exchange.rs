//! The rest of the exchange, as small as it can be: per shard a list of resting orders, a memory of names,
//! and the records committed so far.

use std::collections::{BTreeMap, BTreeSet};

use pares_types::{
    BusinessDay, CancelCause, ClientOrderId, Command, Event, InstrumentId, MemberId, NetPositions, NewOrder,
    OpenOrder, OrderId, OrderKind, Outcome, Position, Price, Quantity, Reason, RecorderId, Request,
    ShardView, Side, Status,
};

use pares_stream::{StreamNumbers, Told};

use crate::{FoundRecord, Place};

#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) position: Position,
    pub(super) request: Request,
    pub(super) outcome: Outcome,
    pub(super) events: Vec<Event>,
}

impl Record {
    pub(super) fn place(&self) -> Place {
        Place { recorder: RecorderId(self.request.shard.0), offset: self.position.0 }
    }

    pub(super) fn found(&self) -> FoundRecord {
        let Self { position, request, outcome, .. } = *self;
        FoundRecord { position, request, outcome, events: self.events.len(), place: self.place() }
    }

    /// Whether it was refused behind another of its name.
    pub(super) fn is_duplicate(&self) -> bool {
        matches!(self.outcome.reason, Reason::DuplicateRequest | Reason::TooOld)
    }
}

#[derive(Clone, Debug)]
struct Resting {
    id: OrderId,
    member: MemberId,
    name: ClientOrderId,
    instrument: InstrumentId,
    side: Side,
    at_market: bool,
    price: Price,
    executed: Quantity,
    remaining: Quantity,
}

impl Resting {
    fn living(&self) -> OpenOrder {
        let Self { id: order, member, name: client_order_id, instrument, .. } = *self;
        let Self { side, at_market, remaining, executed, .. } = *self;
        OpenOrder { member, client_order_id, order, instrument, side, at_market, remaining, executed }
    }
}

#[derive(Default)]
pub(super) struct Shard {
    pub(super) committed: Vec<Record>,
    /// What a checkpoint says after each of them.
    pub(super) views: Vec<ShardView>,
    book: Vec<Resting>,
    /// How many steps of the time or a phase answer that there is more to do.
    pub(super) unfinished: u32,
    /// Whether all that is asked is refused.
    pub(super) refuses: bool,
    /// Whether it knows names by their floors only.
    pub(super) forgets: bool,
    names: BTreeSet<(MemberId, ClientOrderId)>,
    /// What members bought since the day began, less what they sold.
    pub(super) nets: BTreeMap<(InstrumentId, MemberId), i64>,
    day: BusinessDay,
    since: Position,
}

impl Shard {
    pub(super) fn commit(&mut self, request: Request) {
        let mut events = Vec::new();
        let outcome = if self.refuses {
            refused(&request, Reason::UnknownInstrument)
        } else if self.names.insert((request.member, request.client_order_id)) {
            self.execute(&request, &mut events)
        } else {
            refused(&request, if self.forgets { Reason::TooOld } else { Reason::DuplicateRequest })
        };
        let position = Position(self.committed.len() as u64);
        self.committed.push(Record { position, request, outcome, events });
        self.views.push(self.view());
    }

    /// What a checkpoint says now.
    fn view(&self) -> ShardView {
        let mut view = self.views.last().cloned().unwrap_or_default();
        let Some(Record { position, request: last, outcome, events }) = self.committed.last() else {
            return view;
        };
        if let Some(mut numbers) = StreamNumbers::restore(&view.told) {
            let told = Told { position: *position, request: last, outcome, events };
            told.read(|member, _| _ = numbers.next(member));
            view.told = numbers.sorted();
        }
        let nets = self.nets.iter().filter(|(_, net)| **net != 0);
        let nets = nets.map(|(&(instrument, member), &net)| (instrument, member, net)).collect();
        view.positions = NetPositions { day: self.day, since: self.since, nets };
        let gateway = last.id.gateway();
        view.through.retain(|(of, _)| *of != gateway);
        view.through.push((gateway, last.id.sequence()));
        view.position = Position(self.committed.len() as u64);
        view.kept = self.names.iter().copied().collect();
        view.time = view.time.max(last.stamp);
        if last.is_of_operator() {
            view.operator_stamp_max = view.operator_stamp_max.max(last.stamp);
        }
        view.orders = self.book.iter().map(Resting::living).collect();
        view
    }

    fn execute(&mut self, request: &Request, events: &mut Vec<Event>) -> Outcome {
        match request.command {
            Command::Enter(NewOrder { side, kind, quantity, .. }) => {
                // One at market is a stop that nothing triggers: no price here meets it.
                let at_market = kind == OrderKind::Market;
                let price = match (kind, side) {
                    (OrderKind::Limit { price }, _) => price,
                    (_, Side::Buy) => Price(i64::MIN),
                    (_, Side::Sell) => Price(i64::MAX),
                };
                let order = Resting {
                    id: OrderId(request.id),
                    member: request.member,
                    name: request.client_order_id,
                    instrument: request.instrument,
                    side,
                    at_market,
                    price,
                    executed: Quantity::ZERO,
                    remaining: quantity,
                };
                self.trade(order, events)
            }
            Command::Amend(amendment) => match self.take(request, amendment.target) {
                Some(order) => {
                    let remaining = amendment.quantity.minus(order.executed);
                    let keeps = order.at_market || amendment.reduces;
                    let price = if keeps { order.price } else { amendment.price };
                    self.trade(Resting { price, remaining, ..order }, events)
                }
                None => refused(request, Reason::UnknownOrder),
            },
            Command::Cancel { target } => match self.take(request, target) {
                Some(order) => {
                    events.push(cancelled(&order, CancelCause::Requested));
                    outcome(Status::Cancelled, Reason::Requested, &order, Quantity::ZERO)
                }
                None => refused(request, Reason::UnknownOrder),
            },
            Command::MassCancel { .. } => self.mass_cancel(request, request.member, events),
            Command::Block { member } => self.mass_cancel(request, member, events),
            Command::CancelGuarded(guarded) => self.mass_cancel(request, guarded.member, events),
            // A second step of a day that begins changes nothing here.
            Command::BeginDay { day } if day != self.day => {
                (self.day, self.since) = (day, Position(self.committed.len() as u64));
                self.nets.clear();
                Outcome { status: Status::Accepted, ..refused(request, Reason::None) }
            }
            Command::Bust(trade) => {
                if trade.position >= self.since {
                    let sells = trade.resting_side == Side::Sell;
                    let (sold, bought) = (trade.resting_owner.0, trade.incoming_owner.0);
                    let (sold, bought) = if sells { (sold, bought) } else { (bought, sold) };
                    self.pass((request.instrument, bought, sold), trade.quantity);
                }
                Outcome { status: Status::Accepted, ..refused(request, Reason::None) }
            }
            _ => Outcome { status: Status::Accepted, ..refused(request, self.unfinished(request)) },
        }
    }

    fn trade(&mut self, mut order: Resting, events: &mut Vec<Event>) -> Outcome {
        let mut passed = Vec::new();
        for resting in &mut self.book {
            let meets = resting.instrument == order.instrument && resting.side != order.side;
            let quantity = resting.remaining.min(order.remaining);
            if meets && !quantity.is_zero() && order.side.crosses(order.price, resting.price) {
                resting.remaining = resting.remaining.minus(quantity);
                resting.executed = resting.executed.plus(quantity);
                order.remaining = order.remaining.minus(quantity);
                order.executed = order.executed.plus(quantity);
                let (buyer, seller) = match order.side {
                    Side::Buy => (order.member, resting.member),
                    Side::Sell => (resting.member, order.member),
                };
                passed.push(((order.instrument, seller, buyer), quantity));
                events.push(Event::Fill {
                    resting: resting.id,
                    resting_member: resting.member,
                    resting_client_order_id: resting.name,
                    resting_side: resting.side,
                    price: resting.price,
                    quantity,
                    resting_remaining: resting.remaining,
                });
            }
        }
        passed.into_iter().for_each(|(parties, quantity)| self.pass(parties, quantity));
        self.book.retain(|order| !order.remaining.is_zero());
        let status = if order.remaining.is_zero() { Status::Filled } else { Status::Resting };
        let result = outcome(status, Reason::None, &order, order.remaining);
        if status == Status::Resting {
            self.book.push(order);
        }
        result
    }

    /// Shares pass from a member to another.
    fn pass(&mut self, (instrument, from, to): (InstrumentId, MemberId, MemberId), quantity: Quantity) {
        *self.nets.entry((instrument, from)).or_default() -= quantity.0 as i64;
        *self.nets.entry((instrument, to)).or_default() += quantity.0 as i64;
    }

    fn take(&mut self, request: &Request, target: OrderId) -> Option<Resting> {
        let at = self.book.iter().position(|order| order.id == target && order.member == request.member)?;
        Some(self.book.remove(at))
    }

    /// What the shard has left to do after a request that does not touch orders.
    fn unfinished(&mut self, request: &Request) -> Reason {
        let steps = matches!(
            request.command,
            Command::Time { .. } | Command::SetPhase(_) | Command::CancelGuarded(_)
        );
        if !steps || self.unfinished == 0 {
            return Reason::None;
        }
        self.unfinished -= 1;
        Reason::Unfinished
    }

    fn mass_cancel(&mut self, request: &Request, member: MemberId, events: &mut Vec<Event>) -> Outcome {
        let all = request.instrument == InstrumentId(0);
        let mut count = 0;
        self.book.sort_by_key(|order| order.instrument);
        let mut instrument = request.instrument;
        self.book.retain(|order| {
            let meant = match request.command {
                Command::CancelGuarded(guarded) => guarded.has(order.id, order.name),
                _ => all || order.instrument == request.instrument,
            };
            let hit = order.member == member && meant;
            if hit {
                if order.instrument != instrument {
                    instrument = order.instrument;
                    events.push(Event::Instrument(instrument));
                }
                events.push(cancelled(order, CancelCause::MassCancel));
                count += 1;
            }
            !hit
        });
        let (executed, remaining) = (Quantity(count), Quantity::ZERO);
        let (order, reason) = (OrderId(request.id), self.unfinished(request));
        Outcome { status: Status::MassCancelled, reason, order, executed, remaining }
    }
}

fn outcome(status: Status, reason: Reason, order: &Resting, remaining: Quantity) -> Outcome {
    Outcome { status, reason, order: order.id, executed: order.executed, remaining }
}

fn cancelled(order: &Resting, cause: CancelCause) -> Event {
    Event::Cancelled {
        order: order.id,
        member: order.member,
        client_order_id: order.name,
        side: order.side,
        price: order.price,
        quantity: order.remaining,
        cause,
    }
}

pub(super) fn refused(request: &Request, reason: Reason) -> Outcome {
    let order = OrderId(request.id);
    let (executed, remaining) = (Quantity::ZERO, Quantity::ZERO);
    Outcome { status: Status::Refused, reason, order, executed, remaining }
}
