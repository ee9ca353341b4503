//! `cargo xtask fuzz tap_fix`; the body is `pares_fuzz::doors::tapped`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::doors::tapped(bytes));
