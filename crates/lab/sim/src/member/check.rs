//! What must hold, held against one copy of the stream.

use std::collections::{BTreeMap, BTreeSet};

use pares_desk::item::{ItemBody, ItemName, OrderedItem, TraderId};
use pares_types::Position;

use super::Summary;
use crate::{Verdict, broken, must};

pub(super) const ONE: &str = "M1 each position has one item";
pub(super) const ONCE: &str = "M2 what was submitted stands once and in order";
pub(super) const TOLD: &str = "M3 traders are told what stands there and a quorum has";
pub(super) const KEPT: &str = "M4 what was told stays";
pub(super) const ENDED: &str = "M5 a server ends only for what befell it";
pub(super) const PLACED: &str = "M6 everything that was submitted is placed";

/// A position of the stream.
#[derive(Debug)]
struct Entry {
    record: Vec<u8>,
    /// Servers that have ever had it.
    had: BTreeSet<u16>,
    /// ... and whose disk was not lost since.
    has: BTreeSet<u16>,
    is_told: bool,
}

/// The stream as all must have it, and what was submitted.
#[derive(Debug, Default)]
pub(super) struct Reference {
    quorum: usize,
    /// The stream's number.
    stream: u64,
    entries: Vec<Entry>,
    /// By submitter: numbers that stand in the stream, and where.
    stands: BTreeMap<TraderId, BTreeMap<u64, u64>>,
    submitted: BTreeMap<(TraderId, u64), (u8, Vec<u8>)>,
    /// What need not stand in the stream: it was refused, or reported and lost with all disks, or the power, that had it.
    pub(super) excused: BTreeSet<(TraderId, u64)>,
    /// What the last stream had where another began: some may be on its way to traders yet.
    ended: BTreeMap<u64, Vec<u8>>,
}

impl Reference {
    pub(super) fn new(quorum: u16) -> Self {
        Self { quorum: quorum.into(), ..Self::default() }
    }

    pub(super) fn next(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn note_submitted(&mut self, trader: TraderId, number: u64, body: &ItemBody<'_>) {
        let mut bytes = Vec::new();
        body.write(&mut bytes);
        self.submitted.insert((trader, number), (body.kind(), bytes));
    }

    pub(super) fn submitted(&self) -> u64 {
        self.submitted.len() as u64
    }

    pub(super) fn repeats(&self) -> u64 {
        let repeats =
            |entry: &&Entry| OrderedItem::read(&entry.record).is_ok_and(|item| item.repeats.is_some());
        self.entries.iter().filter(repeats).count() as u64
    }

    /// A server has published a record of its log of the stream.
    pub(super) fn on_record(&mut self, server: u16, record: &[u8]) -> Verdict {
        let ordered = OrderedItem::read(record)
            .or_else(|error| broken(ONE, format!("server {server} has what is no item: {error}")))?;
        let position = ordered.position.0;
        must(position <= self.next(), ONE, || {
            format!("server {server} has position {position} before {}", self.next())
        })?;
        if position == self.next() {
            self.check_new(&ordered)?;
            let (had, has) = (BTreeSet::new(), BTreeSet::new());
            self.entries.push(Entry { record: record.to_vec(), had, has, is_told: false });
        }
        let entry = &mut self.entries[usize::try_from(position).expect("few positions")];
        must(entry.record == record, ONE, || {
            let before = OrderedItem::read(&entry.record);
            format!("server {server} has {ordered:?}, and others have {before:?}")
        })?;
        entry.had.insert(server);
        entry.has.insert(server);
        Ok(())
    }

    fn check_new(&mut self, ordered: &OrderedItem<'_>) -> Verdict {
        let (name, position) = (ordered.item.name, ordered.position.0);
        let stands = self.stands.entry(name.trader).or_default();
        if let Some(first) = ordered.repeats {
            return match stands.get(&name.number) {
                Some(&at) if first.0 == at || first.0 == u64::MAX => Ok(()),
                // Traders received it, it was lost, what came after it was said again, and now a log has it once more.
                None if self.excused.contains(&(name.trader, name.number)) => Ok(()),
                at => broken(ONCE, format!("{ordered:?} repeats what stands at {at:?}")),
            };
        }
        let last = stands.last_key_value().map_or(0, |(&number, _)| number);
        let is_next = if name.trader.is_trader() { name.number > last } else { name.number == last + 1 };
        must(is_next, ONCE, || format!("{ordered:?} stands after number {last}"))?;
        let said = self.submitted.get(&(name.trader, name.number));
        let is_as_said =
            said.is_some_and(|(kind, body)| (*kind, &body[..]) == (ordered.item.kind, ordered.item.body));
        must(!name.trader.is_trader() || is_as_said, ONCE, || {
            format!("{ordered:?} was submitted as {said:?}")
        })?;
        stands.insert(name.number, position);
        Ok(())
    }

    /// A trader receives the next position.
    pub(super) fn on_told(&mut self, trader: TraderId, next: u64, ordered: &OrderedItem<'_>) -> Verdict {
        let mut record = Vec::new();
        ordered.write(&mut record);
        let quorum = self.quorum;
        let entry = usize::try_from(next).ok().and_then(|at| self.entries.get_mut(at));
        let Some(entry) = entry.filter(|entry| entry.record == record) else {
            if self.ended.get(&next).is_some_and(|lost| *lost == record) {
                // It was on its way already when the last stream ended.
                self.excused.insert((ordered.item.name.trader, ordered.item.name.number));
                return Ok(());
            }
            return broken(TOLD, format!("trader {trader} is told {ordered:?} at {next}"));
        };
        must(entry.had.len() >= quorum, TOLD, || {
            format!("trader {trader} is told of {next}, which only {:?} have had", entry.had)
        })?;
        entry.is_told = true;
        Ok(())
    }

    /// A trader receives word that something stands there; somewhere, if no position is given.
    pub(super) fn on_placed(&mut self, trader: TraderId, number: u64, position: Option<Position>) -> Verdict {
        let stands = self.stands.get(&trader).and_then(|stands| stands.get(&number).copied());
        let agrees = stands.is_some_and(|at| position.is_none_or(|position| position.0 == at));
        if agrees {
            return Ok(());
        }
        let is_of = |record: &Vec<u8>| {
            OrderedItem::read(record).is_ok_and(|lost| lost.item.name == ItemName { trader, number })
        };
        if position.and_then(|position| self.ended.get(&position.0)).is_some_and(is_of) {
            self.excused.insert((trader, number));
            return Ok(());
        }
        broken(
            TOLD,
            format!("trader {trader} is told that {number} stands at {position:?}; it does at {stands:?}"),
        )
    }

    pub(super) fn on_wiped(&mut self, server: u16) {
        for entry in &mut self.entries {
            entry.has.remove(&server);
        }
    }

    /// Any of what traders received may be in no log any more.
    pub(super) fn on_power_failed(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.has.clear());
    }

