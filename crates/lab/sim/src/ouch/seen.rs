//! What members that come by OUCH met.

/// What members that come by OUCH met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OuchSeen {
    /// Logins that were accepted.
    pub logins: u64,
    /// Logins that were rejected.
    pub rejected: u64,
    /// Packets of the stream.
    pub packets: u64,
    /// Of those, told before.
    pub told_again: u64,
    /// What was said beside the stream.
    pub beside: u64,
    /// Orders and changes sent again under their UserRefNums.
    pub sent_again: u64,
    /// Orders and changes answered.
    pub answered: u64,
}

impl OuchSeen {
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            logins: self.logins + other.logins,
            rejected: self.rejected + other.rejected,
            packets: self.packets + other.packets,
            told_again: self.told_again + other.told_again,
            beside: self.beside + other.beside,
            sent_again: self.sent_again + other.sent_again,
            answered: self.answered + other.answered,
        }
    }
}
