//! What happened on a day, and whether recorders agree on it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pares_log::Offset;
use pares_types::{BusinessDay, MemberId, Price, RecorderId, ShardId};
use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::scan::{Closed, DayScan, EndedDay, ShardDay};

/// A business day as one recorder's log has it. Prices are in currency, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayReport {
    /// The date.
    pub day: String,
    /// By shard.
    pub shards: Vec<ShardReport>,
    /// By shard and instrument.
    pub instruments: Vec<InstrumentReport>,
    /// By member, all shards together.
    pub members: Vec<MemberReport>,
}

/// A shard's day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardReport {
    /// The shard.
    pub shard: u16,
    /// Where the day began.
    pub first: u64,
    /// Where it ended.
    pub last: u64,
    /// Of its books, statistics and totals at the end.
    pub state_hash: String,
    /// Requests since it began.
    pub requests: u64,
    /// Orders taken in.
    pub orders: u64,
    /// Trades.
    pub trades: u64,
    /// Shares traded.
    pub quantity: u64,
}

/// An instrument's day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstrumentReport {
    /// The instrument.
    pub instrument: u32,
    /// Its shard.
    pub shard: u16,
    /// Of the first trade; the next three too are there only if it traded.
    pub open: Option<String>,
    /// The highest.
    pub high: Option<String>,
    /// The lowest.
    pub low: Option<String>,
    /// Of the last trade.
    pub last: Option<String>,
    /// The closing price: of this day, or the last one there was.
    pub closing: Option<String>,
    /// Shares traded.
    pub quantity: u64,
    /// Trades.
    pub trades: u64,
}

/// A member's day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReport {
    /// The member.
    pub member: u32,
    /// Orders taken in.
    pub orders: u64,
    /// Sides of trades.
    pub trades: u64,
    /// Shares on them.
    pub quantity: u64,
}

/// What several recorders say of a day.
///
/// Of one recorder nothing was compared but its results with its figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// As the first of them has it.
    pub report: DayReport,
    /// Whose logs were read.
    pub recorders: Vec<u16>,
    /// Whose were not there.
    pub missing: Vec<u16>,
    /// What they, or the results and the figures in one log, do not agree on; a sentence each.
    pub differences: Vec<String>,
}

/// Reads a day out of each recorder's log by itself and compares. Without a `day`, the last that ended in all shards of the first
/// recorder.
///
/// # Errors
/// If a log cannot be read, or the first one has no such day to its end.
pub fn reports(
    logs: &[(RecorderId, &Path)],
    shards: &[ShardId],
    day: Option<BusinessDay>,
) -> Result<Agreement, ArchiveError> {
    let (mut found, mut differences): (Option<DayReport>, _) = (None, Vec::new());
    let mut asked = day;
    for (recorder, log) in logs {
        let scan = DayScan::of_log(log, Offset::START)?;
        let day = asked.or_else(|| scan.ended(shards).last().copied());
        let day = day.ok_or_else(|| ArchiveError::Refused("no business day has ended yet".to_owned()))?;
        asked = Some(day);
        match (report(&scan, shards, day, *recorder, &mut differences), &found) {
            (Ok(report), None) => found = Some(report),
            (Ok(report), Some(first)) => {
                first.differences(&report, (logs[0].0, *recorder), &mut differences);
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(_)) => differences.push(error.to_string()),
        }
    }
    let report = found.ok_or_else(|| ArchiveError::Refused("there is no recorder's log".to_owned()))?;
    Ok(Agreement {
        report,
        recorders: logs.iter().map(|(id, _)| id.0).collect(),
        missing: Vec::new(),
        differences,
    })
}

fn report(
    scan: &DayScan,
    shards: &[ShardId],
    day: BusinessDay,
    recorder: RecorderId,
    differences: &mut Vec<String>,
) -> Result<DayReport, ArchiveError> {
    let mut report =
        DayReport { day: day.to_string(), shards: Vec::new(), instruments: Vec::new(), members: Vec::new() };
    let mut members: BTreeMap<MemberId, MemberReport> = BTreeMap::new();
    for &shard in shards {
        let of_shard = scan.days.get(&(day, shard));
        let (of_shard, ended) = of_shard.and_then(|of| Some((of, of.ended?))).ok_or_else(|| {
            let what = format!(
                "recorder {recorder} does not have the whole day {day} in shard {shard}: the day has not \
                 ended, never began, or was dropped (`pares day report --archive` reads archives)"
            );
            ArchiveError::Refused(what)
        })?;
        check_count((recorder, shard), of_shard, &ended, differences);
        report.shards.push(shard_report(shard, of_shard, &ended));
        let instruments = of_shard.closed.iter();
        report.instruments.extend(instruments.map(|(id, closed)| instrument_report(id.0, shard, closed)));
        for (member, totals) in of_shard.count.day.members() {
            let none = MemberReport { member: member.0, orders: 0, trades: 0, quantity: 0 };
            let sum = members.entry(*member).or_insert(none);
            sum.orders += totals.orders;
            sum.trades += totals.trades;
            sum.quantity = sum.quantity.saturating_add(totals.quantity.0);
        }
    }
    report.members = members.into_values().collect();
    Ok(report)
}

