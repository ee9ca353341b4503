//! What tests of several crates need of the machine, and of programs: where it cannot be had a test says so, and passes.
//!
//! | module | what |
//! |---|---|
//! | [`postgres`] | a PostgreSQL server |
//! | [`own_network`] | a network in which multicast reaches nobody else |
//! | [`ports`] | ports that no process has |
//! | [`publisher`] | a publisher of market data |
//! | [`registries`] | programs of others, from PyPI and npm |
//! | [`documented`] | whether documents are true about the command line |
//! | [`help_texts`] | whether what a program says of its options is true |

#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests may, and this is theirs

pub mod documented;
pub mod help_texts;
pub mod own_network;
pub mod ports;
pub mod postgres;
pub mod publisher;
pub mod registries;
