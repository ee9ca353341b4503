//! `cargo xtask fuzz web_forms`; the body is `pares_fuzz::web::forms`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::web::forms(bytes));
