//! What became of a request: one [`Outcome`], and the [`Event`]s it caused on the book.

use crate::{ClientOrderId, MemberId, OrderId, Price, Quantity, Side};

/// The one result of one request, recorded at its position (invariant I3). For an order this is the
/// whole story at that position: `executed` and `remaining` are totals of the order itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// What became of the request.
    pub status: Status,
    /// Why it was refused or cancelled; [`Reason::None`] otherwise.
    pub reason: Reason,
    /// The order concerned: the one entered, amended or cancelled; for a mass cancel the request's own id.
    pub order: OrderId,
    /// Shares of that order executed so far, this request included.
    pub executed: Quantity,
    /// Shares of that order still on the book after this request.
    pub remaining: Quantity,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The order rests on the book (perhaps after partial fills).
    Resting = 1,
    /// The order was filled completely.
    Filled = 2,
    /// What was left of the order was cancelled: by request, or as IOC / market remainder, or an
    /// FOK that could not fill (see the reason).
    Cancelled = 3,
    /// Nothing happened; the reason says why.
    Refused = 4,
    /// A mass cancel was carried out; one [`Event::Cancelled`] per order.
    MassCancelled = 5,
}

/// Why a request was refused or an order cancelled. Codes are part of the protocol: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// No reason: it was carried out in full.
    None = 0,
    /// No instrument has that id.
    UnknownInstrument = 1,
    /// Quantity is zero.
    ZeroQuantity = 2,
    /// Quantity is not a multiple of the lot.
    OffLot = 3,
    /// Quantity is above the instrument's maximum.
    QuantityTooLarge = 4,
    /// Price is not a multiple of the tick.
    OffTick = 5,
    /// Price is outside the instrument's range.
    PriceOutOfRange = 6,
    /// Post-only, and it would have traded at once.
    WouldTrade = 7,
    /// That combination of kind, time in force and flags means nothing.
    InvalidCombination = 8,
    /// No resting order of that id for this member and instrument (it may have just traded).
    UnknownOrder = 9,
    /// Amend to a total not above what is already executed.
    QuantityBelowExecuted = 10,
    /// The part of an IOC or market order that found nothing to trade with.
    NothingToTrade = 11,
    /// A fill-or-kill order that could not be filled whole.
    CannotFillWhole = 12,
    /// The member asked for it.
    Requested = 13,
    /// This member used that client order id before; the first answer stands.
    DuplicateRequest = 14,
    /// The book holds as many orders as it may.
    BookFull = 15,
    /// The shard is halted.
    Halted = 16,
    /// Gateway: too many requests in flight; try again shortly.
    Overloaded = 17,
    /// Gateway: its journal cannot take the request (disk full or failed).
    StorageUnavailable = 18,
    /// Gateway: the frame does not follow the protocol.
    MalformedRequest = 19,
    /// Gateway: no sign-on on this connection yet.
    NotSignedOn = 20,
    /// Gateway: the order named by client order id is not known here.
    UnknownClientOrderId = 21,
    /// An amend that changes nothing.
    NothingChanged = 22,
}

impl Reason {
    /// Every reason; a reason's code is its index.
    pub const ALL: [Self; 23] = [
        Self::None,
        Self::UnknownInstrument,
        Self::ZeroQuantity,
        Self::OffLot,
        Self::QuantityTooLarge,
        Self::OffTick,
        Self::PriceOutOfRange,
        Self::WouldTrade,
        Self::InvalidCombination,
        Self::UnknownOrder,
        Self::QuantityBelowExecuted,
        Self::NothingToTrade,
        Self::CannotFillWhole,
        Self::Requested,
        Self::DuplicateRequest,
        Self::BookFull,
        Self::Halted,
        Self::Overloaded,
        Self::StorageUnavailable,
        Self::MalformedRequest,
        Self::NotSignedOn,
        Self::UnknownClientOrderId,
        Self::NothingChanged,
    ];
}

/// Something that happened on the book because of a request, in the order it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The incoming order traded with a resting one, at the resting order's price.
    Fill {
        /// The resting order.
        resting: OrderId,
        /// Its owner.
        resting_member: MemberId,
        /// The owner's name for it.
        resting_client_order_id: ClientOrderId,
        /// The resting order's side; the incoming order was on the other.
        resting_side: Side,
        /// The price of the trade: the resting order's.
        price: Price,
        /// Shares traded.
        quantity: Quantity,
        /// Shares of the resting order left after it.
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
        /// Shares cancelled.
        quantity: Quantity,
        /// Why.
        cause: CancelCause,
    },
}

/// Why shares were cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CancelCause {
    /// The member cancelled the order.
    Requested = 1,
    /// A mass cancel of the member.
    MassCancel = 2,
    /// What an IOC or market order could not trade.
    Remainder = 3,
    /// A fill-or-kill order that could not be filled whole.
    FillOrKill = 4,
    /// An amend made the order smaller.
    Reduced = 5,
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
mod tests {
    use super::*;

    #[test]
    fn every_reason_stands_at_its_code() {
        for (code, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, code);
        }
    }
}
