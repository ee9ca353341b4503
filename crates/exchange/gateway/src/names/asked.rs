//! What was asked under a name, in three bytes.
//!
//! Until a request is answered, what it says is nowhere in a gateway but in its log. Two sessions of a member may ask for different things under one
//! name, and only one request is executed: the other session would take its answer for its own. A digest of what was asked tells
//! the two apart, and fits where a name had bytes to spare.

use std::hash::{Hash, Hasher};

use pares_types::{Command, InstrumentId};

/// A digest of what a request asks. A chance of one in 16 million makes two requests look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked([u8; 3]);

impl Asked {
    /// Of a request that was read from a log.
    pub(crate) const UNKNOWN: Self = Self([0; 3]);

    pub(crate) fn of(instrument: InstrumentId, command: &Command) -> Self {
        let mut digest = Digest(instrument.0.into());
        // What is drawn is no part of what was asked.
        if !matches!(command, Command::Time { .. }) {
            command.hash(&mut digest);
        }
        let [.., low, middle, high] = digest.finish().to_le_bytes();
        Self([low, middle, high])
    }
}

/// Not proof against collisions that a member looks for: they would confuse nothing but its own requests.
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let turned = self.0.rotate_left(23) ^ u64::from_le_bytes(word);
            self.0 = turned.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}
