//! Which files of a system a start needs besides the logs.

/// What must be there before what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Says what of the logs counts: sent before them, and removed after them.
    Note,
    /// Counts on what the logs have: sent after them.
    Checkpoint,
}

/// What a path in a system's directory is to mirrors; `None` if it is not copied, or is no path that a source may name.
#[must_use]
pub fn class_of(path: &str) -> Option<Class> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["pares.toml" | "epoch" | "lanes"] => Some(Class::Note),
        // A log that was set aside there is no note.
        ["shut-out" | "left-out", name] if is_name(name) && !name.contains(".log-") => Some(Class::Note),
        [recorder, "checkpoints", name] if is_name(name) && is_recorder(recorder) => Some(Class::Checkpoint),
        _ => None,
    }
}

fn is_recorder(name: &str) -> bool {
    let number = name.strip_prefix("recorder-").unwrap_or("");
    (1..=5).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// A file's own name: one that is being written, or hides, is nobody's.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let unfinished = [".new", ".tmp"].iter().any(|ending| name.ends_with(ending));
    !name.is_empty() && name.len() <= 100 && name.bytes().all(plain) && !name.starts_with('.') && !unfinished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_start_needs_is_named() {
        for note in ["pares.toml", "epoch", "lanes", "shut-out/venue-1", "left-out/recorder-0"] {
            assert_eq!(class_of(note), Some(Class::Note), "{note}");
        }
        assert_eq!(class_of("recorder-12/checkpoints/0-17.checkpoint"), Some(Class::Checkpoint));
        let others = [
            "",
            "lock",
            "pares.toml/",
            "epoch/x",
            "/etc/passwd",
            "shut-out",
            "shut-out/",
            "shut-out/venue-0.log-1",
            "shut-out/..",
            "shut-out/a/b",
            "shut-out/x.new",
            "../epoch",
            "keys/operator.key",
            "recorder-0/marks",
            "recorder-0/checkpoints/",
            "recorder-0/checkpoints/../../x",
            "recorder-0/checkpoints/a/b",
            "recorder-x/checkpoints/a",
            "recorder-0/checkpoints/a.tmp",
        ];
        for path in others {
            assert_eq!(class_of(path), None, "{path}");
        }
    }
}
