//! What the day came to.

use std::collections::BTreeMap;

use pares_load::{LabError, LabResult};
use pares_text::{self as text, cents, grouped};
use pares_types::{Phase, Price, Timestamp};
use serde::Serialize;

use super::LEAD;
use super::log::{Course, DayLog};
use super::plan::{COURSE, Plan};

/// What the day came to. Times are seconds since the demonstration began.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DayVerdict {
    /// Whether the user ended the demonstration before the day was over. Its phases then prove nothing.
    pub broken_off: bool,
    /// Whether the leading instrument went through all phases in order, and every other through those of the timetable.
    pub in_order: bool,
    /// Whether the phases came by timetable and the gateways' clocks; otherwise by requests of the exchange.
    pub by_timetable: bool,
    /// The leading instrument.
    pub instrument: String,
    /// The phases it entered, in order.
    pub phases: Vec<PhaseVerdict>,
    /// The auctions held in it, in order.
    pub auctions: Vec<AuctionVerdict>,
    /// Trades by phase, of all instruments; a call's are those of its auction.
    pub trades_per_phase: BTreeMap<String, u64>,
    /// Auctions, in all instruments.
    pub auctions_everywhere: u64,
    /// Volatility calls, in all instruments.
    pub volatility_calls: u64,
    /// Extensions of calls, in all instruments.
    pub extensions: u64,
    /// Halts, in all instruments.
    pub halts: u64,
    /// Orders that expired with the trading day, in all instruments.
    pub orders_expired: u64,
    /// Orders that stayed for the next day, in all instruments.
    pub orders_carried_over: u64,
    /// Trades of the next day's opening auctions in which such an order took part.
    pub carried_over_trades: u64,
    /// Requests refused because the phase did not take them.
    pub refused_by_phase: u64,
}

/// A phase entered.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseVerdict {
    /// Its name.
    pub phase: String,
    /// When.
    pub at_s: f64,
    /// Trades in it.
    pub trades: u64,
}

/// An auction held.
#[derive(Clone, Debug, Serialize)]
pub struct AuctionVerdict {
    /// The call that it ended.
    pub of: String,
    /// When.
    pub at_s: f64,
    /// Its price, in currency.
    pub price: String,
    /// Shares traded.
    pub shares: u64,
    /// Trades.
    pub trades: u64,
}

impl DayVerdict {
    /// Sums up a day of a demonstration that began at `begun_ns`, nanoseconds since 1970.
    pub fn new(log: &DayLog, plan: &Plan, begun_ns: u64, broken_off: bool) -> Self {
        let since = |at: Timestamp| at.0.saturating_sub(begun_ns) as f64 / 1e9;
        let lead = log.course(LEAD);
        let phases = lead.iter().flat_map(|course| &course.phases).map(|entered| PhaseVerdict {
            phase: text::name(&entered.phase),
            at_s: since(entered.at),
            trades: entered.trades,
        });
        let auctions = lead.iter().flat_map(|course| &course.auctions).map(|auction| AuctionVerdict {
            of: text::name(&auction.of),
            at_s: since(auction.at),
            price: cents(auction.price),
            shares: auction.quantity.0,
            trades: auction.trades,
        });
        let mut trades_per_phase = BTreeMap::new();
        for entered in log.courses().flat_map(|course| &course.phases) {
            *trades_per_phase.entry(text::name(&entered.phase)).or_default() += entered.trades;
        }
        let sum = |count: &dyn Fn(&Course) -> u64| log.courses().map(count).sum();
        Self {
            broken_off,
            in_order: log.is_in_order(),
            by_timetable: plan.by_timetable,
            instrument: lead.map(|course| course.symbol.clone()).unwrap_or_default(),
            phases: phases.collect(),
            auctions: auctions.collect(),
            trades_per_phase,
            auctions_everywhere: sum(&|course| course.auctions.len() as u64),
            volatility_calls: sum(&|course| course.times(Phase::VolatilityCall)),
            extensions: sum(&|course| course.extended),
            halts: sum(&|course| course.times(Phase::Halted)),
            orders_expired: sum(&|course| course.expired),
            orders_carried_over: sum(&|course| course.carried.len() as u64),
            carried_over_trades: sum(&|course| course.auctions.iter().map(|auction| auction.carried).sum()),
            refused_by_phase: log.refused,
        }
    }

    /// # Errors
    /// If the day came to its end, and did not go through all phases in order.
    pub fn check(&self) -> LabResult {
        if self.in_order || self.broken_off {
            return Ok(());
        }
        let entered: Vec<&str> = self.phases.iter().map(|phase| phase.phase.as_str()).collect();
        let wanted: Vec<String> = COURSE.iter().map(text::name).collect();
        Err(LabError::Failed(format!(
            "the day did not pass through all phases in order: {} entered {}; expected were {}, and in \
             every instrument the timetable's",
            self.instrument,
            entered.join(", "),
            wanted.join(", ")
        )))
    }
}

/// The state of the leading instrument in a few words: `opening_call, 12,300 at 182.50 indicative`.
pub fn state(course: &Course, last: Option<Price>) -> String {
    let phase = text::name(&course.phase());
    match (course.indicative, last) {
        (Some((price, quantity)), _) => {
            format!("{phase}, {} at {} indicative", grouped(quantity.0), cents(price))
        }
        (None, Some(last)) => format!("{phase}, last {}", cents(last)),
        (None, None) => phase,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_somebody_broke_off_is_not_judged_by_its_phases() {
        let whole = DayVerdict::default();
        assert!(whole.check().is_err());
        let broken_off = DayVerdict { broken_off: true, ..whole };
        assert!(broken_off.check().is_ok());
    }
}
