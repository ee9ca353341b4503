//! What a statement is, as far as it matters here: most pass as they are.

use std::collections::HashMap;
use std::sync::Arc;

use pares_store::postgres::{SqlStatement as Statement, SqlToken as Token};
use pares_wice::Isolation;

use crate::boundary;
use crate::settings::kept;

/// What a transaction is held against, by the server's name: what asks for less than REPEATABLE READ gets that.
pub(crate) fn isolation_named(name: &str) -> Isolation {
    if name == "serializable" { Isolation::Serialisable } else { Isolation::Snapshot }
}

/// How a transaction is to be.
///
/// None: as the session says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) read_only: Option<bool>,
    pub(crate) level: Option<Isolation>,
}

impl Mode {
    /// With what another one leaves open.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { read_only: self.read_only.or(other.read_only), level: self.level.or(other.level) }
    }

    /// As the server reads it behind BEGIN or SET TRANSACTION.
    pub(crate) fn words(self) -> String {
        let level = self.level.map(|level| match level {
            Isolation::Snapshot => "ISOLATION LEVEL REPEATABLE READ",
            Isolation::Serialisable => "ISOLATION LEVEL SERIALIZABLE",
        });
        let access = self.read_only.map(|read_only| if read_only { "READ ONLY" } else { "READ WRITE" });
        level.into_iter().chain(access).collect::<Vec<_>>().join(" ")
    }
}

/// What to do with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Begins a transaction.
    Begin { mode: Mode, tag: &'static str },
    /// Says of one that has begun what it is held against.
    Mode(Mode),
    /// Ends it, and begins the next, if so.
    Commit { chain: bool },
    /// The same, taking it back.
    Rollback { chain: bool },
    /// Goes back to a savepoint.
    BackTo,
    /// Makes or forgets a savepoint.
    Savepoint,
    /// A setting, which lasts if its transaction commits.
    Setting,
    /// Of the session, not of a transaction: forgets what is set or prepared.
    Discard,
    /// Of the session, and changes nothing.
    Session,
    /// Executes what was prepared by that name.
    Execute(String),
    /// The server is to say what is wrong with it.
    Unread,
    /// Changes the schema.
    Schema { tag: String },
    /// Cannot be replicated, and why.
    Refused(&'static str),
    /// Anything else; whether it locks rows that it reads.
    Ordinary { locks: bool },
}

impl Kind {
    /// Whether it ends a transaction.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Self::Commit { .. } | Self::Rollback { .. })
    }

    /// Whether it begins or ends a transaction, or a part of one.
    pub(crate) fn is_boundary(&self) -> bool {
        matches!(self, Self::Begin { .. } | Self::BackTo | Self::Savepoint) || self.ends()
    }

    /// Whether the server can do it outside of a transaction, and changes nothing by it.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self, Self::BackTo | Self::Savepoint | Self::Discard | Self::Session)
    }

    /// Whether it must be seen when it is executed.
    pub(crate) fn is_seen(&self) -> bool {
        !matches!(self, Self::Session | Self::Discard | Self::Execute(_) | Self::Ordinary { .. })
    }
}

/// A statement that a client has prepared.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) first: Option<Token>,
}

impl Known {
    /// One that PREPARE has made, if there is any: it can be executed by its name in the protocol, too, and may do anything that EXECUTE can.
    pub(crate) fn elsewhere() -> Arc<Self> {
        Arc::new(Self { kind: Kind::Execute(String::new()), text: String::new(), first: None })
    }
}

/// Statements and portals, by name.
#[derive(Default)]
pub(crate) struct Prepared {
    pub(crate) statements: HashMap<String, Arc<Known>>,
    pub(crate) portals: HashMap<String, Arc<Known>>,
    /// A message was refused: all is ignored up to a Sync.
    pub(crate) skips: bool,
}

/// So much of a statement says which it is.
const NAMED_CHARS: usize = 60;
pub(crate) const SCHEMA_ALONE: &str =
    "a schema change is ordered among all sites on its own: send it alone, outside a transaction";
