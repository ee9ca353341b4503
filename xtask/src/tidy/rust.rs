//! Just enough of Rust's grammar to tell code from comments, strings and tests.
//!
//! Searching the text would find `unsafe` in comments and `HashMap` in tests. A parser would be a dependency
//! larger than this crate. So one pass over the characters separates code, comments and strings, line by line.

/// One line of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The code, with strings emptied and comments removed.
    pub(super) code: String,
    /// The text of comments on it.
    pub(super) comment: String,
    /// The texts of strings on it.
    pub(super) text: String,
    /// Whether it belongs to a `#[cfg(test)]` item.
    pub(super) test: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// Nested this deep.
    BlockComment(u32),
    /// Ended by a quote and this many hashes; with none, a backslash escapes.
    Text {
        hashes: usize,
        raw: bool,
    },
}

/// The lines of a source file.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        if chars[at] == '\n' {
            lines.push(Line::default());
            state = if state == State::LineComment { State::Code } else { state };
            at += 1;
            continue;
        }
        let line = lines.last_mut().expect("starts with one");
        let (taken, next) = match state {
            State::Code => code(&chars[at..], line),
            State::LineComment => comment(chars[at], line),
            State::BlockComment(depth) => block_comment(&chars[at..], depth, line),
            State::Text { hashes, raw } => in_text(&chars[at..], hashes, raw, line),
        };
        state = next.unwrap_or(state);
        at += taken;
    }
    mark_tests(&mut lines);
    lines
}

/// How many characters were read, and the next state if it changes.
type Step = (usize, Option<State>);

fn code(rest: &[char], line: &mut Line) -> Step {
    if rest.starts_with(&['/', '/']) {
        return (2, Some(State::LineComment));
    }
    if rest.starts_with(&['/', '*']) {
        return (2, Some(State::BlockComment(1)));
    }
    if let Some((taken, hashes)) = raw_text(rest, line) {
        line.code.push('"');
        return (taken, Some(State::Text { hashes, raw: true }));
    }
    line.code.push(rest[0]);
    if rest[0] == '"' {
        return (1, Some(State::Text { hashes: 0, raw: false }));
    }
    // A character in quotes may be a quote; a lifetime has no second quote near.
    match rest {
        ['\'', '\\', _, '\'', ..] => (4, None),
        ['\'', '\\', ..] => (rest.iter().skip(1).position(|&c| c == '\'').map_or(1, |end| end + 2), None),
        ['\'', _, '\'', ..] => (3, None),
        _ => (1, None),
    }
}

/// The beginning of `r"`, `r#"`, `br#"` and so on: its length and number of hashes.
fn raw_text(rest: &[char], line: &Line) -> Option<(usize, usize)> {
    let inside_word = line.code.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
    let after_b = usize::from(rest[0] == 'b');
    if inside_word || rest.get(after_b) != Some(&'r') {
        return None;
    }
    let hashes = rest[after_b + 1..].iter().take_while(|&&c| c == '#').count();
    let quote = after_b + 1 + hashes;
    (rest.get(quote) == Some(&'"')).then_some((quote + 1, hashes))
}

fn comment(c: char, line: &mut Line) -> Step {
    line.comment.push(c);
    (1, None)
}

fn block_comment(rest: &[char], depth: u32, line: &mut Line) -> Step {
    match rest {
        ['*', '/', ..] if depth == 1 => (2, Some(State::Code)),
        ['*', '/', ..] => (2, Some(State::BlockComment(depth - 1))),
        ['/', '*', ..] => (2, Some(State::BlockComment(depth + 1))),
        _ => comment(rest[0], line),
    }
}

fn in_text(rest: &[char], hashes: usize, raw: bool, line: &mut Line) -> Step {
    if !raw && rest[0] == '\\' {
        // An escaped line end is left to the loop, which counts lines.
        return (if rest.get(1) == Some(&'\n') { 1 } else { 2 }, None);
    }
    let closes = rest[0] == '"' && rest[1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes;
    if closes {
        line.code.push('"');
        line.text.push('\n');
        return (1 + hashes, Some(State::Code));
    }
    line.text.push(rest[0]);
    (1, None)
}

/// Marks the item after each `#[cfg(test)]`: up to its closing brace, or to a semicolon before any brace.
fn mark_tests(lines: &mut [Line]) {
    let mut at = 0;
    while at < lines.len() {
        if lines[at].code.contains("#[cfg(test)]") {
            at = mark_item(lines, at);
        }
        at += 1;
    }
}

/// Marks one item and says on which line it ends.
fn mark_item(lines: &mut [Line], from: usize) -> usize {
    let mut depth = 0_i64;
    for (at, line) in lines.iter_mut().enumerate().skip(from) {
        line.test = true;
        let code = if at == from { line.code.replace("#[cfg(test)]", "") } else { line.code.clone() };
        for c in code.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => return at,
                '}' => depth -= 1,
                ';' if depth == 0 => return at,
                _ => {}
            }
        }
    }
    lines.len() - 1
}

/// Whether `word` stands in `code` as a word of its own.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(is_part);
        let after = code[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        assert_eq!(code_of("let a = 1; // unsafe\n/* x /* y */ z */b"), ["let a = 1; ", "b"]);
        assert_eq!(code_of(r#"f("un\"safe") + g"#), [r#"f("") + g"#]);
        assert_eq!(code_of("f(r#\"un\"safe\"#) + br\"\\\""), ["f(\"\") + \"\""]);
    }

    #[test]
    fn a_quoted_quote_opens_no_string() {
        assert_eq!(code_of("m('\"') + f(\"x\")"), ["m(') + f(\"\")"]);
        assert_eq!(code_of("fn f<'a>(x: &'a str) // c"), ["fn f<'a>(x: &'a str) "]);
    }

    #[test]
    fn a_string_over_lines_keeps_their_number() {
        assert_eq!(code_of("\"a\\\n b\"\nc").len(), 3);
    }

    #[test]
    fn test_items_are_marked_to_their_end() {
        let text = "a\n#[cfg(test)]\nmod tests {\n  fn f() {}\n}\nb\n#[cfg(test)]\nmod t;\nc";
        let tests: Vec<bool> = lines(text).iter().map(|line| line.test).collect();
        assert_eq!(tests, [false, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn a_word_is_not_part_of_another() {
        assert!(has_word("x: f64,", "f64"));
        assert!(!has_word("as_f64()", "f64"));
    }
}
