//! What was asked under a name, in three bytes.
//!
//! Until a request is answered, what it says is nowhere in a gateway but in its log. Two sessions of a member may ask for different things under one
//! name, and then only one of them is answered: the other one's session would take that answer for its own. A digest of what was asked
//! tells the two apart, and fits where a name had bytes to spare.

use std::hash::{Hash, Hasher};

use pares_types::{Command, InstrumentId};

/// A digest of what a request asks. A chance of one in 16 million makes two requests look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked([u8; 3]);

impl Asked {
    /// Of a request that was read from a log.
    pub(crate) const UNKNOWN: Self = Self([0; 3]);

    /// Of the request for that instrument.
    pub(crate) fn of(instrument: InstrumentId, command: &Command) -> Self {
        let mut digest = Digest(instrument.0.into());
        match command {
            // What is drawn is no part of what was asked.
            Command::Time { .. } => {}
            command => command.hash(&mut digest),
        }
        let [.., low, middle, high] = digest.finish().to_le_bytes();
        Self([low, middle, high])
    }
}

/// Multiplies and turns, a word at a time: nobody gains by two of his own requests that look alike.
struct Digest(u64);

impl Digest {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }
    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }
    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }
    fn write_i64(&mut self, number: i64) {
        self.add(number.cast_unsigned());
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
