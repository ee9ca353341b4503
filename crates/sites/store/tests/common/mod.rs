//! What the tests of this crate share.
#![allow(dead_code)] // each uses its part

pub(crate) mod history;
