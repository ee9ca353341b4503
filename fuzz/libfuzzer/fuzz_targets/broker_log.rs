//! `cargo xtask fuzz broker_log`; the body is `pares_fuzz::broker::log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker::log(bytes));
