//! `cargo xtask fuzz checkpoint`; the body is `pares_fuzz::checkpoints::restore`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::checkpoints::restore(bytes));
