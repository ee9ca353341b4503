//! What came before its turn.
//!
//! A gap that lasts must not fill memory, and what strangers send may say any number and be as long as a packet. So what waits is limited by its
//! number and by its bytes.

use std::collections::BTreeMap;

/// Messages that wait at most for one that is missing. Who is farther behind needs a snapshot.
pub const EARLY_MAX: usize = 65_536;
/// Bytes that they have together at most: 1 KiB for each.
const EARLY_BYTES_MAX: usize = 64 << 20;

/// Messages by their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Early {
    messages: BTreeMap<u64, Box<[u8]>>,
    bytes: usize,
}

impl Early {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.messages.contains_key(&number)
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.messages.first_key_value().map(|(&first, _)| first)
    }

    /// Keeps a message unless it is there. Says whether there was room: if not, nothing changed.
    pub(crate) fn keep(&mut self, number: u64, message: &[u8]) -> bool {
        if self.contains(number) {
            return true;
        }
        let fits = self.messages.len() < EARLY_MAX && self.bytes + message.len() <= EARLY_BYTES_MAX;
        if fits {
            self.bytes += message.len();
            self.messages.insert(number, message.into());
        }
        fits
    }

    /// Keeps a message and drops the oldest for it, which may be itself. How many were dropped.
    pub(crate) fn keep_newest(&mut self, number: u64, message: &[u8]) -> u64 {
        let mut dropped = 0;
        while !self.keep(number, message) {
            // A message alone always fits: it came in a packet.
            if self.take_first().is_none_or(|(first, _)| first > number) {
                return dropped + 1;
            }
            dropped += 1;
        }
        dropped
    }

    pub(crate) fn take_first(&mut self) -> Option<(u64, Box<[u8]>)> {
        let first = self.messages.pop_first()?;
        self.bytes -= first.1.len();
        Some(first)
    }

    /// Forgets all but those from one number to below another.
    pub(crate) fn forget_outside(&mut self, from: u64, below: u64) {
        self.messages.retain(|&number, _| (from..below).contains(&number));
        self.bytes = self.messages.values().map(|message| message.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_limited_by_number_and_by_bytes() {
        let (mut early, long) = (Early::default(), vec![0; 60_000]);
        let kept = (0..2_000).filter(|&number| early.keep(number, &long)).count();
        assert_eq!(kept, EARLY_BYTES_MAX / long.len());
        assert_eq!(early.keep_newest(5_000, &long), 1);
        assert_eq!((early.first(), early.contains(5_000)), (Some(1), true));
        early.forget_outside(0, 10);
        assert!(early.keep(10, &long) && early.contains(1) && !early.contains(5_000));
        let mut short = Early::default();
        assert!((0..EARLY_MAX as u64).all(|number| short.keep(number, b"short")));
        assert!(!short.keep(EARLY_MAX as u64, b"short"));
    }
}
