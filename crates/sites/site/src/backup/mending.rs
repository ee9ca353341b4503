//! Logs that cannot be gone on with as they are, under other names.
//!
//! The bytes behind damage in a log may be all that is left of these versions, for sites let go of them. Cut off, it is gone; gone on with, it is read by nobody. So the file
//! is kept whole under another name, and a file of the whole records before the damage takes its place.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pares_wice::Version;

use super::{BackupError, folder};

/// A log that was found damaged, and is gone on with before the damage.
#[derive(Debug)]
pub struct DamagedLog {
    /// How it is damaged.
    pub why: BackupError,
    /// Where all of it is kept.
    pub kept: PathBuf,
    /// The version behind which it is gone on with: sites are asked for what follows.
    pub last: Version,
}

/// Nothing reads that log from now on; it is there, if somebody has its copy elsewhere.
pub(super) fn set_aside(path: &Path) -> Result<(), BackupError> {
    let aside = path.with_added_extension("aside");
    fs::rename(path, &aside).map_err(|source| BackupError::io(path, source))?;
    folder::sync(path)
}

/// The file has another name from now on, which is given; its first `whole` bytes stay under the old one, if there are any. A crash leaves the file as it
/// was, or all of it done.
pub(super) fn set_damaged_aside(path: &Path, whole: Option<u64>) -> Result<PathBuf, BackupError> {
    let io = |source| BackupError::io(path, source);
    let name = |number: u32| path.with_added_extension(format!("damaged-{number}"));
    let kept = (1..).map(name).find(|kept| !kept.exists()).expect("some number is free");
    let Some(whole) = whole else {
        fs::rename(path, &kept).map_err(io)?;
        folder::sync(path)?;
        return Ok(kept);
    };
    let mending = path.with_added_extension("mending");
    copy(path, &mending, whole).map_err(io)?;
    if fs::hard_link(path, &kept).is_err() {
        // A file system without such links: twice the bytes.
        copy(path, &kept, u64::MAX).map_err(io)?;
    }
    fs::rename(&mending, path).map_err(io)?;
    folder::sync(path)?;
    Ok(kept)
}

fn copy(from: &Path, to: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::create(to)?;
    io::copy(&mut pares_os::open_file(File::options().read(true), from)?.take(bytes), &mut file)?;
    file.sync_all()
}
