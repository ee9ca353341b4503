//! This gateway's own requests that are journalled but not committed yet.
//!
//! Per shard, one gateway's requests commit in the order of their sequence, so each shard has a queue,
//! and a shard that stalls holds up only its own.
//!
//! All queues together are bounded, and a shard that is halted would use that room up and have the others refused. Fixed
//! shares would waste most of it while one shard is busy and the others are not. So a shard may have as many as are left for
//! all (the dynamic threshold of shared-memory switches, Choudhury and Hahne 1998): one that stalls ends up with
//! half, two with a third each, and there is always room for the others. Cancels have twice as many as are left, so they pass when orders
//! do not; requests to all shards, of which also a shard that stalls gets a part, four times.
//!
//! Orders have less room if a queue would make them wait longer than the target (`room.rs`); cancels have all of it, so they go first.
//!
//! ```text
//!   in_flight_max   |-- halted shard: orders --|- cancels -|-- left: the other shards --|-- the exchange's --|
//! ```

use std::collections::VecDeque;

use pares_types::{ClientOrderId, RequestId};

use crate::SessionId;
use crate::room::{Room, SHARE};

/// How many requests of the exchange may be in flight beyond what members may have.
const EXCHANGE_ROOM: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Flight {
    sequence: u64,
    offset: u64,
    /// When it was taken in; 0: in an earlier life of this gateway.
    taken_ns: u64,
    is_order: bool,
}

/// A session that wants to know when its request is durable in the gateway's log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undurable {
    pub(crate) offset: u64,
    pub(crate) session: SessionId,
    pub(crate) client_order_id: ClientOrderId,
    pub(crate) request: RequestId,
}

/// What a request is to the bounds on what is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// An order, or an amend that may add shares.
    Order,
    /// What reduces its member's risk.
    RiskReducing,
    /// What the exchange asks for. It has room of its own on top, so that whatever members have in flight it can halt and block.
    Exchange,
}

pub(crate) struct Flights {
    shards: Box<[VecDeque<Flight>]>,
    in_flight: usize,
    in_flight_max: usize,
    /// How many of each shard's are orders. Cancels take half of the room at most: a flood of them leaves the orders of others the rest.
    orders: Box<[usize]>,
    orders_in_flight: usize,
    room: Room,
    /// When this turn of the gateway began, by a clock that only goes forward.
    now_ns: u64,
    undurable: VecDeque<Undurable>,
}

impl Flights {
    pub(crate) fn new(shards: usize, in_flight_max: usize, wait_target_ns: u64) -> Self {
        let room = Room::new(shards, in_flight_max, wait_target_ns);
        let orders = vec![0; shards].into();
        let shards = (0..shards).map(|_| VecDeque::with_capacity(64)).collect();
        Self {
            shards,
            in_flight: 0,
            in_flight_max,
            orders,
            orders_in_flight: 0,
            room,
            now_ns: 0,
            undurable: VecDeque::new(),
        }
    }

