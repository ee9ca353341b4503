//! Settings of a transaction: SET and RESET, which last if it commits.
//!
//! The server forgets them with the transaction, which is taken back before it is certified. So they are repeated behind it: those that the server had done,
//! in their order, but for those that a ROLLBACK TO has undone.

use pares_store::postgres::{SqlToken as Token, split};

use crate::statement::Kind;

/// Those of the open transaction.
#[derive(Default)]
pub(crate) struct Settings {
    done: Vec<String>,
    /// Names of savepoints, and how many settings were done before each.
    savepoints: Vec<(String, usize)>,
}

impl Settings {
    /// The server has done a statement.
    pub(crate) fn note(&mut self, kind: &Kind, text: &str) {
        match kind {
            Kind::Setting => self.done.push(text.to_owned()),
            Kind::Savepoint | Kind::BackTo => self.note_savepoint(text),
            _ => {}
        }
    }

    /// `SAVEPOINT a`, `RELEASE SAVEPOINT a`, `ROLLBACK TO SAVEPOINT a`.
    fn note_savepoint(&mut self, text: &str) {
        let statements = split(text);
        let Some([first, .., last]) = statements.first().map(|statement| &statement.tokens[..]) else {
            return;
        };
        let name = match last {
            Token::Word(word) => word.to_lowercase(),
            other => other.name().unwrap_or_default().to_owned(),
        };
        if first.is("SAVEPOINT") {
            return self.savepoints.push((name, self.done.len()));
        }
        let Some(at) = self.savepoints.iter().rposition(|(known, _)| *known == name) else { return };
        if first.is("RELEASE") {
            return self.savepoints.truncate(at);
        }
        self.done.truncate(self.savepoints[at].1);
        self.savepoints.truncate(at + 1);
    }

    /// What is to be repeated; none is left.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(self).done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::kind;

    #[test]
    fn settings_undone_by_savepoint_are_not_repeated() {
        let mut settings = Settings::default();
        for text in [
            "SET a = 1",
            "SAVEPOINT s",
            "SET b = 1",
            "SAVEPOINT \"S\"",
            "RESET c",
            "SAVEPOINT s",
            "SET d = 1",
            "RELEASE S",
            "ROLLBACK WORK TO \"S\"",
            "SET e = 1",
            "ROLLBACK TO SAVEPOINT s",
            "SET f = 1",
            "ROLLBACK TO unknown",
            "SET LOCAL g = 1",
        ] {
            settings.note(&kind(&split(text)[0]), text);
        }
        assert_eq!(settings.take(), ["SET a = 1", "SET f = 1"]);
        assert_eq!(settings.take(), [""; 0]);
    }
}
