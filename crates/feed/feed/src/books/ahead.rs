//! What messages will need that came together.
//!
//! A message waits for memory four times over: for the table's word, which says where the order is, for the order, which says who its neighbours
//! are, for these, for its price. A processor runs ahead of a load that waits, but not over a branch that depends on it. So the messages of a
//! batch are looked at in steps: each step touches, without a branch on what it finds, what the step before it brought for all of them. These loads
//! wait together. Nothing is changed, and nothing but time depends on it; so it may guess.

use std::hint::black_box;

use pares_table::SlabIndex;
use pares_types::Side;
use zerocopy::FromBytes;
use zerocopy::big_endian::U64;

use super::Book;
use super::prices::Rank;
use super::queues::{Level, Order, Queues};
use crate::itch::{AddOrder, Head, Replaced};

/// Messages that are looked at together: what a packet holds.
pub(crate) const AHEAD: usize = 64;

/// A few things of one kind.
#[derive(Clone, Debug)]
struct Few<T> {
    items: [T; 2 * AHEAD],
    len: usize,
}

impl<T: Copy> Few<T> {
    fn new(nothing: T) -> Self {
        Self { items: [nothing; 2 * AHEAD], len: 0 }
    }

    /// Adds one if it is to be kept: a store in any case, and no branch.
    #[inline(always)]
    fn push(&mut self, item: T, keep: bool) {
        self.items[self.len] = item;
        self.len += usize::from(keep);
    }

    #[inline(always)]
    fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.items[..self.len].iter().copied()
    }
}

/// An order that will join a queue.
#[derive(Clone, Copy, Debug)]
struct Joining {
    locate: u16,
    side: Side,
    price: u32,
}

/// What is seen, step by step. It is kept, since clearing it would take as long as filling it.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    references: Few<u64>,
    joining: Few<Joining>,
    found: Few<SlabIndex<Order>>,
    around: Few<[SlabIndex<Order>; 2]>,
    joined: Few<SlabIndex<Level>>,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self {
            references: Few::new(0),
            joining: Few::new(Joining { locate: 0, side: Side::Buy, price: 0 }),
            found: Few::new(SlabIndex::NONE),
            around: Few::new([SlabIndex::NONE; 2]),
            joined: Few::new(SlabIndex::NONE),
        }
    }

    /// Touches what these messages will need in those books.
    pub(super) fn look(&mut self, messages: &[&[u8]], books: &[Book], queues: &Queues) {
        let Self { references, joining, found, around, joined } = self;
        [references.len, joining.len, found.len, around.len, joined.len] = [0; 5];
        messages.iter().take(AHEAD).for_each(|message| read(message, references, joining));
        let words = references.iter().fold(0, |sum, reference| sum ^ queues.glance(reference));
        let book = |locate: u16| books.get(usize::from(locate));
        let prices = joining.iter().fold(0, |sum, of| sum ^ book(of.locate).map_or(0, Book::glance));
        black_box(words ^ prices);
        for reference in references.iter() {
            let slot = queues.likely(reference);
            found.push(slot.unwrap_or(SlabIndex::NONE), slot.is_some());
        }
        for Joining { locate, side, price } in joining.iter() {
            let level = book(locate).and_then(|book| book.side(side).get(Rank::of(side, price)));
            joined.push(level.unwrap_or(SlabIndex::NONE), level.is_some());
        }
        found.iter().for_each(|order| around.push(queues.around(order), true));
        let mut sum = joined.iter().fold(0, |sum, level| sum ^ queues.touch(queues.last(level)));
        for (order, [before, after]) in found.iter().zip(around.iter()) {
            let level = queues.level(queues.order(order).level);
            sum ^= u64::from(level.price) ^ queues.touch(before) ^ queues.touch(after);
        }
        black_box(sum);
    }
}

/// Whom a message is about.
#[inline(always)]
fn read(message: &[u8], references: &mut Few<u64>, joining: &mut Few<Joining>) {
    // It is at the same place in all messages that have one.
    let reference = message.get(size_of::<Head>()..).and_then(|rest| U64::read_from_prefix(rest).ok());
    references.push(reference.map_or(0, |(reference, _)| reference.get()), reference.is_some());
    match message.first() {
        Some(&AddOrder::KIND) => {
            if let Ok(of) = AddOrder::ref_from_bytes(message) {
                let (locate, price) = (of.head.locate.get(), of.price.get());
                let side = if of.side == b'B' { Side::Buy } else { Side::Sell };
                joining.push(Joining { locate, side, price }, true);
            }
        }
        Some(&Replaced::KIND) => {
            if let Ok(of) = Replaced::ref_from_bytes(message) {
                references.push(of.reference.get(), true);
                // Its side is that of an order which is not found yet.
                let (locate, price) = (of.head.locate.get(), of.price.get());
                joining.push(Joining { locate, side: Side::Buy, price }, true);
                joining.push(Joining { locate, side: Side::Sell, price }, true);
            }
        }
        _ => {}
    }
}
