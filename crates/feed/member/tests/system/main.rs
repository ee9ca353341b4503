//! Two servers and their traders, over real logs, a real window and real sockets; servers are threads that can be made to vanish.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests too

mod market;
#[path = "../../../receiver/tests/own_network/mod.rs"]
mod own_network;
mod packets;
#[allow(dead_code)] // the receiver's own tests use the rest
#[path = "../../../receiver/tests/publisher/mod.rs"]
mod publisher;
mod rig;
mod slow;
mod streams;
mod web;
