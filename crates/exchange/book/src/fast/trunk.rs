//! The trunk of a price ladder: the branches of 4,096 prices that exist, see [`super::tree`].

use super::tree::Branch;
use pares_table::{Slab, SlabIndex};

/// Which branches exist, and where they are: a short sorted list, and once there are more than [`FEW`] of them an array by
/// number, so that a book around one price is small and a book over all prices is quick.
#[derive(Clone, Debug)]
pub(super) struct Trunk {
    /// The branches themselves.
    pub(super) branches: Slab<Branch>,
    /// In ascending order, while there are few.
    few: Vec<(u64, SlabIndex<Branch>)>,
    /// By number, once there are many; empty until then.
    many: Vec<SlabIndex<Branch>>,
    /// Of the many: a bit for each branch, a bit for each word of those, a bit for each word of these.
    bitmaps: [Vec<u64>; 3],
}

/// Branches of a short list: 32,768 prices.
const FEW: usize = 8;

impl Trunk {
    pub(super) fn new() -> Self {
        let bitmaps = [const { Vec::new() }; 3];
        Self { branches: Slab::with_capacity(0), few: Vec::new(), many: Vec::new(), bitmaps }
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<SlabIndex<Branch>> {
        if self.many.is_empty() {
            return self.few.iter().find(|(known, _)| *known == number).map(|(_, branch)| *branch);
        }
        self.many.get(number as usize)?.some()
    }

    /// Adds a branch; `last` is the highest number there can be.
    #[cold]
    pub(super) fn set(&mut self, number: u64, branch: SlabIndex<Branch>, last: u64) {
        if !self.many.is_empty() {
            return self.set_of_many(number, branch);
        }
        let place = self.few.partition_point(|(known, _)| *known < number);
        self.few.insert(place, (number, branch));
        if self.few.len() > FEW {
            self.spread(last);
        }
    }

    /// There are many from now on.
    fn spread(&mut self, last: u64) {
        let mut bits = last as usize + 1;
        self.many = vec![SlabIndex::NONE; bits];
        for bitmap in &mut self.bitmaps {
            bits = bits.div_ceil(64);
            *bitmap = vec![0; bits];
        }
        for (number, branch) in core::mem::take(&mut self.few) {
            self.set_of_many(number, branch);
        }
    }

    fn set_of_many(&mut self, number: u64, branch: SlabIndex<Branch>) {
        self.many[number as usize] = branch;
        let mut at = number;
        for bitmap in &mut self.bitmaps {
            bitmap[at as usize / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    #[cold]
    pub(super) fn clear(&mut self, number: u64) {
        if self.many.is_empty() {
            return self.few.retain(|(known, _)| *known != number);
        }
        self.many[number as usize] = SlabIndex::NONE;
        let mut at = number;
        for bitmap in &mut self.bitmaps {
            bitmap[at as usize / 64] &= !(1 << (at % 64));
            if bitmap[at as usize / 64] != 0 {
                return;
            }
            at /= 64;
        }
    }

    #[cold]
    pub(super) fn after(&self, number: u64) -> Option<SlabIndex<Branch>> {
        if self.many.is_empty() {
            return self.few.iter().find(|(known, _)| *known > number).map(|(_, branch)| *branch);
        }
        let mut at = number;
        for tier in 0..self.bitmaps.len() {
            let behind = self.bitmaps[tier][at as usize / 64] & above(at);
            if behind != 0 {
                at = at / 64 * 64 + u64::from(behind.trailing_zeros());
                for below in self.bitmaps[..tier].iter().rev() {
                    at = at * 64 + u64::from(below[at as usize].trailing_zeros());
                }
                return Some(self.many[at as usize]);
            }
            at /= 64;
        }
        None
    }
}

/// All bits of a word above the one of a number.
#[inline]
pub(super) fn above(number: u64) -> u64 {
    (u64::MAX << (number % 64)) << 1
}
