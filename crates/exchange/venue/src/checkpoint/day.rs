//! The business day in a checkpoint, and what was traded of an instrument.
//!
//! ```text
//! day         number | stage | next | requests | totals | members n | (member, totals)*
//! stage       1 on, 2 ending, 3 over, 4 beginning; `next` is an instrument, 0 unless ending or beginning
//! totals      orders | trades | shares
//! statistics  open | high | low | last | shares | trades | resumes
//! ```

use pares_book::{Day, Stage, Statistics, Totals};
use pares_types::{BusinessDay, InstrumentId, MemberId, Quantity};

use super::{CheckpointError, Input, put};

pub(super) fn encode(out: &mut Vec<u8>, day: &Day) {
    let (stage, next) = match day.stage() {
        Stage::On => (1, InstrumentId(0)),
        Stage::Ending { next } => (2, next),
        Stage::Over => (3, InstrumentId(0)),
        Stage::Beginning { next } => (4, next),
    };
    put(out, u64::from(day.number().0));
    put(out, stage);
    put(out, u64::from(next.0));
    put(out, day.requests());
    put_totals(out, day.totals());
    put(out, day.members().len() as u64);
    for (member, totals) in day.members() {
        put(out, u64::from(member.0));
        put_totals(out, totals);
    }
}

fn put_totals(out: &mut Vec<u8>, totals: &Totals) {
    put(out, totals.orders);
    put(out, totals.trades);
    put(out, totals.quantity.0);
}

pub(super) fn decode(input: &mut Input<'_>) -> Result<Day, CheckpointError> {
    let number = BusinessDay(input.u32("day")?);
    let stage = match (input.u64()?, InstrumentId(input.u32("next")?)) {
        (1, InstrumentId(0)) => Stage::On,
        (2, next) => Stage::Ending { next },
        (3, InstrumentId(0)) => Stage::Over,
        (4, next) => Stage::Beginning { next },
        _ => return Err(CheckpointError::InvalidField("stage")),
    };
    let requests = input.u64()?;
    let totals = read_totals(input)?;
    let members = input.list(32, |input| Ok((MemberId(input.u32("member")?), read_totals(input)?)))?;
    Day::restore(number, stage, requests, totals, members).ok_or(CheckpointError::InvalidField("day"))
}

fn read_totals(input: &mut Input<'_>) -> Result<Totals, CheckpointError> {
    Ok(Totals { orders: input.u64()?, trades: input.u64()?, quantity: Quantity(input.u64()?) })
}

pub(super) fn put_statistics(out: &mut Vec<u8>, statistics: &Statistics) {
    let Statistics { open, high, low, last, quantity, trades, resumes } = *statistics;
    [open, high, low, last].into_iter().for_each(|price| put(out, price.0.cast_unsigned()));
    put(out, quantity.0);
    put(out, trades);
    put(out, u64::from(resumes));
}

impl Input<'_> {
    pub(super) fn statistics(&mut self) -> Result<Statistics, CheckpointError> {
        Ok(Statistics {
            open: self.price()?,
            high: self.price()?,
            low: self.price()?,
            last: self.price()?,
            quantity: Quantity(self.u64()?),
            trades: self.u64()?,
            resumes: match self.u64()? {
                0 => false,
                1 => true,
                _ => return Err(CheckpointError::InvalidField("resumes")),
            },
        })
    }
}
