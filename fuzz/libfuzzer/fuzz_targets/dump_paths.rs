//! `cargo xtask fuzz dump_paths`; the body is `pares_fuzz::broker_edges::dump_paths`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker_edges::dump_paths(bytes));