pub(crate) const READ_ONLY: &str = "a reader's certificate cannot change data";
pub(crate) const TWO_PHASE: &str = "two-phase commit is not supported: COMMIT is certified by all sites";
const NOTIFY: &str = "LISTEN and NOTIFY are not replicated: connect to the site's PostgreSQL server for them";
const LOCK: &str = "a table lock would hold at one site only: use SELECT ... FOR UPDATE, which is certified";
const UPKEEP: &str = "maintenance is not replicated: connect to the site's PostgreSQL server for it";
const RIGHTS: &str = "roles and privileges are not replicated: grant them at every site's PostgreSQL server";
const TRUNCATE: &str = "TRUNCATE is not captured: use DELETE";
const TEMPORARY: &str = "temporary and unlogged tables are not replicated";
const UNALIKE: &str = "this statement cannot be replicated: only tables, indexes, views, functions, \
                       triggers, types, domains and schemas can be changed, without owners, tablespaces and \
                       row security, under names that do not begin with pares_";
const OWN: &str = "this setting is reserved for the site";
const SAVEPOINT: &str = "the savepoint pares is reserved for the site: use another name";
const ESCAPED: &str = "the site does not read names in U&\"...\": write the name itself";
pub(crate) const EXECUTED: &str = "the site must see the statement that was prepared by this name: send it itself, or execute it by the protocol's messages";
pub(crate) const UNREAD: &str =
    "the server takes this spelling, which the site does not read: write it in another way";
const HOLD: &str = "a cursor WITH HOLD cannot outlive a certified transaction: fetch before COMMIT";

/// What can be made, changed and dropped.
const OBJECTS: [&str; 12] = [
    "TABLE",
    "INDEX",
    "VIEW",
    "FUNCTION",
    "PROCEDURE",
    "TRIGGER",
    "TYPE",
    "DOMAIN",
    "SCHEMA",
    "AGGREGATE",
    "COLUMN",
    "CONSTRAINT",
];
/// Words, one after the other, with which a change of the schema is not the same at each site.
const NOT_ALIKE: [[&str; 2]; 5] = [
    ["OWNER", "TO"],
    ["SCHEMA", "AUTHORIZATION"],
    ["SET", "TABLESPACE"],
    ["INDEX", "CONCURRENTLY"],
    ["LEVEL", "SECURITY"],
];

/// What is said of a statement: which, and why.
pub(crate) fn about(statement: &str, why: &str) -> String {
    let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(NAMED_CHARS) {
        Some((end, _)) => format!("{}...: {why}", &words[..end]),
        None => format!("{words}: {why}"),
    }
}

/// Says what a statement is.
pub(crate) fn kind(statement: &Statement<'_>) -> Kind {
    let tokens = &statement.tokens;
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => word.as_str(),
        _ => "",
    };
    // Blank to a later server only.
    if tokens.contains(&Token::Sign('\u{b}')) {
        return Kind::Unread;
    }
    match boundary::kind(tokens) {
        Some(Kind::BackTo | Kind::Savepoint) if has_escaped_name(tokens) => return Kind::Refused(ESCAPED),
        Some(Kind::BackTo | Kind::Savepoint) if is_own_savepoint(tokens) => return Kind::Refused(SAVEPOINT),
        Some(kind) => return kind,
        None => {}
    }
    if let Some(mode) = boundary::set_transaction(tokens) {
        return Kind::Mode(mode);
    }
    match (word(0), word(1)) {
        ("SET" | "RESET", _) if has_escaped_name(tokens) => Kind::Refused(ESCAPED),
        ("SET" | "RESET", _) if is_own(tokens) => Kind::Refused(OWN),
        ("SET", "LOCAL" | "CONSTRAINTS" | "TRANSACTION") => Kind::Ordinary { locks: false },
        ("SET" | "RESET", _) => Kind::Setting,
        ("DISCARD", _) => Kind::Discard,
        ("EXECUTE", _) => Kind::Execute(tokens.get(1).map(kept).unwrap_or_default()),
        ("SHOW" | "DEALLOCATE" | "UNLISTEN", _) => Kind::Session,
        ("PREPARE", _) if !locks(tokens) => Kind::Session,
        ("LISTEN" | "NOTIFY", _) => Kind::Refused(NOTIFY),
        ("LOCK", _) if !only_reads(tokens) => Kind::Refused(LOCK),
        ("VACUUM" | "ANALYZE" | "REINDEX" | "CLUSTER" | "CHECKPOINT" | "LOAD" | "REFRESH", _) => {
            Kind::Refused(UPKEEP)
        }
        ("GRANT" | "REVOKE" | "REASSIGN", _) => Kind::Refused(RIGHTS),
        ("TRUNCATE", _) => Kind::Refused(TRUNCATE),
        ("DECLARE", _) if follows(tokens, &["WITH", "HOLD"]) => Kind::Refused(HOLD),
        ("CREATE" | "ALTER" | "DROP" | "COMMENT" | "IMPORT" | "SECURITY", _) => schema(tokens),
        _ => Kind::Ordinary { locks: locks(tokens) },
    }
}

