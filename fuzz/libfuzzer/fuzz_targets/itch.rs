//! `cargo xtask fuzz itch`; the body is `pares_fuzz::days::itch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::days::itch(bytes));
