//! `cargo xtask fuzz feed_messages`; the body is `pares_fuzz::feed::messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::feed::messages(bytes));
