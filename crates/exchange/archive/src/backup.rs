//! A copy of a running system that can be started elsewhere.
//!
//! Nothing is stopped for it. Every file is either replaced as a whole or a log, and a log that is copied behind its marks has all that they promise. What
//! remains is the order of the copies. A recorder's checkpoint counts on the records below it, and a gateway that finds less in its
//! log than was recorded of it ends. So checkpoints go first, then recorders' logs, then gateways': each may have more than
//! what was copied before counts on, never less. Requests that the gateways have beyond the record are ordered when the copy is
//! started, as after any start. Venues' logs are not needed.
//!
//! ```text
//!  BACKUP/recorder-R/...  gateway-G/...  pares.toml  epoch  shut-out/...  left-out/...
//!  BACKUP/backup.json     last: all files with their SHA-256, and the list's own
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use pares_log::MarksReader;
use serde::{Deserialize, Serialize};

use crate::manifest::{DayFile, io, segment_name};
use crate::unfinished::{Unfinished, is_empty};
use crate::{ArchiveError, seal};

const LIST: &str = "backup.json";

/// What a backup holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// Every file, by its path in the backup.
    pub files: Vec<DayFile>,
}

impl Backup {
    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Copies the system in `system` to `to`, which must not exist or be empty. `recorders` and `gateways` are what their logs are called.
///
/// # Errors
/// If anything cannot be copied: then there is no list of files, and what is there is no backup.
pub fn back_up(
    system: &Path,
    to: &Path,
    recorders: &[String],
    gateways: &[String],
) -> Result<Backup, ArchiveError> {
    must_be_free(system, to)?;
    let mut backup = Backup::default();
    for folder in ["shut-out", "left-out"] {
        copy_folder(system, to, Path::new(folder), &mut backup)?;
    }
    for file in ["pares.toml", "epoch"] {
        copy(system, to, Path::new(file), &mut backup)?;
    }
    for recorder in recorders {
        copy_folder(system, to, &Path::new(recorder).join("checkpoints"), &mut backup)?;
    }
    for log in recorders.iter().chain(gateways) {
        copy_log(system, to, log, &mut backup)?;
    }
    pares_os::replace_file(&to.join(LIST), &seal::seal(&backup)).map_err(io(&to.join(LIST)))?;
    Ok(backup)
}

/// Refuses a place in which something lies, or which would be copied too.
fn must_be_free(system: &Path, to: &Path) -> Result<(), ArchiveError> {
    let refused = |what: &str| Err(ArchiveError::Refused(format!("{} {what}", to.display())));
    if !is_empty(to)? {
        return refused(match to.join(LIST).exists() {
            true => "holds a backup: name a new directory",
            false => "is not empty: name a new directory, or empty this one if it holds an unfinished backup",
        });
    }
    let real = |path: &Path| fs::canonicalize(path).map_err(io(path));
    match real(to)?.starts_with(real(system)?) {
        true => refused(&format!(
            "lies in {}: a backup cannot be inside the system's own directory",
            system.display()
        )),
        false => Ok(()),
    }
}

/// Makes a system's directory of a backup. `into` must not exist or be empty.
///
/// # Errors
/// If a file is missing or not what it was.
pub fn restore_backup(from: &Path, into: &Path) -> Result<Backup, ArchiveError> {
    let backup = read_list(from)?;
    let unfinished = Unfinished::begin(into)?;
    for file in &backup.files {
        let path = Path::new(&file.name);
        let is_inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let mut again = Backup::default();
        if is_inside {
            copy(from, into, path, &mut again)?;
        }
        if again.files != [file.clone()] {
            return Err(ArchiveError::Refused(format!(
                "{} is missing or has changed: restore another backup",
                from.join(path).display()
            )));
        }
    }
    unfinished.end()?;
    Ok(backup)
}

/// What a backup holds, if it is believed.
fn read_list(from: &Path) -> Result<Backup, ArchiveError> {
    let list = from.join(LIST);
    let text = fs::read(&list).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ArchiveError::Refused(format!(
            "{} is not a backup, or an unfinished one: it has no {LIST}",
            from.display()
        )),
        _ => io(&list)(error),
    })?;
    let refused = |why: &dyn std::fmt::Display| {
        let list = list.display();
        ArchiveError::Refused(format!("{list} cannot be read: {why}. Nothing was restored"))
    };
    let backup: Backup = seal::open(&text).map_err(|flaw| refused(&flaw))?;
    if backup.files.is_empty() { Err(refused(&"it names no files")) } else { Ok(backup) }
}

