//! `cargo xtask fuzz fix_dictionaries`; the body is `pares_fuzz::dictionary::dictionary`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::dictionary::dictionary(bytes));
