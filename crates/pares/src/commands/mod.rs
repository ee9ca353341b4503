//! The commands, one module each.

pub mod admin;
pub mod bench;
pub mod demo;
pub mod drill;
pub mod experiment;
pub mod history;
pub mod journal;
pub mod node;
pub mod replay;
pub mod sim;
pub mod site;
pub mod stat;
pub mod up;
