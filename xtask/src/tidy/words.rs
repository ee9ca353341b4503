//! Words: the field's terms, plain sentences, names that can be said.
//!
//! A project's private language grows by one word at a time, and only newcomers notice. So this list has each such word
//! or phrase, with what to write instead. Help, messages, pages of the servers and errors of the Python client, which users read
//! first, contain none of them. Documents and comments had thousands when the list was made: `xtask/words.txt` says
//! how many each folder may still have, and how many functions may still have long names. A change that lowers a
//! figure writes the new one there; none raises it.

use super::File;
use super::purity::is_test_file;
use super::rust::{Line, has_word, lines};

/// Words and phrases, and what to write instead; each in two pieces, so that this list is not counted.
const WORDS: &[(&str, &str)] = &[
    (concat!("who", "ever"), "name the actor"),
    (concat!("any", "body"), "any client, any process: name the actor"),
    (concat!("some", "body"), "a client, a process: name the actor"),
    (concat!("every", "body"), "all clients, all processes: name the actors"),
    (concat!("is", " told"), "receives; the sender sends, reports, prints"),
    (concat!("are", " told"), "receive; the sender sends, reports, prints"),
    (concat!("was", " told"), "received; the sender sent, reported, printed"),
    (concat!("were", " told"), "received; the sender sent, reported, printed"),
    (concat!("is", " heard"), "arrives, answers"),
    (concat!("who", " comes"), "a new connection, a receiver that joins"),
    (concat!("goes", " on"), "continues"),
    (concat!("go", " on"), "continue"),
    (concat!("went", " on"), "continued"),
    (concat!("an", "ew"), "again, new; a log is rebuilt"),
    (concat!("in", " vain"), "without success, without an answer"),
    (concat!("at", " work"), "open (an order), active (a process)"),
    (concat!("takes", " part"), "participates"),
    (concat!("take", " part"), "participate"),
    (concat!("among the", " living"), "live"),
    (concat!("stands", " still"), "stalls"),
    (concat!("lets itself be", " connected to"), "accepts connections"),
    (concat!("in the", " clear"), "unencrypted"),
    (concat!("to be", " had"), "available"),
    (concat!("passed", " over"), "skipped"),
    (concat!("says", " otherwise"), "differs, contradicts"),
    (concat!("be", "fell"), "happened to, hit"),
    (concat!("bl", "ow"), "fault"),
    (concat!("bl", "ows"), "faults"),
    (concat!("do", "om"), "crash trigger"),
    (concat!("to", "ll"), "kills, losses"),
    (concat!("il", "ls"), "faults"),
];

/// Characters that a function's name has at most: subject, fault, result.
const NAME_MAX: usize = 60;

const RATCHET: &str = "xtask/words.txt";
/// Its line about function names.
const NAMES: &str = "names";

/// Whose messages only developers read: traces of simulations, tables of measurements.
const TRACES: &str = "crates/lab/";

/// What one file has.
#[derive(Debug, Default)]
struct Found {
    /// Line, word, and what to write instead, of what users read first.
    shown: Vec<(usize, &'static str, &'static str)>,
    /// How many are in comments and documents.
    counted: usize,
    /// Lines and names of functions with long names.
    names: Vec<(usize, String)>,
}

/// Checks all files against the list and the ratchet.
pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    let mut names = Vec::new();
    for file in files {
        let found = find(file);
        let path = &file.path;
        violations.extend(
            found.shown.iter().map(|(line, word, instead)| format!("{path}:{line}: `{word}`: {instead}")),
        );
        names.extend(found.names.iter().map(|(line, name)| format!("{path}:{line}: `{name}`")));
        *counts.entry(group(path)).or_default() += found.counted;
    }
    let text = files.iter().find(|file| file.path == RATCHET).map_or("", |file| file.text.as_str());
    for (group, count) in &counts {
        compare(group, *count, allowed(text, group), violations);
    }
    let most = allowed(text, NAMES);
    if names.len() > most {
        violations.extend(names.iter().take(20).map(|name| format!("{name}: longer than {NAME_MAX}")));
    }
    compare(NAMES, names.len(), most, violations);
}

