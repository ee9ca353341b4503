//! Documents that must follow the code: links, the crate lists, settings, counters, libraries.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::File;
use super::layers;
use crate::root;

/// The operator's table of settings.
const SETTINGS: &str = "docs/operations/settings.md";
/// The operator's tables of counters.
const COUNTERS_PAGE: &str = "docs/operations/counters.md";
const LIBRARIES: &str = "docs/decisions/0001-libraries.md";

/// Checks all documents.
pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        check_links(file, files, violations);
        check_tests_named(file, files, violations);
        check_programs_run(file, files, violations);
    }
    let names = layers::names();
    let listed = |path: &str, mark: &str| names_after(text_of(files, path), mark);
    compare(
        "docs/architecture.md",
        "crate",
        &names,
        &listed("docs/architecture.md", "### `pares"),
        violations,
    );
    check_settings(files, violations);
    check_counters(files, violations);
    compare(
        LIBRARIES,
        "library",
        &libraries(files),
        &names_after(text_of(files, LIBRARIES), "| `"),
        violations,
    );
}

fn text_of<'a>(files: &'a [File], path: &str) -> &'a str {
    files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str())
}

/// The names in backquotes on lines that begin with `mark`.
fn names_after(text: &str, mark: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with(mark));
    lines.filter_map(|line| line.split('`').nth(1)).map(str::to_owned).collect()
}

fn compare(
    path: &str,
    what: &str,
    there: &BTreeSet<String>,
    listed: &BTreeSet<String>,
    violations: &mut Vec<String>,
) {
    for name in there.difference(listed) {
        violations.push(format!("{path}: {what} `{name}` is missing"));
    }
    for name in listed.difference(there) {
        violations.push(format!("{path}: {what} `{name}` does not exist"));
    }
}

/// A test that a document names exists; `name_*` stands for all whose names begin so.
fn check_tests_named(file: &File, files: &[File], violations: &mut Vec<String>) {
    for (index, line) in file.text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2).filter(|name| is_test_name(name)) {
            let declaration = match name.strip_suffix('*') {
                Some(beginning) => format!("fn {beginning}"),
                None => format!("fn {name}("),
            };
            if !files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(&declaration)) {
                violations.push(format!("{}:{}: there is no test `{name}`", file.path, index + 1));
            }
        }
    }
}

/// The package and the example of a `cargo run -p PACKAGE --example NAME` in a document exist.
fn check_programs_run(file: &File, files: &[File], violations: &mut Vec<String>) {
    for (index, line) in file.text.lines().enumerate() {
        for run in line.split("cargo run ").skip(1) {
            let after = |option: &str| {
                let words = run.split(['`', '#']).next().unwrap_or_default().split_whitespace();
                words.take_while(|word| *word != "--").skip_while(|word| *word != option).nth(1)
            };
            let Some(package) = after("-p") else { continue };
            let is_of = |file: &&File| file.text.contains(&format!("[package]\nname = \"{package}\"\n"));
            let manifest = files.iter().filter(|file| file.path.ends_with("Cargo.toml")).find(is_of);
            let folder = manifest.map(|file| file.path.trim_end_matches("Cargo.toml"));
            let sources = after("--example").map_or_else(
                || vec!["Cargo.toml".to_owned()],
                |name| vec![format!("examples/{name}.rs"), format!("examples/{name}/main.rs")],
            );
            let is_there = |folder: &str| {
                let paths = sources.iter().map(|source| format!("{folder}{source}"));
                paths.into_iter().any(|path| files.iter().any(|file| file.path == path))
            };
            if !folder.is_some_and(is_there) {
                violations.push(format!("{}:{}: there is no `cargo run {run}`", file.path, index + 1));
            }
        }
    }
}

/// Tests are named by behaviour, in five words at least; no field has so many.
fn is_test_name(name: &str) -> bool {
    let is_name =
        name.trim_end_matches('*').chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_name && name.matches('_').count() >= 4
}

