//! A shard's notes as words.
//!
//! ```text
//! series n | (member, series, floor)* | names n | (member, name)* | told n | (member, number)*
//!     | day | position it began at | nets n | (instrument, member, shares)* | quarantined n | instrument* | register | operator_stamp_max
//! ```

use pares_register::Register;
use pares_stream::{Positions, StreamNumbers};
use pares_types::{BusinessDay, ClientOrderId, InstrumentId, MemberId, NetPositions, Position, Timestamp};

use super::{CheckpointError, Input, put};
use crate::names::Names;
use crate::notes::Notes;
use crate::quarantine::Quarantine;

pub(super) fn encode(out: &mut Vec<u8>, notes: &Notes) {
    let Notes { names, numbers, positions, quarantine, register, operator_stamp_max } = notes;
    put(out, names.written_floors().len() as u64);
    for ((member, series), floor) in names.written_floors() {
        put(out, u64::from(member.0));
        put(out, u64::from(series));
        put(out, floor);
    }
    put(out, names.iter().len() as u64);
    for (member, name) in names.iter() {
        put(out, u64::from(member.0));
        put(out, name.0);
    }
    let told = numbers.sorted();
    put(out, told.len() as u64);
    for (member, number) in told {
        put(out, u64::from(member.0));
        put(out, number);
    }
    let NetPositions { day, since, nets } = positions.written();
    put(out, u64::from(day.0));
    put(out, since.0);
    put(out, nets.len() as u64);
    for (instrument, member, net) in nets {
        put(out, u64::from(instrument.0));
        put(out, u64::from(member.0));
        put(out, net.cast_unsigned());
    }
    put(out, quarantine.instruments().len() as u64);
    quarantine.instruments().iter().for_each(|instrument| put(out, u64::from(instrument.0)));
    register.write(&mut |word| put(out, word));
    put(out, operator_stamp_max.0);
}

pub(super) fn decode(input: &mut Input<'_>) -> Result<Notes, CheckpointError> {
    Ok(Notes {
        names: names(input)?,
        numbers: numbers(input)?,
        positions: positions(input)?,
        quarantine: quarantine(input)?,
        register: register(input)?,
        operator_stamp_max: Timestamp(input.u64()?),
    })
}

fn names(input: &mut Input<'_>) -> Result<Names, CheckpointError> {
    let floors =
        input.list(24, |input| Ok(((MemberId(input.u32("member")?), input.u16("series")?), input.u64()?)))?;
    let kept = input.list(16, |input| Ok((MemberId(input.u32("member")?), ClientOrderId(input.u64()?))))?;
    Names::restore(&floors, &kept).ok_or(CheckpointError::InvalidField("names"))
}

fn numbers(input: &mut Input<'_>) -> Result<StreamNumbers, CheckpointError> {
    let told = input.list(16, |input| Ok((MemberId(input.u32("member")?), input.u64()?)))?;
    StreamNumbers::restore(&told).ok_or(CheckpointError::InvalidField("told"))
}

fn positions(input: &mut Input<'_>) -> Result<Positions, CheckpointError> {
    let day = BusinessDay(input.u32("day")?);
    let since = Position(input.u64()?);
    let nets = input.list(24, |input| {
        let (instrument, member) = (input.u32("instrument")?, input.u32("member")?);
        Ok((InstrumentId(instrument), MemberId(member), input.u64()?.cast_signed()))
    })?;
    Positions::restore(&NetPositions { day, since, nets }).ok_or(CheckpointError::InvalidField("nets"))
}

fn quarantine(input: &mut Input<'_>) -> Result<Quarantine, CheckpointError> {
    let instruments = input.list(8, |input| Ok(InstrumentId(input.u32("quarantined")?)))?;
    Quarantine::of(instruments).ok_or(CheckpointError::InvalidField("quarantined"))
}

fn register(input: &mut Input<'_>) -> Result<Register, CheckpointError> {
    Register::read(&mut || input.u64().ok()).ok_or(CheckpointError::InvalidField("register"))
}