fn compare(group: &str, count: usize, most: usize, violations: &mut Vec<String>) {
    if count > most {
        violations.push(format!("{group}: {count} words to replace, or long names; {most} at most: see WORDS in xtask/src/tidy/words.rs"));
    } else if count < most {
        println!("{RATCHET}: `{group} {most}` can become `{group} {count}`");
    }
}

/// The figure of a group; zero if it has none.
fn allowed(text: &str, group: &str) -> usize {
    let figures = text.lines().filter_map(|line| line.rsplit_once(' '));
    figures.filter(|(name, _)| *name == group).find_map(|(_, figure)| figure.parse().ok()).unwrap_or(0)
}

/// The folder that a file counts for: two deep among the crates, one elsewhere, the file itself at the root.
fn group(path: &str) -> String {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(depth).collect::<Vec<&str>>().join("/")
}

fn find(file: &File) -> Found {
    match file.path.rsplit('.').next() {
        Some("rs") => in_rust(file),
        Some("md") => Found { counted: count(&file.text), ..Found::default() },
        Some("txt") if file.path.ends_with("/config/src/comments.txt") => {
            shown(file.text.lines().map(str::to_owned))
        }
        Some("html") => shown(file.text.lines().map(str::to_owned)),
        Some("js") if file.path.contains("/pages/js/") => shown(file.text.lines().map(quoted)),
        Some("py") if file.path.starts_with("clients/python/pares/") => shown(file.text.lines().map(quoted)),
        _ => Found::default(),
    }
}

fn shown(texts: impl Iterator<Item = String>) -> Found {
    let texts = texts.enumerate();
    Found { shown: texts.flat_map(|(index, text)| words_of(&text, index + 1)).collect(), ..Found::default() }
}

fn count(text: &str) -> usize {
    text.lines().map(|line| words_of(line, 0).len()).sum()
}

fn words_of(text: &str, line: usize) -> Vec<(usize, &'static str, &'static str)> {
    let text = text.to_lowercase();
    WORDS
        .iter()
        .filter(|(word, _)| has_word(&text, word))
        .map(|(word, instead)| (line, *word, *instead))
        .collect()
}

/// The quoted texts of several words on a line of a page's script or of the client; none of a comment.
fn quoted(line: &str) -> String {
    if ["//", "/*", "*", "#", "\"\"\""].iter().any(|mark| line.trim_start().starts_with(mark)) {
        return String::new();
    }
    let mut texts = String::new();
    let mut rest = line;
    while let Some(begin) = rest.find(['\'', '"', '`']) {
        let quote = &rest[begin..=begin];
        let inside = &rest[begin + 1..];
        let Some(end) = inside.find(quote) else { break };
        if inside[..end].contains(' ') {
            texts.push_str(&inside[..end]);
            texts.push('\n');
        }
        rest = &inside[end + 1..];
    }
    texts
}

fn in_rust(file: &File) -> Found {
    let lines = lines(&file.text);
    let is_shown = file.path.starts_with("crates/")
        && !is_test_file(&file.path)
        && !file.path.contains("/examples/")
        && !file.path.starts_with(TRACES);
    let has_help = ["Args", "Parser", "Subcommand", "ValueEnum"]
        .iter()
        .any(|name| lines.iter().any(|line| line.code.contains("derive(") && has_word(&line.code, name)));
    let mut found = Found::default();
    for (index, line) in lines.iter().enumerate() {
        found.names.extend(long_name(line).map(|name| (index + 1, name)));
        let comment = words_of(&line.comment, index + 1);
        if has_help && is_help(&lines, index) {
            found.shown.extend(comment);
        } else {
            found.counted += comment.len();
        }
        let texts = if line.text.contains(' ') { words_of(&line.text, index + 1) } else { Vec::new() };
        match is_shown && !line.test {
            true => found.shown.extend(texts),
            false if is_test_file(&file.path) || line.test => {}
            false => found.counted += texts.len(),
        }
    }
    found
}