/// Every setting of the exchange and of an instrument has a row in the operator's tables, with the default that the code has. Those in `[feed]`
/// and `[day]` are not checked.
fn check_settings(files: &[File], violations: &mut Vec<String>) {
    let page = text_of(files, SETTINGS);
    let documented = names_after(page, "| `");
    for (of, file) in [("SystemConfig", "settings.rs"), ("InstrumentConfig", "instrument.rs")] {
        let path = format!("crates/exchange/config/src/{file}");
        let settings = settings(text_of(files, &path), of);
        if settings.is_empty() {
            violations.push(format!("{path}: `{of}` is gone; correct xtask/src/tidy/documents.rs"));
        }
        let comments = text_of(files, COMMENTS);
        for Setting { name, default } in settings {
            if of == "SystemConfig" && !comments.lines().any(|line| line.starts_with(&format!("{name}: "))) {
                violations.push(format!("{COMMENTS}: setting `{name}` has no comment"));
            }
            let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let told = row.and_then(|row| row.split('|').nth(2)).map(str::trim).unwrap_or_default();
            if !documented.contains(&name) {
                violations.push(format!("{SETTINGS}: setting `{name}` of {of} is missing"));
            } else if default.as_ref().is_some_and(|default| default != told) {
                let default = default.unwrap_or_default();
                violations.push(format!("{SETTINGS}: `{name}` is {default} by default, not {told}"));
            }
        }
    }
}

/// Where the comments of a new configuration file are.
const COMMENTS: &str = "crates/exchange/config/src/comments.txt";

/// A setting, and its default if that is a number or a truth value.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    name: String,
    default: Option<String>,
}

/// The public fields of a struct, with the values that a literal of it, further below, gives them.
fn settings(text: &str, of: &str) -> Vec<Setting> {
    let head = format!("pub struct {of} {{");
    let rest = text.split_once(&head).map_or("", |(_, rest)| rest);
    let (body, rest) = rest.split_once("\n}").unwrap_or((rest, ""));
    let before = std::iter::once("").chain(body.lines());
    let fields = before.zip(body.lines()).filter_map(|(before, line)| {
        let name = line.trim().strip_prefix("pub ")?.split_once(':')?.0;
        // A file without the field then means another value, which the field's comment names.
        let unsaid = before.trim().starts_with("#[serde(default =");
        Some((name, if unsaid { None } else { plain_value(rest, name) }))
    });
    fields.map(|(name, default)| Setting { name: name.to_owned(), default }).collect()
}

/// The value of a field in a literal: a number, one shifted left, or a truth value.
fn plain_value(text: &str, field: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("\n            {field}: "))?;
    let value = rest.split_once(",\n")?.0.replace('_', "");
    if let Some((number, by)) = value.split_once(" << ") {
        return Some((number.parse::<u64>().ok()? << by.parse::<u32>().ok()?).to_string());
    }
    (value.parse::<i64>().is_ok() || value.parse::<bool>().is_ok()).then_some(value)
}

/// Every counter that a node publishes has a row in the operator's tables.
fn check_counters(files: &[File], violations: &mut Vec<String>) {
    let documented = names_after(text_of(files, COUNTERS_PAGE), "| `");
    // The counters of a venue's watch are not for people.
    let is_node = |file: &&File| {
        ["crates/exchange/roles/src/", "crates/exchange/gateway-role/src/", "crates/feed/"]
            .iter()
            .any(|folder| file.path.starts_with(folder))
            && file.text.contains(COUNTERS)
            && !file.path.ends_with("watch.rs")
    };
    let nodes: Vec<&File> = files.iter().filter(is_node).collect();
    if nodes.len() < 6 {
        violations.push(
            "crates: a gateway, a venue, a recorder, a publisher, a replayer and a member's server each have `counters!`"
                .into(),
        );
    }
    for node in nodes {
        for counter in counters(&node.text).into_iter().filter(|counter| !documented.contains(counter)) {
            violations.push(format!("{COUNTERS_PAGE}: counter `{counter}` of {} is missing", node.path));
        }
    }
}

/// Where a node's counters are named.
const COUNTERS: &str = "\ncounters! {\n";

/// The names of a node's counters.
fn counters(text: &str) -> Vec<String> {
    let (_, rest) = text.split_once(COUNTERS).unwrap_or_default();
    let lines = rest.lines().take_while(|line| *line != "}");
    lines.filter_map(|line| quoted(line.trim().split_once(' ')?.1)).collect()
}

/// The quoted text at the beginning of `text`.
fn quoted(text: &str) -> Option<String> {
    Some(text.strip_prefix('"')?.split_once('"')?.0.to_owned())
}

/// The libraries named in the root manifest.
fn libraries(files: &[File]) -> BTreeSet<String> {
    let manifest = text_of(files, "Cargo.toml");
    let section = manifest.split_once("[workspace.dependencies]").map_or("", |(_, rest)| rest);
    let section = section.split_once("\n[").map_or(section, |(section, _)| section);
    let names = section.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
    names.filter(|name| !name.starts_with('#') && !name.starts_with("pares-")).map(str::to_owned).collect()
}

