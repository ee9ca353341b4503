//! The messages of mirrors and their bytes. All integers are little-endian.

use core::fmt;

use crate::{MirrorFault, class_of};

/// The version that this build speaks, and the lowest that it understands.
pub const SPEAKS: u16 = 1;
/// See [`SPEAKS`].
pub const UNDERSTANDS: u16 = 1;

/// Bytes of a message at most: a stretch, and one record of a mebibyte beyond it.
pub const FRAME_MAX: usize = 2 << 20;

const MAGIC: &[u8; 4] = b"PMIR";

/// A log that is mirrored. Gateways' come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogName {
    /// A gateway's: the requests it accepted.
    Gateway(u16),
    /// A recorder's: the record.
    Recorder(u16),
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gateway(id) => write!(f, "gateway-{id}"),
            Self::Recorder(id) => write!(f, "recorder-{id}"),
        }
    }
}

/// What one end says to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorMessage<'a> {
    /// Either end's first.
    Hello {
        /// The highest version it speaks.
        speaks: u16,
        /// The lowest it understands.
        understands: u16,
    },
    /// The receiver has a mirror of that log.
    Have {
        /// Of which.
        log: LogName,
        /// How long its segments are.
        segment_bytes: u64,
        /// What it takes next.
        next: u64,
        /// Where its last record lies; 0 if it has none.
        last: u64,
        /// CRC-32C of that record's payload.
        digest: u32,
    },
    /// The receiver has that file.
    HaveFile {
        /// How long.
        bytes: u64,
        /// Of what it says, if it is small; see the protocol's page.
        digest: u32,
        /// Which.
        path: &'a str,
    },
    /// The receiver has said what it has.
    Go,
    /// The receiver has stored that many bytes of stretches of that log, on this connection.
    Taken {
        /// Of which.
        log: LogName,
        /// How many.
        bytes: u64,
    },
    /// The same of files.
    TakenFiles {
        /// How many.
        bytes: u64,
    },
    /// Where the log continues.
    Begins {
        /// Which.
        log: LogName,
        /// How long its segments are.
        segment_bytes: u64,
        /// The next stretch begins there, or behind the header there.
        from: u64,
        /// Whether the receiver's mirror is of another log, and to be set aside.
        afresh: bool,
    },
    /// Bytes of a log, as they lie there.
    Stretch {
        /// Of which.
        log: LogName,
        /// Where they begin.
        from: u64,
        /// Whole records of one segment, and perhaps its pad.
        bytes: &'a [u8],
    },
    /// How far the source's log was at the beginning of the round.
    Marks {
        /// Which.
        log: LogName,
        /// Readable below this.
        written: u64,
        /// Kept below this, as the source promises.
        durable: u64,
        /// It begins here.
        released: u64,
    },
    /// A piece of a file.
    Piece {
        /// Where in it.
        at: u64,
        /// How long the file is.
        of: u64,
        /// Which.
        path: &'a str,
        /// The piece: the whole file if it is empty.
        bytes: &'a [u8],
    },
    /// All files that there are, each path followed by a line feed: others are removed.
    Keep {
        /// The paths.
        paths: &'a str,
    },
    /// Why the source ends the connection.
    Ends {
        /// For the operator.
        why: &'a str,
    },
    /// What was sent is a whole copy.
    Round {
        /// Counts from 1 on each connection.
        number: u64,
    },
}

/// The version of a connection between who says that and this build.
///
/// # Errors
/// If there is none.
pub fn agreed(speaks: u16, understands: u16) -> Result<u16, MirrorFault> {
    let version = speaks.min(SPEAKS);
    if version >= understands && version >= UNDERSTANDS {
        Ok(version)
    } else {
        Err(MirrorFault::Version { theirs: speaks })
    }
}

