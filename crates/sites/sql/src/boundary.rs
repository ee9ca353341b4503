//! Statements that begin and end transactions, by the server's grammar (its `gram.y`, `TransactionStmt`).
//!
//! What only begins as one of them does is none: `ROLLBACK a` is no ROLLBACK. The server is asked, so that its own 42601 comes back.

use pares_store::postgres::SqlToken as Token;
use pares_wice::Isolation;

use crate::statement::{Kind, Mode, TWO_PHASE};

/// What of a statement has not been read yet.
struct Rest<'a>(&'a [Token]);

impl Rest<'_> {
    /// Reads these words, if they come next.
    fn takes(&mut self, words: &[&str]) -> bool {
        let next = self.0.get(..words.len());
        let is_next = next.is_some_and(|next| next.iter().zip(words).all(|(token, word)| token.is(word)));
        if is_next {
            self.0 = &self.0[words.len()..];
        }
        is_next
    }

    fn work(&mut self) {
        let _ = self.takes(&["WORK"]) || self.takes(&["TRANSACTION"]);
    }

    /// Reads modes to the end, of which the last counts. DEFERRABLE has no effect here.
    fn modes(&mut self) -> Option<Mode> {
        let mut mode = Mode::default();
        while !self.0.is_empty() {
            self.mode(&mut mode)?;
            if let [Token::Sign(','), _, ..] = self.0 {
                self.0 = &self.0[1..];
            }
        }
        Some(mode)
    }

    fn mode(&mut self, mode: &mut Mode) -> Option<()> {
        if self.takes(&["ISOLATION", "LEVEL"]) {
            mode.level = Some(self.level()?);
        } else if self.takes(&["READ", "ONLY"]) {
            mode.read_only = Some(true);
        } else if self.takes(&["READ", "WRITE"]) {
            mode.read_only = Some(false);
        } else if !self.takes(&["NOT", "DEFERRABLE"]) && !self.takes(&["DEFERRABLE"]) {
            return None;
        }
        Some(())
    }

    fn level(&mut self) -> Option<Isolation> {
        let lower: [&[&str]; 3] = [&["READ", "UNCOMMITTED"], &["READ", "COMMITTED"], &["REPEATABLE", "READ"]];
        if self.takes(&["SERIALIZABLE"]) {
            return Some(Isolation::Serialisable);
        }
        lower.iter().any(|words| self.takes(words)).then_some(Isolation::Snapshot)
    }

    /// Reads how a transaction ends: whether with the next one.
    fn chain(&mut self) -> Option<bool> {
        self.work();
        let chain = self.takes(&["AND", "CHAIN"]);
        if !chain {
            self.takes(&["AND", "NO", "CHAIN"]);
        }
        self.0.is_empty().then_some(chain)
    }

    /// Reads the name of a savepoint, at the end, behind these words and that one.
    fn savepoint(&mut self) -> bool {
        if let [_, _, ..] = self.0 {
            self.takes(&["SAVEPOINT"]);
        }
        matches!(self.0, [Token::Word(_) | Token::Name(_)] | [_, Token::Sign('&'), Token::Name(_)])
    }

    fn prepared(&self) -> bool {
        matches!(self.0, [Token::Text(_)])
    }
}

/// What a statement does that begins with a word of transactions; none if it begins with another one.
pub(crate) fn kind(tokens: &[Token]) -> Option<Kind> {
    let Token::Word(first) = tokens.first()? else { return None };
    let mut rest = Rest(&tokens[1..]);
    let kind = match first.as_str() {
        "BEGIN" => {
            rest.work();
            rest.modes().map(|mode| Kind::Begin { mode, tag: "BEGIN" })
        }
        "START" if !rest.takes(&["TRANSACTION"]) => None,
        "START" => rest.modes().map(|mode| Kind::Begin { mode, tag: "START TRANSACTION" }),
        "PREPARE" if !rest.takes(&["TRANSACTION"]) => return None,
        "PREPARE" => rest.prepared().then_some(Kind::Refused(TWO_PHASE)),
        "COMMIT" | "ROLLBACK" if rest.takes(&["PREPARED"]) => {
            rest.prepared().then_some(Kind::Refused(TWO_PHASE))
        }
        "COMMIT" | "END" => rest.chain().map(|chain| Kind::Commit { chain }),
        "ROLLBACK" if is_back_to(tokens) => Some(Kind::BackTo),
        "ROLLBACK" | "ABORT" => rest.chain().map(|chain| Kind::Rollback { chain }),
        "SAVEPOINT" | "RELEASE" => Some(Kind::Savepoint),
        _ => return None,
    };
    Some(kind.unwrap_or(Kind::Unread))
}