/// Copies a file, if it is there still, and notes what it is there.
fn copy(from: &Path, to: &Path, path: &Path, backup: &mut Backup) -> Result<(), ArchiveError> {
    let (source, target) = (from.join(path), to.join(path));
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(io(folder))?;
    }
    match fs::copy(&source, &target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Made by the failed copy.
            let _best_effort = fs::remove_file(&target);
            return Ok(());
        }
        Err(error) => return Err(ArchiveError::Copy { from: source, to: target, source: error }),
        Ok(_) => {}
    }
    backup.files.push(DayFile::of(to, path.to_string_lossy().into_owned())?);
    Ok(())
}

fn copy_folder(from: &Path, to: &Path, folder: &Path, backup: &mut Backup) -> Result<(), ArchiveError> {
    let dir = from.join(folder);
    let entries = match fs::read_dir(&dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(io(&dir))?,
    };
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io(&dir))?;
        let path = folder.join(entry.file_name());
        match entry.file_type().map_err(io(&dir))?.is_dir() {
            true => copy_folder(from, to, &path, backup)?,
            // Unfinished files are nobody's.
            false if path.extension().is_some_and(|ending| ending == "new" || ending == "tmp") => {}
            false => names.push(path),
        }
    }
    names.iter().try_for_each(|path| copy(from, to, path, backup))
}

/// A log: its marks first, then the segments that they speak of.
fn copy_log(from: &Path, to: &Path, log: &str, backup: &mut Backup) -> Result<(), ArchiveError> {
    copy_folder(from, to, &Path::new(log).join("days"), backup)?;
    copy(from, to, &Path::new(log).join("marks"), backup)?;
    let stats = MarksReader::open(&to.join(log))?.stats();
    let first = stats.released.0 - stats.released.0 % stats.segment_bytes;
    for base in (first..stats.written.0).step_by(stats.segment_bytes as usize) {
        copy(from, to, &Path::new(log).join(segment_name(base)), backup)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup(dir: &Path) -> Backup {
        let mut backup = Backup::default();
        for name in ["pares.toml", "epoch"] {
            fs::write(dir.join(name), name).unwrap();
            backup.files.push(DayFile::of(dir, name.to_owned()).unwrap());
        }
        fs::write(dir.join(LIST), seal::seal(&backup)).unwrap();
        backup
    }

    fn refused(from: &Path, into: &Path) -> String {
        let refused = restore_backup(from, into).unwrap_err().to_string();
        assert!(!into.exists(), "{refused}");
        refused
    }

    #[test]
    fn a_list_that_was_changed_is_not_restored() {
        let dir = tempfile::tempdir().unwrap();
        let (from, into) = (dir.path(), dir.path().join("into"));
        let whole = backup(from);
        let text = fs::read_to_string(from.join(LIST)).unwrap();
        let fewer = serde_json::to_string_pretty(&Backup { files: whole.files[1..].to_vec() }).unwrap();
        let write = |text: &str| fs::write(from.join(LIST), text).unwrap();
        let hash = &text[text.find("\"sha256\": \"").unwrap() + 11..][..64];
        write(&format!("{{\"version\": 2, \"sha256\": \"{hash}\", {}", &fewer[1..]));
        assert!(refused(from, &into).contains("does not match its SHA-256"));
        write(&format!("{{\"version\": 1, {}", &fewer[1..]));
        assert!(refused(from, &into).contains("an earlier version of Pares (version 1)"));
        fs::write(from.join(LIST), seal::seal(&Backup::default())).unwrap();
        assert!(refused(from, &into).contains("it names no files"));
        write(&text);
        assert_eq!(restore_backup(from, &into).unwrap(), whole);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_not_blamed_on_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("epoch"), "1").unwrap();
        let to = dir.path().join("to");
        fs::create_dir_all(to.join("epoch")).unwrap();
        let failed = copy(dir.path(), &to, Path::new("epoch"), &mut Backup::default()).unwrap_err();
        let expected = format!("epoch cannot be copied to {}", to.join("epoch").display());
        assert!(failed.to_string().contains(&expected), "{failed}");
    }

    #[test]
    fn a_backup_is_not_written_over_another_one() {
        let (dir, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let refused = || back_up(dir.path(), to.path(), &[], &[]).unwrap_err().to_string();
        fs::write(to.path().join("epoch"), "1").unwrap();
        assert!(refused().contains("empty this one if it holds an unfinished backup"));
        backup(to.path());
        assert!(refused().contains("holds a backup: name a new directory"));
    }
}
