//! What traders received, compared with each other, against the servers' logs and against the market.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pares_desk::item::{OrderedItem, TraderId};
use pares_load::{LabError, failed};
use pares_member::config::stream;
use pares_node::{HostWorld, Layout, NodeError};
use pares_roles::World;
use pares_types::Position;
use serde::Serialize;

use super::SERVERS;
use super::trader::{Noted, item_sum};
use crate::feed::truth::{Market, Wrongs};

/// When a server was filled, and before.
pub(super) struct Transfer {
    pub(super) gives: u16,
    /// What the other one had, and was given again.
    pub(super) items: u64,
    pub(super) before: Range<u64>,
    pub(super) during: Range<u64>,
}

/// What came of the member's servers.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct DeskReckoning {
    /// Items of the member's stream.
    pub(crate) member_items: u64,
    /// Items that a trader was not told, or a server's log lacks; and what was said and does not stand there.
    pub(crate) member_items_missing: u64,
    /// Items that differ from one to another, came out of turn, or stand there twice.
    pub(crate) member_items_differing: u64,
    /// Items that the wiped server was given.
    pub(crate) transfer_items: u64,
    /// How long it took to fill it, its start included.
    pub(crate) transfer_ms: f64,
    /// From the surviving server's stamp to a trader's read, before the transfer.
    pub(crate) before_p99_us: f64,
    /// The same during the transfer.
    pub(crate) during_p99_us: f64,
    /// The one over the other.
    pub(crate) transfer_p99_ratio: f64,
    /// What books had wrong.
    #[serde(skip)]
    pub(crate) wrongs: Wrongs,
}

/// A server's log.
#[derive(Default)]
struct Kept {
    items: BTreeMap<Position, u32>,
    /// What stands there of each trader, without repeats, in its order.
    numbers: BTreeMap<TraderId, Vec<u64>>,
}

impl Kept {
    fn read(layout: &Layout, server: u16) -> Result<Self, LabError> {
        let mut reader =
            HostWorld::new(layout)?.read_log_from_start(stream(server)).map_err(NodeError::from)?;
        let mut kept = Self::default();
        while let Some(record) = reader.next().map_err(NodeError::from)? {
            let item = OrderedItem::read(record.payload).map_err(failed("reading a member's stream"))?;
            kept.items.insert(item.position, item_sum(&item));
            if item.repeats.is_none() {
                kept.numbers.entry(item.item.name.trader).or_default().push(item.item.name.number);
            }
        }
        Ok(kept)
    }
}

/// Holds all against all.
pub(super) fn judge(
    layout: &Layout,
    heard: &[Noted],
    transfer: Option<&Transfer>,
    market: &Market,
) -> Result<DeskReckoning, LabError> {
    let logs = (0..SERVERS).map(|server| Kept::read(layout, server)).collect::<Result<Vec<_>, _>>()?;
    let all = || heard.iter().map(|noted| &noted.items).chain(logs.iter().map(|log| &log.items));
    let mut reckoning = DeskReckoning::default();
    reckoning.compare(all);
    for (noted, trader) in heard.iter().zip(1..) {
        let numbers = logs[0].numbers.get(&TraderId(trader)).map_or(&[][..], Vec::as_slice);
        reckoning.judge_said(noted, numbers);
    }
    for noted in heard {
        reckoning.wrongs.wrong_while_current += noted.shown.difference(&market.shown).count() as u64;
        reckoning.wrongs.books_differing += noted.books_differing(&market.last);
    }
    if let Some(transfer) = transfer {
        reckoning.time(heard, transfer);
    }
    Ok(reckoning)
}

impl DeskReckoning {
    /// Item by item, each stream against that of the first trader who has the position.
    fn compare<'a, I: Iterator<Item = &'a BTreeMap<Position, u32>>>(&mut self, all: impl Fn() -> I) {
        let positions: BTreeSet<Position> = all().flat_map(BTreeMap::keys).copied().collect();
        self.member_items = positions.len() as u64;
        for position in positions {
            let first = all().find_map(|items| items.get(&position));
            for items in all() {
                let item = items.get(&position);
                self.member_items_missing += u64::from(item.is_none());
                self.member_items_differing += u64::from(item.is_some() && item != first);
            }
        }
    }

