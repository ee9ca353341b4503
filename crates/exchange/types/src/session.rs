//! What crosses a client's session: [`ClientRequest`] in, [`Reply`] out.
//!
//! A client speaks of its orders by the names it gave them ([`ClientOrderId`]); the gateway turns names
//! into exchange ids on the way in and back into names on the way out.

use crate::coded::coded;
use crate::{
    Amendment, CancelCause, ClientOrderId, Command, InstrumentId, NewOrder, OrderId, Position, Price,
    Quantity, Reason, RequestDigest, RequestId, ShardId, Side, Status, TimeInForce,
};

/// What a client asks of a gateway. Every request has a name of its own; repeating one is harmless and
/// returns the first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientRequest {
    /// Enter an order.
    Enter {
        /// The name of this request, and from then on of the order.
        client_order_id: ClientOrderId,
        /// The instrument; not 0.
        instrument: InstrumentId,
        /// The order.
        order: NewOrder,
    },
    /// Change an order that rests or is held.
    Amend {
        /// The name of this request.
        client_order_id: ClientOrderId,
        /// The name under which the order was entered.
        target: ClientOrderId,
        /// What it shall be from now on.
        terms: NewTerms,
    },
    /// Cancel what is left of an order.
    Cancel {
        /// The name of this request.
        client_order_id: ClientOrderId,
        /// The name under which the order was entered.
        target: ClientOrderId,
    },
    /// Cancel all the member's orders.
    MassCancel {
        /// The name of this request.
        client_order_id: ClientOrderId,
        /// The instrument, or 0 for all of them.
        instrument: InstrumentId,
        /// Only bids, or only offers; both if `None`.
        side: Option<Side>,
    },
    /// A request of the exchange (member 0), or [`Command::Block`] of a member for itself.
    Exchange {
        /// The name of this request.
        client_order_id: ClientOrderId,
        /// The instrument; 0 for all where the command allows it.
        instrument: InstrumentId,
        /// What is asked: anything but [`Command::Enter`], [`Command::Amend`], [`Command::Cancel`] and
        /// [`Command::MassCancel`], which have requests of their own.
        command: Command,
    },
}

/// The new terms of an order. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NewTerms {
    /// The new limit price.
    pub price: Price,
    /// The new total quantity, executed part included.
    pub quantity: Quantity,
    /// The new size of what an iceberg shows; zero shows everything.
    pub display: Option<Quantity>,
    /// The new trigger of a stop order that still waits.
    pub trigger: Option<Price>,
    /// How long it stays: day, good till cancelled or good till a date.
    pub time_in_force: Option<TimeInForce>,
    /// Only fewer shares: the order keeps its price and all other terms, and one that has no more shares is left as it is.
    pub reduces: bool,
}

impl NewTerms {
    /// A new price and total quantity, all else as it is.
    #[must_use]
    pub const fn new(price: Price, quantity: Quantity) -> Self {
        Self { price, quantity, display: None, trigger: None, time_in_force: None, reduces: false }
    }

    /// A smaller total, and nothing else.
    #[must_use]
    pub const fn reduction(quantity: Quantity) -> Self {
        Self { reduces: true, ..Self::new(Price(0), quantity) }
    }

    /// These terms for the order `target`, and its owner's name for it.
    #[must_use]
    pub const fn of(self, target: OrderId, target_name: ClientOrderId) -> Amendment {
        let Self { price, quantity, display, trigger, time_in_force, reduces } = self;
        Amendment { target, target_name, price, quantity, display, trigger, time_in_force, reduces }
    }
}

impl ClientRequest {
    /// Whether it may add to what a member risks. Cancels do not, nor amends that only reduce: no right or limit holds them up.
    #[must_use]
    pub const fn adds_risk(&self) -> bool {
        match self {
            Self::Enter { .. } => true,
            Self::Amend { terms, .. } => !terms.reduces,
            Self::Cancel { .. } | Self::MassCancel { .. } | Self::Exchange { .. } => false,
        }
    }

    /// The request's own name.
    #[must_use]
    pub fn client_order_id(&self) -> ClientOrderId {
        match *self {
            Self::Enter { client_order_id, .. }
            | Self::Amend { client_order_id, .. }
            | Self::Cancel { client_order_id, .. }
            | Self::MassCancel { client_order_id, .. }
            | Self::Exchange { client_order_id, .. } => client_order_id,
        }
    }
}

