//! The state hash: the same number for the same book, whatever holds it.
//!
//! Hashing the book from scratch every 1,024 requests costs a walk over every resting order: 20,000
//! orders make it dearer than the matching itself. So the hash is a sum. An order adds its own hash
//! when it comes to rest and takes it away when it leaves or changes; addition does not care in which
//! order that happens, nor where an implementation keeps its orders.

use crate::{Priority, RestingOrder};

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
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The hash of one resting order: every field of it counts.
pub(crate) fn order(order: &RestingOrder) -> u64 {
    // The four products do not wait for each other, so they cost little more than one.
    let identity = fold(order.order.0.to_bits() ^ KEYS[0], order.priority.0 ^ KEYS[1]);
    let owner = u64::from(order.member.0) << 8 | order.side as u64;
    let name = fold(order.client_order_id.0 ^ KEYS[2], owner ^ KEYS[3]);
    let terms = fold(order.price.0.cast_unsigned() ^ KEYS[4], order.remaining.0 ^ KEYS[5]);
    let past = order.executed.0.wrapping_mul(KEYS[6]);
    fold(identity ^ terms.rotate_left(32), name.wrapping_add(past) ^ KEYS[7])
}

/// The hash of a book from the sum of its orders' hashes.
pub(crate) fn finish(sum: u64, priority_next: Priority) -> u64 {
    fold(sum ^ KEYS[0], priority_next.0 ^ KEYS[7]).wrapping_add(sum)
}

/// The hash of a book from scratch.
pub(crate) fn state(orders: &[RestingOrder], priority_next: Priority) -> u64 {
    finish(orders.iter().map(order).fold(0, u64::wrapping_add), priority_next)
}
