//! `cargo xtask fuzz TARGET`: each binary is the target that has its name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (pares_fuzz::target(env!("CARGO_BIN_NAME")).run)(bytes));
