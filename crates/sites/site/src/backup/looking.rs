//! Whether a copy can be what following counts on.
//!
//! A name says nothing of what a file holds: a log is continued for months whose only copy is empty, and that shows when it is to be restored. To read all of a long copy at
//! each beginning takes as long as to take it. So a short one is read, and of a long one what goes wrong most: its head, whose checksum is its own, and its end, which only a
//! copy has that came whole. What was looked at is said; `pares site backup verify` reads the rest.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use pares_wice::Version;

use super::copy_file::{CopyReader, is_end};
use super::folder::is_named;
use super::mending::{self, DamagedLog};
use super::{BackupError, sealed};

/// A copy up to this length is read, bytes.
const READ_MAX: u64 = 64 << 20;

/// What was found where following is begun again.
#[derive(Debug)]
pub enum Finding {
    /// A log is damaged.
    Log(DamagedLog),
    /// A copy is unusable.
    Base(UnusableBase),
    /// A copy that is continued.
    Sound(SoundBase),
}

/// A copy that nothing can be restored from.
#[derive(Debug)]
pub struct UnusableBase {
    /// Why.
    pub why: BackupError,
    /// Where it is kept.
    pub kept: PathBuf,
}

/// A copy in which nothing wrong was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoundBase {
    /// Of which version.
    pub version: Version,
    /// Whether all of it was read; otherwise its head and its end.
    pub was_read: bool,
}

/// Looks at the copy of that name, and sets it aside if it is unusable.
///
/// # Errors
/// If it cannot be read for a reason that may pass, or another release has written it; if it cannot be renamed.
pub(super) fn look(version: Version, path: &Path) -> Result<Finding, BackupError> {
    match looked(version, path, READ_MAX) {
        Ok(was_read) => Ok(Finding::Sound(SoundBase { version, was_read })),
        Err(why) if is_unusable(&why) => {
            let kept = mending::set_damaged_aside(path, None)?;
            Ok(Finding::Base(UnusableBase { why, kept }))
        }
        Err(why) => Err(why),
    }
}

/// Whether all of it was read.
fn looked(version: Version, path: &Path, read_max: u64) -> Result<bool, BackupError> {
    let read = CopyReader::open(path)?;
    is_named(path, version, read.head.stored.version)?;
    let bytes = std::fs::metadata(path).map_err(|source| BackupError::io(path, source))?.len();
    if bytes <= read_max {
        return read.verify().map(|_| true);
    }
    match has_end(path).map_err(|source| BackupError::io(path, source))? {
        true => Ok(false),
        false => Err(BackupError::damaged(path, bytes, "its end is missing")),
    }
}

/// Whether the last record says that the copy came whole.
fn has_end(path: &Path) -> std::io::Result<bool> {
    let mut file = pares_os::open_file(File::options().read(true), path)?;
    let mut last = [0; sealed::RECORD_HEAD_BYTES + super::copy_file::END_BYTES];
    file.seek(SeekFrom::End(-(last.len() as i64)))?;
    file.read_exact(&mut last)?;
    let (head, content) = last.split_at(sealed::RECORD_HEAD_BYTES);
    Ok(head[..4] == (content.len() as u32).to_le_bytes() && is_end(content))
}

/// Whether it stays so: the file is not what was written, or none. That it cannot be read may pass.
fn is_unusable(error: &BackupError) -> bool {
    match error {
        BackupError::Damaged { .. } | BackupError::Torn { .. } | BackupError::LastChanged { .. } => true,
        BackupError::Io { source, .. } => {
            matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::NotFound)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use pares_wice::Stored;

    use super::super::copy_file::{CopyHead, CopyWriter};
    use super::*;

    #[test]
    fn of_a_long_copy_the_head_and_the_end_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("copy");
        let stored = Stored { version: Version(7), ..Stored::default() };
        let head = CopyHead { identity: "bank".into(), stored, taken_ms: 0 };
        CopyWriter::create(&path, &head).unwrap().end().unwrap();
        assert!(looked(Version(7), &path, READ_MAX).unwrap());
        assert!(!looked(Version(7), &path, 0).unwrap());
        let right = std::fs::read(&path).unwrap();
        for wrong in [&right[..right.len() - 1], &[&right[..], &[0]].concat()] {
            std::fs::write(&path, wrong).unwrap();
            let why = looked(Version(7), &path, 0).unwrap_err();
            assert!(is_unusable(&why), "{why}");
        }
        std::fs::write(&path, &right).unwrap();
        assert!(is_unusable(&looked(Version(8), &path, 0).unwrap_err()), "under another name");
    }
}
