//! `cargo xtask fuzz lobster`; the body is `pares_fuzz::days::lobster`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::days::lobster(bytes));
