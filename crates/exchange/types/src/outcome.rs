//! What became of a request: one [`Outcome`], and the [`Event`]s it caused on the book.

use crate::coded::coded;
use crate::{
    BusinessDay, ClientOrderId, InstrumentId, MemberId, OrderId, Phase, Position, Price, Quantity, Reason,
    Side, Timestamp,
};

/// The one result of one request, recorded at its position (invariant I3). For an order, `executed` and
/// `remaining` are totals of the order itself when its own matching is over: an [`Event::Incoming`] of
/// the same position, and what follows it, happens after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// What became of the request.
    pub status: Status,
    /// Why it was refused or cancelled; [`Reason::None`] otherwise.
    pub reason: Reason,
    /// The order concerned: the one entered, amended or cancelled; otherwise the request's own id.
    pub order: OrderId,
    /// Shares of that order executed so far, this request included; for [`Status::MassCancelled`] the
    /// number of orders cancelled.
    pub executed: Quantity,
    /// Shares of that order still there after this request; for [`Status::MassCancelled`] the number
    /// of orders left to cancel.
    pub remaining: Quantity,
}

coded! {
    /// What became of a request.
    pub enum Status {
        /// The order rests on the book (perhaps after partial fills).
        Resting = 1 "resting",
        /// The order was filled completely.
        Filled = 2 "filled",
        /// What was left of the order was cancelled: by request, or as IOC / market remainder, or an
        /// FOK that could not fill (see the reason).
        Cancelled = 3 "cancelled",
        /// Nothing happened; the reason says why.
        Refused = 4 "refused",
        /// A mass cancel was carried out; one [`Event::Cancelled`] per order.
        MassCancelled = 5 "mass_cancelled",
        /// A request of the exchange was carried out.
        Accepted = 6 "accepted",
        /// The order is accepted but not on the book: it waits for its trigger, for the closing call, or for
        /// a price to be pegged to; with [`Reason::Unfinished`] it continues to trade at the positions that follow.
        Held = 7 "held",
    }
}

/// Something that happened on the book because of a request, in the order it happened. Together with the
/// requests and outcomes they are enough to rebuild the whole order-by-order book (docs/rules.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The incoming order traded with a resting one.
    Fill {
        /// The resting order.
        resting: OrderId,
        /// Its owner.
        resting_member: MemberId,
        /// The owner's name for it.
        resting_client_order_id: ClientOrderId,
        /// The resting order's side; the incoming order was on the other.
        resting_side: Side,
        /// The price of the trade: the resting order's, in an auction the auction's.
        price: Price,
        /// Shares traded.
        quantity: Quantity,
        /// Shares of the resting order left after it, hidden ones included.
        resting_remaining: Quantity,
    },
    /// Shares left the book (or never reached it) without trading.
    Cancelled {
        /// The order.
        order: OrderId,
        /// Its owner.
        member: MemberId,
        /// The owner's name for it.
        client_order_id: ClientOrderId,
        /// Its side.
        side: Side,
        /// Where it rests when they leave; off the book its limit, 0 at market.
        price: Price,
        /// Shares cancelled.
        quantity: Quantity,
        /// Why.
        cause: CancelCause,
    },
    /// From here on this order is the incoming one of all that follows, in place of the request's own.
    Incoming {
        /// The order.
        order: OrderId,
        /// Its owner.
        member: MemberId,
        /// The owner's name for it.
        client_order_id: ClientOrderId,
        /// Its side.
        side: Side,
        /// The price it is limited to; 0 for a market order.
        price: Price,
        /// Shares it has left.
        quantity: Quantity,
        /// Why it is.
        cause: IncomingCause,
    },
    /// An order went to the end of the queue at a price, or left the book to be held.
    Rested {
        /// The order.
        order: OrderId,
        /// Its owner.
        member: MemberId,
        /// The owner's name for it.
        client_order_id: ClientOrderId,
        /// Its side.
        side: Side,
        /// The price; for [`RestCause::Withdrawn`] where it was, for [`RestCause::Unfinished`] zero.
        price: Price,
        /// Shares it has left, hidden ones included.
        quantity: Quantity,
        /// Shares it shows; zero for [`RestCause::Withdrawn`] and [`RestCause::Unfinished`].
        shown: Quantity,
        /// Why.
        cause: RestCause,
    },
    /// The instrument entered a phase.
    PhaseEntered {
        /// The phase.
        phase: Phase,
        /// When a volatility call ends; [`Timestamp::NEVER`] otherwise.
        until: Timestamp,
        /// The reference price, if there is one.
        reference: Option<Price>,
    },
    /// The price at which an auction would trade, or trades now.
    Auction {
        /// The price.
        price: Price,
        /// Shares that would trade, or will.
        quantity: Quantity,
        /// Shares that would be left at that price.
        surplus: Quantity,
        /// The side of the surplus; meaningless without one.
        surplus_side: Side,
        /// Whether the auction trades now; otherwise the figures are indicative. An indicative quantity of
        /// zero says that nothing would trade any more.
        firm: bool,
    },
    /// A trade was declared void.
    Busted {
        /// The resting order.
        resting: OrderId,
        /// The incoming order.
        incoming: OrderId,
        /// Where in the shard's total order it happened.
        position: Position,
        /// Which event of that position it was, from 0.
        index: u16,
        /// Its price.
        price: Price,
        /// Shares traded.
        quantity: Quantity,
    },
    /// What follows happened in this instrument. Only in requests for all instruments (instrument 0).
    Instrument(InstrumentId),
    /// At the end of a business day: the prices at which the instrument traded. Only if it did.
    DayPrices {
        /// Of its first trade.
        open: Price,
        /// The highest.
        high: Price,
        /// The lowest.
        low: Price,
        /// Of its last trade.
        last: Price,
    },
    /// At the end of a business day: how much of the instrument was traded, and its closing price.
    DayVolume {
        /// Of this day, or of the last one it had a price on.
        closing: Option<Price>,
        /// Shares traded.
        quantity: Quantity,
        /// Trades.
        trades: u64,
    },
    /// The business day is over in the shard. The last event of the request that ended it.
    DayEnded {
        /// The day.
        day: BusinessDay,
        /// Requests since the day began, this one included.
        requests: u64,
        /// Orders taken in.
        orders: u64,
        /// Trades.
        trades: u64,
        /// Shares traded.
        quantity: Quantity,
        /// A digest of all books, statistics and totals.
        state_hash: u64,
    },
}

