//! Putting another log in the place of a damaged one, without a moment at which a death loses anything.
//!
//! Writing into the damaged log would destroy what it is repaired from. A new one beside it, and a rename, is the idea; but a
//! log's directory may be a disk's mount point, which cannot be renamed, and a file system cannot exchange many files
//! at once. So both logs live in the one directory, and the name of a directory inside says how far it has come:
//!
//! ```text
//!   what is there            a process that dies here leaves               the next opening
//!   LOG/repair/              the damaged log in its place, half a new one  removes the new one
//!   LOG/repaired-N/          the new log, whole and on the device;         continues: moves the rest of the damaged log's
//!                            the damaged one, or its rest, in its place    files into LOG/damaged-N/
//!   LOG/placing/             the damaged log in LOG/damaged-N/, whole;     continues: moves the rest of the new log's
//!                            the new one, or its rest, waiting             files up, its marks last
//!   none of them             the new log in its place                      opens it
//! ```
//! Each line becomes the next by one rename, and each move within a line may be repeated. The damaged log is never removed; it is
//! the operator's. Its marks go first and the new ones come last: meanwhile there is no log under the name, and
//! readers look again. They notice the new one by its marks' file ([`Reader::is_replaced`](crate::Reader::is_replaced)).
//!
//! The lock is a file that stays where it is, held from the first look at the damaged log to the end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::device::Device;
use crate::error::{AppendError, OpenError};
use crate::marks::{Mark, Marks};
use crate::offset::{Offset, segment_path};
use crate::recover::{self, WriteLock};
use crate::salvage::Salvage;
use crate::segment;
use crate::writer::Writer;

const UNFINISHED: &str = "repair";
const WHOLE: &str = "repaired-";
const PLACING: &str = "placing";
/// What the directory of a damaged log is called, before its number.
pub const DAMAGED: &str = "damaged-";

/// A log being made to take the place of a damaged one. Dropped before it is complete, it changes nothing.
#[derive(Debug)]
pub struct Replacement {
    dir: PathBuf,
    promised: Offset,
    writer: Writer,
    unfinished: Unfinished,
    device: Arc<dyn Device>,
    lock: WriteLock,
}

/// The directory of a new log, removed with this unless it got another name: the room is needed elsewhere.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // What is left is removed at the next opening.
        let _best_effort = std::fs::remove_dir_all(&self.0);
    }
}

impl Replacement {
    /// Begins to replace the log in `dir`, which no process may be writing.
    ///
    /// # Errors
    /// [`OpenError`]: another process writes it, there is no log, or one of another version, the disk has no room for another log beside it, or the
    /// kernel refuses.
    pub fn begin(dir: &Path, config: Config) -> Result<Replacement, OpenError> {
        let lock = recover::lock(dir)?;
        settle(dir, &*config.device)?;
        let promised = promised(dir, &config)?;
        check_room(dir, &config)?;
        let unfinished = Unfinished(dir.join(UNFINISHED));
        let device = config.device.clone();
        let (writer, _) = Writer::open(&unfinished.0, config)?;
        Ok(Replacement { dir: dir.to_owned(), promised: Offset(promised), writer, unfinished, device, lock })
    }

    /// The log promised to keep what it had below this. Everything, if its marks do not tell.
    pub fn promised(&self) -> Offset {
        self.promised
    }

    /// Reads what is whole of the damaged log, from its beginning; also behind its written mark, which a loss of power may have
    /// set back.
    ///
    /// # Errors
    /// [`OpenError::Io`] if its directory cannot be listed.
    pub fn damaged(&self) -> Result<Salvage, OpenError> {
        Salvage::everything(&self.dir)
    }

    /// Where the new log is made: files put there go along with it.
    pub fn place(&self) -> PathBuf {
        self.dir.join(UNFINISHED)
    }

