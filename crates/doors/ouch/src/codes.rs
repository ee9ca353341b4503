//! Reasons of the exchange, as OUCH has codes for them. The exchange's own code stands beside, in the appendage.

use pares_types::{CancelCause, Reason};

/// The reason of a Rejected.
pub(crate) fn reject(reason: Reason) -> u16 {
    match reason {
        Reason::InvalidDisplay => 0x0004,
        Reason::PriceCollar => 0x0006,
        Reason::Halted | Reason::Quarantined | Reason::NotInThisPhase | Reason::DayOver => 0x0007,
        Reason::InvalidMinimum => 0x000d,
        Reason::ZeroQuantity | Reason::OffLot | Reason::QuantityTooLarge => 0x0013,
        Reason::UnknownInstrument => 0x0017,
        Reason::OffTick | Reason::PriceOutOfRange => 0x001d,
        _ => OTHER,
    }
}

/// Anything else.
const OTHER: u16 = 0x000f;

/// The reason of a Canceled.
pub(crate) fn cancel(cause: CancelCause) -> u8 {
    match cause {
        CancelCause::Requested | CancelCause::MassCancel | CancelCause::Reduced => b'U',
        CancelCause::Remainder | CancelCause::FillOrKill | CancelCause::Minimum => b'I',
        CancelCause::SelfTrade => b'Q',
        CancelCause::PriceBand => b'K',
        CancelCause::Expired => b'T',
        CancelCause::DayEnd | CancelCause::CallOver => b'E',
        CancelCause::Blocked | CancelCause::Removed => b'S',
        CancelCause::SessionEnded => b'Z',
    }
}
