//! UserRefNums as names of the exchange, and back.
//!
//! O, U, C, D and E bear a UserRefNum of their own, which rises: it is the number in the session's series. X and M have none, only their
//! order's. Made of that one their names would not rise, and a cancel of an old order would be too old itself. So their names are
//! of a series apart, and its numbers are of the clock.

use pares_types::ClientOrderId;

const NUMBER_BITS: u32 = 48;
/// Added to the session: the series of X and M.
const CHANGES: u16 = 0x4000;
/// A number for each 16,384 ns, which lasts until the year 2116.
const TICK_BITS: u32 = 14;
/// How far numbers jump when one was too old: some 69 seconds.
const JUMP: u64 = 1 << 22;

/// The names of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct OuchNames {
    session: u16,
    is_guarded: bool,
    /// The number of the last change.
    last: u64,
}

impl OuchNames {
    /// Of a session that has made no change.
    #[must_use]
    pub fn new(session: u16, is_guarded: bool) -> Self {
        Self { session, is_guarded, last: 0 }
    }

    /// The name of what bears that UserRefNum.
    #[must_use]
    pub fn of(&self, user_ref_num: u32) -> ClientOrderId {
        let number = u64::from(user_ref_num);
        if self.is_guarded {
            ClientOrderId::guarded(self.session, number)
        } else {
            ClientOrderId(u64::from(self.session) << NUMBER_BITS | number)
        }
    }

    /// The UserRefNum of a name; 0 of one that is not the session's.
    pub(crate) fn user_ref_num(&self, name: ClientOrderId) -> u32 {
        let number = u32::try_from(name.number()).unwrap_or_default();
        if self.of(number) == name { number } else { 0 }
    }

    /// Whether an X or M of the session has that name.
    #[must_use]
    pub fn is_change(&self, name: ClientOrderId) -> bool {
        name.series() == self.session | CHANGES
    }

    /// A new name for an X or M.
    pub(crate) fn change(&mut self, utc_ns: u64) -> ClientOrderId {
        let mask = (1 << NUMBER_BITS) - 1;
        self.last = (self.last + 1).max(utc_ns >> TICK_BITS) & mask;
        ClientOrderId(u64::from(self.session | CHANGES) << NUMBER_BITS | self.last)
    }

    /// An X or M of the session has that name, perhaps.
    pub(crate) fn on_told(&mut self, name: ClientOrderId) {
        if self.is_change(name) {
            self.last = self.last.max(name.number());
        }
    }

    /// The series is ahead of this gateway's clock.
    pub(crate) fn jump(&mut self) {
        self.last += JUMP;
    }
}