/// Whether the savepoint is that to which COMMIT goes back ([`pares_store::postgres::BACK`]).
fn is_own_savepoint(tokens: &[Token]) -> bool {
    let is_own = |token: &Token| token.name().is_some_and(|name| name.eq_ignore_ascii_case("pares"));
    tokens.iter().any(is_own)
}

/// Settings by which statements are cut and captured.
fn is_own(tokens: &[Token]) -> bool {
    let names = |token: &Token, word: &str| token.name().is_some_and(|name| name.eq_ignore_ascii_case(word));
    let is_pares = |pair: &[Token]| names(&pair[0], "pares") && pair[1] == Token::Sign('.');
    let of_pares =
        tokens.windows(2).any(is_pares) && !tokens.iter().any(|token| names(token, "commit_timeout_ms"));
    let single = ["standard_conforming_strings", "session_replication_role"];
    let is_own = |token: &Token| single.iter().any(|name| names(token, name)) || is_prefixed(token, "pares.");
    of_pares || tokens.iter().any(is_own)
}

/// Names that begin as those of the store's own tables do.
fn is_of_store(token: &Token) -> bool {
    is_prefixed(token, "pares_")
}

fn is_prefixed(token: &Token, prefix: &str) -> bool {
    let first = token.name().and_then(|name| name.get(..prefix.len()));
    first.is_some_and(|first| first.eq_ignore_ascii_case(prefix))
}

/// `U&"..."`: a name whose letters are numbers may be any.
fn has_escaped_name(tokens: &[Token]) -> bool {
    let is_one =
        |part: &[Token]| part[0].is("U") && part[1] == Token::Sign('&') && matches!(part[2], Token::Name(_));
    tokens.windows(3).any(is_one)
}

/// `FOR UPDATE`, `FOR NO KEY UPDATE`, `FOR SHARE`, `FOR KEY SHARE`.
fn locks(tokens: &[Token]) -> bool {
    let follows = |token: &Token| ["UPDATE", "NO", "SHARE", "KEY"].iter().any(|word| token.is(word));
    tokens.windows(2).any(|pair| pair[0].is("FOR") && follows(&pair[1]))
}

/// `IN ACCESS SHARE MODE`: what a query locks, too.
fn only_reads(tokens: &[Token]) -> bool {
    let mode = ["IN", "ACCESS", "SHARE", "MODE"];
    tokens.windows(mode.len()).any(|part| part.iter().zip(mode).all(|(token, word)| token.is(word)))
}

/// Whether the second word follows the first anywhere.
fn follows(tokens: &[Token], words: &[&str; 2]) -> bool {
    tokens.windows(2).any(|pair| pair[0].is(words[0]) && pair[1].is(words[1]))
}

fn is_unalike(tokens: &[Token]) -> bool {
    // Behind these stands a name: `RENAME COLUMN owner TO holder`.
    let is_named = |at: usize| {
        ["RENAME", "COLUMN", "CONSTRAINT", "ATTRIBUTE"].iter().any(|word| at > 0 && tokens[at - 1].is(word))
    };
    let is_other = |(at, pair): (usize, &[Token])| {
        NOT_ALIKE.iter().any(|words| pair[0].is(words[0]) && pair[1].is(words[1])) && !is_named(at)
    };
    tokens.windows(2).enumerate().any(is_other) || tokens.iter().any(is_of_store) || has_escaped_name(tokens)
}

