//! Where statements begin and end, and their words.
//!
//! A semicolon may stand in a string, a comment, a dollar-quoted body or a function in SQL; to look for it only is to cut these in two.
//! Read as PostgreSQL reads it (its manual, section 4.1), with `standard_conforming_strings` on.

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlToken {
    /// A key word or name without quotes, in upper case as far as the server folds it.
    Word(String),
    /// A string, with and without a tag of dollars, as it stands between its quotes.
    Text(String),
    /// A name in quotes, as it stands between them.
    Name(String),
    /// A number, a parameter.
    Other,
    /// One character of anything else.
    Sign(char),
}

impl SqlToken {
    /// Whether it is this word.
    pub fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(found) if found == word)
    }

    /// The name that this can be, quoted or not.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Word(name) | Self::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// A statement of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlStatement<'a> {
    /// As it was written, without what ends it.
    pub text: &'a str,
    /// Its parts, without space and comments.
    pub tokens: Vec<SqlToken>,
}

/// What stands between parts. A later server takes `\v` for one more; here it is a sign.
const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

/// The statements of a text; empty ones are left out.
pub fn split(text: &str) -> Vec<SqlStatement<'_>> {
    let mut statements = Vec::new();
    let (mut at, mut start, mut tokens, mut depth) = (0, 0, Vec::new(), Depth::default());
    while at < text.len() {
        let (length, token) = next(&text[at..]);
        let ends = token == Some(SqlToken::Sign(';')) && depth.is_outside();
        if ends {
            push(&mut statements, &text[start..at], &mut tokens);
            (start, depth) = (at + length, Depth::default());
        } else if let Some(token) = token {
            depth.pass(&token, tokens.last());
            tokens.push(token);
        }
        at += length;
    }
    push(&mut statements, &text[start..], &mut tokens);
    statements
}

fn push<'a>(to: &mut Vec<SqlStatement<'a>>, text: &'a str, tokens: &mut Vec<SqlToken>) {
    if !tokens.is_empty() {
        to.push(SqlStatement { text: text.trim_matches(BLANKS), tokens: std::mem::take(tokens) });
    }
}

/// How deep in parentheses, and in a body that begins with `BEGIN ATOMIC`.
#[derive(Default)]
struct Depth {
    parentheses: u32,
    blocks: u32,
}

impl Depth {
    fn is_outside(&self) -> bool {
        self.parentheses == 0 && self.blocks == 0
    }

    fn pass(&mut self, token: &SqlToken, before: Option<&SqlToken>) {
        match token {
            SqlToken::Sign('(') => self.parentheses += 1,
            SqlToken::Sign(')') => self.parentheses = self.parentheses.saturating_sub(1),
            SqlToken::Word(word) => match word.as_str() {
                "ATOMIC" if before.is_some_and(|before| before.is("BEGIN")) => self.blocks += 1,
                "CASE" if self.blocks > 0 => self.blocks += 1,
                "END" => self.blocks = self.blocks.saturating_sub(1),
                _ => {}
            },
            _ => {}
        }
    }
}

/// The next part of `text`, which is not empty: its length, and what it is; space and comments are nothing.
fn next(text: &str) -> (usize, Option<SqlToken>) {
    let mut chars = text.chars();
    let (first, second) = (chars.next().expect("not empty"), chars.next());
    match (first, second) {
        ('-', Some('-')) => (text.find(['\n', '\r']).unwrap_or(text.len()), None),
        ('/', Some('*')) => (comment(text), None),
        ('e' | 'E', Some('\'')) => string(text, 1, true),
        ('b' | 'B' | 'x' | 'X' | 'n' | 'N', Some('\'')) => string(text, 1, false),
        ('\'', _) => string(text, 0, false),
        ('"', _) => {
            let length = quoted(text, '"', false);
            let inner = &text[1..length];
            (length, Some(SqlToken::Name(inner.strip_suffix('"').unwrap_or(inner).to_owned())))
        }
        ('$', _) => dollar(text),
        _ if BLANKS.contains(&first) => (first.len_utf8(), None),
        _ if is_name(first) && !first.is_ascii_digit() => {
            let length = text.find(|c| !is_name(c) && c != '$').unwrap_or(text.len());
            (length, Some(SqlToken::Word(text[..length].to_ascii_uppercase())))
        }
        _ if first.is_ascii_digit() => {
            let length = text.find(|c| !is_name(c) && c != '.').unwrap_or(text.len());
            (length, Some(SqlToken::Other))
        }
        _ => (first.len_utf8(), Some(SqlToken::Sign(first))),
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// A string, with all that continues it.
fn string(text: &str, prefix: usize, escapes: bool) -> (usize, Option<SqlToken>) {
    let (mut start, mut inner) = (prefix, String::new());
    loop {
        let end = start + quoted(&text[start..], '\'', escapes);
        let part = &text[start + 1..end];
        // One that does not end has no quote there.
        inner.push_str(part.strip_suffix('\'').unwrap_or(part));
        match continued(&text[end..]).filter(|_| escapes) {
            Some(length) => start = end + length,
            None => return (end, Some(SqlToken::Text(inner))),
        }
    }
}

/// How far behind a string the next part of it begins: in another line, behind nothing but space and comments to the end of a line. It is read as the first
/// part is.
fn continued(text: &str) -> Option<usize> {
    let (mut at, mut is_below) = (0, false);
    loop {
        let rest = &text[at..];
        match rest.chars().next()? {
            '\'' => return is_below.then_some(at),
            '-' if rest.starts_with("--") => at += rest.find(['\n', '\r'])?,
            c if BLANKS.contains(&c) => {
                is_below |= matches!(c, '\n' | '\r');
                at += 1;
            }
            _ => return None,
        }
    }
}

/// The length of what stands in quotes. A doubled quote does not end it.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && escapes {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    text.len()
}

/// Comments hold comments.
fn comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    text.len()
}

