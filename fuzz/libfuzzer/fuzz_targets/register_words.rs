//! `cargo xtask fuzz register_words`; the body is `pares_fuzz::register::words`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::register::words(bytes));