fn schema(tokens: &[Token]) -> Kind {
    let words: Vec<&str> = tokens
        .iter()
        .map_while(|token| if let Token::Word(word) = token { Some(word.as_str()) } else { None })
        .collect();
    if words.iter().take(4).any(|word| ["TEMP", "TEMPORARY", "UNLOGGED"].contains(word)) {
        return Kind::Refused(TEMPORARY);
    }
    let passed = ["OR", "REPLACE", "UNIQUE", "ON", "CONSTRAINT"];
    let is_comment = words.first() == Some(&"COMMENT");
    let object =
        words.iter().skip(1).find(|word| !passed.contains(*word) || is_comment && **word == "CONSTRAINT");
    match object {
        Some(object) if OBJECTS.contains(object) && !is_unalike(tokens) => {
            let tag = if is_comment { "COMMENT".into() } else { format!("{} {object}", words[0]) };
            Kind::Schema { tag }
        }
        _ => Kind::Refused(UNALIKE),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pares_store::postgres::split;

    /// What a text's first statement is.
    pub(crate) fn of(text: &str) -> Kind {
        kind(&split(text)[0])
    }

    #[test]
    fn settings_and_queries_are_told_apart() {
        for (text, expected) in [
            ("SET TRANSACTION SNAPSHOT 'a'", Kind::Ordinary { locks: false }),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", Kind::Setting),
            ("SET search_path = a", Kind::Setting),
            ("SET pares.commit_timeout_ms = 5", Kind::Setting),
            ("SET LOCAL search_path = a", Kind::Ordinary { locks: false }),
            ("DISCARD ALL", Kind::Discard),
            ("EXECUTE \"A\" (1)", Kind::Execute("A".into())),
            ("execute A", Kind::Execute("a".into())),
            ("SELECT 'commit'", Kind::Ordinary { locks: false }),
            ("select * from a for no key update", Kind::Ordinary { locks: true }),
            ("PREPARE p AS SELECT 1", Kind::Session),
            ("UNLISTEN *", Kind::Session),
            ("LOCK TABLE a, b IN ACCESS SHARE MODE", Kind::Ordinary { locks: false }),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_replicated_is_refused() {
        for text in [
            "PREPARE TRANSACTION 'a'",
            "COMMIT PREPARED 'a'",
            "LISTEN a",
            "LOCK TABLE a",
            "LOCK TABLE access IN SHARE MODE",
            "VACUUM",
            "TRUNCATE a",
            "GRANT ALL ON a TO b",
            "CREATE TEMP TABLE a (b int)",
            "CREATE UNLOGGED TABLE a (b int)",
            "CREATE ROLE a",
            "CREATE EXTENSION a",
            "CREATE SEQUENCE a",
            "CREATE INDEX CONCURRENTLY a ON b (c)",
            "ALTER TABLE a OWNER TO b",
            "ALTER TABLE a ENABLE ROW LEVEL SECURITY",
            "SET pares.ending = 'yes'",
            "SET standard_conforming_strings = off",
            "DROP TRIGGER pares_insert ON a",
            "CREATE TABLE pares_a (b int PRIMARY KEY)",
            "DROP TABLE \"pares_items\"",
            "ALTER TABLE public.\"pares_tables\" ADD COLUMN z int",
            "COMMENT ON TABLE \"Pares_items\" IS 'x'",
            "DROP TABLE U&\"p\\0061res_items\"",
            "SET \"standard_conforming_strings\" = off",
            "SET \"pares\".ending = 'yes'",
            "SET \"pares.ending\" = 'yes'",
            "DECLARE a CURSOR WITH HOLD FOR SELECT 1",
            "DECLARE a CURSOR WITH HOLD FOR SELECT 1 AS without",
            "SAVEPOINT pares",
            "-- a\rRELEASE SAVEPOINT Pares",
            "ROLLBACK TO \"pares\"",
            "SAVEPOINT U&\"p\\0061res\"",
            "SET LOCAL pares.ending = 'yes'",
            "SET LOCAL standard_conforming_strings = off",
            "SET session_replication_role = replica",
        ] {
            assert!(matches!(of(text), Kind::Refused(_)), "{text}: {:?}", of(text));
        }
    }

    #[test]
    fn changes_of_the_schema_have_their_tags() {
        for (text, tag) in [
            ("create table a (b int primary key)", "CREATE TABLE"),
            ("CREATE UNIQUE INDEX a ON b (c)", "CREATE INDEX"),
            ("CREATE OR REPLACE FUNCTION f() RETURNS int AS $$ x $$ LANGUAGE sql", "CREATE FUNCTION"),
            ("DROP TABLE a", "DROP TABLE"),
            ("ALTER TABLE a RENAME COLUMN owner TO holder", "ALTER TABLE"),
            ("ALTER TABLE a RENAME owner TO holder", "ALTER TABLE"),
            ("COMMENT ON COLUMN a.b IS 'c'", "COMMENT"),
            (
                "CREATE CONSTRAINT TRIGGER a AFTER INSERT ON b FOR EACH ROW EXECUTE FUNCTION f()",
                "CREATE TRIGGER",
            ),
        ] {
            assert_eq!(of(text), Kind::Schema { tag: tag.into() }, "{text}");
        }
    }
}
