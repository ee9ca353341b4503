//! One public type name, one thing.
//!
//! Paths tell the types of two crates apart, so the compiler accepts a dozen types called `Tally`. Readers see the bare name,
//! in a list of imports or a page of documentation, and confuse them. So a group's
//! public types differ by name from each other and from those of every group that it may use.

use std::collections::BTreeMap;

use super::File;
use super::layers::may_use;
use super::purity::is_test_file;
use super::rust::lines;

/// Names that several types may share, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("Args", "clap's: the arguments of a command; each command has one"),
    ("Durability", "the log's, and the simulator's own: a scenario is told in its words and translated once"),
    ("Failure", "a seed that failed: the simulator's two worlds, exchange and sites, are run alike"),
    ("Summary", "what a run did: the simulator's two worlds, exchange and sites, are run alike"),
];

/// A public type.
struct Type {
    name: String,
    group: String,
    /// Its file and line.
    at: String,
}

/// Checks that public types differ by name.
pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    let mut named: BTreeMap<String, Vec<Type>> = BTreeMap::new();
    for found in files.iter().flat_map(types) {
        named.entry(found.name.clone()).or_default().push(found);
    }
    for (name, types) in named.iter().filter(|(name, _)| !is_allowed(name)) {
        for (index, found) in types.iter().enumerate() {
            if let Some(other) = types[..index].iter().find(|other| meet(other, found)) {
                violations.push(format!(
                    "{}: a second public type named `{name}`, after {}; name it for what it is, or make it \
                     `pub(crate)` if no other crate uses it",
                    found.at, other.at
                ));
            }
        }
    }
}

fn is_allowed(name: &str) -> bool {
    ALLOWED.iter().any(|(allowed, _)| *allowed == name)
}

/// Whether some code may use both.
fn meet(one: &Type, other: &Type) -> bool {
    may_use(&one.group, &other.group) || may_use(&other.group, &one.group)
}

fn types(file: &File) -> Vec<Type> {
    let parts: Vec<&str> = file.path.splitn(5, '/').collect();
    let ["crates", group, _, "src", rest] = parts[..] else { return Vec::new() };
    if !rest.ends_with(".rs") || is_test_file(&file.path) {
        return Vec::new();
    }
    let code = lines(&file.text).into_iter().enumerate().filter(|(_, line)| !line.test);
    let named = code.filter_map(|(index, line)| Some((index, declared(&line.code)?.to_owned())));
    named
        .map(|(index, name)| Type {
            name,
            group: group.to_owned(),
            at: format!("{}:{}", file.path, index + 1),
        })
        .collect()
}

/// The public type that a line declares.
fn declared(code: &str) -> Option<&str> {
    let rest = code.trim_start().strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (kind, rest) = rest.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    // A macro's `$name` is not a name.
    (end > 0 && ["struct", "enum", "trait", "union"].contains(&kind)).then_some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::{file, found};

    fn violations(texts: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = texts.iter().map(|(path, text)| file(path, text)).collect();
        found(|violations| check(&files, violations))
    }

    const BOOK: &str = "crates/exchange/book/src/book.rs";
    const LOG: &str = "crates/base/log/src/log.rs";
    const SITE: &str = "crates/sites/site/src/site.rs";

    #[test]
    fn a_name_is_taken_once_in_a_group_and_in_those_it_uses() {
        let venue = "crates/exchange/venue/src/a.rs";
        assert_eq!(violations(&[(BOOK, "pub struct Tick(u8);"), (venue, "pub enum Tick {")]).len(), 1);
        assert!(violations(&[(LOG, "pub trait Tick {"), (BOOK, "pub union Tick {")])[0].contains(BOOK));
    }

    #[test]
    fn groups_that_never_meet_may_share_a_name() {
        assert!(violations(&[(SITE, "pub struct Tick;"), (BOOK, "pub struct Tick;")]).is_empty());
    }

    #[test]
    fn what_no_other_crate_sees_may_have_any_name() {
        let own = "pub(crate) struct Tick;\nstruct Tock;\n#[cfg(test)]\nmod tests { pub struct Tuck; }";
        assert!(
            violations(&[(BOOK, "pub struct Tick;\npub struct Tock;\npub struct Tuck;"), (LOG, own)])
                .is_empty()
        );
    }

    #[test]
    fn a_type_that_a_macro_names_has_no_name_yet() {
        assert!(violations(&[(BOOK, "pub struct $name(u8);"), (LOG, "pub struct $name {")]).is_empty());
    }

    #[test]
    fn every_exception_is_needed() {
        let files = crate::tidy::files().unwrap();
        let found: Vec<Type> = files.iter().flat_map(types).collect();
        for (name, _) in ALLOWED {
            let same: Vec<&Type> = found.iter().filter(|found| found.name == *name).collect();
            let two =
                same.iter().enumerate().any(|(at, one)| same[..at].iter().any(|other| meet(one, other)));
            assert!(two, "`{name}` is on the list and need not be");
        }
    }
}
