//! Rules for every file: unsafe code, length, unfinished work, gaps in texts, module docs, paths of one machine.

use super::File;
use super::purity::is_test_file;
use super::rust::{Line, has_word, lines};

/// Crates that may hold unsafe code, in small modules.
const UNSAFE_CRATES: &[&str] = &["crates/base/os/", "crates/base/log/"];

/// The most lines of a source file, and of a file of tests.
const LINES_MAX: usize = 400;
const TEST_LINES_MAX: usize = 600;
/// Files that are longer, and why that is right.
const LONGER: &[(&str, &str)] = &[
    ("crates/exchange/wire/src/record/request.rs", "one layout, written and read"),
    ("crates/broker/oracle/src/oracle.rs", "one oracle: a day's commands, executed the plainest way"),
    ("crates/exchange/exercise/src/requests.rs", "one grammar: every request from bytes"),
];

/// Files that include a module from another crate's folder, and why that is right.
const TAKERS: &[(&str, &str)] = &[(
    "crates/lab/lab/tests/faults/main.rs",
    "the system tests of `pares`, on a program that fails on purpose",
)];

/// The spaces within a text whose line lost the `\` at its end, and the fewest bytes before them: columns of a table begin earlier.
const GAP: &str = "        ";
const BEFORE_GAP: usize = 100;

/// Words that mark unfinished work, each in two pieces, so that this file does not contain them.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tm", "p/lab")];

/// Checks one file.
pub(super) fn check(file: &File, violations: &mut Vec<String>) {
    check_machine_paths(file, violations);
    if !file.path.ends_with(".rs") {
        return;
    }
    let lines = lines(&file.text);
    check_length(file, lines.len(), violations);
    check_unfinished(file, &lines, violations);
    check_texts(file, &lines, violations);
    check_paths(file, &lines, violations);
    check_unsafe(file, &lines, violations);
    let is_module = file.path.contains("/src/") || file.path.contains("/examples/");
    if is_module && !file.text.trim_start().starts_with("//!") {
        violations.push(format!("{}: has no comment that says what it is (`//! ...`)", file.path));
    }
    let is_crate = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
    if is_crate {
        check_manifest(file, violations);
    }
}

fn check_machine_paths(file: &File, violations: &mut Vec<String>) {
    for (index, line) in file.text.lines().enumerate() {
        if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(**path)) {
            violations.push(format!(
                "{}:{}: `{path}` exists on one machine only: use a relative path",
                file.path,
                index + 1
            ));
        }
    }
}

fn check_length(file: &File, length: usize, violations: &mut Vec<String>) {
    let most = if is_test_file(&file.path) { TEST_LINES_MAX } else { LINES_MAX };
    if length > most && !LONGER.iter().any(|(path, _)| *path == file.path) {
        violations.push(format!("{}: {length} lines; split it by subject ({most} at most)", file.path));
    }
}

fn check_unfinished(file: &File, lines: &[Line], violations: &mut Vec<String>) {
    for (index, line) in lines.iter().enumerate() {
        let at = format!("{}:{}", file.path, index + 1);
        if let Some(word) = UNFINISHED.iter().find(|word| has_word(&line.comment, word)) {
            violations.push(format!("{at}: {word}: do it, or make it an issue"));
        }
        if let Some(name) = ["todo!", "dbg!", "unimplemented!"].iter().find(|name| line.code.contains(**name))
        {
            violations.push(format!("{at}: `{name}` is not finished code"));
        }
    }
}

fn check_texts(file: &File, lines: &[Line], violations: &mut Vec<String>) {
    for (index, (text, line)) in file.text.lines().zip(lines).enumerate() {
        if has_gap(text) && !has_gap(&line.code) && !has_gap(&line.comment) {
            violations.push(format!("{}:{}: spaces in the middle of a text", file.path, index + 1));
        }
    }
}

/// Whether a long line has a gap, after which the text continues.
fn has_gap(text: &str) -> bool {
    text.trim_start().split_once(GAP).is_some_and(|(before, behind)| {
        let goes_on = behind.trim_start().starts_with(|next: char| next.is_lowercase());
        goes_on && before.len() >= BEFORE_GAP
    })
}

/// A module belongs to the crate in whose folder it lies; what several need is a crate.
fn check_paths(file: &File, lines: &[Line], violations: &mut Vec<String>) {
    let is_taker = TAKERS.iter().any(|(path, _)| *path == file.path);
    for (index, text) in
        file.text.lines().enumerate().filter(|(index, _)| !lines[*index].code.trim().is_empty())
    {
        let path = text.trim_start().strip_prefix("#[path = \"").and_then(|rest| rest.split('"').next());
        if path.is_some_and(|path| leaves_its_crate(&file.path, path)) && !is_taker {
            violations.push(format!(
                "{}:{}: a module of another crate's folder: make it a crate",
                file.path,
                index + 1
            ));
        }
    }
}

