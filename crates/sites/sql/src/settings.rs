//! Settings of a transaction: SET and RESET, which last if it commits.
//!
//! The server forgets them with the transaction, which is taken back before it is certified. So they are repeated behind it: those that the server had done,
//! in their order, but for those that a ROLLBACK TO has undone.

use pares_store::postgres::{SqlToken as Token, split};
use pares_wice::TRANSACTION_BYTES_MAX;

use crate::statement::Kind;

/// The server cuts longer names, at the last character that fits.
const NAME_MAX_BYTES: usize = 63;

/// Those of the open transaction.
#[derive(Default)]
pub(crate) struct Settings {
    done: Vec<String>,
    /// Names of savepoints, and how many settings were done before each.
    savepoints: Vec<(String, usize)>,
    /// Of both, with their places.
    bytes: usize,
    /// They had more than [`TRANSACTION_BYTES_MAX`], and are not kept.
    are_too_large: bool,
}

/// What a setting or a savepoint takes.
fn bytes<T>(text: &str) -> usize {
    size_of::<T>() + text.len()
}

/// A name as the server keeps it.
pub(crate) fn kept(token: &Token) -> String {
    let mut name = match token {
        Token::Word(word) => word.to_ascii_lowercase(),
        other => other.name().unwrap_or_default().to_owned(),
    };
    name.truncate(name.floor_char_boundary(NAME_MAX_BYTES));
    name
}

impl Settings {
    /// The server has done a statement.
    pub(crate) fn note(&mut self, kind: &Kind, text: &str) {
        match kind {
            _ if self.are_too_large => {}
            Kind::Setting => {
                self.bytes += bytes::<String>(text);
                self.done.push(text.to_owned());
            }
            Kind::Savepoint | Kind::BackTo => self.note_savepoint(text),
            _ => {}
        }
        if self.bytes > TRANSACTION_BYTES_MAX {
            *self = Self { are_too_large: true, ..Self::default() };
        }
    }

    /// `SAVEPOINT a`, `RELEASE SAVEPOINT a`, `ROLLBACK TO SAVEPOINT a`.
    fn note_savepoint(&mut self, text: &str) {
        let statements = split(text);
        let Some([first, .., last]) = statements.first().map(|statement| &statement.tokens[..]) else {
            return;
        };
        let name = kept(last);
        if first.is("SAVEPOINT") {
            self.bytes += bytes::<(String, usize)>(&name);
            return self.savepoints.push((name, self.done.len()));
        }
        let Some(at) = self.savepoints.iter().rposition(|(known, _)| *known == name) else { return };
        if first.is("RELEASE") {
            return self.forget_savepoints(at);
        }
        let gone = self.done.drain(self.savepoints[at].1..);
        self.bytes -= gone.map(|text| bytes::<String>(&text)).sum::<usize>();
        self.forget_savepoints(at + 1);
    }

    fn forget_savepoints(&mut self, from: usize) {
        let gone = self.savepoints.drain(from..);
        self.bytes -= gone.map(|(name, _)| bytes::<(String, usize)>(&name)).sum::<usize>();
    }

    /// What is to be repeated, if it is not too large; none is left.
    pub(crate) fn take(&mut self) -> Option<Vec<String>> {
        let Self { done, are_too_large, .. } = std::mem::take(self);
        (!are_too_large).then_some(done)
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
        assert_eq!(settings.take().unwrap(), ["SET a = 1", "SET f = 1"]);
        assert_eq!(settings.take().unwrap(), [""; 0]);
    }

    fn noted(texts: &[&str]) -> Option<Vec<String>> {
        let mut settings = Settings::default();
        texts.iter().for_each(|text| settings.note(&kind(&split(text)[0]), text));
        settings.take()
    }

    #[test]
    fn names_of_savepoints_are_those_of_the_server() {
        let [long, other] = ["é".repeat(40), format!("{}x", "é".repeat(32))];
        for (savepoint, back, is_same) in [
            ("s", "S", true),
            ("É", "é", false),
            ("É", "\"É\"", true),
            (long.as_str(), other.as_str(), true),
            (&format!("\"{long}\""), &other, true),
            ("s", "\"S\"", false),
        ] {
            let texts = [&format!("SAVEPOINT {savepoint}"), "SET a = 1", &format!("ROLLBACK TO {back}")];
            assert_eq!(noted(&texts).unwrap().is_empty(), is_same, "{savepoint}, {back}");
        }
    }

    #[test]
    fn settings_and_savepoints_have_a_bound() {
        let set = format!("SET a = '{}'", "x".repeat(TRANSACTION_BYTES_MAX / 3));
        assert_eq!(noted(&[&set, &set]).unwrap().len(), 2);
        assert_eq!(noted(&[&set, &set, &set, "SET b = 1"]), None);
        // What is undone does not count.
        let undone = ["SAVEPOINT s", &set, &set, "ROLLBACK TO s", &set, "SAVEPOINT t", &set, "ROLLBACK TO s"];
        assert_eq!(noted(&[&undone[..], &["RELEASE s", &set]].concat()).unwrap().len(), 1);
        let savepoints = vec!["SAVEPOINT s"; TRANSACTION_BYTES_MAX / size_of::<(String, usize)>()];
        assert_eq!(noted(&savepoints), None);
    }
}
