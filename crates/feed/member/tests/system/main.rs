//! Two servers and their traders, over real logs, a real window and real sockets; servers are threads that can be made to vanish.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests too

mod market;
mod packets;
mod rig;
mod slow;
mod streams;
mod web;
