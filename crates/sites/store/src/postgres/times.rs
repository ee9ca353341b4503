//! Times that a statement would make another of at each site.
//!
//! The server reads `'now'` when it parses, and keeps the time that it was. Each site parses for itself, and old rows that get such a default,
//! or a CHECK that asks for it, would be others at each. It cannot be told from the time that was kept, and a text need not look like it: `$x$now$x$`, `U&'\\006eow'`, `'{"n"ow}'`.
//! So a statement is refused if it has a text that may say such a word, and has brought a constant of a type that can hold a time.

use postgres::GenericClient;

use super::lexer::{SqlToken, split};
use super::{SqlError, sql};

/// Words for times that are others later.
const TIMES: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// Whether this transaction has made an expression with a constant that can be a time, or holds some: of dates and times, arrays, ranges, rows.
const BROUGHT: &str = "
    WITH trees (tree) AS (
        SELECT adbin::text FROM pg_attrdef WHERE xmin = pg_current_xact_id()::xid
        UNION ALL SELECT conbin::text FROM pg_constraint WHERE xmin = pg_current_xact_id()::xid
        UNION ALL SELECT typdefaultbin::text FROM pg_type WHERE xmin = pg_current_xact_id()::xid
        UNION ALL SELECT concat(prosqlbody::text, proargdefaults::text) FROM pg_proc WHERE xmin = pg_current_xact_id()::xid
        UNION ALL SELECT concat(ev_qual::text, ev_action::text) FROM pg_rewrite WHERE xmin = pg_current_xact_id()::xid
        UNION ALL SELECT concat(indexprs::text, indpred::text) FROM pg_index WHERE xmin = pg_current_xact_id()::xid
        UNION ALL SELECT tgqual::text FROM pg_trigger WHERE xmin = pg_current_xact_id()::xid)
    SELECT EXISTS (SELECT FROM trees, regexp_matches(tree, '{CONST :consttype ([0-9]+) ', 'g') m JOIN pg_type t ON t.oid = m[1]::oid
        WHERE t.typcategory IN ('D', 'A', 'R', 'C', 'P'))";

/// Whether a statement, which was carried out in the transaction of `client`, may have brought a time that is another at each site.
pub(super) fn brings_time(statement: &str, client: &mut impl GenericClient) -> Result<bool, SqlError> {
    Ok(may_say_time(statement) && client.query_one(BROUGHT, &[]).map_err(sql)?.get(0))
}

/// Whether a text in it may be read as a word for a time. Those that follow each other are one.
fn may_say_time(statement: &str) -> bool {
    let statements = split(statement);
    let mut tokens = statements.iter().flat_map(|statement| &statement.tokens).peekable();
    let mut coded = [false; 2];
    while let Some(token) = tokens.next() {
        let SqlToken::Text(first) = token else {
            coded = [*token == SqlToken::Sign('&') && coded[1], token.is("U")];
            continue;
        };
        let mut text = first.clone();
        while let Some(SqlToken::Text(more)) = tokens.next_if(|token| matches!(token, SqlToken::Text(_))) {
            text += more;
        }
        if coded[0] || text.contains('\\') || says_time(&text) {
            return true;
        }
        coded = [false; 2];
    }
    false
}

fn says_time(text: &str) -> bool {
    let plain = text.to_lowercase().replace('"', "");
    plain.split(|c: char| !c.is_ascii_alphabetic()).any(|word| TIMES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_times_are_found_however_they_are_written() {
        let texts = [
            "'now'",
            "' Now'",
            "$$today$$",
            "$x$now$x$",
            "'tomorrow 10:00'",
            "'10:00 today'",
            "U&'\\006eow'",
            "u&'!006eow' UESCAPE '!'",
            "E'\\156ow'",
            "'no'\n'w'",
            "'no' -- '\n'w'",
            "E'no'\n'\\167'",
            "'{n\\ow}'",
            "'{\"n\"ow}'",
            "'[now,)'",
        ];
        for text in texts {
            assert!(may_say_time(&format!("ALTER TABLE a ADD b date DEFAULT {text}")), "{text}");
        }
        for statement in [
            "ALTER TABLE now ADD today int",
            "ALTER TABLE a ADD \"now\" text DEFAULT 'knowing nowhere'",
            "ALTER TABLE a ADD b date /* 'now' */ DEFAULT '2026-01-01' -- 'now'",
            "ALTER TABLE a ADD u int CHECK (u & 1 = 0), ADD b date DEFAULT '2026-01-01'",
        ] {
            assert!(!may_say_time(statement), "{statement}");
        }
    }
}
