//! What an engine writes of what happens, and where it goes.

use serde::{Deserialize, Serialize};

/// What a report is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ReportKind {
    /// What became of a message; one each.
    #[default]
    Outcome = 1,
    /// Two orders traded.
    Trade = 2,
    /// Shares left the book without trading.
    Cancelled = 3,
    /// Anything else an engine tells.
    Other = 4,
}

/// One report, a cache line.
///
/// ```text
///  0     1     2       3      4       8         16     24     32           40        48         56
/// +-----+-----+-------+------+-------+---------+------+------+------------+---------+----------+----------+
/// | kind| side| status|reason| member| message | order| other| price_ticks| quantity| remaining| executed |
/// +-----+-----+-------+------+-------+---------+------+------+------------+---------+----------+----------+
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Report {
    /// What it is about.
    pub kind: ReportKind,
    /// The side of `order`, by the code of [`pares_types::Side`]; 0 where nobody asks.
    pub side: u8,
    /// The engine's code of what became of the message, or of why shares were cancelled.
    pub status: u8,
    /// The engine's code of why a message was refused.
    pub reason: u8,
    /// Whose order it is; 0 where the engine does not tell.
    pub member: u32,
    /// Which message caused it, from 0.
    pub message: u64,
    /// The order; in a trade the incoming one.
    pub order: u64,
    /// In a trade the resting order.
    pub other: u64,
    /// In a trade its price.
    pub price_ticks: i64,
    /// Shares traded or cancelled.
    pub quantity: u64,
    /// Shares left: of `order`, in a trade of the resting order; 0 where the engine does not tell.
    pub remaining: u64,
    /// Shares of `order` executed so far; 0 where the engine does not tell.
    pub executed: u64,
}

const _: () = assert!(size_of::<Report>() == 64);

impl Report {
    /// The report as words, for sums over it.
    fn words(&self) -> [u64; 8] {
        let codes = [self.kind as u8, self.side, self.status, self.reason];
        let head = u64::from(u32::from_le_bytes(codes)) << 32 | u64::from(self.member);
        let price = self.price_ticks.cast_unsigned();
        [head, self.message, self.order, self.other, price, self.quantity, self.remaining, self.executed]
    }
}

/// Where reports go.
pub trait Output {
    /// Takes the next report.
    fn report(&mut self, report: Report);
}

/// Reports to a reader that would send them on: the newest 4,096 of them, 256 KiB.
#[derive(Debug)]
pub struct ReportRing {
    slots: Box<[Report; Self::SLOTS]>,
    written: usize,
}

impl ReportRing {
    const SLOTS: usize = 4_096;

    /// An empty ring whose memory is there already.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn new() -> Self {
        let slots = vec![Report { reason: 1, ..Report::default() }; Self::SLOTS];
        Self { slots: slots.into_boxed_slice().try_into().expect("as many as there are slots"), written: 0 }
    }

    /// Reports written so far.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written
    }
}

impl Default for ReportRing {
    fn default() -> Self {
        Self::new()
    }
}

impl Output for ReportRing {
    #[inline]
    fn report(&mut self, report: Report) {
        self.slots[self.written % Self::SLOTS] = report;
        self.written += 1;
    }
}

/// What happened, as sums: two engines with equal sums did the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Reports of any kind.
    pub reports: u64,
    /// Trades.
    pub trades: u64,
    /// Shares traded.
    pub shares: u64,
    /// Over who traded with whom, at what price and how much, in order.
    pub trades_checksum: u64,
    /// Over every word of every report, in order.
    pub checksum: u64,
    /// Orders resting at the end.
    pub resting: u64,
}

impl Output for Sums {
    fn report(&mut self, report: Report) {
        self.reports += 1;
        self.checksum = report.words().into_iter().fold(self.checksum, mix);
        if report.kind == ReportKind::Trade {
            self.trades += 1;
            self.shares += report.quantity;
            let price = report.price_ticks.cast_unsigned();
            let trade = [report.order, report.other, price, report.quantity];
            self.trades_checksum = trade.into_iter().fold(self.trades_checksum, mix);
        }
    }
}

/// One step of a checksum that depends on the order of what it sums.
fn mix(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_newest_reports() {
        let mut ring = ReportRing::new();
        for message in 0..ReportRing::SLOTS as u64 + 1 {
            ring.report(Report { message, ..Report::default() });
        }
        assert_eq!(ring.written(), ReportRing::SLOTS + 1);
        assert_eq!(ring.slots[0].message, ReportRing::SLOTS as u64);
        assert_eq!(ring.slots[1].message, 1);
    }

    #[test]
    fn a_checksum_knows_the_order_of_reports() {
        let (a, b) = (Report { order: 1, ..Report::default() }, Report { order: 2, ..Report::default() });
        let sum = |reports: [Report; 2]| {
            let mut tally = Sums::default();
            reports.into_iter().for_each(|report| tally.report(report));
            tally.checksum
        };
        assert_ne!(sum([a, b]), sum([b, a]));
    }

    #[test]
    fn only_trades_are_summed_as_trades() {
        let mut tally = Sums::default();
        tally.report(Report { quantity: 5, ..Report::default() });
        tally.report(Report { kind: ReportKind::Trade, quantity: 7, ..Report::default() });
        assert_eq!((tally.reports, tally.trades, tally.shares), (2, 1, 7));
    }
}
