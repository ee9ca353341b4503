//! A venue's window of a shard, as its process sees it.

use pares_sequencer::{LocalWindow, Overruled, ProposeError, Sequencer, Voiding};
use pares_types::{Epoch, Position, RequestId, ShardId};

use super::host::Host;
use crate::bug::Bug;

/// A venue's window, perhaps a defective one; the process may be killed before and after each call.
#[derive(Debug)]
pub(crate) struct Window {
    inner: LocalWindow,
    host: Host,
    shard: ShardId,
    bug: Option<Bug>,
    capacity: u64,
    /// What this process itself has seen recorded.
    seen: Position,
    /// Positions this process declared void by itself.
    alone: Vec<Position>,
}

impl Window {
    pub(super) fn new(host: &Host, shard: ShardId, inner: LocalWindow, bug: Option<Bug>) -> Self {
        let (seen, capacity) = (inner.recorded(), inner.capacity() as u64);
        Self { inner, host: host.clone(), shard, bug, capacity, seen, alone: Vec::new() }
    }

    /// Without a position in it, a slot is found by the rest of the position alone, whichever lap it was filled in.
    fn believe_bare_slots(
        &mut self,
        first: Position,
        oldest: Position,
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        let laps = (oldest.0 - first.0).div_ceil(self.capacity);
        let there = Position(first.0 + laps * self.capacity);
        self.inner.propose(there, &[], decided_max, decided)
    }
}

impl Sequencer for Window {
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        self.host.passes();
        let result = self.inner.propose(first, requests, decided_max, decided);
        self.host.passes();
        if self.bug == Some(Bug::SlotsBeforeRecorded) {
            self.inner.raise_recorded(self.inner.undecided());
        }
        match (self.bug, result) {
            (Some(Bug::SwallowDecision), _) if decided.len() > 2 => {
                decided.remove(0);
            }
            (Some(Bug::BareSlots), Err(ProposeError::TooFarBehind { oldest })) => {
                return self.believe_bare_slots(first, oldest, decided_max, decided);
            }
            (Some(Bug::ProposeBeforeFilled), Err(ProposeError::TooFarBehind { .. })) => {
                let there = self.inner.undecided();
                // What it wins there is unknown to itself until it is filled.
                let _ = self.inner.propose(there, requests, decided_max, &mut Vec::new());
            }
            _ => {}
        }
        result
    }

    fn recorded(&self) -> Position {
        // The mark in the window is then no more than what is decided.
        if self.bug == Some(Bug::SlotsBeforeRecorded) { self.seen } else { self.inner.recorded() }
    }

    fn raise_recorded(&mut self, to: Position) {
        self.host.passes();
        self.seen = self.seen.max(to);
        self.inner.raise_recorded(to);
    }

    fn follow_record(&mut self, to: Position) {
        self.inner.follow_record(to);
    }

    fn is_void(&mut self, position: Position) -> bool {
        let is_void = self.inner.is_void(position) || self.alone.contains(&position);
        is_void && self.bug != Some(Bug::ExecuteVoid)
    }

    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        self.host.passes();
        let rival = self.host.with_seam(|seam, node| seam.rival(node, self.shard));
        if let Some(at) = rival.filter(|at| from <= *at && *at < to) {
            let mut other = self.inner.clone();
            if other.vouch(from, at).is_ok() {
                other.void(at);
            }
        }
        let vouched = self.inner.vouch(from, to);
        self.host.passes();
        if self.bug == Some(Bug::HandOutUnvouched) { Ok(()) } else { vouched }
    }

    fn void(&mut self, position: Position) -> Voiding {
        self.host.passes();
        if self.bug == Some(Bug::VoidAlone) {
            self.alone.push(position);
            return Voiding::Void;
        }
        self.inner.void(position)
    }

    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    fn won(&self) -> u64 {
        self.inner.won()
    }
}
