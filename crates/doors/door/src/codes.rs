//! Reasons of the exchange, as FIX has numbers for them. What was the matter exactly is said in Text (58).

use std::borrow::Cow;

use pares_types::{CancelCause, Reason};

use crate::types::{ExecKind, Version};

/// Longest Text (58) of a report or a reject, characters: many engines store no more.
const TEXT_MAX: usize = 64;

/// A reason for a report or a reject: its name, and what it means if that fits.
pub(crate) fn text(reason: Reason) -> Cow<'static, str> {
    let explained = explained(reason);
    if explained.len() > TEXT_MAX { reason.word().into() } else { explained }
}

/// A reason for a Logout, which people read: its name, and what it means.
pub(crate) fn explained(reason: Reason) -> Cow<'static, str> {
    match reason {
        Reason::None => "".into(),
        _ => format!("{}: {}", reason.word(), reason.meaning()).into(),
    }
}

/// OrdRejReason (103).
pub(crate) fn order_reject(reason: Reason, version: Version) -> u8 {
    let code = match reason {
        Reason::UnknownInstrument => 1,
        Reason::NotInThisPhase | Reason::DayOver | Reason::Halted | Reason::Quarantined => 2,
        Reason::QuantityTooLarge | Reason::ValueTooLarge | Reason::QuantityLimit => 3,
        Reason::ValueLimit | Reason::OrdersLimit | Reason::PositionLimit | Reason::PriceCollar => 3,
        Reason::Expired | Reason::TooOld => 4,
        Reason::UnknownOrder | Reason::UnknownClientOrderId => 5,
        Reason::DuplicateRequest => 6,
        Reason::InvalidCombination | Reason::InvalidDisplay | Reason::InvalidMinimum => 11,
        Reason::ZeroQuantity | Reason::OffLot => 13,
        _ => 99,
    };
    in_version(code, version)
}

/// FIX 4.2 has reasons up to 8; 0, the broker's option, stands for the others.
pub(crate) fn in_version(code: u8, version: Version) -> u8 {
    if version == Version::Fix42 && code > 8 { 0 } else { code }
}

/// CxlRejReason (102).
pub(crate) fn cancel_reject(reason: Reason) -> u8 {
    match reason {
        Reason::UnknownOrder => 0,
        Reason::UnknownClientOrderId => 1,
        Reason::DuplicateRequest => 6,
        _ => 99,
    }
}

/// CxlRejResponseTo (434) of a request that this door has not sent itself: what cancels are refused for is few.
pub(crate) fn responds_to(reason: Reason) -> u8 {
    let may_be_cancel = matches!(
        reason,
        Reason::UnknownOrder
            | Reason::InTransition
            | Reason::DuplicateRequest
            | Reason::TooOld
            | Reason::TooManySeries
            | Reason::UnknownInstrument
            | Reason::Void
            | Reason::Quarantined
    );
    if may_be_cancel { b'1' } else { b'2' }
}

/// What a cancel is in FIX.
pub(crate) fn cancel_kind(cause: CancelCause) -> ExecKind {
    match cause {
        CancelCause::Expired | CancelCause::DayEnd | CancelCause::CallOver => ExecKind::Expired,
        _ => ExecKind::Canceled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_reports_have_at_most_64_characters() {
        let texts: Vec<_> = Reason::ALL.into_iter().map(|reason| (reason.word(), text(reason))).collect();
        assert!(texts.len() > 50 && texts.iter().all(|(_, text)| text.len() <= TEXT_MAX), "{texts:?}");
        assert!(
            texts.iter().any(|(word, text)| word == text) && texts.iter().any(|(word, text)| word != text)
        );
    }
}
