//! `cargo xtask fuzz fix_sessions`; the body is `pares_fuzz::fix::sessions`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::fix::sessions(bytes));
