//! `cargo xtask fuzz broker_lines`; the body is `pares_fuzz::broker::line`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker::line(bytes));
