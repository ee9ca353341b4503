//! The messages of mirrors and their bytes. All integers are little-endian.

use core::fmt;

use crate::{MirrorFault, class_of};

/// The version that this build speaks, and the lowest that it understands.
pub const SPEAKS: u16 = 1;
/// See [`SPEAKS`].
pub const UNDERSTANDS: u16 = 1;

/// Bytes of a message at most: a stretch, and one record of a mebibyte beyond it.
pub const FRAME_MAX: usize = 2 << 20;

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

/// The messages: with what their bytes begin, name, and what follows.
macro_rules! messages {
    ($($kind:literal $name:ident $({ $($field:ident: $type:ty),* })?;)*) => {
        /// What one end says to the other; `docs/protocols/mirror.md` has a row for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // that row says what the fields mean
        pub enum MirrorMessage<'a> {
            $($name $({ $($field: $type),* })?,)*
        }

        impl<'a> MirrorMessage<'a> {
            /// Puts it in the place of what `out` has.
            pub fn encode(&self, out: &mut Vec<u8>) {
                out.clear();
                match self {
                    $(Self::$name { $($($field),*)? } => {
                        out.extend_from_slice($kind);
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn read(bytes: &mut &'a [u8]) -> Option<Self> {
                $(if let Some(rest) = bytes.strip_prefix($kind.as_slice()) {
                    *bytes = rest;
                    return Some(Self::$name { $($($field: Field::get(bytes)?),*)? });
                })*
                None
            }
        }
    };
}

messages! {
    b"\x01PMIR" Hello { speaks: u16, understands: u16 };
    b"\x02" Have { log: LogName, segment_bytes: u64, next: u64, last: u64, digest: u32 };
    b"\x03" HaveFile { bytes: u64, digest: u32, path: &'a str };
    b"\x04" Go;
    b"\x05" Taken { log: LogName, bytes: u64 };
    b"\x06" TakenFiles { bytes: u64 };
    b"\x10" Begins { log: LogName, segment_bytes: u64, from: u64, afresh: bool };
    b"\x11" Stretch { log: LogName, from: u64, bytes: &'a [u8] };
    b"\x12" Marks { log: LogName, written: u64, durable: u64, released: u64 };
    b"\x13" Piece { at: u64, of: u64, file: (&'a str, &'a [u8]) };
    b"\x14" Keep { paths: &'a str };
    b"\x15" Round { number: u64 };
    b"\x16" Ends { why: &'a str };
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
    /// Reads one.
    ///
    /// # Errors
    /// [`MirrorFault::Malformed`], and never a panic, whatever the bytes.
    pub fn decode(mut bytes: &'a [u8]) -> Result<Self, MirrorFault> {
        let message = Self::read(&mut bytes).ok_or(MirrorFault::Malformed)?;
        let is_right = match message {
            // A later version may say more.
            Self::Hello { .. } => return Ok(message),
            Self::HaveFile { path, .. } | Self::Piece { file: (path, _), .. } => class_of(path).is_some(),
            Self::Keep { paths } => {
                (paths.is_empty() || paths.ends_with('\n'))
                    && paths.lines().all(|path| class_of(path).is_some())
            }
            _ => true,
        };
        if is_right && bytes.is_empty() { Ok(message) } else { Err(MirrorFault::Malformed) }
    }
}

/// What messages consist of.
trait Field<'a>: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Takes it from the front of what is left.
    fn get(bytes: &mut &'a [u8]) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Field<'_> for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &mut &[u8]) -> Option<Self> {
                let (taken, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*taken))
            }
        })*
    };
}

integers! { u8 u16 u32 u64 }

impl Field<'_> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(*self).put(out);
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        u8::get(bytes).filter(|byte| *byte <= 1).map(|byte| byte == 1)
    }
}

impl Field<'_> for LogName {
    fn put(&self, out: &mut Vec<u8>) {
        let (role, id): (u8, _) = match *self {
            Self::Gateway(id) => (0, id),
            Self::Recorder(id) => (1, id),
        };
        role.put(out);
        id.put(out);
    }

    fn get(bytes: &mut &[u8]) -> Option<Self> {
        let role = [Self::Gateway, Self::Recorder].into_iter().nth(u8::get(bytes)?.into())?;
        u16::get(bytes).map(role)
    }
}

/// All that is left.
impl<'a> Field<'a> for &'a [u8] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn get(bytes: &mut &'a [u8]) -> Option<Self> {
        Some(core::mem::take(bytes))
    }
}

impl<'a> Field<'a> for &'a str {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_bytes().put(out);
    }

    fn get(bytes: &mut &'a [u8]) -> Option<Self> {
        core::str::from_utf8(core::mem::take(bytes)).ok()
    }
}

/// A path behind its length, and what lies there.
impl<'a> Field<'a> for (&'a str, &'a [u8]) {
    fn put(&self, out: &mut Vec<u8>) {
        u16::try_from(self.0.len()).expect("paths are short").put(out);
        self.0.put(out);
        self.1.put(out);
    }

    fn get(bytes: &mut &'a [u8]) -> Option<Self> {
        let len = u16::get(bytes)?;
        let (path, rest) = core::mem::take(bytes).split_at_checked(len.into())?;
        Some((core::str::from_utf8(path).ok()?, rest))
    }
}

#[cfg(test)]
mod tests;
