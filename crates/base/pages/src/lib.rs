//! Lists the files of folders of pages for a build script, so that the program carries them without a list kept by hand.
#![allow(clippy::print_stdout)] // cargo reads it

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

/// Writes `pages.rs`: the files of `own`, and of those that all pages share. `index.html` is `/`, another page is its name without `.html`.
pub fn write(own: &str, shared: &str) {
    let mut files = BTreeMap::new();
    let from = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"));
    for root in [own, shared].map(|root| from.join(root)) {
        println!("cargo::rerun-if-changed={}", root.display());
        walk(&root, &root, &mut files);
    }
    let mut list = String::from("&[\n");
    for (path, file) in files {
        let mut hasher = DefaultHasher::new();
        std::fs::read(&file).expect("a page can be read").hash(&mut hasher);
        let (kind, tag) = (kind(&file), hasher.finish());
        writeln!(
            list,
            "    PageFile {{ path: {path:?}, kind: {kind:?}, tag: \"\\\"{tag:016x}\\\"\", bytes: include_bytes!({file:?}) }},"
        )
        .expect("a text takes all");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo says where"));
    std::fs::write(out.join("pages.rs"), list).expect("the list can be written");
}

fn walk(root: &Path, dir: &Path, files: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory of pages can be read") {
        let file = entry.expect("an entry can be read").path();
        if file.is_dir() {
            walk(root, &file, files);
            continue;
        }
        let path = file.strip_prefix(root).expect("below it").to_string_lossy().replace('\\', "/");
        let path = path.strip_suffix(".html").map_or(path.as_str(), |page| page.trim_end_matches("index"));
        let before = files.insert(format!("/{path}"), file);
        assert_eq!(before, None, "two files are /{path}");
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
