//! `cargo xtask fuzz publication`; the body is `pares_fuzz::feed::publication`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::feed::publication(bytes));