    /// What a trader said against what stands there of it.
    fn judge_said(&mut self, noted: &Noted, numbers: &[u64]) {
        let stands: BTreeSet<u64> = numbers.iter().copied().collect();
        let lacks =
            (1..=noted.said).filter(|number| !stands.contains(number) && !noted.refused.contains(number));
        self.member_items_missing += lacks.count() as u64 + noted.lost;
        self.member_items_differing += (numbers.len() - stands.len()) as u64 + noted.out_of_turn;
        let is_in_order = numbers.is_sorted() && stands.last().is_none_or(|&last| last <= noted.said);
        self.member_items_differing += u64::from(!is_in_order);
    }

    fn time(&mut self, heard: &[Noted], transfer: &Transfer) {
        let p99_us = |stretch: &Range<u64>| {
            let reads = heard.iter().flat_map(|noted| &noted.reads);
            let within =
                reads.filter(|read| read.server == transfer.gives && stretch.contains(&read.stamp_ns));
            let mut delays: Vec<u64> =
                within.map(|read| read.read_ns.saturating_sub(read.stamp_ns)).collect();
            delays.sort_unstable();
            delays.get(delays.len().saturating_sub(1) * 99 / 100).map_or(0.0, |&ns| ns as f64 / 1e3)
        };
        (self.before_p99_us, self.during_p99_us) = (p99_us(&transfer.before), p99_us(&transfer.during));
        self.transfer_p99_ratio =
            if self.before_p99_us > 0.0 { self.during_p99_us / self.before_p99_us } else { 0.0 };
        self.transfer_items = transfer.items;
        self.transfer_ms = (transfer.during.end - transfer.during.start) as f64 / 1e6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(sums: &[(u64, u32)]) -> BTreeMap<Position, u32> {
        sums.iter().map(|&(position, sum)| (Position(position), sum)).collect()
    }

    #[test]
    fn what_a_stream_lacks_or_has_otherwise_is_counted() {
        let right = [(0, 10), (1, 11), (2, 12)];
        let of = |other: &[(u64, u32)]| {
            let all = [items(&right), items(other)];
            let mut reckoning = DeskReckoning::default();
            reckoning.compare(|| all.iter());
            (reckoning.member_items, reckoning.member_items_missing, reckoning.member_items_differing)
        };
        assert_eq!(of(&right), (3, 0, 0));
        assert_eq!(of(&[(0, 10), (2, 12)]), (3, 1, 0));
        assert_eq!(of(&[(0, 10), (1, 12), (2, 12)]), (3, 0, 1));
        assert_eq!(of(&[(0, 10), (1, 11), (2, 12), (3, 13)]), (4, 1, 0));
    }

    #[test]
    fn what_was_said_stands_once_and_in_order_unless_it_was_refused() {
        let of = |numbers: &[u64], refused: &[u64]| {
            let mut noted = Noted::default();
            (noted.said, noted.refused) = (3, refused.iter().copied().collect());
            let mut reckoning = DeskReckoning::default();
            reckoning.judge_said(&noted, numbers);
            (reckoning.member_items_missing, reckoning.member_items_differing)
        };
        assert_eq!(of(&[1, 2, 3], &[]), (0, 0));
        assert_eq!(of(&[1, 3], &[]), (1, 0));
        assert_eq!(of(&[1, 3], &[2]), (0, 0));
        assert_eq!(of(&[1, 2, 2, 3], &[]), (0, 1));
        assert_eq!(of(&[2, 1, 3], &[]), (0, 1));
        assert_eq!(of(&[1, 2, 3, 4], &[]), (0, 1), "nobody said that");
    }
}
