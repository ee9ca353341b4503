//! `cargo xtask fuzz records`; the body is `pares_fuzz::records::record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::records::record(bytes));