    /// Appends a record to the new log.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn append(&mut self, payload: &[u8]) -> Result<Offset, AppendError> {
        self.writer.append(payload)
    }

    /// Where the next record goes.
    pub fn tail(&self) -> Offset {
        self.writer.tail()
    }

    /// Puts the new log, on the device, in the place of the damaged one. Says where that one lies now.
    ///
    /// # Errors
    /// [`OpenError::Io`]. If the new log could not be synced, nothing is changed; otherwise the next opening continues.
    pub fn complete(mut self) -> Result<PathBuf, OpenError> {
        let place = self.place();
        self.writer.sync().map_err(|refused| {
            let errno = if let AppendError::Poisoned { errno } = refused { errno } else { 0 };
            OpenError::io("sync", &place)(io::Error::from_raw_os_error(errno))
        })?;
        let Replacement { dir, writer, unfinished, device, lock, .. } = self;
        // Its preparing thread must not put anything there any more.
        drop(writer);
        let settling = Settling { dir: &dir, device: &*device };
        let target = settling.name_whole()?;
        settling.advance(usize::MAX)?;
        drop((unfinished, lock));
        Ok(target)
    }
}

/// Below which offset the log in `dir` promised to keep what it had.
fn promised(dir: &Path, config: &Config) -> Result<u64, OpenError> {
    let marks = match Marks::open(dir) {
        Ok(Some(marks)) => marks,
        Ok(None) if segments(dir)?.is_empty() => {
            return Err(OpenError::Foreign { path: dir.to_owned(), what: "there is no log" });
        }
        // Whether they are a mirror's or a writer's own nobody knows any more.
        Err(error) if !error.is_damage() || config.mirror_from.is_some() => return Err(error),
        _ => return Ok(u64::MAX),
    };
    recover::check_kind(dir, &marks, config)?;
    let synced = marks.get(Mark::Synced);
    Ok(if recover::same_boot(&marks) { synced.max(marks.get(Mark::Durable)) } else { synced })
}

fn segments(dir: &Path) -> Result<Vec<u64>, OpenError> {
    segment::list(dir).map_err(OpenError::io("list", dir))
}

/// Refuses to begin what would fill the disk: the peers' logs may lie on the same one.
fn check_room(dir: &Path, config: &Config) -> Result<(), OpenError> {
    let bytes = |base| std::fs::metadata(segment_path(dir, base)).map_or(0, |file| file.len());
    let needed = segments(dir)?.into_iter().map(bytes).sum::<u64>() + 4 * config.segment_bytes;
    let found = rustix::fs::statvfs(dir).map_err(|e| OpenError::io("look for room beside", dir)(e.into()))?;
    match found.f_bavail.saturating_mul(found.f_frsize) >= needed {
        true => Ok(()),
        false => Err(OpenError::io("make room for another log beside", dir)(rustix::io::Errno::NOSPC.into())),
    }
}

/// Finishes what an earlier replacement left, or removes it. The caller holds the log's lock.
pub(crate) fn settle(dir: &Path, device: &dyn Device) -> Result<(), OpenError> {
    Settling { dir, device }.advance(usize::MAX).map(|_| ())
}

/// The directory of a log that is being replaced.
struct Settling<'a> {
    dir: &'a Path,
    device: &'a dyn Device,
}

