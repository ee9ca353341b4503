//! Files that are there whole or not at all: written under another name, synced, renamed.
//!
//! Written in place, a file is half a file after a crash or on a full disk, and a reader beside may see it so at any moment.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Puts a file there, durably, in the place of one that may be there. Two who write the same path at once need a lock, or
/// [`replace_shared_file`].
///
/// # Errors
/// As the system says; the old file is untouched then, unless only its name may not be durable.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes, File::sync_all)?;
    sync_folder(path)
}

/// The same for a file that several may write at once: the last one's is there then, whole. Who is killed meanwhile leaves a file `PATH.N.new` behind,
/// which nobody takes for anything.
///
/// # Errors
/// As the system says; the old file is untouched then, unless only its name may not be durable.
pub fn replace_shared_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, unfinished) = create_beside(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| std::fs::rename(&unfinished, path)) {
        // On a full disk it is in the way.
        let _best_effort = std::fs::remove_file(&unfinished);
        return Err(error);
    }
    sync_folder(path)
}

/// Waits until all that was written to the file system of that directory is durable: for many files at once.
///
/// # Errors
/// As the system says: what was written before may not be durable.
pub fn sync_file_system(dir: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(dir)?)?)
}

/// A file of a name that nobody else has.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    // Processes of two hosts may have one number, and one that was killed may have left a file.
    for number in u64::from(std::process::id()).. {
        let unfinished = path.with_added_extension(format!("{number}.new"));
        match File::create_new(&unfinished) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return Ok((created?, unfinished)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}

/// As [`replace_file`], for a file that is of no use after a power failure: waits for no device, and no failing one keeps it away.
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

    #[test]
    fn several_that_write_one_file_at_once_are_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        std::fs::write(path.with_added_extension(format!("{}.new", std::process::id())), b"left").unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4_u8 {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| replace_shared_file(path, &[writer; 999]).unwrap()));
            }
        });
        let last = std::fs::read(&path).unwrap();
        assert_eq!(last, [last[0]; 999]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "what was left there, and the file");
    }

    #[test]
    fn a_shared_file_that_cannot_be_put_there_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        std::fs::create_dir(&path).unwrap();
        assert!(replace_shared_file(&path, b"new").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
