//! A shard as its venue drives it: several on one window, joining, falling behind, checkpoints.
#![allow(clippy::unwrap_used)]

mod agreement;
mod checkpoints;
mod paper1;
mod resync;
mod rig;
mod scenarios;
