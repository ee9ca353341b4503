//! The commands, one module each, and files of packets (`frames`), which two of them write; `site` is a crate of its own, pares-operator.

pub mod admin;
pub mod archive;
pub mod certificate;
pub mod check_config;
pub mod day;
pub mod feed;
pub mod fix;
pub mod frames;
pub mod history;
pub mod hosts;
pub mod instruments;
pub mod journal;
mod market;
pub mod member;
pub mod mirror;
pub mod node;
pub mod stat;
pub mod tap;
pub mod up;
pub mod web;
