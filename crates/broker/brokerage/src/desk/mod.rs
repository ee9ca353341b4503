//! Quote desks as processes: what fronts and desks say to each other, a desk for many fronts, and a front's end of it.
//!
//! A stock has one desk among those that live, by rendezvous hashing: each front ranks the desks for the stock by a hash of both, and asks the first that is
//! connected. So all fronts ask the same one without agreeing on anything, and a desk that dies moves its own stocks only.

mod links;
mod serve;
mod shared;

pub use links::{DeskLinks, DeskNews};
pub use serve::{Args, run};
