//! `cargo xtask fuzz web_wishes`; the body is `pares_fuzz::web::wishes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::web::wishes(bytes));
