//! The commands, one module each.

pub mod node;
pub mod up;
