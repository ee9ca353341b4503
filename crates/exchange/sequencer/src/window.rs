//! The wait-free sequencer over any memory of slots.
//!
//! A mutual exclusion lock around the window would be simpler, and the first venue stopped while holding
//! it would stop the exchange. Here a position is decided by one compare-and-swap, so at every instant it
//! is either undecided or decided, never "being decided", and no venue can be stopped in a state others
//! wait for.
//!
//! **Bound.** A position takes at most one load and one compare-and-swap. The caller knows that `p - 1`
//! is decided, hence `p - W` is, and the slot held at least `p - W` when it was loaded. So a failed swap
//! means that the slot now holds `p` or later (or a fence), and what the swap returned settles it; that
//! is asserted.
//!
//! **Late wakers.** A venue may sleep for any time after its loads. If the slot has changed meanwhile,
//! its swap fails, as positions in a slot only grow. If not, nobody has decided `p`, and `p < recorded +
//! W` still holds as `recorded` only grows: winning now is as right as winning then. A new epoch begins
//! in a new memory and fences the old one ([`Slot::fence`]), which changes every slot a sleeper could
//! have loaded. Source: paper 1, section 3; the window rule is design section 2.

use pares_types::{Epoch, Position, RequestId};

use crate::rules::{Slot, SlotPlan, plan};
use crate::voids::{Heard, Overruled, VOIDS_MAX, Voiding, Vouched};
use crate::{ProposeError, Sequencer};

/// Memory that holds one window: slots, four words and a table of voids, shared by all venues of a shard.
///
/// Any memory will do that keeps two promises, `A` and `B` being any users of it:
/// - what `A` did before a `compare_exchange` or `raise_recorded` is seen by `B` once `B` has seen its
///   result (acquire on loads and failed swaps, release on writes); the same for the vouched word and the table's count;
/// - a `compare_exchange` fails only if the slot, or word, differs from `expected`.
pub trait Memory {
    /// Number of slots, a power of two.
    fn capacity(&self) -> u64;
    /// The slot at `index`, below [`Memory::capacity`].
    fn load(&self, index: u64) -> Slot;
    /// Replaces `expected` by `new` at `index`, or returns what is there instead.
    ///
    /// # Errors
    /// The slot found; the memory is unchanged.
    fn compare_exchange(&self, index: u64, expected: Slot, new: Slot) -> Result<(), Slot>;
    /// The next unrecorded position.
    fn recorded(&self) -> Position;
    /// Raises the recorded mark to `to` if that is higher.
    fn raise_recorded(&self, to: Position);
    /// Up to where a venue has executed.
    fn vouched(&self) -> Vouched;
    /// Replaces `expected` by `new` in that word, or returns what is there instead.
    ///
    /// # Errors
    /// The word found; the memory is unchanged.
    fn compare_exchange_vouched(&self, expected: Vouched, new: Vouched) -> Result<(), Vouched>;
    /// How many positions stand in the table of voids; at most [`VOIDS_MAX`], never fewer than before.
    fn voids(&self) -> usize;
    /// The void at `index`, below [`Memory::voids`].
    fn void(&self, index: usize) -> Position;
    /// Enters `position` as the void at `index`, unless that place is taken, and counts it. Any number of users may enter the
    /// same position at the same time.
    fn add_void(&self, index: usize, position: Position);
    /// The epoch the memory was made for; never changes.
    fn made_for(&self) -> Epoch;
    /// The epoch in force: the one it was made for, or a newer one once the memory is given up.
    fn epoch(&self) -> Epoch;
}

/// One venue's handle on a window in `M`.
#[derive(Clone, Debug)]
pub struct Window<M> {
    memory: M,
    epoch: Epoch,
    won: u64,
    /// The voids heard of, in order.
    pub(crate) voids: Vec<Heard>,
}

impl<M: Memory> Window<M> {
    /// A handle that proposes in the epoch the memory was made for.
    ///
    /// # Panics
    /// If the capacity is not a power of two.
    pub fn new(memory: M) -> Self {
        assert!(memory.capacity().is_power_of_two(), "capacity {} is not a power of two", memory.capacity());
        let epoch = memory.made_for();
        Self { memory, epoch, won: 0, voids: Vec::with_capacity(VOIDS_MAX) }
    }

