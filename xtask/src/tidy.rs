//! Rules of the workspace that the compiler does not check.
//!
//! A rule that only a document states is soon broken. So each rule here is checked, and its message says what to do instead.
//!
//! | module | rules about |
//! |---|---|
//! | `layers` | which crate may depend on which, and what rules crates may reach |
//! | `purity` | clocks, threads, files, floats and hash maps in rules crates |
//! | `names` | public types: no name twice |
//! | `mass` | lines of Rust in each group of crates |
//! | `assertions` | how many assertions crates with state have |
//! | `sources` | unsafe code, length, unfinished work, module docs, paths of one machine |
//! | `tests` | which tests the gate runs, and that they prove each promise |
//! | `documents` | links, crate lists, settings, counters, libraries |
//! | `pages` | cells of tables, the first page, the places of recipes |
//! | `words` | the field's terms: a list with replacements, and the length of function names |
//! | `rust` | just enough of Rust's grammar to tell code from comments and tests |

mod assertions;
mod documents;
mod layers;
mod mass;
mod names;
mod pages;
mod purity;
mod rust;
mod sources;
mod tests;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// A file of the workspace.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Checks all rules.
///
/// # Errors
/// Every violation, one per line.
pub(crate) fn run() -> Result<(), String> {
    let files = files()?;
    let mut violations = Vec::new();
    layers::check(&mut violations)?;
    for file in &files {
        sources::check(file, &mut violations);
        purity::check(file, &mut violations);
    }
    purity::check_clippy_files(&files, &mut violations);
    names::check(&files, &mut violations);
    assertions::check(&files, &mut violations);
    mass::check(&files, &mut violations);
    documents::check(&files, &mut violations);
    tests::check(&files, &mut violations);
    pages::check(&files, &mut violations);
    words::check(&files, &mut violations);
    match violations.len() {
        0 => {
            println!("tidy: {} files in order", files.len());
            Ok(())
        }
        count => Err(format!("{}\ntidy: {count} to repair", violations.join("\n"))),
    }
}

/// Names of the tests that are run by hand only.
///
/// # Errors
/// If the files cannot be listed.
pub(crate) fn tests_by_hand() -> Result<Vec<String>, String> {
    Ok(tests::by_hand(&files()?))
}

/// The text files that are, or are about to be, under version control.
///
/// # Errors
/// If they cannot be listed.
pub(crate) fn files() -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for path in paths()? {
        // No rule concerns files that are deleted but still listed by git, or that are not text.
        if let Ok(text) = std::fs::read_to_string(root().join(&path)) {
            files.push(File { path, text });
        }
    }
    Ok(files)
}

/// Asks git; in an unpacked archive, without one, walks the folders.
fn paths() -> Result<Vec<String>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut paths = match listed {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
        }
        _ => {
            let mut found = Vec::new();
            walk(root(), &mut found).map_err(|error| format!("reading the workspace: {error}"))?;
            found.iter().map(|path| relative(path)).collect::<Vec<String>>()
        }
    };
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if name != "target" && name != ".git" && name != "pares-data" {
                walk(&entry.path(), found)?;
            }
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("found below the root").to_string_lossy().replace('\\', "/")
}

/// What the tests of all rules need.
#[cfg(test)]
mod testing {
    use super::File;

    /// A file of that text.
    pub(super) fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    /// What a check finds.
    pub(super) fn found(check: impl FnOnce(&mut Vec<String>)) -> Vec<String> {
        let mut violations = Vec::new();
        check(&mut violations);
        violations
    }
}
