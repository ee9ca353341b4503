//! Notes as files of a directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::world::Notes;

/// A directory whose files are notes, each replaced whole.
#[derive(Clone, Debug)]
pub struct NotesDirectory(PathBuf);

impl NotesDirectory {
    /// That one, made if it is missing.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn at(path: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Notes for NotesDirectory {
    fn read_note(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match pares_os::read_file(&self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        assert!(!name.contains('/'), "a note is a file of its own directory");
        pares_os::replace_file(&self.0.join(name), bytes)
    }

    fn remove_note(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => std::fs::File::open(&self.0)?.sync_all(),
        }
    }
}
