//! What this machine does, and the papers' figures measured again on it.
//!
//! | module | what |
//! |---|---|
//! | [`mod@bench`] | one figure of one part |
//! | [`experiment`] | a paper's figure or table beside ours, as a section of `docs/results.md` |
//! | `member` | a member's system of its own, for both |

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

pub mod bench;
pub mod experiment;
mod member;
