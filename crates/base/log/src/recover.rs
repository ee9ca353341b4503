//! Opening a log for writing: finding its end, cutting a torn tail, refusing damage.
//!
//! A crash leaves the last record half written, and "cut at the first bad checksum" would repair that. It would also
//! silently throw away everything behind a flipped bit in the middle. What tells the two apart is a promise: below
//! some mark every record was whole once.
//!
//! ```text
//!                      same boot of the host                after a reboot or power loss
//!   trusted below      written (the page cache survived)    synced (only the device did)
//!   invalid below it   damage: refuse to open               damage: refuse to open
//!   invalid above it   torn tail: cut and zero              torn tail: cut and zero
//!   whole above it     kept                                 kept
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use pares_os::Mapping;
use pares_os::clock::boot_id;
use rustix::fs::FlockOperation;

use crate::config::{Config, Durability};
use crate::error::OpenError;
use crate::keeping::Keeping;
use crate::marks::{Mark, Marks};
use crate::offset::{Geometry, Offset, segment_path};
use crate::record::{self, End};
use crate::segment::{self, HEADER_BYTES, Making, Segment, Tail};

/// What opening a log found and did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Whether there was no log before.
    pub created: bool,
    /// Where appending continues.
    pub tail: Offset,
    /// Records checked to find it.
    pub records_checked: u64,
    /// Bytes cut behind the last whole record (0 when the last writer was not writing as it died).
    pub cut_bytes: u64,
    /// Bytes of whole records that had not been published, and now are.
    pub kept_unpublished_bytes: u64,
    /// Bytes once readable that a loss of power took; always 0 below what durability `Disk` promised.
    pub lost_bytes: u64,
}

/// The exclusive right to write a log; freed when it is dropped, and however the process ends.
#[derive(Debug)]
pub(crate) struct WriteLock(File);

