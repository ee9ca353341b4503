//! `cargo xtask fuzz desk_words`; the body is `pares_fuzz::broker_edges::desk_words`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::broker_edges::desk_words(bytes));
