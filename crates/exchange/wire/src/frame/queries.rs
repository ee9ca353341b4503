//! Lists and limits: what a member asks of a gateway, as frames.

use pares_types::{self as domain, InstrumentId, Limits, Price};
use zerocopy::little_endian::I64;

use super::request::zero;
use super::{
    GatewayFrame, InstrumentStatus, LimitsRequest, ListEnd, ListRequest, OrderStatus, OwnLimits, TickRow,
    write,
};
use crate::WireError;
use crate::field::{Field, carries, coded};

const HAS_LAST: u8 = 1;
const HAS_REFERENCE: u8 = 2;
const IS_QUARANTINED: u8 = 4;

pub(super) fn list_request(frame: &ListRequest) -> Result<domain::ListRequest, WireError> {
    zero(&frame.reserved)?;
    frame.try_into()
}

carries! {
    ListRequest, domain::ListRequest, |frame, request|
    same: token list instrument;
    renamed: ;
    frame: reserved = [0; 3];
    value: ;
}

/// Appends a [`ListRequest`] to `out`.
pub fn write_list_request(out: &mut Vec<u8>, request: &domain::ListRequest) {
    write(out, &ListRequest::from(request));
}

/// Appends a [`LimitsRequest`] to `out`.
pub fn write_limits_request(out: &mut Vec<u8>, token: u64) {
    write(out, &LimitsRequest { token: token.into() });
}

pub(super) fn list_end(frame: &ListEnd) -> Result<domain::ListEnd, WireError> {
    let ListEnd { token, count, instrument, list, reason, .. } = *frame;
    let request = (&ListRequest { token, instrument, list, reserved: [0; 3] }).try_into()?;
    Ok(domain::ListEnd { request, count: count.get(), reason: coded(reason)? })
}

/// Appends a [`ListEnd`] to `out`.
pub fn write_list_end(out: &mut Vec<u8>, end: &domain::ListEnd) {
    let domain::ListEnd { request, count, reason } = end;
    let ListRequest { token, instrument, list, .. } = request.into();
    let (count, reason) = (count.raw(), *reason as u8);
    write(out, &ListEnd { token, count, instrument, list, reason, reserved: [0; 6] });
}

carries! {
    InstrumentStatus, domain::InstrumentStatus, |frame, status|
    same: instrument symbol shard phase lot quantity_max value_max price_min price_max orders_max static_band
        dynamic_band call_ns tick_rows;
    renamed: next_position next;
    frame:
        last = status.last.unwrap_or_default().raw(),
        reference = status.reference.unwrap_or_default().raw(),
        flags = flag(status.last.is_some(), HAS_LAST)
            | flag(status.reference.is_some(), HAS_REFERENCE)
            | flag(status.quarantined, IS_QUARANTINED),
        reserved = [0; 3];
    value:
        last = flagged(frame.flags & HAS_LAST, frame.last),
        reference = flagged(frame.flags & HAS_REFERENCE, frame.reference),
        quarantined = frame.flags & IS_QUARANTINED != 0;
}

fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

fn flagged(flag: u8, price: I64) -> Option<Price> {
    (flag != 0).then_some(Price(price.get()))
}

/// Appends an [`InstrumentStatus`] to `out`.
pub fn write_instrument_status(out: &mut Vec<u8>, status: &domain::InstrumentStatus) {
    write(out, &InstrumentStatus::from(status));
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
    write(
        out,
        &TickRow { from: from.raw(), tick: tick.raw(), instrument: instrument.raw(), reserved: 0.into() },
    );
}

carries! {
    OwnLimits, domain::OwnLimits, |frame, own|
    same: token member session rights position_max orders in_flight in_flight_max;
    renamed: next_position next;
    frame:
        quantity_max = own.limits.quantity_max.raw(),
        value_max = own.limits.value_max.raw(),
        collar = own.limits.collar.raw(),
        orders_max = own.limits.orders_max.raw(),
        rate_max = own.limits.rate_max.raw(),
        burst_max = own.limits.burst_max.raw(),
        reserved = [0; 4];
    value:
        limits = Limits {
            quantity_max: frame.quantity_max.get(),
            value_max: frame.value_max.get(),
            collar: frame.collar.get(),
            orders_max: frame.orders_max.get(),
            rate_max: frame.rate_max.get(),
            burst_max: frame.burst_max.get(),
        };
}

/// Appends an [`OwnLimits`] to `out`.
pub fn write_own_limits(out: &mut Vec<u8>, own: &domain::OwnLimits) {
    write(out, &OwnLimits::from(own));
}

carries! {
    OrderStatus, domain::OrderStatus, |frame, status|
    same: client_order_id instrument shard state remaining side executed;
    renamed: order_id order, next_position next;
    frame: ;
    value: ;
}
