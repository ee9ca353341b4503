//! Has the dictionaries made into tables: `pares-dictionary`.
#![allow(clippy::print_stdout, clippy::disallowed_methods)] // cargo's interface: its environment and standard output

use std::path::PathBuf;

const FILES: [&str; 2] = ["fix42.txt", "fix44.txt"];

fn main() {
    println!("cargo::rerun-if-changed=dictionary");
    println!("cargo::rerun-if-changed=build.rs");
    let root =
        PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("dictionary");
    let texts = FILES.map(|file| std::fs::read_to_string(root.join(file)).expect("a dictionary"));
    let files: Vec<(&str, &str)> = FILES.into_iter().zip(texts.iter().map(String::as_str)).collect();
    let code = pares_dictionary::tables(&files).unwrap_or_else(|why| panic!("dictionary/{why}"));
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo says where"));
    std::fs::write(out.join("dictionaries.rs"), code).expect("the tables can be written");
}
