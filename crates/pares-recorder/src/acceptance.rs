//! Which records a recorder takes.

use pares_types::{Epoch, Position, RequestId};

/// Requests remembered per shard, to check that late records agree with what was taken.
const RECENT: usize = 4_096;
/// State hashes remembered per shard.
const HASHES: usize = 16;

/// A result on offer, as far as accepting it is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Where it comes from.
    pub source: Source,
    /// The life of the window that decided it.
    pub epoch: Epoch,
    /// Its place in the shard's total order.
    pub position: Position,
    /// The request at that place.
    pub request: RequestId,
    /// The state after it, where one was taken.
    pub state_hash: Option<u64>,
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A venue's log: its record may be a decision of an earlier life of the window that nobody
    /// recorded, and such a decision is void.
    Venue,
    /// Another recorder's log: whatever lies there is recorded.
    Peer,
}

/// What to do with an offered record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Append it; the next position is expected from now on.
    Take,
    /// It is known: go on to the source's next record.
    Known,
    /// It belongs to an earlier life of the window: go on to the source's next record.
    Void,
    /// An earlier position must come first, from another source: leave it and offer it again.
    Wait,
    /// The shard is halted.
    Halted,
}

/// Two replicas disagree about the past. The shard is halted: no further record of it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// Different requests at one position (invariant I1).
    Request {
        /// The position.
        position: Position,
        /// What was taken.
        taken: RequestId,
        /// What was offered.
        offered: RequestId,
    },
    /// Different states after one position.
    State {
        /// The position.
        position: Position,
        /// The hash taken.
        taken: u64,
        /// The hash offered.
        offered: u64,
    },
}

/// The accepting side of one shard at one recorder.
#[derive(Clone, Debug)]
pub struct Acceptance {
    epoch: Epoch,
    next: Position,
    recent: Vec<Option<RequestId>>,
    hashes: [Option<(Position, u64)>; HASHES],
    divergence: Option<Divergence>,
}