fn is_back_to(tokens: &[Token]) -> bool {
    let mut rest = Rest(&tokens[1..]);
    rest.work();
    rest.takes(&["TO"]) && rest.savepoint()
}

/// The modes of `SET TRANSACTION`.
pub(crate) fn set_transaction(tokens: &[Token]) -> Option<Mode> {
    let mut rest = Rest(tokens);
    let is_one = rest.takes(&["SET"]) && {
        let _ = rest.takes(&["LOCAL"]) || rest.takes(&["SESSION"]);
        rest.takes(&["TRANSACTION"]) && !rest.0.is_empty()
    };
    if is_one { rest.modes() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::tests::of;

    #[test]
    fn whole_statements_are_read_as_the_server_does() {
        let begin = |read_only, level| Kind::Begin { mode: Mode { read_only, level }, tag: "BEGIN" };
        let (snapshot, serialisable) = (Some(Isolation::Snapshot), Some(Isolation::Serialisable));
        for (text, expected) in [
            ("begin", begin(None, None)),
            ("BEGIN WORK READ WRITE", begin(Some(false), None)),
            ("begin transaction isolation level serializable", begin(None, serialisable)),
            ("BEGIN READ ONLY, READ WRITE NOT DEFERRABLE", begin(Some(false), None)),
            ("BEGIN ISOLATION LEVEL READ UNCOMMITTED, DEFERRABLE", begin(None, snapshot)),
            (
                "/* a */ START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
                Kind::Begin {
                    mode: Mode { read_only: Some(true), level: snapshot },
                    tag: "START TRANSACTION",
                },
            ),
            (
                "SET LOCAL TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED",
                Kind::Mode(Mode { read_only: Some(true), level: snapshot }),
            ),
            ("END WORK", Kind::Commit { chain: false }),
            ("COMMIT TRANSACTION AND CHAIN", Kind::Commit { chain: true }),
            ("commit and no chain", Kind::Commit { chain: false }),
            ("ABORT", Kind::Rollback { chain: false }),
            ("ROLLBACK WORK AND CHAIN", Kind::Rollback { chain: true }),
            ("ROLLBACK WORK TO SAVEPOINT a", Kind::BackTo),
            ("ROLLBACK TO \"A\"", Kind::BackTo),
            ("ROLLBACK TO SAVEPOINT", Kind::BackTo),
            ("RELEASE a", Kind::Savepoint),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_begins_so_is_left_to_the_server() {
        for text in [
            "BEGIN FOO",
            "BEGIN READONLY",
            "BEGIN READ",
            "BEGIN ISOLATION LEVEL",
            "BEGIN ISOLATION LEVEL SERIALIZEABLE",
            "BEGIN READ ONLY,",
            "BEGIN , READ ONLY",
            "BEGIN READ ONLY,, READ WRITE",
            "BEGIN WORK TRANSACTION",
            "BEGIN \"work\"",
            "BEGIN ATOMIC; SELECT 1",
            "START",
            "START WORK",
            "COMMIT TO_BE_DECIDED",
            "COMMIT AND NOT CHAIN",
            "COMMIT AND CHAIN a",
            "COMMIT RELEASE",
            "COMMIT PREPARED a",
            "END IF",
            "ROLLBACK a",
            "ROLLBACK SAVEPOINT a",
            "ROLLBACK TOO a",
            "ROLLBACK TO",
            "ROLLBACK TO a b",
            "ROLLBACK pares",
            "ABORT TO a",
            "ABORT NOW",
            "PREPARE TRANSACTION a",
            "BEGIN\u{b}",
        ] {
            assert_eq!(of(text), Kind::Unread, "{text}");
        }
        assert_eq!(of("COMMIT\u{a0}"), Kind::Ordinary { locks: false });
    }
}
