//! The window: agreeing on the total order (paper 1, section 3).
//!
//! Every venue receives every request, but not in the same order. A vote or an elected leader would
//! settle the order at the price of waiting for the slowest voter, or for the election when the leader
//! dies. So the sequencer is neither: it is a passive piece of memory that maps a *position* of the total
//! order to the request processed there. Each venue proposes its own order of arrival; the first proposal
//! for a position wins it for good, and a later one learns who won and conforms. No venue ever
//! waits for another: a dead, stopped or slow one is merely one that proposes less.
//!
//! ```text
//!             recorded                next undecided      recorded + W
//!                |                          |                  |
//!   ... recorded | decided, not recorded    |  may be claimed  | may not: window full
//!   -------------+--------------------------+------------------+---------------------> positions
//!   slot of p is p % W: a slot is reused for p only after p - W is recorded
//! ```
//!
//! | module | what |
//! |---|---|
//! | `rules` | the slot and the pure rule: what may be done with a position, given what was read |
//! | `window` | the wait-free sequencer over any [`Memory`] of slots |
//! | `voids` | declaring a position void that no venue survives |
//! | `twin` | [`LocalWindow`], the obviously right implementation: oracle, simulator, unit tests |
//! | `arrival` | [`ArrivalOrder`], sequencing switched off |
//!
//! The memory shared between processes is `pares_window`; `docs/protocols/window.md` has the protocol.

mod arrival;
mod rules;
mod twin;
mod voids;
mod window;

use core::fmt;

use pares_types::{Epoch, Position, RequestId};

pub use arrival::ArrivalOrder;
pub use rules::{EPOCH_MAX, POSITION_MAX, Slot, SlotPlan, plan};
pub use twin::LocalWindow;
pub use voids::{Overruled, VOIDS_MAX, Voiding, Vouched};
pub use window::{Memory, Window};

/// A handle of one venue on the total order of one shard.
pub trait Sequencer {
    /// Proposes `requests` for the positions `first`, `first + 1`, ... and learns what is decided there.
    ///
    /// Pushes to `decided` the requests decided at `first`, `first + 1`, ..., at most `decided_max` of
    /// them. As long as the proposals win, the next is proposed. At the first position that went to
    /// another request proposing stops, since the winner may be one of `requests` further on, which must
    /// not get a second position; but positions already decided after it are still reported, so a
    /// follower learns all that is known in one call. With empty `requests` it only observes.
    ///
    /// The caller has learnt every position below `first`, and none of `requests` is at one of them: that
    /// is what keeps a request from being ordered twice and a position from being skipped.
    ///
    /// # Errors
    /// See [`ProposeError`]. `decided` then holds what was decided before the error was met, possibly
    /// nothing; those decisions stand and must be processed.
    ///
    /// # Panics
    /// If the position before `first` is undecided: the caller would have skipped it.
    fn propose(
        &mut self,
        first: Position,
        requests: &[RequestId],
        decided_max: usize,
        decided: &mut Vec<RequestId>,
    ) -> Result<(), ProposeError>;

    /// The next unrecorded position: all below it are recorded.
    fn recorded(&self) -> Position;

    /// Raises the recorded mark to `to`; never lowers it. Called by those who see the committed stream
    /// first.
    ///
    /// # Panics
    /// If `to - 1` is undecided: what is not decided cannot be recorded, and believing it
    /// would free slots whose decisions exist nowhere else.
    fn raise_recorded(&mut self, to: Position);

    /// As [`Self::raise_recorded`], of a record that another host may have decided: what lies below `to` need not be decided here, and if it is
    /// not, it never will be.
    fn follow_record(&mut self, to: Position) {
        self.raise_recorded(to);
    }

    /// Whether `position` is void: the caller must not execute its request, but record it as void. To be asked, in
    /// order, before every position that is executed from a decision.
    fn is_void(&mut self, position: Position) -> bool;

    /// Says that the caller has executed `from` up to below `to`, and may hand the results out from now on. Nothing may be
    /// handed out before.
    ///
    /// # Errors
    /// [`Overruled`] if one of them was declared void after the caller asked. It must hand out nothing of this and restore
    /// its state from the record.
    fn vouch(&mut self, from: Position, to: Position) -> Result<(), Overruled>;

    /// Asks for `position`, which the caller cannot execute, to be void.
    ///
    /// # Panics
    /// If not everything below it is vouched for.
    fn void(&mut self, position: Position) -> Voiding;

    /// The epoch this handle proposes in.
    fn epoch(&self) -> Epoch;

    /// Positions that this handle's proposals have claimed: not those where another had claimed it for the same
    /// request before. Who claims most leads.
    fn won(&self) -> u64;
}

/// Why a proposal went no further. What is in `decided` by then stands; nothing else was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProposeError {
    /// The position has left the window (paper 1, section 4: soft failure). Resynchronise from the record.
    TooFarBehind {
        /// Positions before this one can no longer be learnt here; all of them are recorded.
        oldest: Position,
    },
    /// The position is a whole window ahead of the record. Try again when the recorded mark has moved;
    /// until then refuse new work early.
    WindowFull {
        /// The next unrecorded position.
        recorded: Position,
    },
    /// The window belongs to a newer epoch. Stop, and join again as a new venue.
    EpochOver {
        /// The epoch now in force.
        current: Epoch,
    },
}

impl fmt::Display for ProposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFarBehind { oldest } => {
                write!(
                    f,
                    "too far behind: the window starts at or after {oldest}; resynchronise from the record"
                )
            }
            Self::WindowFull { recorded } => {
                write!(f, "window full: position {recorded} is not recorded yet; wait for the recorders")
            }
            Self::EpochOver { current } => {
                write!(f, "epoch over: epoch {current} is in force; join again as a new venue")
            }
        }
    }
}

impl std::error::Error for ProposeError {}