/// Whether a path from a file's folder ends outside its crate.
fn leaves_its_crate(file: &str, path: &str) -> bool {
    let of_crate = match file.split('/').next() {
        Some("crates") => 3,
        Some("examples") => 2,
        _ => 1,
    };
    let below = file.split('/').count().saturating_sub(1 + of_crate);
    path.split('/').filter(|part| *part == "..").count() > below
}

fn check_unsafe(file: &File, lines: &[Line], violations: &mut Vec<String>) {
    let allowed = UNSAFE_CRATES.iter().any(|name| file.path.starts_with(name));
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| has_word(&line.code, "unsafe")) {
        let at = format!("{}:{}", file.path, index + 1);
        if !allowed {
            violations
                .push(format!("{at}: unsafe code belongs in pares-os or pares-log, behind a safe interface"));
        } else if !is_justified(lines, index) && !is_test_file(&file.path) {
            violations.push(format!("{at}: no SAFETY note (or `# Safety` section) says why this is sound"));
        }
    }
}

/// Whether the comment above the statement that holds line `index` has a SAFETY note; for an unsafe function, a
/// `# Safety` section.
fn is_justified(lines: &[Line], index: usize) -> bool {
    let mut above = lines[..index].iter().rev().peekable();
    // The statement or its attributes may begin some lines above.
    let mut skipped = 0;
    while skipped < 4
        && above.peek().is_some_and(|line| line.comment.is_empty() && !line.code.trim().is_empty())
    {
        above.next();
        skipped += 1;
    }
    let comments = above.take_while(|line| !line.comment.is_empty() && line.code.trim().is_empty());
    let own = &lines[index].comment;
    comments
        .map(|line| &line.comment)
        .chain([own])
        .any(|text| text.contains("SAFETY:") || text.contains("# Safety"))
}

fn check_manifest(file: &File, violations: &mut Vec<String>) {
    let folder = file.path.rsplit_once("/src/").expect("a crate's root file").0;
    let manifest = std::fs::read_to_string(crate::root().join(folder).join("Cargo.toml")).unwrap_or_default();
    if !manifest.lines().any(|line| line.starts_with("description = \"") && line.len() > 20) {
        violations.push(format!("{folder}/Cargo.toml: no description"));
    }
    if !manifest.contains("[lints") {
        violations
            .push(format!("{folder}/Cargo.toml: lacks the workspace's lints (`[lints] workspace = true`)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::{file, found};

    fn check_text(path: &str, text: &str) -> Vec<String> {
        found(|violations| check(&file(path, text), violations))
    }

    #[test]
    fn unsafe_code_has_its_places_and_its_notes() {
        let noted = "//! m\n// SAFETY: checked above.\nlet a =\n    unsafe { b };";
        assert!(check_text("crates/base/os/src/x.rs", noted).is_empty());
        assert!(check_text("crates/base/os/src/x.rs", "//! m\nfn f() {\nunsafe { b }\n}").len() == 1);
        assert!(check_text("crates/exchange/book/src/x.rs", noted)[0].contains("belongs in"));
    }

    #[test]
    fn a_module_stays_in_its_crate() {
        let taken = "//! m\n#[path = \"../../store/tests/server.rs\"]\nmod server;\n";
        assert!(check_text("crates/sites/site/tests/sql.rs", taken)[0].contains("of another crate"));
        let own = "//! m\n#[path = \"../../examples/stand_in.rs\"]\nmod stand_in;\n";
        assert!(check_text("crates/broker/web/tests/http/main.rs", own).is_empty());
    }

    #[test]
    fn unfinished_work_is_found_in_comments_and_code_only() {
        let text = format!("//! m\n// {}: later\nconst A: &str = \"{0}\";", UNFINISHED[0]);
        assert_eq!(check_text("crates/exchange/book/src/x.rs", &text).len(), 1);
        assert_eq!(check_text("crates/exchange/book/src/x.rs", "//! m\nfn f() { todo!() }").len(), 1);
    }

    #[test]
    fn a_text_that_has_lost_the_end_of_its_line_is_found() {
        let text = |words: &str| format!("//! m\nconst A: &str = \"{words}{GAP}and so on\";");
        let found = |text: String| check_text("crates/exchange/book/src/x.rs", &text).len();
        let long = "the log is old, or has ".repeat(4) + "lost its end with the";
        assert_eq!(found(text(&long)), 1);
        assert_eq!(found(text("kill site 1 of cluster 0")), 0, "a table");
        assert_eq!(found(format!("//! m\nlet a = 1; // {long}{GAP}and so on")), 0, "no text");
    }

    #[test]
    fn a_file_grows_to_its_limit_and_no_further() {
        let path = "crates/exchange/book/src/x.rs";
        assert!(check_text(path, &format!("//! m{}", "\n".repeat(LINES_MAX - 1))).is_empty());
        assert_eq!(check_text(path, &format!("//! m{}", "\n".repeat(LINES_MAX))).len(), 1);
    }

    #[test]
    fn a_path_of_one_machine_is_found_in_any_file() {
        assert_eq!(check_text("README.md", &format!("see {}me/notes", MACHINE_PATHS[0])).len(), 1);
    }
}
