//! `cargo xtask fuzz gateway_frames`; the body is `pares_fuzz::frames::gateway`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::frames::gateway(bytes));
