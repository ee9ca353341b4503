//! `cargo xtask fuzz member_frames`; the body is `pares_fuzz::desk::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::desk::frames(bytes));
