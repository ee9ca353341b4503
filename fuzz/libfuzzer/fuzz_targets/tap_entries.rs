//! `cargo xtask fuzz tap_entries`; the body is `pares_fuzz::tap::entries`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::tap::entries(bytes));
