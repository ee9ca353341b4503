//! `cargo xtask fuzz fix_frames`; the body is `pares_fuzz::fix::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::fix::frames(bytes));
