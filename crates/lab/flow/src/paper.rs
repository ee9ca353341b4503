//! The workload of paper 1, section 6: requests to buy or sell a number of shares, half of them buys and
//! half sells, on one symbol or ten.
//!
//! The paper says no more. Coin flips alone would let the book grow with the square root of the run;
//! here each instrument gets shuffled blocks of as many shares to buy as to sell, at prices that cross, so
//! that every block trades out and the book stays as short as at the start, however long the run.

use pares_types::{ClientOrderId, MemberId, Price, Quantity, Side, TimeInForce};

use crate::command::{FlowCommand, limit};
use crate::synthetic::FlowInstrument;
use pares_random::Random;

/// Requests of a block, half of them buys.
const BLOCK: usize = 64;
/// The largest order, in lots.
const LOTS_MAX: u64 = 10;
/// Bids are up to this many ticks less one above the start, offers below it: any two cross.
const SPREAD_TICKS: u64 = 5;

#[derive(Debug)]
struct Block {
    instrument: FlowInstrument,
    requests: [(Side, u64); BLOCK],
    /// How many of them were sent.
    sent: usize,
}

/// The flow. Never ends; no allocation after construction.
#[derive(Debug)]
pub struct PaperFlow {
    random: Random,
    blocks: Vec<Block>,
    member: MemberId,
    next_client_order_id: u64,
}

impl PaperFlow {
    /// The flow of `seed` over `instruments`, each as busy as the next, sent by one member.
    ///
    /// # Panics
    /// If there is no instrument, or one starts below 1,000 ticks.
    #[must_use]
    pub fn new(seed: u64, instruments: &[FlowInstrument], member: MemberId, first: ClientOrderId) -> Self {
        assert!(!instruments.is_empty(), "at least one instrument");
        let new_block = |&instrument: &FlowInstrument| {
            assert!(instrument.start.0 >= 1000 * instrument.tick.0, "start at 1,000 ticks or more");
            Block { instrument, requests: [(Side::Buy, 0); BLOCK], sent: BLOCK }
        };
        let blocks = instruments.iter().map(new_block).collect();
        Self { random: Random::new(seed), blocks, member, next_client_order_id: first.0 }
    }

    /// The next request.
    pub fn next_command(&mut self) -> FlowCommand {
        let client_order_id = ClientOrderId(self.next_client_order_id);
        self.next_client_order_id += 1;
        let place = self.random.below(self.blocks.len() as u64) as usize;
        let block = &mut self.blocks[place];
        let (side, lots) = block.next_request(&mut self.random);
        let instrument = block.instrument;
        let inside = (self.random.below(SPREAD_TICKS) as i64) * instrument.tick.0;
        let price = match side {
            Side::Buy => instrument.start.0 + inside,
            Side::Sell => instrument.start.0 - inside,
        };
        let action = limit(side, Price(price), Quantity(lots * instrument.lot.0), TimeInForce::Day);
        FlowCommand { member: self.member, client_order_id, instrument: instrument.id, action }
    }
}

impl Block {
    fn next_request(&mut self, random: &mut Random) -> (Side, u64) {
        if self.sent == BLOCK {
            self.deal(random);
        }
        self.sent += 1;
        self.requests[self.sent - 1]
    }

    /// A buy and a sell of each size, shuffled (Fisher and Yates).
    fn deal(&mut self, random: &mut Random) {
        for pair in self.requests.chunks_exact_mut(2) {
            let lots = 1 + random.below(LOTS_MAX);
            pair.copy_from_slice(&[(Side::Buy, lots), (Side::Sell, lots)]);
        }
        for place in (1..BLOCK).rev() {
            self.requests.swap(place, random.below(place as u64 + 1) as usize);
        }
        self.sent = 0;
    }
}