fn shard_report(shard: ShardId, of_shard: &ShardDay, ended: &EndedDay) -> ShardReport {
    ShardReport {
        shard: shard.0,
        first: of_shard.first.0,
        last: of_shard.last.0,
        state_hash: format!("{:016x}", ended.state_hash),
        requests: ended.requests,
        orders: ended.orders,
        trades: ended.trades,
        quantity: ended.quantity.0,
    }
}

fn instrument_report(instrument: u32, shard: ShardId, closed: &Closed) -> InstrumentReport {
    let price = |at: usize| closed.prices.map(|prices| prices[at].to_string());
    InstrumentReport {
        instrument,
        shard: shard.0,
        open: price(0),
        high: price(1),
        low: price(2),
        last: price(3),
        closing: closed.closing.as_ref().map(Price::to_string),
        quantity: closed.quantity.0,
        trades: closed.trades,
    }
}

/// Whether a log's own results add up to the figures in it.
fn check_count(
    (recorder, shard): (RecorderId, ShardId),
    of_shard: &ShardDay,
    ended: &EndedDay,
    differences: &mut Vec<String>,
) {
    let (day, totals) = (&of_shard.count.day, of_shard.count.day.totals());
    let counted = [
        ("requests", day.requests(), ended.requests),
        ("orders", totals.orders, ended.orders),
        ("trades", totals.trades, ended.trades),
        ("shares", totals.quantity.0, ended.quantity.0),
    ];
    for (what, counted, recorded) in counted.into_iter().filter(|(_, counted, recorded)| counted != recorded)
    {
        differences.push(format!(
            "recorder {recorder}, shard {shard}: {recorded} {what} are recorded, but the results contain {counted}"
        ));
    }
    for (instrument, closed) in &of_shard.closed {
        let counted = of_shard.count.instruments.get(instrument).copied().unwrap_or_default();
        let prices = [counted.open, counted.high, counted.low, counted.last];
        let same = (counted.trades, counted.quantity) == (closed.trades, closed.quantity)
            && closed.prices == (counted.trades > 0).then_some(prices);
        if !same {
            differences.push(format!(
                "recorder {recorder}, instrument {instrument}: the results do not add up to the statistics"
            ));
        }
    }
}

impl DayReport {
    fn differences(&self, other: &Self, (one, two): (RecorderId, RecorderId), found: &mut Vec<String>) {
        let mut compare = |what: &str, ours: &dyn std::fmt::Debug, theirs: &dyn std::fmt::Debug| {
            found.push(format!("recorders {one} and {two} differ in {what}: {ours:?} and {theirs:?}"));
        };
        for (ours, theirs) in self.shards.iter().zip(&other.shards).filter(|(a, b)| a != b) {
            compare(&format!("shard {}", ours.shard), ours, theirs);
        }
        let instruments = |report: &Self| {
            report.instruments.iter().map(|one| (one.instrument, one.clone())).collect::<BTreeMap<_, _>>()
        };
        let members = |report: &Self| {
            report.members.iter().map(|one| (one.member, one.clone())).collect::<BTreeMap<_, _>>()
        };
        of_maps("instrument", &instruments(self), &instruments(other), &mut compare);
        of_maps("member", &members(self), &members(other), &mut compare);
    }

    /// The report as lines for people.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut text = format!("business day {}\n", self.day);
        for one in &self.shards {
            let _ = writeln!(
                text,
                "shard {}: positions {} to {}, {} requests, {} orders, {} shares in {} trades, state {}",
                one.shard,
                one.first,
                one.last,
                one.requests,
                one.orders,
                one.quantity,
                one.trades,
                one.state_hash
            );
        }
        for one in self.instruments.iter().filter(|one| one.trades > 0) {
            let [open, high, low, last, closing] = [&one.open, &one.high, &one.low, &one.last, &one.closing]
                .map(|price| price.as_deref().unwrap_or("-"));
            let _ = writeln!(
                text,
                "instrument {}: open {open}, high {high}, low {low}, last {last}, closing {closing}, {} shares in {} trades",
                one.instrument, one.quantity, one.trades
            );
        }
        for one in &self.members {
            let _ = writeln!(
                text,
                "member {}: {} orders, {} shares in {} trades",
                one.member, one.orders, one.quantity, one.trades
            );
        }
        text
    }
}

fn of_maps<T: PartialEq + std::fmt::Debug>(
    what: &str,
    ours: &BTreeMap<u32, T>,
    theirs: &BTreeMap<u32, T>,
    compare: &mut impl FnMut(&str, &dyn std::fmt::Debug, &dyn std::fmt::Debug),
) {
    let mut ids: Vec<&u32> = ours.keys().chain(theirs.keys()).collect();
    ids.sort_unstable();
    ids.dedup();
    for id in ids.into_iter().filter(|id| ours.get(id) != theirs.get(id)) {
        compare(&format!("{what} {id}"), &ours.get(id), &theirs.get(id));
    }
}
