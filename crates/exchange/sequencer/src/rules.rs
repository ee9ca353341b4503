//! The rule every implementation follows: what may be done with a position, given what was read.
//!
//! Deciding a position takes two steps, read and compare-and-swap, and a venue may lose the processor for
//! any time between them. The obvious way, to check when writing, needs a lock, which a stopped venue
//! would hold for ever. Instead the rule is a pure function of what was read, made such that *acting on
//! it late is harmless*: either the slot has changed since, and the compare-and-swap fails; or it has
//! not, and the permission still holds, because the recorded mark only grows. Being pure, the same
//! function runs in shared memory, under loom and under stateright (paper 1, section 3: "a
//! compare-and-swap like protocol").
//!
//! ```text
//!   slot of p holds          and then            plan
//!   ---------------          --------            ----
//!   a newer epoch                                EpochOver
//!   position p                                   Decided
//!   a later position                             Behind: p has left the window
//!   earlier / older / empty  p < recorded        Behind: p is in the record, not here (before this epoch)
//!                            p >= recorded + W   Full: p - W is not recorded yet
//!                            otherwise           Claim
//! ```

use pares_types::{Epoch, Position, RequestId};

const POSITION_BITS: u32 = 48;

/// The last position a slot can name; 8.9 years at a million decisions a second.
pub const POSITION_MAX: Position = Position((1 << POSITION_BITS) - 1);

/// The last epoch a slot can name. Epochs start at 1, so that a written slot is never all zero.
pub const EPOCH_MAX: Epoch = Epoch(u16::MAX as u32);

/// One entry of the window: the request decided at one position of one epoch.
///
/// ```text
///  127         112 111                     64 63                       0
/// +---------------+--------------------------+--------------------------+
/// | epoch, from 1 | position                 | request id               |
/// +---------------+--------------------------+--------------------------+
///                     tag                       0 with a tag: fence
///  all zero: never written
/// ```
/// The position makes a reused slot differ from what it was, so a late compare-and-swap fails (no ABA).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slot {
    tag: u64,
    request: u64,
}

impl Slot {
    /// A slot nobody has written.
    pub const EMPTY: Self = Self { tag: 0, request: 0 };

    /// The slot that says: `request` is decided at `position` of `epoch`.
    ///
    /// # Panics
    /// If `epoch` is 0 or above [`EPOCH_MAX`], `position` above [`POSITION_MAX`], or `request` is none.
    #[must_use]
    pub fn new(epoch: Epoch, position: Position, request: RequestId) -> Self {
        assert!(position <= POSITION_MAX, "position {position} does not fit a slot");
        assert!(request != RequestId::NONE, "nothing cannot be decided");
        Self { tag: epoch_bits(epoch) | position.0, request: request.to_bits() }
    }

    /// The slot that says: this memory is given up, `current` is in force. No proposal of an
    /// older epoch can replace it, however late it comes.
    ///
    /// # Panics
    /// If `current` is 0 or above [`EPOCH_MAX`].
    #[must_use]
    pub fn fence(current: Epoch) -> Self {
        Self { tag: epoch_bits(current), request: 0 }
    }

    /// The packed form, for memories.
    #[must_use]
    pub fn to_bits(self) -> u128 {
        u128::from(self.tag) << 64 | u128::from(self.request)
    }

    /// The slot of a packed form.
    #[must_use]
    pub fn from_bits(bits: u128) -> Self {
        Self { tag: (bits >> 64) as u64, request: bits as u64 }
    }

    /// The epoch it was written in; 0 if never written.
    #[must_use]
    pub fn epoch(self) -> Epoch {
        Epoch((self.tag >> POSITION_BITS) as u32)
    }

    /// The position it decides; meaningless if never written or a fence.
    #[must_use]
    pub fn position(self) -> Position {
        Position(self.tag & POSITION_MAX.0)
    }

    /// The request decided; `None` if never written or a fence.
    #[must_use]
    pub fn request(self) -> Option<RequestId> {
        RequestId::from_bits(self.request)
    }

    /// Whether it decides `position` of `epoch` or a later one that reused the slot.
    #[must_use]
    pub fn reached(self, epoch: Epoch, position: Position) -> bool {
        self.epoch() == epoch && self.position() >= position
    }
}

fn epoch_bits(epoch: Epoch) -> u64 {
    assert!((Epoch(1)..=EPOCH_MAX).contains(&epoch), "epoch {epoch} does not fit a slot");
    u64::from(epoch.0) << POSITION_BITS
}

