//! A history recorder's rules: take each position once, in order (paper 1 sections 2.2 and 5).
//!
//! Every venue hands out every result, so a recorder hears most positions several times, from sources that
//! run ahead of and behind each other. The obvious way, remembering what was seen, grows without bound; the
//! paper's way is one number per shard: the next position. Lower is known, equal is taken, higher waits
//! where it is (the logs are the queue).
//!
//! | module | what |
//! |---|---|
//! | [`acceptance`] | which record is taken |
//! | [`evidence`] | who said what about those that are: which venue is wrong, if that can be known |
//! | [`statement`] | what a venue says about a position |
//! | [`assembly`] | checkpoints put together from their pieces |
//! | [`quorum`] | when a record counts as committed, for readers of the recorders' logs |
//! | [`repair`] | which record comes from where when a damaged log is rebuilt |

pub mod acceptance;
pub mod assembly;
pub mod evidence;
pub mod quorum;
pub mod repair;
pub mod statement;

pub use acceptance::{Acceptance, Divergence, Offer, Source, Verdict};
pub use assembly::{Assembly, PieceResult};
pub use evidence::{Dispute, DisputeSide, Disputed, Finding};
pub use quorum::Quorum;
pub use repair::Repair;
pub use statement::{NOBODY, Statement};
