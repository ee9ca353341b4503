//! `cargo xtask fuzz tap_secrets`; the body is `pares_fuzz::tap::secrets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::tap::secrets(bytes));
