//! Files that are there whole or not at all: written under another name, synced, renamed.
//!
//! Written in place, a file is half a file after a crash or on a full disk, and a reader beside may see it so at any moment.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Puts a file there, durably, in the place of one that may be there. Two who write the same path at once need a lock.
///
/// # Errors
/// As the system says; the old file is untouched then, unless only its name may not be durable.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, File::sync_all)?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}

/// The same for a file that is of no use after a power failure: waits for no device, and no failing one keeps it away.
///
/// # Errors
/// As the system says; the old file is untouched then.
pub fn replace_file_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, |_| Ok(()))
}

fn replace(path: &Path, bytes: &[u8], sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let unfinished = path.with_added_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    sync(&file)?;
    std::fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_whole_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.toml");
        replace_file(&path, b"old").unwrap();
        std::fs::create_dir(path.with_added_extension("new")).unwrap();
        assert!(replace_file(&path, b"new").is_err() && replace_file_unsynced(&path, b"new").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }
}
