//! The rules of day trading from outside: against an oracle, and by the log that they leave.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too
#![allow(clippy::print_stderr, clippy::print_stdout)] // a test that skips says why

mod commands;
mod log;
mod sessions;
mod support;
