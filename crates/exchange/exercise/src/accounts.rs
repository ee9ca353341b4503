//! What becomes of orders, counted share by share along a shard's record.

use std::collections::BTreeMap;

use pares_types::{
    BusinessDay, ClientOrderId, Command, Event, InstrumentId, MemberId, OrderId, Outcome, Position, Reason,
    Request, Side, Status,
};

/// What became of an order's shares.
pub struct Shares {
    /// Whose it is, and its name for it.
    pub owner: (MemberId, ClientOrderId),
    side: Side,
    /// Of what.
    pub instrument: InstrumentId,
    entered: u64,
    /// Traded.
    pub executed: u64,
    cancelled: u64,
}

impl Shares {
    /// What is left.
    pub fn remaining(&self) -> u64 {
        self.entered.saturating_sub(self.executed + self.cancelled)
    }
}

/// The orders of a shard.
#[derive(Default)]
pub struct ShareAccounts {
    /// All that came in, until those that have nothing left are removed.
    pub orders: BTreeMap<OrderId, Shares>,
    /// What members bought since the business day began, less what they sold.
    nets: BTreeMap<(InstrumentId, MemberId), i64>,
    day: BusinessDay,
    since: Position,
}

impl ShareAccounts {
    /// Follows a record as docs/rules.md, section 9 says: what comes before the first [`Event::Incoming`] is of the request's
    /// own order, then the outcome counts, then the rest.
    ///
    /// # Errors
    /// What does not add up.
    pub fn follow(
        &mut self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
    ) -> Result<(), String> {
        let own = events.iter().take_while(|event| !matches!(event, Event::Incoming { .. })).count();
        let (own, others) = events.split_at(own);
        let mut incoming = outcome.order;
        if outcome.status == Status::Refused {
            check_refusal(outcome.reason, own, others)?;
            own.iter().try_for_each(|event| self.event(&mut incoming, event))?;
        } else {
            self.follow_exchange(position, request);
            self.enter(request, outcome.order)?;
            own.iter().try_for_each(|event| self.event(&mut incoming, event))?;
            self.settle(outcome)?;
        }
        others.iter().try_for_each(|event| self.event(&mut incoming, event))
    }

    /// What is left of each order that has anything left.
    pub fn resting(&self) -> BTreeMap<OrderId, u64> {
        let resting = self.orders.iter().map(|(id, order)| (*id, order.remaining()));
        resting.filter(|(_, remaining)| *remaining > 0).collect()
    }

    /// Nets, none of 0.
    pub fn nets(&self) -> Vec<(InstrumentId, MemberId, i64)> {
        let nets = self.nets.iter().filter(|(_, net)| **net != 0);
        nets.map(|(&(instrument, member), &net)| (instrument, member, net)).collect()
    }

    /// A day begins without nets, and a trade of it that is declared void did not happen.
    fn follow_exchange(&mut self, position: Position, request: &Request) {
        match request.command {
            Command::BeginDay { day } if day != self.day => {
                (self.day, self.since) = (day, position);
                self.nets.clear();
            }
            Command::Bust(trade) if trade.position >= self.since => {
                let owners = (trade.resting_owner.0, trade.incoming_owner.0);
                let (buyer, seller) = match trade.resting_side {
                    Side::Buy => owners,
                    Side::Sell => (owners.1, owners.0),
                };
                self.pass(request.instrument, (buyer, seller), trade.quantity.0);
            }
            _ => {}
        }
    }

    /// Shares go from one member to another.
    fn pass(&mut self, instrument: InstrumentId, (from, to): (MemberId, MemberId), shares: u64) {
        *self.nets.entry((instrument, from)).or_default() -= shares as i64;
        *self.nets.entry((instrument, to)).or_default() += shares as i64;
    }

