//! An execution venue's rules: conform to the total order, execute, resynchronise (paper 1, sections 2-4).
//!
//! A venue is a primary among primaries: it proposes the requests it has seen, learns what was decided,
//! executes exactly that, and hands the results out. The obvious way to replicate, a leader that ships its
//! log, stops when the leader does and must be detected, replaced and replayed around. Here a venue never
//! waits for another: whatever is decided it can execute by itself, because the body of every decided
//! request lies in its gateway's log.
//!
//! ```text
//!  gateway logs --on_request--> pending --propose--> sequencer
//!                                  ^                    | decided
//!                                  | shuffle            v
//!  committed stream --on_committed-------------->  execute -> result, state hash, checkpoint
//! ```
//!
//! Two ways lead to the next position and both end in `execute`: a decision of the window, and a record of
//! the committed stream. The second is how a follower skips work already done, how a venue that slept
//! catches up, and how a new one joins (paper 1 section 4): one path, always exercised.
//!
//! | module | what |
//! |---|---|
//! | [`ordering`] | pending requests and conforming: the part the model checker runs |
//! | [`names`] | the names a shard has seen lately: exactly once, even through two gateways |
//! | `registering` | who may do what: the register, as a part of the shard |
//! | `quarantine` | instruments that take no requests since one of theirs was declared void |
//! | [`pacing`] | when to take a checkpoint, of which shard, and how fast |
//! | [`progress`] | what comes of a shard's steps |
//! | [`shard`] | one shard: ordering, market, hash, checkpoints; the crate's face |
//! | [`checkpoint`] | the shard's state as bytes |

pub mod checkpoint;
pub mod names;
mod notes;
pub mod ordering;
pub mod pacing;
pub mod progress;
mod quarantine;
mod registering;
pub mod shard;

pub use checkpoint::{CheckpointError, Piece};
pub use pacing::{Pacing, PiecePacing};
pub use progress::{Progress, ResultAt, Stall, VenueSink};
pub use shard::{Gap, Recorded, Shard};
