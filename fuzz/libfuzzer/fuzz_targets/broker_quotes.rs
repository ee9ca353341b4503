//! `cargo xtask fuzz broker_quotes`; the body is `pares_fuzz::broker::quotes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker::quotes(bytes));
