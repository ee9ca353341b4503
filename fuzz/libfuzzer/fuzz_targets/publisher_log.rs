//! `cargo xtask fuzz publisher_log`; the body is `pares_fuzz::feed::publisher_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::feed::publisher_log(bytes));
