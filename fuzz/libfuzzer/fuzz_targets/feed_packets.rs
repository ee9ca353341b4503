//! `cargo xtask fuzz feed_packets`; the body is `pares_fuzz::feed::packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::feed::packets(bytes));
