//! A shard as its venue drives it: several on one window, joining, falling behind, checkpoints.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

mod agreement;
mod checkpoints;
mod late;
mod pieces;
mod poison;
mod resync;
mod rig;
mod scenarios;
