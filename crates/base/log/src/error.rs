//! What can go wrong, one enum per kind of operation.

use std::io;
use std::path::{Path, PathBuf};

use pares_os::MapError;
use rustix::io::Errno;

use crate::offset::Offset;
use crate::record::Invalid;

/// Why marks are foreign that are no damage: another build understands them.
pub(crate) const OTHER_VERSION: &str = "the marks are of another version";

/// Why a log cannot be opened for writing. Nothing on disk was changed, except that segments of a torn tail may have
/// been cut when the failure came later.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process writes this log.
    #[error("{dir} is being written by process {pid}: a log has one writer; stop that one first", dir = dir.display())]
    Locked {
        /// The log.
        dir: PathBuf,
        /// Who holds it, as it entered itself in the marks (0 if it has not yet).
        pid: u32,
    },
    /// There is no log, and the caller wants no new one.
    #[error("there is no log in {dir}", dir = dir.display())]
    Absent {
        /// Where it should lie.
        dir: PathBuf,
    },
    /// A record that was promised is not intact.
    #[error(
        "the log is damaged at offset {offset} ({what}), below the durable end ({promised}). Nothing was \
         cut. A node repairs it from other logs at its next start, if they have the records; otherwise \
         discard everything after it with `pares journal cut`"
    )]
    Damaged {
        /// Where the first unreadable record begins.
        offset: Offset,
        /// Records below this must be intact.
        promised: Offset,
        /// What is wrong there.
        what: String,
    },
    /// The log is a mirror, and the caller wants to append to it by itself.
    #[error("{dir} is a mirror of another host's log: `pares up` takes it over, if that host is gone", dir = dir.display())]
    Mirror {
        /// The log.
        dir: PathBuf,
    },
    /// The log is its writer's own, and the caller wants to mirror another there.
    #[error(
        "{dir} holds a log of its own, not a mirror: it was taken over, or never was one. Mirror to another \
         directory, or move this one away",
        dir = dir.display()
    )]
    NotAMirror {
        /// The log.
        dir: PathBuf,
    },
    /// An earlier write or sync failed, so what the device holds above `synced` is unknown.
    #[error(
        "an earlier write to this log failed ({error}); only records below offset {synced} are certainly on \
         the device. Check the device. A node restores the rest from other logs at its next start, if they \
         have it; otherwise cut it there with `pares journal cut`",
        error = io::Error::from_raw_os_error(*errno)
    )]
    Poisoned {
        /// The kernel's error number.
        errno: i32,
        /// The mark up to which everything is on the device.
        synced: Offset,
    },
    /// The directory holds something else.
    #[error("{path} is not part of a log of this version: {what}", path = path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Why not.
        what: &'static str,
    },
    /// The configured segment size is not legal.
    #[error("the segment size {segment_bytes} must be a multiple of 4096 bytes, from 4096 to 1 GiB")]
    SegmentBytes {
        /// What was configured.
        segment_bytes: u64,
    },
    /// `cut` was asked to end the log where no record begins or ends.
    #[error("offset {offset} is not a record boundary of this log; `pares journal verify` lists damage")]
    NotABoundary {
        /// What was asked for.
        offset: Offset,
    },
    /// The kernel refused.
    #[error("cannot {step} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        step: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file could not be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
}

impl OpenError {
    /// Whether another log in the place of this one helps: see [`Replacement`](crate::Replacement).
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            OpenError::Damaged { .. } | OpenError::Poisoned { .. } => true,
            OpenError::Foreign { what, .. } => *what != OTHER_VERSION,
            OpenError::Map(MapError::Io { source, .. }) => source.kind() == io::ErrorKind::InvalidData,
            OpenError::Map(error) => matches!(error, MapError::Empty { .. }),
            _ => false,
        }
    }

    /// Whether it may pass by itself: room, descriptors, or that another process lets go. A later attempt is worth its cost then.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, OpenError::Locked { .. } | OpenError::Io { .. } | OpenError::Map(_))
            && !self.is_damage()
    }

    /// A file that cannot be opened, or something else that has its name.
    pub(crate) fn opening(path: &Path) -> impl FnOnce(io::Error) -> OpenError {
        move |source| match source.kind() {
            io::ErrorKind::InvalidData => {
                OpenError::Foreign { path: path.to_owned(), what: "something else has the name of a file" }
            }
            _ => OpenError::io("open", path)(source),
        }
    }

    pub(crate) fn io(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
        move |source| OpenError::Io { step, path: path.to_owned(), source }
    }
}

