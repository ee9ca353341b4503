//! What rules crates must not name: clocks, threads, files, sockets, randomness, floats, hash maps. Nor must roles, except the
//! types of files' errors and of time (`std::io`, `Duration`), and floats.
//!
//! `layers` keeps such things out as libraries, but the standard library has them all. Two replicas that
//! apply the same requests must hold the same state to the last bit, on any machine; a clock read in the wrong
//! place causes a divergence months later that nobody can reproduce.

use super::File;
use super::layers::{CRATES, is_rules};
use super::rust::{Line, has_word, lines};

/// What must not appear, and what to do instead.
const BANNED: &[(&str, &str)] = &[
    ("Instant", "time is data: take a Timestamp as an argument"),
    ("SystemTime", "time is data: take a Timestamp as an argument"),
    ("std::time", "time is data: take a Timestamp as an argument"),
    ("std::thread", "rules run where their caller runs them"),
    ("std::fs", "files belong to an edge crate"),
    ("std::net", "sockets belong to an edge crate"),
    ("std::io", "I/O belongs to an edge crate"),
    ("std::process", "processes belong to pares-node"),
    ("std::env", "settings arrive in constructors"),
    ("f32", "floating point differs between machines: use integers (Price, Quantity)"),
    ("f64", "floating point differs between machines: use integers (Price, Quantity)"),
    ("HashMap", "its order is random: use BTreeMap or an index of your own"),
    ("HashSet", "its order is random: use BTreeSet or an index of your own"),
    ("RandomState", "randomness arrives as a seed in a constructor"),
];

/// What roles must not name: their `World` offers it.
const BANNED_IN_ROLES: &[&str] = &[
    "Instant",
    "SystemTime",
    "std::thread",
    "std::fs",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::process",
    "std::env",
    "HashMap",
    "HashSet",
    "RandomState",
    "catch_unwind",
];
const ROLES: &str = "crates/exchange/roles/";

/// Files whose hash maps are only looked up by key, so that their order affects nothing.
const LOOKED_UP_ONLY: &[&str] = &["crates/exchange/gateway/src/sessions.rs"];

/// The crate whose clippy settings all rules crates copy.
const MODEL: &str = "crates/exchange/types";

/// What would iterate such a map.
const ITERATION: &[&str] =
    &[".iter()", ".iter_mut()", ".keys()", ".values()", ".values_mut()", ".drain(", ".into_iter()", "for ("];

/// Checks the code, not the tests, of a rules crate.
pub(super) fn check(file: &File, violations: &mut Vec<String>) {
    check_roles(file, violations);
    let of_rules = CRATES.iter().filter(|place| is_rules(place.name));
    let Some(in_crate) =
        of_rules.filter_map(|place| file.path.strip_prefix(&place.folder())?.strip_prefix('/')).next()
    else {
        return;
    };
    let is_code = in_crate.starts_with("src/") && in_crate.ends_with(".rs") && !is_test_file(in_crate);
    if !is_code {
        return;
    }
    let looked_up = LOOKED_UP_ONLY.contains(&file.path.as_str());
    for (index, line) in lines(&file.text).iter().enumerate().filter(|(_, line)| !line.test) {
        for found in banned(line, looked_up) {
            violations.push(format!("{}:{}: {found}", file.path, index + 1));
        }
    }
}

/// Checks that a role touches the world only through it.
fn check_roles(file: &File, violations: &mut Vec<String>) {
    let Some(in_crate) = file.path.strip_prefix(ROLES) else { return };
    let is_code = in_crate.starts_with("src/") && in_crate.ends_with(".rs") && !is_test_file(in_crate);
    if !is_code || in_crate == "src/testing.rs" {
        return;
    }
    for (index, line) in lines(&file.text).iter().enumerate().filter(|(_, line)| !line.test) {
        for word in BANNED_IN_ROLES.iter().filter(|word| has_word(&line.code, word)) {
            let at = format!("{}:{}", file.path, index + 1);
            violations.push(format!("{at}: `{word}`: a role touches the world through `World` only"));
        }
    }
}

/// Files that hold nothing but tests.
pub(super) fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.starts_with("tests/")
}

fn banned(line: &Line, looked_up: bool) -> Vec<String> {
    let words = BANNED.iter().filter(|(word, _)| has_word(&line.code, word));
    let words = words.filter(|(word, _)| !(looked_up && *word == "HashMap"));
    let mut found: Vec<String> = words.map(|(word, instead)| format!("`{word}`: {instead}")).collect();
    if looked_up && ITERATION.iter().any(|iteration| line.code.contains(iteration)) {
        found.push("iterates in a file whose hash maps are looked up only; keep an ordered index".into());
    }
    found
}

/// The clippy settings of rules crates. Clippy reads the nearest file only, so each has a whole copy.
pub(super) fn check_clippy_files(files: &[File], violations: &mut Vec<String>) {
    let text_of = |folder: &str| {
        let path = format!("{folder}/clippy.toml");
        files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    };
    let Some(model) = text_of(MODEL) else {
        violations.push(format!("{MODEL}/clippy.toml: missing"));
        return;
    };
    for place in CRATES.iter().filter(|place| is_rules(place.name)) {
        let folder = place.folder();
        if text_of(&folder) != Some(model) && place.name != "pares-gateway" {
            violations.push(format!(
                "{folder}/clippy.toml: must equal that of {MODEL} (clippy does not merge settings)"
            ));
        }
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
    fn clock_refused_in_rules_crate_allowed_at_edge() {
        let text = "fn f() { Instant::now(); }";
        assert_eq!(check_text("crates/exchange/venue/src/shard.rs", text).len(), 1);
        assert!(check_text("crates/exchange/node/src/duty.rs", text).is_empty());
    }

    #[test]
    fn a_role_that_opens_a_file_by_itself_is_refused() {
        let text = "fn f() { std::fs::read(p); }";
        assert_eq!(check_text("crates/exchange/roles/src/tail.rs", text).len(), 1);
        assert!(check_text("crates/exchange/roles/src/testing.rs", text).is_empty());
    }

    #[test]
    fn tests_comments_and_strings_may_name_anything() {
        let text =
            "// HashMap\nconst A: &str = \"f64\";\n#[cfg(test)]\nmod tests { use std::time::Instant; }";
        assert!(check_text("crates/exchange/book/src/book.rs", text).is_empty());
        assert!(check_text("crates/exchange/book/tests/book/main.rs", "f64").is_empty());
    }

    #[test]
    fn a_hash_map_that_is_looked_up_may_not_be_iterated() {
        let path = "crates/exchange/gateway/src/sessions.rs";
        assert!(check_text(path, "map: HashMap<A, B>; map.get(&a)").is_empty());
        assert_eq!(check_text(path, "self.sessions.values().count()").len(), 1);
    }
}
