//! `cargo xtask fuzz broker_items`; the body is `pares_fuzz::broker::items`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker::items(bytes));
