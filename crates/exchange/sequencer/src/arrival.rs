//! Sequencing switched off: the order of arrival is the total order.
//!
//! Paper 1, section 6.2: messages of a single gateway reach all venues in the same order, so with one
//! gateway there is nothing to agree on, and measuring without the sequencer shows what it costs. With
//! two gateways this would fork the venues.

use pares_types::{Epoch, Position, RequestId};

use crate::{Overruled, ProposeError, Sequencer, Voiding};

/// Grants every proposal. One per venue, never shared; only legal with one gateway.
///
/// It keeps the window's back-pressure: no further than `capacity` positions ahead of the record.
#[derive(Clone, Debug)]
pub struct ArrivalOrder {
    capacity: u64,
    epoch: Epoch,
    recorded: Position,
    won: u64,
}

impl ArrivalOrder {
    /// An order that starts at `first`, all before it being recorded.
    ///
    /// # Panics
    /// If `capacity` is 0: nothing could ever be granted.
    #[must_use]
    pub fn new(capacity: usize, epoch: Epoch, first: Position) -> Self {
        assert!(capacity > 0, "a window has at least one position");
        Self { capacity: capacity as u64, epoch, recorded: first, won: 0 }
    }
}

impl Sequencer for ArrivalOrder {
    /// Grants all `requests` up to the window's end. There is nothing to observe: empty `requests` learn
    /// nothing.
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        let end = self.recorded.0 + self.capacity;
        let wanted = requests.len().min(decided_max);
        let room = usize::try_from(end.saturating_sub(first.0)).unwrap_or(usize::MAX);
        decided.extend_from_slice(&requests[..wanted.min(room)]);
        self.won += wanted.min(room) as u64;
        if wanted > room { Err(ProposeError::WindowFull { recorded: self.recorded }) } else { Ok(()) }
    }

    fn recorded(&self) -> Position {
        self.recorded
    }

    /// Raises the mark. Unlike in a window, `to` may be ahead of all that was granted here: a joining
    /// venue learns it from the record.
    fn raise_recorded(&mut self, to: Position) {
        self.recorded = self.recorded.max(to);
    }

    fn is_void(&mut self, _position: Position) -> bool {
        false
    }

    fn vouch(&mut self, _from: Position, _to: Position) -> Result<(), Overruled> {
        Ok(())
    }

    /// There is nobody to agree with.
    fn void(&mut self, _position: Position) -> Voiding {
        Voiding::Refused
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn won(&self) -> u64 {
        self.won
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::GatewayId;

    fn ids(sequences: core::ops::RangeInclusive<u64>) -> Vec<RequestId> {
        sequences.map(|s| RequestId::new(GatewayId(1), s)).collect()
    }

    #[test]
    fn paper1_s6_2_single_gateway_needs_no_sequencer() {
        let (mut one, mut two) =
            (ArrivalOrder::new(8, Epoch(1), Position(0)), ArrivalOrder::new(8, Epoch(1), Position(0)));
        let (mut by_one, mut by_two) = (vec![], vec![]);
        one.propose(Position(0), &ids(1..=5), 8, &mut by_one).unwrap();
        two.propose(Position(0), &ids(1..=2), 8, &mut by_two).unwrap();
        two.propose(Position(2), &ids(3..=5), 8, &mut by_two).unwrap();
        assert_eq!(by_one, by_two);
    }

    #[test]
    fn stalled_record_stops_admission_after_a_window() {
        let mut order = ArrivalOrder::new(4, Epoch(1), Position(10));
        let mut decided = vec![];
        let full = order.propose(Position(10), &ids(1..=6), 8, &mut decided);
        assert_eq!(full, Err(ProposeError::WindowFull { recorded: Position(10) }));
        assert_eq!(decided, ids(1..=4));
        order.raise_recorded(Position(12));
        order.propose(Position(14), &ids(5..=6), 8, &mut decided).unwrap();
        assert_eq!(decided, ids(1..=6));
    }
}
