//! Engines in a process of their own: asked by lines on standard input, answering by lines of JSON.
//!
//! ```text
//!   list                       -> [{"name": ..., "note": ...}, ...]
//!   NAME TASK SECONDS FILE     -> {"messages": ..., "elapsed_ns": ..., ...}
//! ```
//! An engine is stopped after so many seconds. The stream comes in a file of [`BookMessage::BYTES`] bytes per message; the last one read is kept, as it is asked for again.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pares_flow::BookMessage;
use serde::{Deserialize, Serialize};

use crate::{Engine, Measured, Task, measure};

/// An engine by name.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// Name, with version.
    pub name: &'static str,
    /// What one must know to read its figures; may be empty.
    pub note: &'static str,
    run: fn(Task, &[BookMessage], Duration) -> Measured,
}

impl Contender {
    /// The engine `E` under that name, which has no spaces.
    #[must_use]
    pub fn new<E: Engine>(name: &'static str, note: &'static str) -> Self {
        Self { name, note, run: measure::<E> }
    }

    /// Measures it, for `most` at most.
    #[must_use]
    pub fn run(&self, task: Task, messages: &[BookMessage], most: Duration) -> Measured {
        (self.run)(task, messages, most)
    }
}

/// A contender as another process names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineInfo {
    /// See [`Contender::name`].
    pub name: String,
    /// See [`Contender::note`].
    pub note: String,
}

/// Writes a stream to a file.
///
/// # Errors
/// If the file cannot be written.
pub fn save(messages: &[BookMessage], path: &Path) -> io::Result<()> {
    let bytes: Vec<u8> = messages.iter().flat_map(BookMessage::to_bytes).collect();
    fs::write(path, bytes)
}

/// Reads a stream.
///
/// # Errors
/// If the file cannot be read or holds anything but messages.
pub fn load(path: &Path) -> io::Result<Vec<BookMessage>> {
    let bytes = fs::read(path)?;
    let (messages, rest) = bytes.as_chunks::<{ BookMessage::BYTES }>();
    let messages: Option<Vec<BookMessage>> = messages.iter().map(BookMessage::from_bytes).collect();
    messages.filter(|_| rest.is_empty()).ok_or_else(|| io::Error::other("not a stream of messages"))
}

/// Serves these engines until there are no more lines.
///
/// # Errors
/// If standard input or output fails, a file cannot be read, or a line says nothing of the above.
pub fn serve(contenders: &[Contender]) -> io::Result<()> {
    let mut kept: (PathBuf, Vec<BookMessage>) = Default::default();
    for line in io::stdin().lock().lines() {
        let answer = answer(&line?, contenders, &mut kept)?;
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(
    line: &str,
    contenders: &[Contender],
    kept: &mut (PathBuf, Vec<BookMessage>),
) -> io::Result<String> {
    if line == "list" {
        let introduce = |c: &Contender| EngineInfo { name: c.name.to_owned(), note: c.note.to_owned() };
        let introductions: Vec<_> = contenders.iter().map(introduce).collect();
        return serde_json::to_string(&introductions).map_err(io::Error::other);
    }
    let unknown = || io::Error::other(format!("neither `list` nor `NAME TASK SECONDS FILE`: {line}"));
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    let [name, task, seconds, path] = words[..] else {
        return Err(unknown());
    };
    let contender = contenders.iter().find(|contender| contender.name == name).ok_or_else(unknown)?;
    let task: Task = serde_json::from_value(task.into()).map_err(io::Error::other)?;
    let most = Duration::from_secs(seconds.parse().map_err(io::Error::other)?);
    if kept.0 != Path::new(path) {
        *kept = (path.into(), load(Path::new(path))?);
    }
    serde_json::to_string(&contender.run(task, &kept.1, most)).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use pares_book::NaiveBook;
    use pares_flow::BookScenario;

    use super::*;
    use crate::Books;

    #[test]
    fn a_stream_comes_back_from_its_file() {
        let messages = BookScenario::ALL[1].messages_of(1, 50);
        let path = std::env::temp_dir().join(format!("pares-books-stream-{}", std::process::id()));
        save(&messages, &path).unwrap();
        let contenders = [Contender::new::<Books<NaiveBook>>("naive", "a note")];
        let mut kept = Default::default();
        let line = format!("naive check 60 {}", path.display());
        let measured: Measured =
            serde_json::from_str(&answer(&line, &contenders, &mut kept).unwrap()).unwrap();
        assert_eq!(measured, contenders[0].run(Task::Check, &messages, Duration::MAX));
        assert_eq!(kept.1, messages);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn engines_introduce_themselves() {
        let contenders = [Contender::new::<Books<NaiveBook>>("naive", "a note")];
        let answer = answer("list", &contenders, &mut Default::default()).unwrap();
        assert_eq!(answer, r#"[{"name":"naive","note":"a note"}]"#);
    }

    #[test]
    fn a_line_that_asks_for_nothing_is_an_error() {
        for line in ["", "naive", "naive check 1", "other check 1 /dev/null"] {
            assert!(answer(line, &[], &mut Default::default()).is_err());
        }
    }
}
