//! The state hash: the same number for the same book, whatever holds it.
//!
//! Hashing the book from scratch every 1,024 requests costs a walk over every resting order: 20,000
//! orders make it dearer than the matching itself. So the hash is a sum. An order adds its own hash
//! when it comes to rest and takes it away when it leaves or changes; addition does not care in which
//! order that happens, nor where an implementation keeps its orders.

use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Price, Quantity, SelfTrade, Side, TimeInForce, Timestamp,
};

use crate::{Instrument, Priority, RestingOrder, Trading, Unfinished};

/// Odd constants with about half their bits set (from the fraction of pi), one for each word.
const KEYS: [u64; 8] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6d,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
];

/// Multiplies two words to 128 bits and folds the halves: one instruction that spreads every bit.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of one order: every field of it counts.
pub(crate) fn order(order: &RestingOrder) -> u64 {
    let RestingOrder {
        order: id, priority, member, side, client_order_id, price, remaining, executed, ..
    } = *order;
    let parts = Plain { order: id, priority, member, side, client_order_id, price, remaining, executed };
    plain(&parts).wrapping_add(special(order))
}

/// What every order has.
pub(crate) struct Plain {
    pub(crate) order: OrderId,
    pub(crate) priority: Priority,
    pub(crate) member: MemberId,
    pub(crate) side: Side,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) price: Price,
    pub(crate) remaining: Quantity,
    pub(crate) executed: Quantity,
}

/// The hash of what every order has. The three products do not wait for each other, so they cost little more than one.
#[inline]
pub(crate) fn plain(order: &Plain) -> u64 {
    let name = fold(order.order.0.to_bits() ^ KEYS[0], order.client_order_id.0 ^ KEYS[1]);
    let rank = order.priority.0 << 8 | order.side as u64;
    let place = fold(order.price.0.cast_unsigned() ^ KEYS[2], rank ^ KEYS[3]);
    let past = order.executed.0.rotate_left(32) ^ u64::from(order.member.0);
    let shares = fold(order.remaining.0 ^ KEYS[4], past ^ KEYS[5]);
    name ^ place.rotate_left(23) ^ shares.rotate_left(47)
}

/// What few orders have: zero for a plain day order on the book, so that it need not be computed.
fn special(order: &RestingOrder) -> u64 {
    let plain = RestingOrder {
        kind: OrderKind::Limit { price: order.price },
        shown: order.remaining,
        display: Quantity::ZERO,
        time_in_force: TimeInForce::Day,
        self_trade: SelfTrade::Allow,
        trigger: None,
        elected: false,
        post_only: false,
        ..*order
    };
    if plain == *order {
        return 0;
    }
    let ((kind, limit), (stay, until)) = (order.kind.code(), order.time_in_force.code());
    let marks = u64::from(order.elected) | u64::from(order.post_only) << 1;
    let codes = u64::from(kind) | u64::from(stay) << 8 | (order.self_trade as u64) << 16 | marks << 24;
    words(&[
        order.order.0.to_bits(),
        codes,
        limit.0.cast_unsigned(),
        until,
        order.shown.0,
        order.display.0,
        u64::from(order.trigger.is_some()),
        order.trigger.unwrap_or_default().0.cast_unsigned(),
    ])
}

/// The hash of a few words, in their order.
fn words(words: &[u64]) -> u64 {
    words.iter().fold(KEYS[0], |hash, word| fold(hash ^ KEYS[1], word ^ KEYS[2]).wrapping_add(KEYS[3]))
}

fn optional(price: Option<Price>) -> [u64; 2] {
    [u64::from(price.is_some()), price.unwrap_or_default().0.cast_unsigned()]
}

/// The hash of a book from the sum of its orders' hashes.
pub(crate) fn finish(sum: u64, next: Priority, trading: &Trading, instrument: &Instrument) -> u64 {
    let orders = fold(sum ^ KEYS[0], next.0 ^ KEYS[7]).wrapping_add(sum);
    words(&[orders, self::trading(trading), rules(instrument)])
}

fn trading(trading: &Trading) -> u64 {
    let Trading {
        phase,
        transition,
        unfinished,
        until,
        after,
        extended,
        last,
        reference,
        closing,
        time,
        timetable_done,
        indicated,
        busts,
    } = trading;
    let call = *phase as u64 | (*after as u64) << 8 | u64::from(*extended) << 16;
    let mut hash = words(&[call, until.0, time.0, timetable_done.0]);
    for price in [*last, *reference, *closing, transition.and_then(|pending| pending.price)] {
        let [is, price] = optional(price);
        hash = words(&[hash, is, price]);
    }
    hash = words(&[hash, transition.map_or(0, |pending| pending.to as u64)]);
    if let Some(Unfinished { order, limit, bands: (low, high), gathers, begun }) = unfinished {
        let [limit, low, high] = [limit, low, high].map(|price| price.0.cast_unsigned());
        hash = words(&[hash, self::order(order), limit, low, high, u64::from(*gathers), begun.0]);
    }
    let (told, volume) = indicated.unzip();
    let [is, price] = optional(told);
    hash = words(&[hash, is, price, volume.unwrap_or_default().0, busts.len() as u64]);
    busts.iter().fold(hash, |hash, (position, index)| words(&[hash, position.0, u64::from(*index)]))
}

fn rules(instrument: &Instrument) -> u64 {
    let mut hash = words(&[
        u64::from(instrument.id.0),
        instrument.lot.0,
        instrument.quantity_max.0,
        instrument.value_max,
        instrument.price_min.0.cast_unsigned(),
        instrument.price_max.0.cast_unsigned(),
        u64::from(instrument.orders_max) << 32 | u64::from(instrument.step_max),
        u64::from(instrument.static_band.width) << 32 | u64::from(instrument.dynamic_band.width),
        instrument.static_band.least.0.cast_unsigned(),
        instrument.dynamic_band.least.0.cast_unsigned(),
        instrument.call_ns,
        instrument.extension_ns,
        instrument.random_end_ns,
        u64::from(instrument.extensions_max) | u64::from(instrument.extends_for_market) << 8,
        instrument.auction_min.0,
        instrument.tie_break as u64
            | u64::from(instrument.display_decrease_keeps) << 8
            | u64::from(instrument.iceberg_refill_fresh) << 9
            | u64::from(instrument.market_remainder_rests) << 10
            | u64::from(instrument.pressure_limit) << 16,
    ]);
    for row in instrument.ticks.rows() {
        hash = words(&[hash, row.from.0.cast_unsigned(), row.tick.0.cast_unsigned()]);
    }
    let rows = instrument.timetable.rows().iter();
    rows.fold(hash, |hash, row| words(&[hash, Timestamp(row.at_ns).0, row.phase as u64]))
}