/// Closing the file is not enough: a process just being started by another thread of this one has a copy of it for a
/// moment, which would still hold the lock.
impl Drop for WriteLock {
    fn drop(&mut self) {
        // If even this fails the lock goes with the last copy.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the exclusive right to write the log.
pub(crate) fn lock(dir: &Path) -> Result<WriteLock, OpenError> {
    let path = dir.join("lock");
    let file =
        pares_os::open_file(File::options().create(true).truncate(false).write(true).mode(0o600), &path);
    let file = file.map_err(OpenError::opening(&path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(WriteLock(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let pid = Marks::open(dir).ok().flatten().map_or(0, |marks| marks.pid());
            Err(OpenError::Locked { dir: dir.to_owned(), pid })
        }
        Err(e) => Err(OpenError::io("lock", &path)(e.into())),
    }
}

/// The process that writes the log in `dir`, if one does (0 if it has not entered itself yet). A process that was
/// killed still holds its log until the kernel is done with it.
///
/// # Errors
/// [`OpenError::Io`] if the kernel does not tell.
pub fn writing_process(dir: &Path) -> Result<Option<u32>, OpenError> {
    match dir.join("lock").try_exists() {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(e) => return Err(OpenError::io("look for", &dir.join("lock"))(e)),
    }
    match lock(dir) {
        Ok(_freed_at_once) => Ok(None),
        Err(OpenError::Locked { pid, .. }) => Ok(Some(pid)),
        Err(e) => Err(e),
    }
}

/// Marks and tail of the log in `dir`, which is created if there is none. The caller holds the lock.
pub(crate) fn open(dir: &Path, config: &Config) -> Result<(Marks, Tail, Recovery), OpenError> {
    remove_unfinished(dir)?;
    let Some(marks) = Marks::open(dir)? else { return create(dir, config) };
    check_kind(dir, &marks, config)?;
    let (synced, written) = (marks.get(Mark::Synced), marks.get(Mark::Written));
    if marks.poisoned() != 0 {
        return Err(poisoned(&marks));
    }
    let (keeping, same_boot) = (Keeping::of(config, dir, &marks), same_boot(&marks));
    let trusted = if same_boot { written } else { synced };
    let (mut tail, mut recovery) = find_tail(keeping, trusted, config.durability)?;
    recovery.cut_bytes = tail.clear_rest() + remove_after(dir, &tail)?;
    recovery.tail = Offset(tail.offset());
    recovery.kept_unpublished_bytes = tail.offset().saturating_sub(written);
    recovery.lost_bytes = written.saturating_sub(tail.offset());
    let settle = !same_boot || config.durability == Durability::Disk;
    enter(keeping, &tail, settle)?;
    marks.sign(config.durability, boot_id());
    Ok((marks, tail, recovery))
}

/// Refuses to append to a mirror, and to mirror another log in one that is appended to.
pub(crate) fn check_kind(dir: &Path, marks: &Marks, config: &Config) -> Result<(), OpenError> {
    match (marks.is_mirror(), config.mirror_from.is_some()) {
        (true, false) => Err(OpenError::Mirror { dir: dir.to_owned() }),
        (false, true) => Err(OpenError::NotAMirror { dir: dir.to_owned() }),
        _ => Ok(()),
    }
}

/// Makes a log of segments that lie in `dir` without marks: all of them, from the one that begins at `from` up to `until`, as they were copied
/// from another log. Readers find it as it was there.
///
/// # Errors
/// [`OpenError::Foreign`] if there are marks, or a segment is missing; or what the kernel refused.
pub fn adopt(dir: &Path, config: Config, (from, until): (Offset, Offset)) -> Result<(), OpenError> {
    config.check()?;
    let _lock = lock(dir)?;
    if dir.join("marks").exists() {
        return Err(OpenError::Foreign { path: dir.join("marks"), what: "there is a log already" });
    }
    for base in (from.0..until.0).step_by(config.segment_bytes as usize) {
        let path = segment_path(dir, base);
        if !path.exists() {
            return Err(OpenError::Foreign { path, what: "the segment is missing" });
        }
    }
    let marks = Marks::create(dir, &config, until.0)?;
    marks.set(Mark::Released, from.0);
    Ok(())
}

fn create(dir: &Path, config: &Config) -> Result<(Marks, Tail, Recovery), OpenError> {
    let first_segment = segment::list(dir).map_err(OpenError::io("list", dir))?.first().copied();
    if let Some(base) = first_segment {
        let what = "the `marks` file of this segment's log is missing";
        return Err(OpenError::Foreign { path: segment_path(dir, base), what });
    }
    if config.existing {
        return Err(OpenError::Absent { dir: dir.to_owned() });
    }
    let base = config.begins_at().0;
    let first = base + HEADER_BYTES as u64;
    let marks = Marks::create(dir, config, first)?;
    let segment = make(Keeping::of(config, dir, &marks), base, config.durability)?;
    marks.sign(config.durability, boot_id());
    let recovery = Recovery { created: true, tail: Offset(first), ..Recovery::default() };
    Ok((marks, Tail::new(Arc::new(segment), HEADER_BYTES), recovery))
}

/// Walks from the segment of the trusted mark to the end of what is whole.
fn find_tail(
    keeping: Keeping<'_>,
    trusted: u64,
    durability: Durability,
) -> Result<(Tail, Recovery), OpenError> {
    let Keeping { dir, marks, .. } = keeping;
    let geometry = marks.geometry();
    let mut recovery = Recovery::default();
    let mut base = geometry.base_of_end(trusted).max(marks.get(Mark::Released));
    loop {
        let segment = match open_segment(dir, geometry, base, trusted)? {
            Some(segment) => segment,
            None => make(keeping, base, durability)?,
        };
        let scan = record::scan(segment.bytes(), base, HEADER_BYTES, usize::MAX);
        recovery.records_checked += scan.records;
        let end = base + scan.position as u64;
        if scan.end == End::Sealed {
            base += geometry.segment_bytes;
            continue;
        }
        if end < trusted {
            let what = match scan.end {
                End::Invalid(why) => why.to_string(),
                _ => "zeros instead of a record".into(),
            };
            return Err(OpenError::Damaged { offset: Offset(end), promised: Offset(trusted), what });
        }
        return Ok((Tail::new(Arc::new(segment), scan.position), recovery));
    }
}

/// The segment of `base`; `None` if there is none and none is needed.
fn open_segment(
    dir: &Path,
    geometry: Geometry,
    base: u64,
    trusted: u64,
) -> Result<Option<Segment>, OpenError> {
    let path = segment_path(dir, base);
    let first = base + HEADER_BYTES as u64;
    let damaged = |what: &str| {
        let what = format!("{}: {what}", path.display());
        Err(OpenError::Damaged { offset: Offset(first), promised: Offset(trusted), what })
    };
    let needed = trusted > first;
    if !path.exists() {
        return if needed { damaged("the file is missing") } else { Ok(None) };
    }
    // A file cut short by a loss of power is filled up with zeros; the checksums then tell what is missing.
    let map = Mapping::create(&path, geometry.segment_bytes as usize)?;
    if Segment::header_is_right(&map, base, geometry) {
        return Ok(Some(Segment { map, base }));
    }
    if needed {
        return damaged("the segment's header is damaged");
    }
    drop(map);
    std::fs::remove_file(&path).map_err(OpenError::io("remove", &path))?;
    Ok(None)
}

fn make(keeping: Keeping<'_>, base: u64, durability: Durability) -> Result<Segment, OpenError> {
    let (synced, geometry) = (durability == Durability::Disk, keeping.marks.geometry());
    // What is mirrored is written, as it comes, over whatever pages there are.
    let pause: Option<&dyn Fn()> = if keeping.marks.is_mirror() { None } else { Some(&|| {}) };
    let segment = Making { keeping, geometry, temporary: "open.tmp", synced, pause }.make(base)?;
    if pause.is_some() {
        segment.map.prefault(0..segment.map.len());
    }
    Ok(segment)
}

/// Removes what lies in segments behind the tail's: prepared and unused, or whole records behind a torn one.
fn remove_after(dir: &Path, tail: &Tail) -> Result<u64, OpenError> {
    let mut cut_bytes = 0;
    let bases = segment::list(dir).map_err(OpenError::io("list", dir))?;
    for base in bases.into_iter().filter(|&base| base > tail.segment.base) {
        let path = segment_path(dir, base);
        if let Ok(map) = Mapping::open_read_only(&path) {
            let bytes = map.bytes(0..map.len());
            let last = segment::last_byte(bytes.get(HEADER_BYTES..).unwrap_or_default());
            cut_bytes += last.map_or(0, |last| last as u64 + 1);
        }
        std::fs::remove_file(&path).map_err(OpenError::io("remove", &path))?;
    }
    Ok(cut_bytes)
}

fn remove_unfinished(dir: &Path) -> Result<(), OpenError> {
    for name in ["next.tmp", "roll.tmp", "open.tmp"] {
        let path = dir.join(name);
        if path.exists() {
            std::fs::remove_file(&path).map_err(OpenError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// Sets the marks to the tail found; first makes it stay there when it must survive a loss of power.
fn enter(keeping: Keeping<'_>, tail: &Tail, settle: bool) -> Result<(), OpenError> {
    let (marks, end) = (keeping.marks, tail.offset());
    if settle {
        keep(keeping, tail)?;
        marks.set(Mark::Synced, end);
    }
    // What a mirror's source has not called durable is not so because it lies here.
    let durable = if marks.is_mirror() { end.min(marks.get(Mark::Durable)) } else { end };
    marks.set(Mark::Durable, durable);
    marks.set(Mark::Written, end);
    if settle {
        keeping.marks().map_err(|_| poisoned(marks))?;
    }
    Ok(())
}

/// Brings all that may not be on the device yet there.
fn keep(keeping: Keeping<'_>, tail: &Tail) -> Result<(), OpenError> {
    let Keeping { dir, marks, .. } = keeping;
    let geometry = marks.geometry();
    // Released segments are gone; nothing in them is needed.
    let first = geometry.base_of_end(marks.get(Mark::Synced)).max(marks.get(Mark::Released));
    for base in (first..tail.segment.base).step_by(geometry.segment_bytes as usize) {
        let path = segment_path(dir, base);
        let file = match pares_os::open_file(File::options().read(true), &path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let (offset, what) = (Offset(base), format!("{}: the file is missing", path.display()));
                return Err(OpenError::Damaged { offset, promised: Offset(tail.offset()), what });
            }
            file => file.map_err(OpenError::opening(&path))?,
        };
        keeping.segment(base, &file).map_err(|_| poisoned(marks))?;
    }
    let last = keeping.segment(tail.segment.base, tail.segment.map.file());
    last.and_then(|()| keeping.directory()).map_err(|_| poisoned(marks))
}

fn poisoned(marks: &Marks) -> OpenError {
    OpenError::Poisoned { errno: marks.poisoned(), synced: Offset(marks.get(Mark::Synced)) }
}

/// Ends the log at `at`, whatever follows, and lifts poison if all that is left is known to be on the device. In a poisoned log
/// nothing above that is synced: it failed once, and a second sync would be believed.
pub(crate) fn cut(dir: &Path, at: Offset) -> Result<u64, OpenError> {
    let _lock = lock(dir)?;
    let path = dir.join("marks");
    let marks = Marks::open(dir)?.ok_or(OpenError::Foreign { path, what: "there are no marks" })?;
    let geometry = marks.geometry();
    let end = at.0.max(marks.get(Mark::Released) + HEADER_BYTES as u64);
    let base = geometry.base_of_end(end);
    let limit = (end - base) as usize;
    let (config, synced) = (Config::default().durability(Durability::Disk), marks.get(Mark::Synced));
    let keeping = Keeping::of(&config, dir, &marks);
    let segment = match open_segment(dir, geometry, base, end)? {
        Some(segment) => segment,
        // A log that could not be created is cut to nothing.
        None => make(keeping, base, Durability::Disk)?,
    };
    let scan = record::scan(segment.bytes(), base, HEADER_BYTES, limit);
    if scan.position != limit {
        return Err(OpenError::NotABoundary { offset: at });
    }
    let mut tail = Tail::new(Arc::new(segment), limit);
    let cut_bytes = tail.clear_rest_anew() + remove_after(dir, &tail)?;
    marks.set(Mark::Synced, synced.min(end));
    if end <= synced || marks.poisoned() == 0 {
        enter(keeping, &tail, true)?;
    } else {
        marks.set(Mark::Durable, end.min(marks.get(Mark::Durable)));
        marks.set(Mark::Written, end);
    }
    if end <= synced || marks.durability() == Some(Durability::Os) {
        marks.clear_poison();
    }
    Ok(cut_bytes)
}

/// Whether the last writer ran in this boot of the host, so that the page cache still has what it wrote.
pub(crate) fn same_boot(marks: &Marks) -> bool {
    let boot = boot_id();
    boot != 0 && marks.boot() == boot
}
