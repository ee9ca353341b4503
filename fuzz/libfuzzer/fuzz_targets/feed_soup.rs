//! `cargo xtask fuzz feed_soup`; the body is `pares_fuzz::feed::soup`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::feed::soup(bytes));
