//! Logs that cannot be continued as they are, under other names.
//!
//! The bytes behind damage in a log may be all that is left of these versions, for sites let go of them. Cut off, they are gone; kept in the log, no restore reads them. So the file
//! is kept whole under another name, and a file of the whole records before the damage takes its place.
//!
//! ```text
//!   log, damaged --(1)--> .mending: the whole records --(2)--> .damaged-N: all of it --(3)--> .mending becomes the log
//! ```
//! A crash before (3) leaves the log as it was. Then all is done again: `.mending` is written again, and a `.damaged-N` that has the same bytes is taken for the one of step 2.
//! Where the file system has no links, step 2 writes `.keeping` and renames it: what has the name `.damaged-N` is whole.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use pares_wice::Version;

use super::{BackupError, folder};

/// A log that was found damaged, and is continued before the damage.
#[derive(Debug)]
pub struct DamagedLog {
    /// How it is damaged.
    pub why: BackupError,
    /// Where all of it is kept.
    pub kept: PathBuf,
    /// The version behind which it is continued: sites are asked for what follows.
    pub last: Version,
}

/// Nothing reads that log from now on; it is kept, in case an operator has its copy elsewhere.
pub(super) fn set_aside(path: &Path) -> Result<(), BackupError> {
    let aside = path.with_added_extension("aside");
    fs::rename(path, &aside).map_err(|source| BackupError::io(path, source))?;
    folder::sync(path)
}

/// The file has another name from now on, which is given; its first `whole` bytes stay under the old one, if there are any. A crash leaves the file as it
/// was, perhaps with the other name too, or all of it done.
pub(super) fn set_damaged_aside(path: &Path, whole: Option<u64>) -> Result<PathBuf, BackupError> {
    let io = |source| BackupError::io(path, source);
    let name = |number: u32| path.with_added_extension(format!("damaged-{number}"));
    let free = (1u32..).find(|number| !name(*number).exists()).expect("some number is free");
    let kept = name(free);
    let Some(whole) = whole else {
        fs::rename(path, &kept).map_err(io)?;
        folder::sync(path)?;
        return Ok(kept);
    };
    let mending = path.with_added_extension("mending");
    copy(path, &mending, whole).map_err(io)?;
    let before = free.checked_sub(1).filter(|number| *number > 0).map(name);
    let kept = match before {
        Some(before) if is_same(path, &before).map_err(io)? => before, // of a try that was not ended
        _ => {
            keep(path, &kept).map_err(io)?;
            folder::sync(path)?;
            kept
        }
    };
    fs::rename(&mending, path).map_err(io)?;
    folder::sync(path)?;
    Ok(kept)
}

/// Gives all of the file another name too.
fn keep(path: &Path, kept: &Path) -> io::Result<()> {
    if fs::hard_link(path, kept).is_ok() {
        return Ok(());
    }
    // A file system without such links: twice the bytes.
    let keeping = path.with_added_extension("keeping");
    copy(path, &keeping, u64::MAX)?;
    fs::rename(&keeping, kept)
}

/// Whether two files have the same bytes.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let open = |path| pares_os::open_file(File::options().read(true), path);
    let (one, other) = (open(one)?, open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let mut others = BufReader::new(other).bytes();
    for byte in BufReader::new(one).bytes() {
        if others.next().transpose()? != Some(byte?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy(from: &Path, to: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::create(to)?;
    io::copy(&mut pares_os::open_file(File::options().read(true), from)?.take(bytes), &mut file)?;
    file.sync_all()
}
