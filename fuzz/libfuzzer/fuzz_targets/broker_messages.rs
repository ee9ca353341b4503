//! `cargo xtask fuzz broker_messages`; the body is `pares_fuzz::broker::messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker::messages(bytes));