impl Settling<'_> {
    /// Makes the new log count. Says where the damaged one will lie.
    fn name_whole(&self) -> Result<PathBuf, OpenError> {
        let dir = self.dir;
        let free = (1_u32..).find(|n| !dir.join(format!("{DAMAGED}{n}")).exists()).expect("a number is free");
        let place = dir.join(UNFINISHED);
        self.sync_tree(&place)?;
        let whole = dir.join(format!("{WHOLE}{free}"));
        std::fs::rename(&place, &whole).map_err(OpenError::io("rename", &place))?;
        self.sync_dir(dir)?;
        Ok(dir.join(format!("{DAMAGED}{free}")))
    }

    /// Continues a replacement for at most so many steps; returns how many are left of them.
    fn advance(&self, mut steps: usize) -> Result<usize, OpenError> {
        let dir = self.dir;
        let unfinished = dir.join(UNFINISHED);
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished).map_err(OpenError::io("remove", &unfinished))?;
        }
        let placing = dir.join(PLACING);
        if let Some(whole) = whole(dir)? {
            let target = dir.join(whole.replacen(WHOLE, DAMAGED, 1));
            std::fs::create_dir_all(&target).map_err(OpenError::io("create", &target))?;
            let files = entries(dir)?.into_iter().filter(|name| is_of_the_log(name));
            steps = self.move_all(files, dir, &target, steps)?;
            if steps == 0 {
                return Ok(0);
            }
            std::fs::rename(dir.join(&whole), &placing).map_err(OpenError::io("rename", &placing))?;
            self.sync_dir(dir)?;
            steps -= 1;
        }
        if placing.exists() && steps > 0 {
            let mut files: Vec<_> =
                entries(&placing)?.into_iter().filter(|name| is_of_the_log(name)).collect();
            files.reverse();
            steps = self.move_all(files.into_iter(), &placing, dir, steps)?;
            if steps > 0 {
                std::fs::remove_dir_all(&placing).map_err(OpenError::io("remove", &placing))?;
            }
        }
        Ok(steps)
    }

    /// Moves files one by one; what is moved stays moved when this returns. Steps left: 0 if they did not suffice.
    fn move_all(
        &self,
        names: impl Iterator<Item = String>,
        from: &Path,
        to: &Path,
        mut steps: usize,
    ) -> Result<usize, OpenError> {
        for name in names {
            if steps == 0 {
                break;
            }
            if name == "marks" {
                // All before is on the device before a log appears, or is gone, under the name.
                self.sync_dir(to)?;
            }
            let file = from.join(&name);
            std::fs::rename(&file, to.join(&name)).map_err(OpenError::io("move", &file))?;
            steps -= 1;
        }
        self.sync_dir(to)?;
        self.sync_dir(from)?;
        Ok(steps)
    }

    /// Syncs all files and directories of the new log, which does not count yet.
    fn sync_tree(&self, dir: &Path) -> Result<(), OpenError> {
        for name in entries(dir)? {
            let path = dir.join(name);
            if path.is_dir() {
                self.sync_tree(&path)?;
            } else {
                let synced = std::fs::File::open(&path).and_then(|file| self.device.sync(&path, &file));
                synced.map_err(OpenError::io("sync", &path))?;
            }
        }
        self.device.sync_dir(dir).map_err(OpenError::io("sync", dir))
    }

    /// Syncs a directory once the new log counts. If a move cannot be kept the new log is poisoned: what is appended to it could
    /// be lost with its name.
    fn sync_dir(&self, dir: &Path) -> Result<(), OpenError> {
        self.device.sync_dir(dir).map_err(|error| {
            if let Ok(Some(marks)) = self.new_marks() {
                marks.poison(&error);
            }
            OpenError::io("sync", dir)(error)
        })
    }

    /// The marks of the new log, wherever it has come to.
    fn new_marks(&self) -> Result<Option<Marks>, OpenError> {
        let whole = whole(self.dir)?.map(|name| self.dir.join(name));
        let places = [whole, Some(self.dir.join(PLACING)), Some(self.dir.to_owned())];
        let place = places.into_iter().flatten().find(|place| place.join("marks").exists());
        place.map_or(Ok(None), |place| Marks::open(&place))
    }
}

/// The name of the directory of a new log that is whole and waits for its place.
fn whole(dir: &Path) -> Result<Option<String>, OpenError> {
    Ok(entries(dir)?.into_iter().find(|name| name.starts_with(WHOLE)))
}

/// Whether it belongs to the log itself: not the lock, which stays, and not what a replacement makes.
fn is_of_the_log(name: &str) -> bool {
    let made = name == UNFINISHED || name == PLACING || name.starts_with(WHOLE) || name.starts_with(DAMAGED);
    name != "lock" && !made
}

/// Names in a directory: the marks first, then the others in their order.
fn entries(dir: &Path) -> Result<Vec<String>, OpenError> {
    let list = || -> io::Result<Vec<String>> {
        let names =
            std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    };
    let mut names = list().map_err(OpenError::io("list", dir))?;
    names.sort_by_key(|name| (name != "marks", name.clone()));
    Ok(names)
}

#[cfg(test)]
mod tests;