/// What may be done with a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotPlan {
    /// It is decided: process this request there.
    Decided(RequestId),
    /// It has left the window; `oldest` bounds from below what can still be learnt there.
    Behind {
        /// No position before this one is in the window any more.
        oldest: Position,
    },
    /// It is undecided, and claiming it would drop an unrecorded decision.
    Full,
    /// The window belongs to this newer epoch.
    EpochOver(Epoch),
    /// It is undecided: the venue that swaps `expected` for `Slot::new(epoch, position, request)` decides it.
    Claim {
        /// What the slot must still hold.
        expected: Slot,
    },
}

/// The rule: given the `slot` of `position` and a `recorded` mark that was read *before* the slot, both
/// possibly out of date by now, says what a proposer of `epoch` may do with `position` in a window of
/// `capacity` slots.
///
/// # Panics
/// If the slot names `position` but no request: the memory is damaged.
#[must_use]
pub fn plan(slot: Slot, recorded: Position, epoch: Epoch, capacity: u64, position: Position) -> SlotPlan {
    if slot.epoch() > epoch {
        return SlotPlan::EpochOver(slot.epoch());
    }
    if slot.reached(epoch, position) {
        return reached(slot, capacity, position);
    }
    if position < recorded {
        // Recorded before this epoch began, so the record is where to learn it, and claiming it would
        // contradict the record.
        return SlotPlan::Behind { oldest: recorded };
    }
    if position.0 - recorded.0 >= capacity {
        return SlotPlan::Full;
    }
    SlotPlan::Claim { expected: slot }
}

fn reached(slot: Slot, capacity: u64, position: Position) -> SlotPlan {
    if slot.position() == position {
        return SlotPlan::Decided(slot.request().expect("a slot with a position names a request"));
    }
    // The slot's position is decided, so everything up to one window before it has been replaced.
    SlotPlan::Behind { oldest: Position(slot.position().0.saturating_sub(capacity - 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::GatewayId;

    const E: Epoch = Epoch(3);

    fn id(sequence: u64) -> RequestId {
        RequestId::new(GatewayId(1), sequence)
    }

    fn slot(position: u64) -> Slot {
        Slot::new(E, Position(position), id(9))
    }

    #[test]
    fn first_position_of_first_epoch_is_not_an_empty_slot() {
        let slot = Slot::new(Epoch(1), Position(0), id(1));
        assert_ne!(slot, Slot::EMPTY);
        assert_eq!(plan(slot, Position(0), Epoch(1), 4, Position(0)), SlotPlan::Decided(id(1)));
    }

    #[test]
    fn slot_keeps_epoch_position_and_request_apart() {
        let slot = Slot::from_bits(Slot::new(EPOCH_MAX, POSITION_MAX, id(7)).to_bits());
        assert_eq!((slot.epoch(), slot.position(), slot.request()), (EPOCH_MAX, POSITION_MAX, Some(id(7))));
    }

    #[test]
    fn slot_bytes_are_epoch_position_request() {
        let bits = Slot::new(Epoch(0x0102), Position(0x0304_0506_0708), id(0x0a0b)).to_bits();
        assert_eq!(bits, 0x0102_0304_0506_0708_0001_0000_0000_0a0b);
    }

    #[test]
    fn a_plan_follows_from_slot_mark_and_position() {
        let (empty, fence) = (Slot::EMPTY, Slot::fence(Epoch(4)));
        let (older, newer) = [2, 4].map(|epoch| Slot::new(Epoch(epoch), Position(3), id(9))).into();
        let claim = |expected| SlotPlan::Claim { expected };
        let behind = |oldest| SlotPlan::Behind { oldest: Position(oldest) };
        let over = SlotPlan::EpochOver(Epoch(4));
        for (name, slot, recorded, position, expected) in [
            ("an empty slot inside the window may be claimed", empty, 0, 3, claim(empty)),
            ("a slot is not reused before its position is recorded", slot(3), 3, 7, SlotPlan::Full),
            ("and then it is", slot(3), 4, 7, claim(slot(3))),
            ("a replaced position is too far behind", slot(7), 5, 3, behind(4)),
            ("what was recorded before the epoch cannot be claimed", empty, 8, 7, behind(8)),
            ("a newer epoch ends the old one", newer, 0, 3, over),
            ("a fence decides nothing", fence, 0, 0, over),
            ("a slot of an older epoch counts as unwritten", older, 3, 3, claim(older)),
        ] {
            assert_eq!(plan(slot, Position(recorded), E, 4, Position(position)), expected, "{name}");
        }
    }

    #[test]
    #[should_panic(expected = "does not fit a slot")]
    fn epoch_zero_is_refused() {
        let _ = Slot::new(Epoch(0), Position(0), id(1));
    }
}
