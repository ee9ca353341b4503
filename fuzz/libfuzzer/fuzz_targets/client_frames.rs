//! `cargo xtask fuzz client_frames`; the body is `pares_fuzz::frames::client`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::frames::client(bytes));
