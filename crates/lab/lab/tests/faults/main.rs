//! The real thing while nodes fail on purpose: each is `pares-lab node`, which dies, lies or falls sick as its environment
//! says.
//!
//! `pares` holds none of that, so its own system tests cannot have it. What they share is theirs:
//! `cargo test -p pares-lab --test faults a_venue_dies`.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too
#![allow(clippy::print_stderr)] // a test that fails says where

#[allow(dead_code)] // the tests of `pares` use all of it
#[path = "../../../../app/pares/tests/system/common/mod.rs"]
mod common;

mod crash_points;
mod divergence;
mod poison;
mod sick;

/// The program that every node is.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pares-lab");
