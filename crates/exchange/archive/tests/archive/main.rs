//! Days of a log as files: closed, archived, restored, dropped.
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::print_stderr)] // a test that skips says why

mod days;
mod log;
#[cfg(feature = "s3")]
mod s3;