    /// A turn of the gateway begins.
    pub(crate) fn on_turn(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// How many requests a member may have in flight for one more of its orders to be accepted; no limit while requests do not wait too
    /// long.
    pub(crate) fn share_left(&self) -> usize {
        let cancels = (self.in_flight - self.orders_in_flight).min(self.room.size() / 2);
        self.room.left(self.orders_in_flight + cancels, self.now_ns).saturating_mul(SHARE)
    }

    /// The same of a shard: more, or a member that fills its share of the room with orders of one shard would leave the others none there.
    fn shard_left(&self) -> usize {
        self.share_left().saturating_mul(2)
    }

    /// How many orders may wait.
    pub(crate) fn room(&self) -> usize {
        self.room.size()
    }

    /// Whether one more may take off, for a shard or for all of them.
    pub(crate) fn has_room(&self, shard: Option<usize>, weight: Weight) -> bool {
        let left = self.in_flight_max.saturating_sub(self.in_flight);
        match (shard, weight) {
            (Some(shard), Weight::Order) => {
                self.shards[shard].len() < left && self.orders[shard] < self.shard_left()
            }
            (Some(shard), Weight::RiskReducing) => self.shards[shard].len() < 2 * left,
            (None, Weight::Exchange) => self.left_for_exchange() >= self.shards.len(),
            (Some(_), Weight::Exchange) => self.left_for_exchange() > 0,
            (None, _) => left >= self.shards.len() && self.shards.iter().all(|queue| queue.len() < 4 * left),
        }
    }

    fn left_for_exchange(&self) -> usize {
        (self.in_flight_max + EXCHANGE_ROOM + self.shards.len()).saturating_sub(self.in_flight)
    }

    /// Whether one more session can wait for its request to be durable.
    pub(crate) fn has_undurable_room(&self) -> bool {
        self.undurable.len() < self.in_flight_max
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether a request of the shard is in flight.
    pub(crate) fn waits(&self, shard: usize) -> bool {
        !self.shards[shard].is_empty()
    }

    /// A request of the shard, an order or another, lies in the log at `offset`, uncommitted.
    ///
    /// # Panics
    /// If its sequence does not follow the last one's: sequences rise along the log.
    pub(crate) fn take_off(&mut self, shard: usize, (sequence, offset): (u64, u64), is_order: bool) {
        let queue = &mut self.shards[shard];
        assert!(queue.back().is_none_or(|last| last.sequence < sequence), "sequences rise along the log");
        queue.push_back(Flight { sequence, offset, taken_ns: self.now_ns, is_order });
        self.orders[shard] += usize::from(is_order);
        self.orders_in_flight += usize::from(is_order);
        self.in_flight += 1;
    }

    /// The shard's request of that sequence is committed. An earlier one that is not will never be: the venues could not
    /// read it in the log, and passed it over.
    pub(crate) fn land(&mut self, shard: usize, sequence: u64) {
        let Self { shards, orders, room, now_ns, .. } = self;
        while let Some(flight) = shards[shard].pop_front_if(|flight| flight.sequence <= sequence) {
            self.in_flight -= 1;
            orders[shard] -= usize::from(flight.is_order);
            self.orders_in_flight -= usize::from(flight.is_order);
            if flight.taken_ns > 0 {
                room.on_answer(shard, *now_ns - flight.taken_ns, *now_ns, |shard| orders[shard]);
            }
        }
    }

    /// Where the oldest request in flight lies.
    pub(crate) fn oldest_offset(&self) -> Option<u64> {
        self.shards.iter().filter_map(|queue| queue.front()).map(|flight| flight.offset).min()
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
        let mut flights = Flights::new(2, 9, 0);
        for (sequence, shard) in [(1, 0), (2, 1), (3, 1)] {
            flights.take_off(shard, (sequence, sequence * 64), true);
        }
        flights.land(1, 2);
        flights.land(1, 3);
        assert_eq!((flights.in_flight(), flights.oldest_offset()), (1, Some(64)));
    }

    #[test]
    fn a_request_that_the_venues_passed_over_is_in_flight_no_longer() {
        let mut flights = Flights::new(1, 9, 0);
        (1..=3).for_each(|sequence| flights.take_off(0, (sequence, sequence * 64), true));
        flights.land(0, 2);
        assert_eq!((flights.in_flight(), flights.oldest_offset()), (1, Some(3 * 64)));
    }

    /// Sends to a shard until there is no room.
    fn fill(flights: &mut Flights, shard: Option<usize>, weight: Weight) -> usize {
        let mut sequence = 1_000 * flights.in_flight() as u64;
        while flights.has_room(shard, weight) {
            for shard in shard.map_or(0..flights.shards.len(), |shard| shard..shard + 1) {
                sequence += 1;
                flights.take_off(shard, (sequence, sequence), weight == Weight::Order);
            }
            // The first two shards are halted, the others are not.
            (2..flights.shards.len()).for_each(|shard| flights.land(shard, sequence));
        }
        flights.in_flight()
    }

    #[test]
    fn halted_shard_leaves_half_the_room_and_cancel_third() {
        let mut flights = Flights::new(4, 90, 0);
        assert_eq!(fill(&mut flights, Some(0), Weight::Order), 45);
        assert_eq!(fill(&mut flights, Some(0), Weight::RiskReducing), 60);
        assert!((1..4).all(|shard| flights.has_room(Some(shard), Weight::Order)));
    }

    #[test]
    fn whatever_halted_shards_are_sent_the_others_take_orders() {
        let mut flights = Flights::new(4, 90, 0);
        for shard in [Some(0), Some(1), None] {
            fill(&mut flights, shard, Weight::RiskReducing);
        }
        assert!(flights.has_room(Some(2), Weight::Order) && !flights.has_room(None, Weight::RiskReducing));
    }

    #[test]
    fn a_commit_of_a_request_the_log_lost_changes_nothing() {
        let mut flights = Flights::new(1, 9, 0);
        flights.take_off(0, (5, 0), true);
        flights.land(0, 4);
        assert_eq!(flights.in_flight(), 1);
    }
}
