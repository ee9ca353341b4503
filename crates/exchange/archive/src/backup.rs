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
//!  BACKUP/backup.json     last: all files with their SHA-256
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use pares_log::MarksReader;
use serde::{Deserialize, Serialize};

use crate::ArchiveError;
use crate::manifest::{DayFile, io, segment_name};
use crate::unfinished::{Unfinished, must_be_empty};

const LIST: &str = "backup.json";

/// What a backup holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// 1.
    pub version: u32,
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
    must_be_empty(to)?;
    let real = |path: &Path| fs::canonicalize(path).map_err(io(path));
    if real(to)?.starts_with(real(system)?) {
        let (to, system) = (to.display(), system.display());
        return Err(ArchiveError::Refused(format!("{to} lies in {system}: a copy in itself has no end")));
    }
    let mut backup = Backup { version: 1, ..Backup::default() };
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
    let text = serde_json::to_vec_pretty(&backup).expect("a list is always valid JSON");
    pares_os::replace_file(&to.join(LIST), &text).map_err(io(&to.join(LIST)))?;
    Ok(backup)
}

/// Makes a system's directory of a backup. `into` must not exist or be empty.
///
/// # Errors
/// If a file is missing or not what it was.
pub fn restore_backup(from: &Path, into: &Path) -> Result<Backup, ArchiveError> {
    let list = from.join(LIST);
    let text = fs::read(&list).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ArchiveError::Refused(format!(
            "{} is no backup, or one that did not end: it has no {LIST}",
            from.display()
        )),
        _ => io(&list)(error),
    })?;
    let backup: Backup = serde_json::from_slice(&text)
        .map_err(|error| ArchiveError::Refused(format!("{}: {error}", list.display())))?;
    if backup.version != 1 {
        let version = backup.version;
        return Err(ArchiveError::Refused(format!(
            "{}: version {version} is not known here",
            list.display()
        )));
    }
    let unfinished = Unfinished::begin(into)?;
    for file in &backup.files {
        let path = Path::new(&file.name);
        let is_inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let mut again = Backup::default();
        if is_inside {
            copy(from, into, path, &mut again)?;
        }
        if again.files != [file.clone()] {
            return Err(ArchiveError::Refused(format!("{} is not what it was", from.join(path).display())));
        }
    }
    unfinished.end()?;
    Ok(backup)
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
        copied => copied.map_err(io(&source))?,
    };
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
