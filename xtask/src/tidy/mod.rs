//! Rules of the workspace that the compiler does not know.
//!
//! A rule that only stands in a document is broken by the first tired evening, so each rule here says in its
//! message what to do instead.
//!
//! | module | rules about |
//! |---|---|
//! | `layers` | which crate may depend on which, and what rules crates may reach |
//! | `purity` | clocks, threads, files, floats and hash maps in rules crates |
//! | `names` | public types: no name twice |
//! | `sources` | unsafe, length, unfinished work, module docs, machine paths |
//! | `documents` | links, crate lists, settings, counters, libraries |
//! | `rust` | just enough of Rust's grammar to tell code from comments and tests |

mod documents;
mod layers;
mod names;
mod purity;
mod rust;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// A file of the workspace.
#[derive(Debug)]
struct File {
    /// From the root of the workspace, with `/`.
    path: String,
    text: String,
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
    documents::check(&files, &mut violations);
    match violations.len() {
        0 => {
            println!("tidy: {} files in order", files.len());
            Ok(())
        }
        count => Err(format!("{}\ntidy: {count} to put right", violations.join("\n"))),
    }
}

/// The text files that are, or are about to be, under version control.
fn files() -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for path in paths()? {
        // What git still lists but is deleted, and what is not text, concerns no rule.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        if let Err(violations) = run() {
            panic!("{violations}");
        }
    }
}
