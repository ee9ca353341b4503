//! `cargo xtask fuzz settings`; the body is `pares_fuzz::settings::settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::settings::settings(bytes));
