//! Lists and limits: what a member asks of a gateway, as frames.

use pares_types::{
    InstrumentId, InstrumentStatus, Limits, List, ListEnd, ListRequest, MemberId, OwnLimits, Position, Price,
    Quantity, Rights, ShardId, Symbol,
};
use zerocopy::little_endian::I64;

use super::request::zero;
use super::{GatewayFrame, LimitsRequest, TickRow, write};
use crate::WireError;
use crate::code::{phase, reason};

const HAS_LAST: u8 = 1;
const HAS_REFERENCE: u8 = 2;
const IS_QUARANTINED: u8 = 4;

pub(super) fn list_request(frame: &super::ListRequest) -> Result<ListRequest, WireError> {
    zero(&frame.reserved)?;
    list(frame.list, frame.token.get(), frame.instrument.get())
}

fn list(code: u8, token: u64, instrument: u32) -> Result<ListRequest, WireError> {
    let list = List::of(code);
    let instrument = Some(instrument).filter(|id| *id != 0).map(InstrumentId);
    Ok(ListRequest { token, list: list.ok_or(WireError::InvalidField("list"))?, instrument })
}

/// Appends a [`ListRequest`](super::ListRequest) to `out`.
pub fn write_list_request(out: &mut Vec<u8>, request: &ListRequest) {
    let ListRequest { token, list, instrument } = *request;
    let instrument = instrument.map_or(0, |one| one.0).into();
    write(out, &super::ListRequest { token: token.into(), instrument, list: list as u8, reserved: [0; 3] });
}

/// Appends a [`LimitsRequest`] to `out`.
pub fn write_limits_request(out: &mut Vec<u8>, token: u64) {
    write(out, &LimitsRequest { token: token.into() });
}

pub(super) fn list_end(frame: &super::ListEnd) -> Result<ListEnd, WireError> {
    let request = list(frame.list, frame.token.get(), frame.instrument.get())?;
    Ok(ListEnd { request, count: frame.count.get(), reason: reason(frame.reason)? })
}

/// Appends a [`ListEnd`](super::ListEnd) to `out`.
pub fn write_list_end(out: &mut Vec<u8>, end: &ListEnd) {
    let ListEnd { request: ListRequest { token, list, instrument }, count, reason } = *end;
    let frame = super::ListEnd {
        token: token.into(),
        count: count.into(),
        instrument: instrument.map_or(0, |one| one.0).into(),
        list: list as u8,
        reason: reason as u8,
        reserved: [0; 6],
    };
    write(out, &frame);
}

pub(super) fn instrument_status(frame: &super::InstrumentStatus) -> Result<InstrumentStatus, WireError> {
    let price = |bit: u8, price: I64| (frame.flags & bit != 0).then_some(Price(price.get()));
    Ok(InstrumentStatus {
        instrument: InstrumentId(frame.instrument.get()),
        symbol: Symbol::from_bytes(frame.symbol).map_err(|_| WireError::InvalidField("symbol"))?,
        shard: ShardId(frame.shard.get()),
        next: Position(frame.next_position.get()),
        phase: phase(frame.phase)?,
        quarantined: frame.flags & IS_QUARANTINED != 0,
        last: price(HAS_LAST, frame.last),
        reference: price(HAS_REFERENCE, frame.reference),
        lot: Quantity(frame.lot.get()),
        quantity_max: Quantity(frame.quantity_max.get()),
        value_max: frame.value_max.get(),
        price_min: Price(frame.price_min.get()),
        price_max: Price(frame.price_max.get()),
        orders_max: frame.orders_max.get(),
        static_band: frame.static_band.get(),
        dynamic_band: frame.dynamic_band.get(),
        call_ns: frame.call_ns.get(),
        tick_rows: frame.tick_rows,
    })
}

/// Appends an [`InstrumentStatus`](super::InstrumentStatus) to `out`.
pub fn write_instrument_status(out: &mut Vec<u8>, status: &InstrumentStatus) {
    let flag = |is_set: bool, bit| if is_set { bit } else { 0 };
    let price = |price: Option<Price>| price.map_or(0, |price| price.0).into();
    let frame = super::InstrumentStatus {
        symbol: status.symbol.to_bytes(),
        next_position: status.next.0.into(),
        lot: status.lot.0.into(),
        quantity_max: status.quantity_max.0.into(),
        value_max: status.value_max.into(),
        price_min: status.price_min.0.into(),
        price_max: status.price_max.0.into(),
        last: price(status.last),
        reference: price(status.reference),
        call_ns: status.call_ns.into(),
        instrument: status.instrument.0.into(),
        orders_max: status.orders_max.into(),
        static_band: status.static_band.into(),
        dynamic_band: status.dynamic_band.into(),
        shard: status.shard.0.into(),
        phase: status.phase as u8,
        flags: flag(status.last.is_some(), HAS_LAST)
            | flag(status.reference.is_some(), HAS_REFERENCE)
            | flag(status.quarantined, IS_QUARANTINED),
        tick_rows: status.tick_rows,
        reserved: [0; 3],
    };
    write(out, &frame);
}

pub(super) fn tick_row(frame: &TickRow) -> GatewayFrame {
    GatewayFrame::TickRow {
        instrument: InstrumentId(frame.instrument.get()),
        from: Price(frame.from.get()),
        tick: Price(frame.tick.get()),
    }
}

/// Appends a [`TickRow`] to `out`.
pub fn write_tick_row(out: &mut Vec<u8>, instrument: InstrumentId, from: Price, tick: Price) {
    let (from, tick, instrument) = (from.0.into(), tick.0.into(), instrument.0.into());
    write(out, &TickRow { from, tick, instrument, reserved: 0.into() });
}

pub(super) fn own_limits(frame: &super::OwnLimits) -> Result<OwnLimits, WireError> {
    let limits = Limits {
        quantity_max: frame.quantity_max.get(),
        value_max: frame.value_max.get(),
        collar: frame.collar.get(),
        orders_max: frame.orders_max.get(),
        rate_max: frame.rate_max.get(),
        burst_max: frame.burst_max.get(),
    };
    Ok(OwnLimits {
        token: frame.token.get(),
        next: Position(frame.next_position.get()),
        member: MemberId(frame.member.get()),
        session: frame.session.get(),
        rights: Rights::from_bits(frame.rights.get()).ok_or(WireError::InvalidField("rights"))?,
        limits,
        position_max: frame.position_max.get(),
        orders: frame.orders.get(),
        in_flight: frame.in_flight.get(),
        in_flight_max: frame.in_flight_max.get(),
    })
}

/// Appends an [`OwnLimits`](super::OwnLimits) to `out`.
pub fn write_own_limits(out: &mut Vec<u8>, own: &OwnLimits) {
    let Limits { quantity_max, value_max, collar, orders_max, rate_max, burst_max } = own.limits;
    let frame = super::OwnLimits {
        token: own.token.into(),
        next_position: own.next.0.into(),
        quantity_max: quantity_max.into(),
        value_max: value_max.into(),
        position_max: own.position_max.into(),
        member: own.member.0.into(),
        rights: own.rights.bits().into(),
        collar: collar.into(),
        orders_max: orders_max.into(),
        rate_max: rate_max.into(),
        burst_max: burst_max.into(),
        orders: own.orders.into(),
        in_flight: own.in_flight.into(),
        in_flight_max: own.in_flight_max.into(),
        session: own.session.into(),
        reserved: [0; 4],
    };
    write(out, &frame);
}
