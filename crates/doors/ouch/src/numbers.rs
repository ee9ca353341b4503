//! Which UserRefNums of a connection are taken: those that rise, and those that were refused.

use std::collections::BTreeSet;

/// UserRefNums that were refused and are free; of more the lowest are forgotten.
const FREE_MAX: usize = 1 << 16;

/// The UserRefNums that a client has sent on its connection.
#[derive(Debug, Default)]
pub struct UserRefNums {
    highest: u32,
    /// Sent and not taken: they may be sent again.
    free: BTreeSet<u32>,
}

impl UserRefNums {
    /// Whether one is new, or free again; what repeats one is ignored.
    pub fn takes(&mut self, number: u32) -> bool {
        let is_new = number > self.highest || self.free.remove(&number);
        self.highest = self.highest.max(number);
        is_new
    }

    /// What bore it was not taken. Under a higher number it could be taken twice, if it was sent before and is on its way at another gateway; so the number
    /// itself is free.
    pub fn refused(&mut self, number: u32) {
        if number > 0 {
            self.free.insert(number);
        }
        if self.free.len() > FREE_MAX {
            self.free.pop_first();
        }
    }

    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }
}
