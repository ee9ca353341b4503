//! `cargo xtask fuzz books`; the body is `pares_fuzz::books::books`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::books::books(bytes));
