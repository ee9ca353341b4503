//! The transport: one reader's view of one sender's log over a network that loses, delays, duplicates and
//! reorders.
//!
//! Whatever is published is sent once, unasked, as a message saying "entries `from..to`". The reader passes
//! entries on in order and without gaps; what comes early is kept aside. While it lacks something it asks
//! the sender's log again, which answers even when the sender's process is dead (design section 8: gaps and
//! late joiners are served from the log). So the rules above see a stream that is in order and complete up to
//! `received`, and asks are the only timers of the data path.

use std::collections::BTreeMap;

/// Ranges kept aside at most; what comes on top is dropped and asked for later.
const AHEAD_MAX: usize = 64;
/// Entries asked for in one message.
pub(crate) const ASK_MAX: u64 = 256;

/// The receiving end of a link.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Received in order and without a gap below this offset.
    received: u64,
    /// Ranges received out of order: start to end.
    ahead: BTreeMap<u64, u64>,
    /// Sent unasked below this offset.
    pub(crate) sent: u64,
    /// Whether a timer to ask again is running.
    pub(crate) asking: bool,
    /// The link is cut until then, ns.
    pub(crate) cut_until: u64,
}

impl Link {
    /// A reader that starts at `from`, at a sender whose log is sent unasked from `sent` on.
    pub(crate) fn open(&mut self, from: u64, sent: u64) {
        self.received = from;
        self.ahead.clear();
        self.sent = sent;
        self.asking = false;
    }

    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Takes a message in. Says whether anything became readable.
    pub(crate) fn on_message(&mut self, from: u64, to: u64) -> bool {
        if from > self.received {
            if self.ahead.len() < AHEAD_MAX {
                let end = self.ahead.entry(from).or_insert(to);
                *end = to.max(*end);
            }
            return false;
        }
        let before = self.received;
        self.received = self.received.max(to);
        while let Some((&from, &to)) = self.ahead.first_key_value() {
            if from > self.received {
                break;
            }
            self.received = self.received.max(to);
            self.ahead.pop_first();
        }
        self.received > before
    }

    /// What to ask for, given that the log is readable below `offered`.
    pub(crate) fn missing(&self, offered: u64) -> Option<(u64, u64)> {
        let next_known = self.ahead.first_key_value().map_or(u64::MAX, |(&from, _)| from);
        let to = offered.min(next_known).min(self.received + ASK_MAX);
        (self.received < to).then_some((self.received, to))
    }

    pub(crate) fn ahead_len(&self) -> usize {
        self.ahead.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_early_waits_for_what_is_missing() {
        let mut link = Link::default();
        assert!(!link.on_message(2, 4));
        assert_eq!(link.missing(6), Some((0, 2)));
        assert!(link.on_message(0, 2));
        assert_eq!(link.received(), 4);
    }

    #[test]
    fn repeats_and_overlaps_change_nothing() {
        let mut link = Link::default();
        assert!(link.on_message(0, 3));
        assert!(!link.on_message(0, 3));
        assert!(link.on_message(1, 5));
        assert_eq!(link.received(), 5);
    }
}
