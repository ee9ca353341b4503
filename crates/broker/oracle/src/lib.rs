//! Day trading as its rules have it in their most obvious form, over plain maps: what tests hold `pares-broker` and the processes of a
//! brokerage against. For tests only.

#![allow(missing_docs)] // what is public is named as in `pares-broker`
#![allow(clippy::unwrap_used, clippy::print_stderr)] // tests may, and this is theirs

mod oracle;
pub mod shared_data;

pub use oracle::*;
