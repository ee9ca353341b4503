//! Desks for many fronts: what the two say to each other, a desk's end and a front's end of it, apart from the connections that carry it.
//!
//! A stock has one desk among those that live, by rendezvous hashing: each front ranks the desks for the stock by a hash of both, and asks the first that is
//! connected. So all fronts ask the same one without agreeing on anything, and a desk that dies moves its own stocks only.

mod calls;
mod frames;
mod shared;

pub use calls::{DeskCall, DeskCalls, DeskNews};
pub use frames::{FRAME_MAX, ToDesk, ToFront};
pub use shared::{FrontNumber, SharedDesk, SharedEffect};
