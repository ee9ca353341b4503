//! `cargo xtask fuzz ouch_doors`; the body is `pares_fuzz::ouch::doors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pares_fuzz::ouch::doors(bytes));