    fn enter(&mut self, request: &Request, order: OrderId) -> Result<(), String> {
        match request.command {
            Command::Enter(new) => {
                let (side, entered) = (new.side, new.quantity.0);
                let instrument = request.instrument;
                let owner = (request.member, request.client_order_id);
                let shares = Shares { owner, side, instrument, entered, executed: 0, cancelled: 0 };
                let twice = self.orders.insert(order, shares).is_some();
                if twice { Err(format!("order {order} entered twice")) } else { Ok(()) }
            }
            Command::Amend(amendment) => {
                let shares = self.orders.get_mut(&order).ok_or("an unknown order amended")?;
                let total = shares.entered - shares.cancelled;
                shares.entered += amendment.quantity.0.saturating_sub(total);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, incoming: &mut OrderId, event: &Event) -> Result<(), String> {
        match *event {
            Event::Fill { resting: order, resting_side, quantity, resting_remaining, .. } => {
                let one = self.execute(order, quantity.0)?;
                let other = self.execute(*incoming, quantity.0)?;
                if one.0 != resting_side || other.0 != resting_side.opposite() || one.1 != other.1 {
                    return Err("a trade needs a buyer and a seller of one instrument".into());
                }
                let of = |order| self.orders.get(&order).map_or(MemberId(0), |shares| shares.owner.0);
                let (resting, other) = (of(order), of(*incoming));
                let parties = if resting_side == Side::Sell { (resting, other) } else { (other, resting) };
                self.pass(one.1, parties, quantity.0);
                self.expect_left(order, resting_remaining.0)
            }
            Event::Cancelled { order, quantity, .. } => {
                let shares = self.orders.get_mut(&order).ok_or("an unknown order cancelled")?;
                shares.cancelled += quantity.0;
                check(shares)
            }
            Event::Incoming { order, quantity, .. } => {
                *incoming = order;
                self.expect_left(order, quantity.0)
            }
            Event::Rested { order, quantity, shown, .. } => {
                let hides = shown > quantity;
                if hides {
                    Err(format!("{order} shows more than it has"))
                } else {
                    self.expect_left(order, quantity.0)
                }
            }
            // Of the market, not of an order.
            _ => Ok(()),
        }
    }

    fn expect_left(&self, order: OrderId, told: u64) -> Result<(), String> {
        let left = self.orders.get(&order).ok_or("an unknown order moved")?.remaining();
        if left == told { Ok(()) } else { Err(format!("{left} shares of {order} are left, not {told}")) }
    }

    fn execute(&mut self, order: OrderId, quantity: u64) -> Result<(Side, InstrumentId), String> {
        let shares = self.orders.get_mut(&order).ok_or("an unknown order traded")?;
        shares.executed += quantity;
        check(shares)?;
        Ok((shares.side, shares.instrument))
    }

    /// The outcome must tell what the events add up to.
    ///
    /// # Errors
    /// Both, if it does not.
    pub fn settle(&self, outcome: &Outcome) -> Result<(), String> {
        let Some(shares) = self.orders.get(&outcome.order) else { return Ok(()) };
        let told = (outcome.executed.0, outcome.remaining.0);
        let counted = (shares.executed, shares.remaining());
        if told == counted { Ok(()) } else { Err(format!("told {told:?}, counted {counted:?}")) }
    }
}

/// A refusal has no effects. A book that was busy continues its step all the same: it cancels, or tells the incoming order.
fn check_refusal(reason: Reason, own: &[Event], others: &[Event]) -> Result<(), String> {
    use Reason::{Blocked, DayOver, DuplicateRequest, Overtaken, Quarantined, TooManySeries, TooOld, Void};
    let before_books =
        [Blocked, DayOver, DuplicateRequest, Overtaken, Quarantined, TooManySeries, TooOld, Void];
    let trades = own.iter().any(|event| matches!(event, Event::Fill { .. }));
    let has_effects = trades || before_books.contains(&reason) && !(own.is_empty() && others.is_empty());
    if has_effects { Err("a refusal with effects".into()) } else { Ok(()) }
}

fn check(shares: &Shares) -> Result<(), String> {
    let gone = shares.executed + shares.cancelled;
    if gone <= shares.entered { Ok(()) } else { Err(format!("{gone} shares gone of {}", shares.entered)) }
}
