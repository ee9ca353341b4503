//! A directory that is being filled.
//!
//! What a restore has copied before it fails looks like a system: it has a configuration and logs. So a note lies there until all of it does, and no system
//! starts beside one ([`is_unfinished`]).

use std::fs;
use std::path::{Path, PathBuf};

use crate::ArchiveError;
use crate::manifest::io;

const NOTE: &str = "unfinished";
/// What it is called until it is written.
const NEW_NOTE: &str = "unfinished.new";

/// Whether a restore into that directory was begun and did not end.
#[must_use]
pub fn is_unfinished(dir: &Path) -> bool {
    [NOTE, NEW_NOTE].iter().any(|note| dir.join(note).exists())
}

/// A restore under way.
pub(crate) struct Unfinished {
    note: PathBuf,
}

impl Unfinished {
    /// Into a directory that does not exist or is empty.
    pub(crate) fn begin(dir: &Path) -> Result<Self, ArchiveError> {
        let dir_name = dir.display();
        if is_unfinished(dir) {
            return Err(ArchiveError::Refused(format!(
                "{dir_name} holds an unfinished restore: empty it and restore again"
            )));
        }
        if !is_empty(dir)? {
            return Err(ArchiveError::Refused(format!("{dir_name} is not empty: name a new directory")));
        }
        let note = dir.join(NOTE);
        let text = "A restore into this directory did not finish. Empty it, and restore again.\n";
        pares_os::replace_file(&note, text.as_bytes()).map_err(io(&note))?;
        Ok(Self { note })
    }

    /// All is there: a loss of power takes nothing of it, or leaves the note.
    pub(crate) fn end(self) -> Result<(), ArchiveError> {
        let dir = self.note.parent().expect("made in a directory");
        pares_os::sync_file_system(dir).map_err(io(dir))?;
        fs::remove_file(&self.note).map_err(io(&self.note))?;
        // Else it may be back when others have written here.
        fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(io(dir))
    }
}

/// Makes a directory; whether there is nothing in it.
pub(crate) fn is_empty(dir: &Path) -> Result<bool, ArchiveError> {
    fs::create_dir_all(dir).map_err(io(dir))?;
    Ok(fs::read_dir(dir).map_err(io(dir))?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_that_was_killed_in_any_moment_is_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_unfinished(dir.path()));
        // Killed while the note was written.
        fs::write(dir.path().join(NEW_NOTE), "").unwrap();
        assert!(is_unfinished(dir.path()));
        let refused = Unfinished::begin(dir.path()).err().unwrap().to_string();
        assert!(refused.contains("holds an unfinished restore"), "{refused}");
        fs::remove_file(dir.path().join(NEW_NOTE)).unwrap();
        let under_way = Unfinished::begin(dir.path()).unwrap();
        assert!(is_unfinished(dir.path()));
        under_way.end().unwrap();
        assert!(is_empty(dir.path()).unwrap() && !is_unfinished(dir.path()));
    }

    #[test]
    fn a_directory_of_something_else_is_not_to_be_emptied() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("pares.toml"), "").unwrap();
        let refused = Unfinished::begin(dir.path()).err().unwrap().to_string();
        assert!(refused.ends_with("is not empty: name a new directory"), "{refused}");
    }
}
