//! The server before gateways that say what a test has them say: what a whole exchange does too seldom, or too soon.
#![allow(clippy::unwrap_used)] // a test

mod client;
mod gateway;
mod streams;
mod symbols;
mod timer;