/// Why a record was not appended, or a sync not done. The log is as it was before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The payload is longer than this log takes.
    #[error("a record of {len} bytes exceeds this log's {max}")]
    TooLarge {
        /// Bytes asked for.
        len: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// The segment is used up and the disk has no room for another, or there is no descriptor to make it with. Nothing is
    /// damaged: appending works again once there is room, without a restart.
    #[error("the disk is full, or too many files are open: make room, and appending continues")]
    Full,
    /// A write or sync failed once; nothing more is accepted, because retrying could report lost data as stored.
    #[error("the log is poisoned by a failed write: {}", io::Error::from_raw_os_error(*errno))]
    Poisoned {
        /// The kernel's error number.
        errno: i32,
    },
}

/// Why a stretch of its source is not stored in a mirror, which is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// It is not what follows.
    #[error("what came begins at offset {from}, but offset {next} is next")]
    Gap {
        /// What follows.
        next: Offset,
        /// What came.
        from: Offset,
    },
    /// It is not what was sealed there.
    #[error("no intact record came for offset {offset}: {what}")]
    Damaged {
        /// Where.
        offset: Offset,
        /// What is wrong there.
        what: Invalid,
    },
    /// There is no room, or an earlier write failed.
    #[error(transparent)]
    Append(AppendError),
}

impl From<AppendError> for io::Error {
    fn from(refused: AppendError) -> io::Error {
        match refused {
            AppendError::Poisoned { errno } => io::Error::from_raw_os_error(errno),
            other => io::Error::other(other),
        }
    }
}

/// Why a record cannot be read. The reader stays where it was.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The writer has not created the log yet: try again later.
    #[error("{dir} holds no log yet", dir = dir.display())]
    NotYet {
        /// Where it was looked for.
        dir: PathBuf,
    },
    /// The writer has released this part of the log: continue from `first`, after loading a checkpoint that covers it.
    #[error("offset {offset} was released; the log begins at {first}")]
    Released {
        /// What was asked for.
        offset: Offset,
        /// Where the log begins now.
        first: Offset,
    },
    /// Nothing is published there: the offset is of another log, or of a tail that a power loss took.
    #[error("offset {offset} lies beyond the {written} bytes written")]
    BeyondEnd {
        /// What was asked for.
        offset: Offset,
        /// Where the log ends.
        written: Offset,
    },
    /// A published record is not intact, or the offset is not where a record begins.
    #[error("no intact record at offset {offset}: {what}; `pares journal verify` shows the extent")]
    Damaged {
        /// Where.
        offset: Offset,
        /// What is wrong there.
        what: Invalid,
    },
    /// The files are not a log of this version.
    #[error("{path} is not part of a log of this version: {what}", path = path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Why not.
        what: &'static str,
    },
    /// A file could not be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
}

impl ReadError {
    /// Whether what was written there is not there any more: a record that is not intact, a segment whose header is damaged, that
    /// is missing, empty, or that the device does not give. [`Reader::skip_damage`](crate::Reader::skip_damage) gets past it. What is
    /// no damage passes by itself, or is the caller's.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            ReadError::Damaged { .. } => true,
            ReadError::Foreign { what, .. } => *what != OTHER_VERSION,
            ReadError::Map(MapError::Io { source, .. }) => {
                let lost = [Errno::IO, Errno::UCLEAN, Errno::NOENT].map(|errno| Some(errno.raw_os_error()));
                lost.contains(&source.raw_os_error())
            }
            ReadError::Map(MapError::Empty { .. }) => true,
            ReadError::NotYet { .. } | ReadError::Released { .. } | ReadError::BeyondEnd { .. } => false,
        }
    }
}
