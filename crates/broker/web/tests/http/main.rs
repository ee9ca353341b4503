//! The interface from outside: what people may do, what they may not, and what those try who are no people.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

mod clock;
mod commands;
mod document;
mod hostile;
mod orders;
mod people;
mod server;
mod sockets;
mod supervisors;
mod support;

#[path = "../../examples/pages/stand_in.rs"]
mod stand_in;
