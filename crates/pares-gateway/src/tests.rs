//! The gateway's rules, put to the test from outside.
