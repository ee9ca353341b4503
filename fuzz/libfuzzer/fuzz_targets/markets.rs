//! `cargo xtask fuzz markets`; the body is `pares_fuzz::books::markets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::books::markets(bytes));