impl Acceptance {
    /// A shard of which nothing is recorded, in the given life of the window.
    #[must_use]
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            next: Position(0),
            recent: vec![None; RECENT],
            hashes: [None; HASHES],
            divergence: None,
        }
    }

    /// The next position to take.
    #[must_use]
    pub fn next(&self) -> Position {
        self.next
    }

    /// Why the shard is halted, if it is.
    #[must_use]
    pub fn divergence(&self) -> Option<Divergence> {
        self.divergence
    }

    /// Learns a record of the recorder's own log on start, in the log's order.
    ///
    /// # Panics
    /// If the record does not follow the last: a recorder's log has no gaps after its first record.
    pub fn recover(&mut self, position: Position, request: RequestId, state_hash: Option<u64>) {
        let first = self.next == Position(0) && self.recent.iter().all(Option::is_none);
        assert!(first || position == self.next, "gap in the recorder's own log before position {position}");
        self.note(position, request, state_hash);
    }

    /// Judges a record. One to [`Verdict::Take`] counts as taken only once the caller has appended it
    /// and says so ([`Acceptance::take`]): a full disk then changes nothing.
    pub fn offer(&mut self, offer: &Offer) -> Verdict {
        if self.divergence.is_some() {
            return Verdict::Halted;
        }
        if offer.position < self.next {
            return self.compare(offer);
        }
        if offer.source == Source::Venue && offer.epoch != self.epoch {
            return Verdict::Void;
        }
        if offer.position > self.next {
            return Verdict::Wait;
        }
        Verdict::Take
    }

    /// Counts a record as taken.
    ///
    /// # Panics
    /// If it is not the next.
    pub fn take(&mut self, offer: &Offer) {
        assert_eq!(offer.position, self.next, "records are taken in order");
        self.note(offer.position, offer.request, offer.state_hash);
    }

    fn note(&mut self, position: Position, request: RequestId, state_hash: Option<u64>) {
        self.recent[position.0 as usize % RECENT] = Some(request);
        if let Some(hash) = state_hash {
            self.hashes.rotate_right(1);
            self.hashes[0] = Some((position, hash));
        }
        self.next = position.next();
    }

    /// A record of a position taken before, from another source: it must say the same. Void decisions
    /// of an earlier life may differ, so only this life's are compared.
    fn compare(&mut self, offer: &Offer) -> Verdict {
        if offer.epoch != self.epoch {
            return Verdict::Known;
        }
        let position = offer.position;
        let taken =
            self.recent[position.0 as usize % RECENT].filter(|_| self.next.0 - position.0 <= RECENT as u64);
        if let Some(taken) = taken.filter(|&taken| taken != offer.request) {
            self.divergence = Some(Divergence::Request { position, taken, offered: offer.request });
            return Verdict::Halted;
        }
        let taken = self.hashes.iter().flatten().find(|(at, _)| *at == position).map(|&(_, hash)| hash);
        match (taken, offer.state_hash) {
            (Some(taken), Some(offered)) if taken != offered => {
                self.divergence = Some(Divergence::State { position, taken, offered });
                Verdict::Halted
            }
            _ => Verdict::Known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::GatewayId;

    fn id(sequence: u64) -> RequestId {
        RequestId::new(GatewayId(1), sequence)
    }

    impl Acceptance {
        fn offer_and_take(&mut self, offer: &Offer) -> Verdict {
            let verdict = self.offer(offer);
            if verdict == Verdict::Take {
                self.take(offer);
            }
            verdict
        }
    }

    fn offer(position: u64, sequence: u64) -> Offer {
        let state_hash = position.is_multiple_of(4).then_some(position);
        Offer {
            source: Source::Venue,
            epoch: Epoch(2),
            position: Position(position),
            request: id(sequence),
            state_hash,
        }
    }

    #[test]
    fn paper1_s5_takes_each_position_once_and_ignores_the_second_venue() {
        let mut shard = Acceptance::new(Epoch(2));
        assert_eq!(shard.offer_and_take(&offer(0, 1)), Verdict::Take);
        assert_eq!(shard.offer_and_take(&offer(0, 1)), Verdict::Known);
        assert_eq!(shard.next(), Position(1));
    }

    #[test]
    fn a_record_ahead_of_its_turn_waits() {
        let mut shard = Acceptance::new(Epoch(2));
        assert_eq!(shard.offer_and_take(&offer(1, 2)), Verdict::Wait);
        assert_eq!(shard.next(), Position(0));
    }

    #[test]
    fn a_decision_of_an_earlier_life_is_void_from_a_venue_and_good_from_a_peer() {
        let mut shard = Acceptance::new(Epoch(2));
        let old = Offer { epoch: Epoch(1), ..offer(0, 1) };
        assert_eq!(shard.offer_and_take(&old), Verdict::Void);
        assert_eq!(shard.offer_and_take(&Offer { source: Source::Peer, ..old }), Verdict::Take);
    }

    #[test]
    fn another_request_at_a_taken_position_halts_the_shard() {
        let mut shard = Acceptance::new(Epoch(2));
        shard.offer_and_take(&offer(0, 1));
        assert_eq!(shard.offer_and_take(&offer(0, 2)), Verdict::Halted);
        assert_eq!(
            shard.divergence(),
            Some(Divergence::Request { position: Position(0), taken: id(1), offered: id(2) })
        );
        assert_eq!(shard.offer_and_take(&offer(1, 3)), Verdict::Halted);
    }

    #[test]
    fn another_state_at_a_taken_position_halts_the_shard() {
        let mut shard = Acceptance::new(Epoch(2));
        shard.offer_and_take(&offer(0, 1));
        let other = Offer { state_hash: Some(77), ..offer(0, 1) };
        assert_eq!(shard.offer_and_take(&other), Verdict::Halted);
    }

    #[test]
    fn recovery_continues_after_the_last_record() {
        let mut shard = Acceptance::new(Epoch(2));
        shard.recover(Position(7), id(8), None);
        shard.recover(Position(8), id(9), None);
        assert_eq!(shard.offer_and_take(&offer(9, 10)), Verdict::Take);
    }

    #[test]
    #[should_panic(expected = "gap in the recorder's own log")]
    fn a_gap_in_its_own_log_stops_a_recorder() {
        let mut shard = Acceptance::new(Epoch(2));
        shard.recover(Position(0), id(1), None);
        shard.recover(Position(2), id(3), None);
    }
}
