//! What members that come by FIX met.

/// What members that come by FIX met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixSeen {
    /// Logons that were accepted.
    pub logons: u64,
    /// Logons that were refused.
    pub refused: u64,
    /// Reports told.
    pub reports: u64,
    /// Of those, of another member's orders.
    pub copied: u64,
    /// Of those, told before.
    pub told_again: u64,
    /// Trades told to who asked for them.
    pub trades: u64,
    /// Questions for trades that were told to the end.
    pub trades_whole: u64,
    /// Questions for trades that a connection's end cut short.
    pub trades_cut: u64,
    /// Gaps in the exchange's numbers.
    pub gaps: u64,
    /// Requests sent again with 43=Y.
    pub sent_again: u64,
    /// TestRequests answered.
    pub tests: u64,
    /// Sessions whose numbers began anew because what gateways knew of them was lost with a disk.
    pub anew: u64,
}

impl FixSeen {
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            logons: self.logons + other.logons,
            refused: self.refused + other.refused,
            reports: self.reports + other.reports,
            copied: self.copied + other.copied,
            told_again: self.told_again + other.told_again,
            trades: self.trades + other.trades,
            trades_whole: self.trades_whole + other.trades_whole,
            trades_cut: self.trades_cut + other.trades_cut,
            gaps: self.gaps + other.gaps,
            sent_again: self.sent_again + other.sent_again,
            tests: self.tests + other.tests,
            anew: self.anew + other.anew,
        }
    }
}
