//! The server before gateways that say what a test has them say: what a whole exchange does too seldom, or too soon.
#![allow(clippy::unwrap_used)] // a test

mod client;
mod copies;
mod gateway;
mod names;
mod standing;
mod streams;
mod symbols;
mod timer;
