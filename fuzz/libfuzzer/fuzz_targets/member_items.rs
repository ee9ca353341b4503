//! `cargo xtask fuzz member_items`; the body is `pares_fuzz::desk::items`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::desk::items(bytes));
