//! Reasons of the exchange, as OUCH has codes for them. The exchange's own code stands beside, in the appendage.

use pares_types::{CancelCause, Reason};

/// The reason of a Rejected.
pub(crate) fn reject(reason: Reason) -> u16 {
    match reason {
        // What an iceberg shows is MaxFloor; the standard's Display is another field.
        Reason::InvalidDisplay => INVALID_MAX_FLOOR,
        Reason::Halted | Reason::Quarantined | Reason::NotInThisPhase | Reason::DayOver => HALTED,
        Reason::NoRight | Reason::NotPermitted | Reason::Blocked => FIRM_NOT_AUTHORIZED,
        Reason::InvalidMinimum => INVALID_MIN_QUANTITY,
        Reason::TooManyPegs => PEGGING_NOT_ALLOWED,
        Reason::ZeroQuantity | Reason::OffLot => INVALID_QUANTITY,
        // Of requests that bear a J, only U names an order.
        Reason::UnknownOrder => REPLACE_NOT_ALLOWED,
        Reason::UnknownInstrument => INVALID_SYMBOL,
        Reason::OffTick | Reason::PriceOutOfRange => INVALID_PRICE,
        Reason::QuantityTooLarge => SHARES_EXCEED_THRESHOLD,
        Reason::ValueTooLarge => EXCEEDS_NOTIONAL_VALUE,
        Reason::PriceCollar => RISK_FAT_FINGER,
        Reason::ValueLimit => RISK_ORDER_NOTIONAL,
        Reason::QuantityLimit => RISK_MAX_QUANTITY,
        _ => OTHER,
    }
}

// By the names of the standard, revision 1.05.
const INVALID_MAX_FLOOR: u16 = 0x0004;
const HALTED: u16 = 0x0007;
const FIRM_NOT_AUTHORIZED: u16 = 0x000c;
const INVALID_MIN_QUANTITY: u16 = 0x000d;
const OTHER: u16 = 0x000f;
const PEGGING_NOT_ALLOWED: u16 = 0x0011;
const INVALID_QUANTITY: u16 = 0x0013;
const REPLACE_NOT_ALLOWED: u16 = 0x0015;
const INVALID_SYMBOL: u16 = 0x0017;
const INVALID_PRICE: u16 = 0x001d;
const SHARES_EXCEED_THRESHOLD: u16 = 0x001e;
const EXCEEDS_NOTIONAL_VALUE: u16 = 0x001f;
const RISK_FAT_FINGER: u16 = 0x0026;
const RISK_ORDER_NOTIONAL: u16 = 0x0030;
const RISK_MAX_QUANTITY: u16 = 0x0031;

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