/// What a gateway tells a client about its requests and orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The request is in the gateway's journal and will be ordered.
    Journalled {
        /// The request's name.
        client_order_id: ClientOrderId,
        /// Its identity in the exchange.
        request: RequestId,
    },
    /// The one answer to a request; committed.
    Answer(Answer),
    /// One of the member's orders traded.
    Trade(Trade),
    /// Shares of one of the member's orders were cancelled.
    Cancelled(Cancelled),
    /// One of the member's orders did something that nobody asked for just now.
    News(OrderNews),
    /// A trade of one of the member's orders was declared void.
    Busted(TradeBusted),
    /// The gateway did not take the request in: nothing was recorded and the name is still free. Or the name stands for another request
    /// ([`Reason::DuplicateRequest`]): then this one is not executed, even if it was taken in, but for parts of one that is for all shards.
    Rejected {
        /// The request's name.
        client_order_id: ClientOrderId,
        /// Why.
        reason: Reason,
    },
}

impl Reply {
    /// The same with its place in its member's stream of the shard; what has none stays as it is.
    #[must_use]
    pub const fn numbered(mut self, to: u64) -> Self {
        match &mut self {
            Self::Answer(Answer { number, .. })
            | Self::Trade(Trade { number, .. })
            | Self::Cancelled(Cancelled { number, .. })
            | Self::News(OrderNews { number, .. })
            | Self::Busted(TradeBusted { number, .. }) => *number = to,
            Self::Journalled { .. } | Self::Rejected { .. } => {}
        }
        self
    }
}

/// The one answer to a request. What it says is recorded at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// The request's name.
    pub client_order_id: ClientOrderId,
    /// Its identity in the exchange.
    pub request: RequestId,
    /// The order concerned; for a mass cancel the request itself.
    pub order: OrderId,
    /// The total order it was part of.
    pub shard: ShardId,
    /// Its place there.
    pub position: Position,
    /// The instrument; 0 for a mass cancel of all.
    pub instrument: InstrumentId,
    /// What became of it.
    pub status: Status,
    /// Why it was refused or cancelled.
    pub reason: Reason,
    /// Shares of the order executed so far; for a mass cancel the number of orders cancelled.
    pub executed: Quantity,
    /// Shares of the order still there; for a mass cancel the number of orders left to cancel (in the
    /// shard that speaks, if it was for all).
    pub remaining: Quantity,
    /// Trades and cancels recorded at the same position, of any member.
    pub events: u32,
    /// Whether it repeats an answer given, or due, before.
    pub repeat: bool,
    /// Its place in the member's stream of the shard, from 1; 0 if it comes outside of that: a repeat, an answer for all shards,
    /// or one that nothing was counted for.
    pub number: u64,
    /// What was asked, as the record has it.
    pub asked: RequestDigest,
}

impl Answer {
    /// What every repeat of it says.
    #[must_use]
    pub const fn content(self) -> Self {
        Self { repeat: false, number: 0, ..self }
    }

    /// Whether it is of one shard's part of a request to all shards, whose own answer comes when every shard has answered.
    #[must_use]
    pub const fn is_part(&self) -> bool {
        self.instrument.0 == 0 && self.number != 0
    }

    /// Whether it is the answer to such a request, as far as it says: of which order a change was, its asker has to see. A name is answered for life by what was
    /// first asked for under it, which need not be what is asked for now: then nothing of this was done, and no client may be shown that something was.
    #[must_use]
    pub fn can_be_of(&self, request: &ClientRequest) -> bool {
        // What is refused before its order is looked for concerns no order but itself.
        let (is_own, is_refused) = (self.order.0 == self.request, self.status == Status::Refused);
        let is_for_all = self.instrument.0 == 0;
        let is_of_an_order = !is_for_all && !matches!(self.status, Status::MassCancelled | Status::Accepted);
        let is_of_kind = match request {
            ClientRequest::Enter { instrument, .. } => {
                is_of_an_order && is_own && self.instrument == *instrument
            }
            ClientRequest::Amend { .. } => is_of_an_order && (is_refused || !is_own),
            ClientRequest::Cancel { .. } => {
                is_of_an_order && (is_refused || !is_own && self.status == Status::Cancelled)
            }
            ClientRequest::MassCancel { instrument, .. } => {
                let is_mass = self.status == Status::MassCancelled || is_refused && is_own;
                is_mass && self.instrument == *instrument
            }
            ClientRequest::Exchange { instrument, .. } => is_for_all || self.instrument == *instrument,
        };
        is_of_kind && !self.asked.differs(request.asked())
    }
}

