//! How many assertions, with the invariant in words, crates that keep state have.
//!
//! A broken invariant that no assertion states becomes a wrong record, and shows days later at another node. What another party can cause is an error; what only
//! a bug of our own can cause stops the process where it is detected. Nobody misses an assertion that was not written, or was removed. So
//! crates that keep state for others have a ratio of assertions to functions that may only rise, up to [`AIM`] (TigerBeetle has about two assertions for
//! each function).
//!
//! Counted are `assert!`, `assert_eq!` and `assert_ne!` that say in a message which invariant it is, and functions with a body; neither in tests.

use super::File;
use super::purity::is_test_file;
use super::rust::lines;

/// The aim for all of these crates: assertions for each thousand functions.
const AIM: usize = 250;

/// What each crate has reached: at least so many assertions for each thousand functions. Raise the figure when a crate has more.
const LEAST: &[(&str, usize)] = &[
    ("crates/broker/front/", 250),
    ("crates/exchange/gateway-role/", 250),
    ("crates/exchange/roles/", 250),
    ("crates/sites/site/", 236),
];

/// The assertions that count, and how many arguments come before the message.
const ASSERTIONS: &[(&str, usize)] = &[("assert!(", 1), ("assert_eq!(", 2), ("assert_ne!(", 2)];

/// Functions and assertions of some code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    functions: usize,
    assertions: usize,
}

impl Count {
    fn per_thousand(self) -> usize {
        self.assertions * 1_000 / self.functions.max(1)
    }
}

/// Checks that no crate has fewer than before.
pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    for (folder, least) in LEAST {
        let all = count_crate(files, folder);
        let (ratio, least) = (all.per_thousand(), (*least).min(AIM));
        let Count { functions, assertions } = all;
        if all.functions > 0 && ratio < least {
            violations.push(format!(
                "{folder}: {assertions} assertions with a message in {functions} functions, 0.{ratio:03} of each; at least 0.{least:03}: \
                 state the invariants of the new functions with `assert!` and a message"
            ));
        }
    }
}

fn count_crate(files: &[File], folder: &str) -> Count {
    let mut all = Count::default();
    for file in files.iter().filter(|file| is_code_of(&file.path, folder)) {
        let Count { functions, assertions } = count(&file.text);
        all.functions += functions;
        all.assertions += assertions;
    }
    all
}

fn is_code_of(path: &str, folder: &str) -> bool {
    let in_crate = path.strip_prefix(folder).unwrap_or_default();
    let is_code = in_crate.starts_with("src/") && in_crate.ends_with(".rs");
    is_code && !is_test_file(path) && !path.ends_with("/testing.rs") && !path.contains("/testing/")
}

/// What a file has outside of its tests.
fn count(text: &str) -> Count {
    let code = lines(text).into_iter().filter(|line| !line.test).map(|line| line.code + "\n");
    let code: String = code.collect();
    let functions = places(&code, "fn ").filter(|behind| has_body(behind)).count();
    let said = |(name, before): &(&'static str, usize)| {
        places(&code, name).filter(|behind| has_message(behind, *before)).count()
    };
    Count { functions, assertions: ASSERTIONS.iter().map(said).sum() }
}

/// The text after each place where `word` begins a word.
fn places<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |before: char| before.is_alphanumeric() || before == '_';
    let begins = move |at: usize| !code[..at].chars().next_back().is_some_and(is_part);
    code.match_indices(word).filter(move |(at, _)| begins(*at)).map(move |(at, _)| &code[at + word.len()..])
}

/// Whether the text after `fn ` is a function with a body, not a declaration in a trait.
fn has_body(behind: &str) -> bool {
    let mut depth = 0_i64;
    for c in behind.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return true,
            ';' if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// Whether an assertion, from behind its parenthesis, has a text after so many arguments.
fn has_message(behind: &str, before: usize) -> bool {
    let (mut depth, mut arguments) = (0_i64, 0);
    for (at, c) in behind.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return false,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                arguments += 1;
                if arguments >= before && behind[at + 1..].trim_start().starts_with('"') {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> (usize, usize) {
        let Count { functions, assertions } = count(text);
        (functions, assertions)
    }

    #[test]
    fn an_assertion_counts_that_says_what_it_is_about() {
        let text =
            "fn f() {\nassert!(a(b, c), \"one\");\nassert_eq!(\n    a,\n    b,\n    \"two {}\", c\n);\n}";
        assert_eq!(counted(text), (1, 2));
        assert_eq!(counted("assert!(a);\nassert!(a(\"b\", \"c\"));\nassert_eq!(a, \"b\");"), (0, 0));
        assert_eq!(counted("debug_assert!(a, \"b\"); // assert!(a, \"b\");"), (0, 0));
    }

    #[test]
    fn a_function_counts_that_has_a_body() {
        assert_eq!(counted("fn f(a: [u8; 2]) -> B\nwhere\n    C: D,\n{}\nfn g(&self) -> [u8; 2];").0, 1);
        assert_eq!(counted("type F = fn (u8);\nlet f = |a: fn(u8)| a;").0, 0);
    }

    #[test]
    fn tests_count_for_nothing() {
        assert_eq!(counted("#[cfg(test)]\nmod tests {\nfn f() { assert!(a, \"b\"); }\n}"), (0, 0));
        for path in ["src/a/tests.rs", "src/testing.rs", "tests/a.rs", "examples/a.rs"] {
            assert!(!is_code_of(&format!("crates/sites/site/{path}"), "crates/sites/site/"), "{path}");
        }
    }

    #[test]
    fn a_crate_has_no_fewer_than_it_had() {
        let (folder, least) = LEAST[0];
        let said_of = |assertions: usize| {
            let text = "fn f() {}\n".repeat(1_000) + &"assert!(a, \"b\");\n".repeat(assertions);
            let mut violations = Vec::new();
            check(&[File { path: format!("{folder}src/a.rs"), text }], &mut violations);
            violations
        };
        assert!(said_of(least).is_empty());
        assert!(said_of(least - 1)[0].contains("state the invariants"));
    }
}
