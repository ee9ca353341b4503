//! The commands, one module each.

pub mod bench;
pub mod node;
pub mod replay;
pub mod up;