/// Whether a line is a comment that clap shows: it documents a field or a variant, and ends without a full stop.
fn is_help(lines: &[Line], index: usize) -> bool {
    let comment = &lines[index].comment;
    if !comment.starts_with('/') || comment.trim_end().ends_with('.') {
        return false;
    }
    let mut behind = lines[index..].iter().map(|line| line.code.trim_start());
    let item = behind.find(|code| !code.is_empty() && !code.starts_with("#[")).unwrap_or("");
    let is_item = |word: &&str| {
        ["fn", "const", "static", "type", "impl", "use", "mod", "struct", "enum", "let"].contains(word)
    };
    !item.split(' ').any(|word| is_item(&word))
}

/// The name of the function that a line declares, if it is long.
fn long_name(line: &Line) -> Option<String> {
    let (before, rest) = line.code.split_once("fn ")?;
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let is_declared = before.is_empty() || before.ends_with([' ', '(']);
    (is_declared && name.len() > NAME_MAX).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::{self, file};

    fn found(path: &str, text: &str) -> (usize, usize) {
        let found = find(&file(path, text));
        (found.shown.len(), found.counted)
    }

    #[test]
    fn a_message_is_shown_and_a_comment_is_counted() {
        let (word, _) = WORDS[4];
        let text = format!("//! The client {word} so.\nfn f() {{ g(\"the client {word} so\") }}");
        assert_eq!(found("crates/exchange/node/src/x.rs", &text), (1, 1));
        assert_eq!(found("crates/exchange/node/tests/x.rs", &text), (0, 1));
        assert_eq!(found("crates/lab/sim/src/x.rs", &text), (0, 2), "a trace");
    }

    #[test]
    fn help_is_shown_and_the_comment_of_a_function_is_not() {
        let (word, _) = WORDS[4];
        let derive = "#[derive(Debug, Args)]\nstruct A {\n";
        let help = format!("{derive}    /// Who {word} of it\n    #[arg(long)]\n    who: u8,\n}}");
        assert_eq!(found("crates/lab/lab/src/x.rs", &help), (1, 0));
        let other = format!("{derive}}}\n/// Who {word} of it\nfn f() {{}}");
        assert_eq!(found("crates/lab/lab/src/x.rs", &other), (0, 1));
    }

    #[test]
    fn pages_and_the_client_are_read_between_quotes() {
        let (word, _) = WORDS[4];
        let text = format!("// it {word}'s so\nsay('it {word} so', \"{}\")", WORDS[0].0);
        assert_eq!(found("crates/doors/api/pages/js/x.js", &text), (1, 0));
        let text = format!("\"\"\"It {word} so.\"\"\"\nraise Lost(\"it {word} so\")");
        assert_eq!(found("clients/python/pares/x.py", &text), (1, 0));
    }

    #[test]
    fn documents_are_counted_by_folder_against_what_they_may_have() {
        let (word, _) = WORDS[4];
        let document = file("docs/x.md", &format!("It {word} once.\nAnd {word} again."));
        let check_with = |figure: &str| {
            let files = [file("docs/x.md", &document.text), file(RATCHET, figure)];
            testing::found(|violations| check(&files, violations)).len()
        };
        assert_eq!((check_with("docs 2"), check_with("docs 1"), check_with("")), (0, 1, 1));
        assert_eq!(group("crates/base/log/src/x.rs"), "crates/base");
        assert_eq!(group("README.md"), "README.md");
    }

    #[test]
    fn a_name_of_a_function_has_a_length_at_most() {
        let text = |length: usize| format!("//! m\nfn {}() {{}}", "a".repeat(length));
        let names = |length: usize| find(&file("crates/base/os/src/x.rs", &text(length))).names.len();
        assert_eq!((names(NAME_MAX), names(NAME_MAX + 1)), (0, 1));
    }
}
