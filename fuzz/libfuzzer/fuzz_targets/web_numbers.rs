//! `cargo xtask fuzz web_numbers`; the body is `pares_fuzz::web::numbers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::web::numbers(bytes));
