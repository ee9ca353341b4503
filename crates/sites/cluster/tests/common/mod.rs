//! A cluster in one thread: sites that remember what they were given, over a network and disks that fail by seed.
#![allow(dead_code, reason = "every test uses a part")]

pub(crate) mod site;
pub(crate) mod world;