coded! {
    /// Why an order became the incoming one. Codes are part of the protocol.
    pub enum IncomingCause {
        /// A stop order that was held is triggered.
        Triggered = 1 "triggered",
        /// A pegged order leaves its place on the book, if it had one, for a new price.
        Repriced = 2 "repriced",
        /// It is the buy order of the auction's next trades; it keeps its place on the book.
        Auction = 3 "auction",
        /// It continues where the step before had to leave it.
        Continued = 4 "continued",
    }
}

coded! {
    /// Why an order joined the end of a queue, or left the book to be held. Codes are part of the protocol.
    pub enum RestCause {
        /// A triggered stop order comes to rest with what is left of it.
        Triggered = 1 "triggered",
        /// A pegged order comes to rest at its new price.
        Repriced = 2 "repriced",
        /// What an iceberg showed has traded; it shows more.
        Refilled = 3 "refilled",
        /// An order held for the closing call joins it.
        Released = 4 "released",
        /// A pegged order leaves the book until there is a price to follow.
        Withdrawn = 5 "withdrawn",
        /// An order that one step could not finish is set aside; the next step in its instrument continues it.
        Unfinished = 6 "unfinished",
        /// An order that took several steps comes to rest with what is left of it.
        Continued = 7 "continued",
        /// What is left of a market order comes to rest: from now on it has that limit.
        Priced = 8 "priced",
    }
}

coded! {
    /// Why shares were cancelled. Codes are part of the protocol.
    pub enum CancelCause {
        /// The member cancelled the order.
        Requested = 1 "requested",
        /// A mass cancel of the member.
        MassCancel = 2 "mass_cancel",
        /// What an IOC or market order could not trade.
        Remainder = 3 "remainder",
        /// A fill-or-kill order could not be filled completely.
        FillOrKill = 4 "fill_or_kill",
        /// An amend made the order smaller.
        Reduced = 5 "reduced",
        /// The order would have traded with an order of the same member.
        SelfTrade = 6 "self_trade",
        /// Less than its minimum could trade at once.
        Minimum = 7 "minimum",
        /// Its next trade would have been outside a price band.
        PriceBand = 8 "price_band",
        /// The order's expiry date has passed.
        Expired = 10 "expired",
        /// The trading day is over.
        DayEnd = 11 "day_end",
        /// The call it was for is over.
        CallOver = 12 "call_over",
        /// The kill switch.
        Blocked = 13 "blocked",
        /// The instrument is removed.
        Removed = 14 "removed",
        /// The session that guarded it has ended.
        SessionEnded = 15 "session_ended",
    }
}

/// Where events go. The caller owns it, so nobody can forget to drain one.
pub trait EventSink {
    /// Takes one event, in the order they happen.
    fn event(&mut self, event: Event);
}

impl EventSink for Vec<Event> {
    fn event(&mut self, event: Event) {
        self.push(event);
    }
}

#[cfg(test)]
mod tests;