impl<'a> MirrorMessage<'a> {
    /// Puts it in the place of what `out` has.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let mut put = Put(out);
        match *self {
            Self::Hello { speaks, understands } => put.kind(1).all(MAGIC).u16(speaks).u16(understands),
            Self::Have { log, segment_bytes, next, last, digest } => {
                put.kind(2).log(log).u64(segment_bytes).u64(next).u64(last).u32(digest)
            }
            Self::HaveFile { bytes, digest, path } => put.kind(3).u64(bytes).u32(digest).all(path.as_bytes()),
            Self::Go => put.kind(4),
            Self::Taken { log, bytes } => put.kind(5).log(log).u64(bytes),
            Self::TakenFiles { bytes } => put.kind(6).u64(bytes),
            Self::Begins { log, segment_bytes, from, afresh } => {
                put.kind(16).log(log).u64(segment_bytes).u64(from).all(&[afresh.into()])
            }
            Self::Stretch { log, from, bytes } => put.kind(17).log(log).u64(from).all(bytes),
            Self::Marks { log, written, durable, released } => {
                put.kind(18).log(log).u64(written).u64(durable).u64(released)
            }
            Self::Piece { at, of, path, bytes } => {
                let len = u16::try_from(path.len()).expect("paths are short");
                put.kind(19).u64(at).u64(of).u16(len).all(path.as_bytes()).all(bytes)
            }
            Self::Keep { paths } => put.kind(20).all(paths.as_bytes()),
            Self::Ends { why } => put.kind(22).all(why.as_bytes()),
            Self::Round { number } => put.kind(21).u64(number),
        };
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`MirrorFault::Malformed`], and never a panic, whatever the bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MirrorFault> {
        let (&kind, rest) = bytes.split_first().ok_or(MirrorFault::Malformed)?;
        let mut get = Get(rest);
        let message = match kind {
            1 if get.all(4)? == MAGIC => {
                // A later version may say more.
                return Ok(Self::Hello { speaks: get.u16()?, understands: get.u16()? });
            }
            2 => {
                let (log, segment_bytes) = (get.log()?, get.u64()?);
                Self::Have { log, segment_bytes, next: get.u64()?, last: get.u64()?, digest: get.u32()? }
            }
            3 => Self::HaveFile { bytes: get.u64()?, digest: get.u32()?, path: get.path_of_rest()? },
            4 => Self::Go,
            5 => Self::Taken { log: get.log()?, bytes: get.u64()? },
            6 => Self::TakenFiles { bytes: get.u64()? },
            16 => {
                let (log, segment_bytes, from) = (get.log()?, get.u64()?, get.u64()?);
                let [afresh @ (0 | 1)] = get.array::<1>()? else { return Err(MirrorFault::Malformed) };
                Self::Begins { log, segment_bytes, from, afresh: afresh == 1 }
            }
            17 => Self::Stretch { log: get.log()?, from: get.u64()?, bytes: get.rest() },
            18 => {
                let (log, written, durable) = (get.log()?, get.u64()?, get.u64()?);
                Self::Marks { log, written, durable, released: get.u64()? }
            }
            19 => {
                let (at, of, len) = (get.u64()?, get.u64()?, get.u16()?);
                Self::Piece { at, of, path: path(get.all(len.into())?)?, bytes: get.rest() }
            }
            20 => Self::Keep { paths: paths(get.rest())? },
            22 => Self::Ends { why: core::str::from_utf8(get.rest()).map_err(|_| MirrorFault::Malformed)? },
            21 => Self::Round { number: get.u64()? },
            _ => return Err(MirrorFault::Malformed),
        };
        if get.0.is_empty() { Ok(message) } else { Err(MirrorFault::Malformed) }
    }
}

fn path(bytes: &[u8]) -> Result<&str, MirrorFault> {
    let path = core::str::from_utf8(bytes).map_err(|_| MirrorFault::Malformed)?;
    class_of(path).map(|_| path).ok_or(MirrorFault::Malformed)
}

fn paths(bytes: &[u8]) -> Result<&str, MirrorFault> {
    let paths = core::str::from_utf8(bytes).map_err(|_| MirrorFault::Malformed)?;
    let is_ended = paths.is_empty() || paths.ends_with('\n');
    let are_right = paths.lines().all(|path| class_of(path).is_some());
    if is_ended && are_right { Ok(paths) } else { Err(MirrorFault::Malformed) }
}

struct Put<'o>(&'o mut Vec<u8>);

impl Put<'_> {
    fn all(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn kind(&mut self, kind: u8) -> &mut Self {
        self.all(&[kind])
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.all(&value.to_le_bytes())
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.all(&value.to_le_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.all(&value.to_le_bytes())
    }

    fn log(&mut self, log: LogName) -> &mut Self {
        match log {
            LogName::Gateway(id) => self.kind(0).u16(id),
            LogName::Recorder(id) => self.kind(1).u16(id),
        }
    }
}

struct Get<'a>(&'a [u8]);

impl<'a> Get<'a> {
    fn all(&mut self, len: usize) -> Result<&'a [u8], MirrorFault> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(MirrorFault::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MirrorFault> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(MirrorFault::Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, MirrorFault> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, MirrorFault> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, MirrorFault> {
        self.array().map(u64::from_le_bytes)
    }

    fn log(&mut self) -> Result<LogName, MirrorFault> {
        let [role] = self.array::<1>()?;
        let id = self.u16()?;
        match role {
            0 => Ok(LogName::Gateway(id)),
            1 => Ok(LogName::Recorder(id)),
            _ => Err(MirrorFault::Malformed),
        }
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    fn path_of_rest(&mut self) -> Result<&'a str, MirrorFault> {
        path(self.rest())
    }
}

#[cfg(test)]
mod tests;
