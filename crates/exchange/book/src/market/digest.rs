//! The state hash of many books, of which few have changed since it was last asked for.
//!
//! A book's own hash is cheap, but it is of all its rules and prices; for ten thousand books that is two milliseconds every 1,024
//! requests, more than the requests themselves take. So the hashes are kept, with their sum, and only books touched since
//! are hashed again. The sum forgets the order of its parts, which does no harm: a book's hash covers its instrument's id.

use pares_types::{MemberId, Timestamp};

use crate::Book;

/// What is known of the books' hashes. Places are those in the list of books.
#[derive(Debug)]
pub(super) struct Digest {
    /// Each book's hash when it was last taken.
    known: Vec<u64>,
    /// The wrapping sum of [`mix`]ed known hashes.
    sum: u64,
    /// Books touched since.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
}

impl Digest {
    pub(super) fn of<B: Book>(books: &[B]) -> Self {
        let known: Vec<u64> = books.iter().map(Book::state_hash).collect();
        let sum = known.iter().fold(0_u64, |sum, &hash| sum.wrapping_add(mix(hash)));
        Self { sum, touched: Vec::with_capacity(books.len()), is_touched: vec![false; books.len()], known }
    }

    /// The book at that place may have changed.
    #[inline]
    pub(super) fn touch(&mut self, at: usize) {
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(u32::try_from(at).expect("far fewer books than 2^32"));
        }
    }

    /// Hashes again what was touched.
    pub(super) fn refresh<B: Book>(&mut self, books: &[B]) {
        self.sum = self.sum_of(books);
        while let Some(at) = self.touched.pop() {
            let at = at as usize;
            self.is_touched[at] = false;
            self.known[at] = books[at].state_hash();
        }
    }

    /// The hash of all of these books, of who is blocked, and of the time.
    pub(super) fn value<B: Book>(&self, books: &[B], blocked: &[MemberId], time: Timestamp) -> u64 {
        let hash = mix(self.sum_of(books) ^ mix(books.len() as u64) ^ mix(time.0).rotate_left(1));
        blocked.iter().fold(hash, |hash, member| mix(hash ^ mix(u64::from(member.0))))
    }

    /// A book comes to that place among `books`, which do not have it yet.
    pub(super) fn insert<B: Book>(&mut self, at: usize, books: &[B], book: &B) {
        self.refresh(books);
        let hash = book.state_hash();
        self.sum = self.sum.wrapping_add(mix(hash));
        self.known.insert(at, hash);
        self.is_touched.insert(at, false);
    }

    /// The book at that place is about to leave `books`.
    pub(super) fn remove<B: Book>(&mut self, at: usize, books: &[B]) {
        self.refresh(books);
        self.sum = self.sum.wrapping_sub(mix(self.known.remove(at)));
        self.is_touched.remove(at);
    }

    fn sum_of<B: Book>(&self, books: &[B]) -> u64 {
        let places = self.touched.iter().map(|&at| at as usize);
        places.fold(self.sum, |sum, at| {
            sum.wrapping_sub(mix(self.known[at])).wrapping_add(mix(books[at].state_hash()))
        })
    }
}

/// The finaliser of `SplitMix64`: every input bit reaches every output bit.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
