//! The real thing: every test starts a system of its own, of real processes over real sockets and files, does
//! to it what happens to exchanges, and reads the recorders' logs afterwards.
//!
//! One program for all of them, so that it is linked once: `cargo test -p pares --test system venue_dies`.
//! Time decides nothing here; deadlines are generous and only end what would never end. `PARES_SEED=7` trades
//! and kills otherwise than usual.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too
#![allow(clippy::print_stderr, clippy::print_stdout)] // a test that skips says why

mod common;

mod admin;
mod asking;
mod bad_input;
mod check_config;
mod days;
mod decoders;
mod descriptors;
mod disk_full;
mod feed;
mod feed_groups;
mod feed_tls;
mod fix;
mod fix_copy;
mod fix_market;
mod journal;
mod kills;
mod member;
mod mirror;
mod misuse;
mod ouch;
mod outside;
mod overload;
mod publishers;
mod python;
mod quickfixj;
mod recorders;
mod repair;
mod repeats;
mod restart;
mod sign_on;
mod stopped;
mod streams;
mod supervision;
mod tap;
mod tls;
mod topologies;
mod web;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pares");
