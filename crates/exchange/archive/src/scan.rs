//! Which results of a log belong to which day.

use std::collections::BTreeMap;
use std::path::Path;

use pares_book::DayCount;
use pares_log::{Offset, ReadError, Reader};
use pares_types::{
    BusinessDay, Command, Event, InstrumentId, Outcome, Position, Price, Quantity, Request, ShardId, Status,
};
use pares_wire::record::{self, ResultRecord};

use crate::ArchiveError;

/// What the exchange recorded as the end of a shard's day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedDay {
    /// Requests since it began.
    pub requests: u64,
    /// Orders taken in.
    pub orders: u64,
    /// Trades.
    pub trades: u64,
    /// Shares traded.
    pub quantity: Quantity,
    /// Of all books, statistics and totals.
    pub state_hash: u64,
}

/// What the exchange recorded of an instrument as the day ended there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// First, highest, lowest and last price, if it traded.
    pub prices: Option<[Price; 4]>,
    /// Of this day, or of an earlier one.
    pub closing: Option<Price>,
    /// Shares traded.
    pub quantity: Quantity,
    /// Trades.
    pub trades: u64,
}

/// One day of one shard.
#[derive(Clone, Debug, Default)]
pub struct ShardDay {
    /// Where it began.
    pub first: Position,
    /// Where it ended, or the last position so far.
    pub last: Position,
    /// Where in the log that lies, and where the record after it is expected.
    pub offsets: (Offset, Offset),
    /// What its results add up to.
    pub count: DayCount,
    /// What was recorded of each instrument.
    pub closed: BTreeMap<InstrumentId, Closed>,
    /// What was recorded as its end; `None` while it is on.
    pub ended: Option<EndedDay>,
}

/// The days of a log.
#[derive(Debug, Default)]
pub struct DayScan {
    /// Those of which the log has the beginning.
    pub days: BTreeMap<(BusinessDay, ShardId), ShardDay>,
    now: BTreeMap<ShardId, BusinessDay>,
}

impl DayScan {
    /// Reads what there is of the log in `dir`, from `from` or where it begins.
    ///
    /// # Errors
    /// If there is no log, or it is damaged.
    pub fn of_log(dir: &Path, from: Offset) -> Result<Self, ArchiveError> {
        let mut scan = Self::default();
        let mut log = match Reader::open(dir, from) {
            Err(ReadError::Released { .. }) => Reader::at_start(dir)?,
            opened => opened?,
        };
        while let Some(entry) = log.next()? {
            let at = entry.offset;
            if record::schema(entry.payload) != Some(record::RESULT) {
                continue;
            }
            let record = ResultRecord::read(entry.payload)?;
            let end = Offset(at.0 + pares_log::record::size(entry.payload.len()) as u64);
            scan.follow((at, end), &record)?;
        }
        Ok(scan)
    }

    /// The next result of the log, which lies between these offsets.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn follow(&mut self, at: (Offset, Offset), record: &ResultRecord<'_>) -> Result<(), ArchiveError> {
        let shard = record.shard();
        let request = record.request()?;
        let begun = match request.command {
            Command::BeginDay { day } => {
                Some(day).filter(|_| self.now.get(&shard).is_none_or(|now| *now < day))
            }
            _ => None,
        };
        if begun.is_none() && !self.now.contains_key(&shard) {
            return Ok(());
        }
        let (outcome, events) = (record.outcome()?, record.events().collect::<Result<Vec<_>, _>>()?);
        let place = (record.position(), at);
        if let Some(day) = begun.filter(|_| outcome.status == Status::Accepted) {
            self.now.insert(shard, day);
            let first = ShardDay { first: place.0, offsets: at, ..ShardDay::default() };
            self.days.insert((day, shard), first);
        }
        if let Some(day) = self.now.get(&shard).and_then(|day| self.days.get_mut(&(*day, shard))) {
            day.follow(place, &request, &outcome, &events);
        }
        Ok(())
    }

    /// The days that have ended in all of these shards, in order.
    pub fn ended(&self, shards: &[ShardId]) -> Vec<BusinessDay> {
        let mut days: Vec<BusinessDay> = self.days.keys().map(|(day, _)| *day).collect();
        days.dedup();
        days.retain(|&day| {
            shards.iter().all(|&shard| self.days.get(&(day, shard)).is_some_and(|of| of.ended.is_some()))
        });
        days
    }
}

impl ShardDay {
    fn follow(
        &mut self,
        (position, (_, end)): (Position, (Offset, Offset)),
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
    ) {
        if self.ended.is_some() {
            return;
        }
        (self.last, self.offsets.1) = (position, end);
        if position == self.first {
            self.count.begin(request, outcome, events);
        } else {
            self.count.follow(request, outcome, events);
        }
        let mut instrument = request.instrument;
        for event in events {
            match *event {
                Event::Instrument(next) => instrument = next,
                Event::DayPrices { open, high, low, last } => {
                    self.closed.entry(instrument).or_default().prices = Some([open, high, low, last]);
                }
                Event::DayVolume { closing, quantity, trades } => {
                    let closed = self.closed.entry(instrument).or_default();
                    *closed = Closed { closing, quantity, trades, ..*closed };
                }
                Event::DayEnded { requests, orders, trades, quantity, state_hash, .. } => {
                    self.ended = Some(EndedDay { requests, orders, trades, quantity, state_hash });
                }
                _ => {}
            }
        }
    }
}
