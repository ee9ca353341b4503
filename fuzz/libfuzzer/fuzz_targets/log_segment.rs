//! `cargo xtask fuzz log_segment`; the body is `pares_fuzz::records::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::records::segment(bytes));
