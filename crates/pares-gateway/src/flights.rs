//! This gateway's own requests that are journalled but not committed yet.
//!
//! Per shard, one gateway's requests commit in the order of their sequence, so each shard has a queue,
//! and a shard that stands still holds up only its own.

use std::collections::VecDeque;

use pares_types::{ClientOrderId, RequestId};

use crate::SessionId;

/// One request in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    sequence: u64,
    offset: u64,
}

/// A session that wants to know when its request is durable in the gateway's log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undurable {
    pub(crate) offset: u64,
    pub(crate) session: SessionId,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) request: RequestId,
}

/// The requests in flight.
pub(crate) struct Flights {
    shards: Box<[VecDeque<Flight>]>,
    in_flight: usize,
    undurable: VecDeque<Undurable>,
}

impl Flights {
    pub(crate) fn new(shards: usize) -> Self {
        let shards = (0..shards).map(|_| VecDeque::with_capacity(64)).collect();
        Self { shards, in_flight: 0, undurable: VecDeque::new() }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether a request of the shard is in flight.
    pub(crate) fn waits(&self, shard: usize) -> bool {
        !self.shards[shard].is_empty()
    }

    /// A request of the shard lies in the log at `offset`, uncommitted.
    ///
    /// # Panics
    /// If its sequence does not follow the last one's: sequences rise along the log.
    pub(crate) fn take_off(&mut self, shard: usize, sequence: u64, offset: u64) {
        let queue = &mut self.shards[shard];
        assert!(queue.back().is_none_or(|last| last.sequence < sequence), "sequences rise along the log");
        queue.push_back(Flight { sequence, offset });
        self.in_flight += 1;
    }

    /// The shard's request of that sequence is committed.
    ///
    /// # Panics
    /// If an earlier one of the shard is not: it would never be answered.
    pub(crate) fn land(&mut self, shard: usize, sequence: u64) {
        let queue = &mut self.shards[shard];
        let Some(front) = queue.front() else { return };
        assert!(front.sequence >= sequence, "a shard commits a gateway's requests in order of sequence");
        if front.sequence == sequence {
            queue.pop_front();
            self.in_flight -= 1;
        }
    }

    /// Where the oldest request in flight lies.
    pub(crate) fn oldest_offset(&self) -> Option<u64> {
        self.shards.iter().filter_map(|queue| queue.front()).map(|flight| flight.offset).min()
    }

    pub(crate) fn undurable(&self) -> usize {
        self.undurable.len()
    }

    pub(crate) fn await_durable(&mut self, undurable: Undurable) {
        self.undurable.push_back(undurable);
    }

    /// The next session to be told, given that all below `durable_offset` is durable.
    pub(crate) fn next_durable(&mut self, durable_offset: u64) -> Option<Undurable> {
        self.undurable.pop_front_if(|first| first.offset < durable_offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_stands_still_holds_only_its_own() {
        let mut flights = Flights::new(2);
        for (sequence, shard) in [(1, 0), (2, 1), (3, 1)] {
            flights.take_off(shard, sequence, sequence * 64);
        }
        flights.land(1, 2);
        flights.land(1, 3);
        assert_eq!((flights.in_flight(), flights.oldest_offset()), (1, Some(64)));
    }

    #[test]
    #[should_panic(expected = "in order of sequence")]
    fn a_commit_that_skips_a_request_is_a_broken_promise() {
        let mut flights = Flights::new(1);
        flights.take_off(0, 1, 0);
        flights.take_off(0, 2, 64);
        flights.land(0, 2);
    }

    #[test]
    fn a_commit_of_a_request_the_log_lost_changes_nothing() {
        let mut flights = Flights::new(1);
        flights.take_off(0, 5, 0);
        flights.land(0, 4);
        assert_eq!(flights.in_flight(), 1);
    }
}
