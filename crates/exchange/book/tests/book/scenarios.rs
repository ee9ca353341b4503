//! Written trading days in `tests/scenarios`, and the rules one by one in `tests/rules`: every request followed by all that it caused.
//!
//! A file is its own expectation: the indented lines are replaced by what happens. After a wanted
//! change of the rules run the tests with `UPDATE_EXPECT=1` and review the difference.
//!
//! Lines with a `>` are messages of the market data: they stay as they are here, and `pares-feed` tests them.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use crate::Other;
use expect_test::expect_file;
use pares_book::{Book, NaiveBook};
use pares_exercise::script::Script;

/// The file with every indented line as this book would have it.
fn trace<B: Book>(text: &str) -> String {
    let mut script = Script::<B>::new();
    let mut trace = String::new();
    for line in text.lines() {
        if line.starts_with("    >") {
            trace.push_str(&format!("{line}\n"));
        }
        if line.starts_with(' ') {
            continue;
        }
        trace.push_str(&format!("{line}\n"));
        if !line.is_empty() && !line.starts_with('#') {
            script.say(line).iter().for_each(|said| trace.push_str(&format!("    {said}\n")));
        }
    }
    trace
}

fn check(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let naive = trace::<NaiveBook>(&text);
    expect_file![file].assert_eq(&naive);
    assert_eq!(trace::<Other>(&text), naive, "{}", file.display());
}

#[test]
fn each_scenario_ends_as_it_is_written_on_both_books() {
    let folders =
        ["tests/rules", "tests/scenarios"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    let entries = folders.iter().flat_map(|folder| folder.read_dir().unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 100, "{} scenarios", files.len());
    // All of them, so that a changed rule shows everything that it changes.
    files.retain(|file| catch_unwind(|| check(file)).is_err());
    assert!(files.is_empty(), "{files:#?}");
}