/// One of the member's orders traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trade {
    /// The name of the member's order.
    pub client_order_id: ClientOrderId,
    /// The order.
    pub order: OrderId,
    /// The total order in which it traded.
    pub shard: ShardId,
    /// Where in it.
    pub position: Position,
    /// Which event of that position it was, from 0; a [`TradeBusted`] names it by both.
    pub index: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The side of the member's order.
    pub side: Side,
    /// Whether the member's order was on the book or came in.
    pub role: Role,
    /// The price: the resting order's, in an auction the auction's.
    pub price: Price,
    /// Shares traded.
    pub quantity: Quantity,
    /// Shares of the member's order left after it: on the book, or for the incoming order to match.
    pub remaining: Quantity,
    /// Its place in the member's stream of the shard, from 1.
    pub number: u64,
}

coded! {
    /// Which part an order played in a trade.
    pub enum Role {
        /// It was on the book (it made the liquidity); in an auction, the sell order.
        Resting = 1 "resting",
        /// It came in (it took the liquidity); in an auction, the buy order.
        Incoming = 2 "incoming",
    }
}

/// Shares of one of the member's orders left the book, or never reached it, without trading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cancelled {
    /// The name of the member's order.
    pub client_order_id: ClientOrderId,
    /// The order.
    pub order: OrderId,
    /// The total order in which it happened.
    pub shard: ShardId,
    /// Where in it.
    pub position: Position,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The order's side.
    pub side: Side,
    /// Where it rests when they leave; off the book its limit, 0 at market.
    pub price: Price,
    /// Shares cancelled.
    pub quantity: Quantity,
    /// Why.
    pub cause: CancelCause,
    /// Its place in the member's stream of the shard, from 1.
    pub number: u64,
}

/// One of the member's orders did something that nobody asked for just now: its trigger, its peg, its
/// display or its phase came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OrderNews {
    /// The name of the member's order.
    pub client_order_id: ClientOrderId,
    /// The order.
    pub order: OrderId,
    /// The total order in which it happened.
    pub shard: ShardId,
    /// Where in it.
    pub position: Position,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The order's side.
    pub side: Side,
    /// What happened.
    pub change: OrderChange,
    /// The price it is limited to, or rests at; where it was, for [`OrderChange::Withdrawn`]. 0 for a
    /// market order that is triggered.
    pub price: Price,
    /// Shares it has left, hidden ones included.
    pub remaining: Quantity,
    /// Shares it shows on the book; zero if it is not there.
    pub shown: Quantity,
    /// Its place in the member's stream of the shard, from 1.
    pub number: u64,
}

coded! {
    /// What an order did that nobody asked for just now. Codes are part of the protocol.
    pub enum OrderChange {
        /// A stop order is triggered: it matches now, and its trades follow.
        Triggered = 1 "triggered",
        /// What a triggered order could not trade rests on the book.
        Rested = 2 "rested",
        /// A pegged order rests at a new price.
        Repriced = 3 "repriced",
        /// An iceberg shows more.
        Refilled = 4 "refilled",
        /// An order held for the closing call joined it.
        Released = 5 "released",
        /// A pegged order left the book until there is a price to follow.
        Withdrawn = 6 "withdrawn",
    }
}

/// A trade of one of the member's orders was declared void. The order is not put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TradeBusted {
    /// The name of the member's order.
    pub client_order_id: ClientOrderId,
    /// The order.
    pub order: OrderId,
    /// The total order in which it traded.
    pub shard: ShardId,
    /// Where in it the trade was declared void.
    pub position: Position,
    /// Where in it the trade was.
    pub traded_at: Position,
    /// Which event of that position the trade was, from 0.
    pub index: u16,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The trade's price.
    pub price: Price,
    /// Shares traded.
    pub quantity: Quantity,
    /// Its place in the member's stream of the shard, from 1.
    pub number: u64,
}

#[cfg(test)]
mod tests;
