//! `cargo xtask fuzz fix_messages`; the body is `pares_fuzz::fix::messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::fix::messages(bytes));
