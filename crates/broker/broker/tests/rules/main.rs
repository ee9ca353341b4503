//! The rules of day trading from outside: against an oracle, and by the log that they leave.

mod commands;
mod log;
mod support;