    /// The memory below.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    fn index(&self, position: Position) -> u64 {
        position.0 & (self.memory.capacity() - 1)
    }

    /// Settles `position` as far as the rule allows: learns it, or claims it for `request` if there is one.
    /// `recorded` was read before this call.
    fn settle(&mut self, position: Position, request: Option<RequestId>, recorded: Position) -> SlotPlan {
        let index = self.index(position);
        let (epoch, capacity) = (self.epoch, self.memory.capacity());
        let look = |slot| plan(slot, recorded, epoch, capacity, position);
        let seen = look(self.memory.load(index));
        let (SlotPlan::Claim { expected }, Some(request)) = (seen, request) else {
            return seen;
        };
        match self.memory.compare_exchange(index, expected, Slot::new(self.epoch, position, request)) {
            Ok(()) => {
                self.won += 1;
                SlotPlan::Decided(request)
            }
            Err(found) => {
                let settled = look(found);
                assert!(
                    !matches!(settled, SlotPlan::Claim { .. } | SlotPlan::Full),
                    "slot of {position} went from {expected:?} to {found:?}: no step forward"
                );
                settled
            }
        }
    }

    /// Checks that nothing is skipped: proposing at `first` needs the position before it to be decided.
    fn check_first(&self, first: Position, recorded: Position) -> Result<(), ProposeError> {
        if first <= recorded {
            return Ok(());
        }
        self.check_decided(Position(first.0 - 1))
    }

    fn check_decided(&self, position: Position) -> Result<(), ProposeError> {
        let slot = self.memory.load(self.index(position));
        if slot.epoch() > self.epoch {
            return Err(ProposeError::EpochOver { current: slot.epoch() });
        }
        assert!(slot.reached(self.epoch, position), "position {position} is undecided: {slot:?}");
        Ok(())
    }

    fn check_epoch(&self) -> Result<(), ProposeError> {
        let current = self.memory.epoch();
        if current == self.epoch { Ok(()) } else { Err(ProposeError::EpochOver { current }) }
    }
}

impl<M: Memory> Sequencer for Window<M> {
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError> {
        self.check_epoch()?;
        // Before any slot: a mark newer than the slot would make a decided position look dropped. Being
        // older is harmless, so one load serves the whole call.
        let recorded = self.memory.recorded();
        if !requests.is_empty() {
            self.check_first(first, recorded)?;
        }
        let mut proposals = requests.iter().copied();
        let mut position = first;
        for _ in 0..decided_max {
            let proposal = proposals.next();
            match self.settle(position, proposal, recorded) {
                SlotPlan::Decided(winner) => {
                    decided.push(winner);
                    if proposal != Some(winner) {
                        proposals = [].iter().copied(); // lost: from here on only observe
                    }
                }
                SlotPlan::Claim { .. } => return Ok(()),
                SlotPlan::Full if proposal.is_none() => return Ok(()),
                SlotPlan::Full => return Err(ProposeError::WindowFull { recorded }),
                SlotPlan::Behind { oldest } => return Err(ProposeError::TooFarBehind { oldest }),
                SlotPlan::EpochOver(current) => return Err(ProposeError::EpochOver { current }),
            }
            position = position.next();
        }
        Ok(())
    }

    fn recorded(&self) -> Position {
        self.memory.recorded()
    }

    fn raise_recorded(&mut self, to: Position) {
        if to <= self.memory.recorded() || self.check_epoch().is_err() {
            return;
        }
        if self.check_decided(Position(to.0 - 1)).is_ok() {
            self.memory.raise_recorded(to);
        }
    }

    fn follow_record(&mut self, to: Position) {
        if self.check_epoch().is_ok() {
            self.memory.raise_recorded(to);
        }
    }

    #[inline]
    fn is_void(&mut self, position: Position) -> bool {
        self.void_at(position)
    }

    #[inline]
    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        self.vouch_for(from, to)
    }

    fn void(&mut self, position: Position) -> Voiding {
        self.declare_void(position)
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn won(&self) -> u64 {
        self.won
    }
}
