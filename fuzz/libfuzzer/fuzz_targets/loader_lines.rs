//! `cargo xtask fuzz loader_lines`; the body is `pares_fuzz::broker_edges::loader_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker_edges::loader_lines(bytes));
