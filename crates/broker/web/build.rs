//! Lists the files of `pages/`, so that the program carries them and nobody keeps a list by hand.
#![allow(clippy::print_stdout)] // how cargo is told

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=pages");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("pages");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let path = file.strip_prefix(&root).expect("below it").to_string_lossy().replace('\\', "/");
        let path = if path == "index.html" { String::new() } else { path };
        let mut hasher = DefaultHasher::new();
        std::fs::read(&file).expect("a page can be read").hash(&mut hasher);
        let (kind, tag) = (kind(&file), hasher.finish());
        writeln!(list, "    (\"/{path}\", \"{kind}\", \"\\\"{tag:016x}\\\"\", include_bytes!({file:?})),")
            .expect("a text takes all");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo says where"));
    std::fs::write(out.join("pages.rs"), list).expect("the list can be written");
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory of pages can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

fn kind(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("woff2") => "font/woff2",
        _ => "text/plain; charset=utf-8",
    }
}
