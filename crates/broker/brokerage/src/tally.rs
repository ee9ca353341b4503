//! How fast commands had their replies.

use std::time::{Duration, Instant};

use pares_broker::BrokerReply;

/// See the [module](self).
pub(crate) struct Tally {
    began: Instant,
    pub(crate) done: u64,
    pub(crate) refused: u64,
    /// Lines that are no command.
    pub(crate) unreadable: u64,
    /// Replies in each second.
    seconds: Vec<u64>,
}

impl Tally {
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), done: 0, refused: 0, unreadable: 0, seconds: Vec::new() }
    }

    pub(crate) fn note(&mut self, reply: &BrokerReply) {
        self.count(!matches!(reply, BrokerReply::Refused { .. }));
    }

    /// A command has its reply.
    pub(crate) fn count(&mut self, is_done: bool) {
        let second = usize::try_from(self.began.elapsed().as_secs()).unwrap_or(usize::MAX - 1);
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, 0);
        }
        self.seconds[second] += 1;
        match is_done {
            true => self.done += 1,
            false => self.refused += 1,
        }
    }

    pub(crate) fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// The most replies in one second.
    pub(crate) fn best_second(&self) -> u64 {
        self.seconds.iter().copied().max().unwrap_or_default()
    }

    pub(crate) fn told(&self) -> u64 {
        self.done + self.refused
    }
}