/// `$tag$ ... $tag$`, or a parameter.
fn dollar(text: &str) -> (usize, Option<SqlToken>) {
    let tag = text[1..].find(|c| !is_name(c)).map_or(text.len(), |length| length + 1);
    let is_quote = text[tag..].starts_with('$') && !text[1..].starts_with(|c: char| c.is_ascii_digit());
    if !is_quote {
        return (tag, Some(SqlToken::Other));
    }
    let mark = &text[..=tag];
    let rest = &text[mark.len()..];
    let length = rest.find(mark);
    let end = length.map_or(text.len(), |length| length + 2 * mark.len());
    (end, Some(SqlToken::Text(rest[..length.unwrap_or(rest.len())].to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        split(text).into_iter().map(|statement| statement.text).collect()
    }

    #[test]
    fn a_semicolon_ends_a_statement_only_where_it_is_one() {
        for (text, expected) in [
            ("", &[][..]),
            (" ; ;; ", &[]),
            ("-- only; this\n/* and; /* that; */ */", &[]),
            ("BEGIN; UPDATE a SET b = 'x;''y;' ; COMMIT", &["BEGIN", "UPDATE a SET b = 'x;''y;'", "COMMIT"]),
            (r"SELECT E'a\';' ; SELECT 'a\'; COMMIT", &[r"SELECT E'a\';'", r"SELECT 'a\'", "COMMIT"]),
            (r#"SELECT "a;""b" ; x"#, &[r#"SELECT "a;""b""#, "x"]),
            ("DO $$ BEGIN a; END $$; x", &["DO $$ BEGIN a; END $$", "x"]),
            ("DO $ab$ $$; $a$; $ab$; x", &["DO $ab$ $$; $a$; $ab$", "x"]),
            ("SELECT $1; SELECT a$b$; x", &["SELECT $1", "SELECT a$b$", "x"]),
            (
                "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END; x",
                &[
                    "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN a THEN 1 END; SELECT 2; END",
                    "x",
                ],
            ),
            (
                "CREATE RULE r AS ON INSERT TO a DO (b; c); x",
                &["CREATE RULE r AS ON INSERT TO a DO (b; c)", "x"],
            ),
            ("SELECT E'a' -- b\n 'it\\'s;b'; x", &["SELECT E'a' -- b\n 'it\\'s;b'", "x"]),
            ("SELECT E'a' 'it\\'; x", &["SELECT E'a' 'it\\'", "x"]),
            ("SELECT 'a'\n'it\\'; x", &["SELECT 'a'\n'it\\'", "x"]),
            ("\x0cCOMMIT\u{a0};\u{b}x", &["COMMIT\u{a0}", "\u{b}x"]),
            ("SELECT 'open; COMMIT", &["SELECT 'open; COMMIT"]),
            ("SELECT /* open; COMMIT", &["SELECT /* open; COMMIT"]),
            ("sélect 'ü;'; ö", &["sélect 'ü;'", "ö"]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_read_however_they_are_quoted() {
        let tokens = &split("'it''s'' ' $x$now$x$ $$a'b$$ E'a\\'' '' x'41'")[0].tokens;
        let text = |text: &str| SqlToken::Text(text.into());
        assert_eq!(
            tokens[..],
            [text("it''s'' "), text("now"), text("a'b"), text("a\\'"), text(""), text("41")]
        );
    }

    #[test]
    fn words_are_told_from_what_only_looks_like_them() {
        let tokens = &split("set /* x */ \"commit\" = 'Commit' -- y")[0].tokens;
        let expected = [
            SqlToken::Word("SET".into()),
            SqlToken::Name("commit".into()),
            SqlToken::Sign('='),
            SqlToken::Text("Commit".into()),
        ];
        assert_eq!(tokens[..], expected);
    }
}