fn check_links(file: &File, files: &[File], violations: &mut Vec<String>) {
    for (number, target) in links(&file.text) {
        let is_elsewhere = ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme));
        if !is_elsewhere && let Err(why) = follow(&file.path, &target, files) {
            violations.push(format!("{}:{number}: link to `{target}`: {why}", file.path));
        }
    }
}

/// The targets of `[text](target)`, with line numbers, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Odd pieces are between backquotes, except that a link's text may be code: `[`x`](y)` leaves `](y)`.
        let outside: String = line.split('`').step_by(2).collect();
        for piece in outside.split("](").skip(1) {
            if let Some((target, _)) = piece.split_once(')') {
                found.push((index + 1, target.to_owned()));
            }
        }
    }
    found
}

fn follow(from: &str, target: &str, files: &[File]) -> Result<(), &'static str> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { PathBuf::from(from) } else { resolve(from, path) };
    if !root().join(&path).exists() {
        return Err("there is no such file");
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let text = text_of(files, &path.to_string_lossy());
    match headings(text).contains(anchor) {
        true => Ok(()),
        false => Err("there is no such heading"),
    }
}

/// A relative path seen from the root.
fn resolve(from: &str, target: &str) -> PathBuf {
    let mut path = Path::new(from).parent().unwrap_or(Path::new("")).to_path_buf();
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// The anchors of a document's headings, as they are made for the web.
fn headings(text: &str) -> BTreeSet<String> {
    let titles =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let keep = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    titles
        .map(|title| title.to_lowercase().chars().filter(keep).collect::<String>().replace(' ', "-"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::{file, found};

    #[test]
    fn links_are_found_outside_code() {
        let text = "a [b](c.md) `[d](e)`\n```\n[f](g)\n```\n[`h`](i#j)";
        assert_eq!(links(text), [(1, "c.md".to_owned()), (5, "i#j".to_owned())]);
    }

    #[test]
    fn links_are_seen_from_where_they_stand() {
        assert_eq!(resolve("docs/decisions/x.md", "../protocols/log.md"), Path::new("docs/protocols/log.md"));
        assert_eq!(resolve("README.md", "docs/x.md"), Path::new("docs/x.md"));
    }

    #[test]
    fn a_heading_is_an_anchor() {
        assert!(headings("## What dies, and `what` then?").contains("what-dies-and-what-then"));
    }

    #[test]
    fn fields_and_counters_are_read_from_the_code() {
        let text = "pub struct A {\n    /// x\n    pub b: u8,\n    pub d: B,\n    c: u8,\n}\n        A {\n            b: 1 << 4,\n            d: B,\n";
        let setting = |name: &str, default: Option<&str>| Setting {
            name: name.into(),
            default: default.map(Into::into),
        };
        assert_eq!(settings(text, "A"), [setting("b", Some("16")), setting("d", None)]);
        let text = "\ncounters! {\n    X \"x_y\" \"what\"\n    Z \"z\" \"what\"\n}\n";
        assert_eq!(counters(text), ["x_y", "z"]);
    }

    #[test]
    fn a_test_named_as_proof_must_exist() {
        let files = [
            file("a.rs", "fn a_torn_tail_is_cut() {}"),
            file("a.md", "`a_torn_tail_is_cut`, `a_torn_tail_*` and `session_in_flight_max`"),
            file("a.md", "`a_torn_tail_is_kept`"),
        ];
        let named = |page: usize| found(|violations| check_tests_named(&files[page], &files, violations));
        assert_eq!(named(1), [] as [&str; 0]);
        assert_eq!(named(2).len(), 1);
    }

    #[test]
    fn a_program_that_a_document_runs_must_exist() {
        let files = [
            file("a/Cargo.toml", "[package]\nname = \"a\"\n"),
            file("a/examples/b.rs", ""),
            file("a.md", "`cargo run --release -p a`, `cargo run -p a --example b -- --example c`"),
            file("b.md", "cargo run -p a --example c # ours\ncargo run -p b"),
        ];
        let run = |page: usize| found(|violations| check_programs_run(&files[page], &files, violations));
        assert_eq!(run(2), [] as [&str; 0]);
        assert_eq!(run(3).len(), 2, "{:?}", run(3));
    }

    #[test]
    fn libraries_are_ours_not() {
        let text = "[workspace.dependencies]\npares-types = { }\n# c = d\nclap = { }\nlibc = \"0\"\n\n[profile.x]\na = 1";
        assert_eq!(libraries(&[file("Cargo.toml", text)]), ["clap", "libc"].map(str::to_owned).into());
    }
}