    /// Everything restarts: the stream of that number continues at `first`.
    pub(super) fn begin(&mut self, stream: u64, first: Position, summary: &mut Summary) -> Verdict {
        let first = usize::try_from(first.0).expect("few positions");
        let lost = self.entries.get(first..).unwrap_or_default();
        let is_kept = |entry: &Entry| entry.is_told && !entry.has.is_empty();
        if let Some(at) = lost.iter().position(is_kept) {
            let (at, has) = (first + at, &lost[at].has);
            return broken(
                KEPT,
                format!("position {at} was told, {has:?} have it, and the stream goes on at {first}"),
            );
        }
        let is_other = self.stream != 0 && stream != self.stream;
        must(!lost.iter().any(|entry| entry.is_told) || is_other, KEPT, || {
            format!("what was told from {first} on is lost, and the stream is the same")
        })?;
        let told = lost
            .iter()
            .filter(|entry| entry.is_told)
            .filter_map(|entry| OrderedItem::read(&entry.record).ok());
        self.excused.extend(told.map(|ordered| (ordered.item.name.trader, ordered.item.name.number)));
        summary.streams += u64::from(is_other || self.stream == 0);
        summary.positions += lost.len() as u64;
        self.stream = stream;
        let lost = self.entries.drain(first..).map(|entry| entry.record);
        self.ended = if is_other { (first as u64..).zip(lost).collect() } else { BTreeMap::new() };
        let first = first as u64;
        self.stands.values_mut().for_each(|stands| stands.retain(|_, at| *at < first));
        Ok(())
    }

    /// Faults are over: what a trader submitted and was not refused stands in the stream.
    pub(super) fn missing(&self) -> Option<(TraderId, u64)> {
        let stands = |&(trader, number): &(TraderId, u64)| {
            self.excused.contains(&(trader, number))
                || self.stands.get(&trader).is_some_and(|stands| stands.contains_key(&number))
        };
        self.submitted.keys().copied().find(|name| !stands(name))
    }

    /// The highest report of the exchange that stands in the stream.
    pub(super) fn reported(&self, shard: TraderId) -> u64 {
        self.stands.get(&shard).and_then(|stands| stands.last_key_value()).map_or(0, |(&number, _)| number)
    }
}
