//! The table of parsers in docs/reliability.md is complete: no target lacks there, and no crate that reads bytes.
#![allow(clippy::unwrap_used)] // a test

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pares_fuzz::TARGETS;

/// What functions that read begin with.
const READS: [&str; 7] = ["read", "decode", "parse", "from_bytes", "restore", "cut", "scan"];
/// What they read.
const READ: [&str; 5] = [": &[u8]", ": &'a [u8]", ": &mut &[u8]", ": &str", "bytes: ["];
/// Tools, which read what we wrote.
const TOOLS: [&str; 3] = ["lab", "wan", "xtask"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The rows of the table: what stands between backticks in the columns of crates and of targets.
fn rows() -> Vec<[BTreeSet<String>; 2]> {
    let page = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
    let (_, section) = page.split_once("\n## Parsers\n").expect("the page has the table");
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| bytes"));
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    lines.map(|line| [2, 3].map(|column| words(line.split('|').nth(column).unwrap()))).collect()
}

fn is_parser(line: &str) -> bool {
    let Some((_, rest)) = line.split_once("fn ") else { return false };
    let name = rest.split(['(', '<']).next().unwrap();
    READS.iter().any(|read| name == *read || name.starts_with(&format!("{read}_")))
        && READ.iter().any(|read| rest.contains(read))
}

fn has_parser(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return has_parser(&path);
        }
        let is_source = path.extension().is_some_and(|kind| kind == "rs");
        is_source && fs::read_to_string(&path).unwrap().lines().any(is_parser)
    })
}

/// The crates in which something is read, as `GROUP/CRATE`.
fn crates_that_read() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for group in fs::read_dir(root().join("crates")).unwrap() {
        let group = group.unwrap();
        let group_name = group.file_name().into_string().unwrap();
        if TOOLS.contains(&group_name.as_str()) {
            continue;
        }
        for one in fs::read_dir(group.path()).unwrap() {
            let one = one.unwrap();
            if has_parser(&one.path().join("src")) {
                found.insert(format!("{group_name}/{}", one.file_name().into_string().unwrap()));
            }
        }
    }
    found
}

#[test]
fn each_target_and_each_crate_that_reads_has_a_row() {
    let rows = rows();
    let listed = |column: usize| rows.iter().flat_map(move |row| row[column].iter().cloned()).collect();
    let (crates, proofs): (BTreeSet<String>, BTreeSet<String>) = (listed(0), listed(1));
    let lacking: Vec<_> = crates_that_read().difference(&crates).cloned().collect();
    assert!(lacking.is_empty(), "crates that read bytes, and are in no row: {lacking:?}");
    for target in TARGETS {
        assert!(proofs.contains(target.name), "{} is in no row", target.name);
    }
}
