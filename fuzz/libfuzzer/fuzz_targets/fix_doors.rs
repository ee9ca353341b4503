//! `cargo xtask fuzz fix_doors`; the body is `pares_fuzz::doors::doors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::doors::doors(bytes));
