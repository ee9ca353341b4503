//! Bytes of messages and log entries.
//!
//! Little-endian, in the order of the fields; a list is its length (`u32`) and its parts, a string of bytes its length (`u32`) and itself, what
//! may be absent a byte and what follows. The first byte is the [`FORMAT`], the second says what it is. Nothing here panics on any
//! input, and no length is believed before as many bytes are there.
//!
//! | | |
//! |---|---|
//! | site | cluster `u8`, number `u8` |
//! | era | takeovers `u32`, number `u32`, by `u8` |
//! | reign | era, term `u64` |
//! | id | client `u64`, sequence `u64` |
//! | write | key, kind `u8` (1 put, 2 delete, 3 add), value or delta `i64` |
//! | configuration | era, certifier `u8`, live `u64` |
//! | entry | version `u64`, era, kind `u8` (1 update: id, attempt `u32`, writes; 2 configuration) |

use std::sync::Arc;

use thiserror::Error;

use crate::entry::{Body, Configuration, Entry, LogEntry, Past};
use crate::ids::{CertifierTerm, ClusterId, ClusterSet, Era, SiteId, Term, TransactionId, Version};
use crate::item::{Change, Key, KeyRange, Value, Write};
use crate::message::{AbortReason, Message, Status};
use crate::site::{Base, Command, Stored};
use crate::transaction::Transaction;
use crate::witness::Declaration;

/// The version of these layouts.
pub const FORMAT: u8 = 3;

/// Why bytes are not a message or an entry.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// It ends too early, or continues after its end.
    #[error("not as long as it says")]
    Length,
    /// Of another format.
    #[error("it has format {0}, but this build reads {FORMAT}: run the same build at all sites")]
    Format(u8),
    /// A kind nobody writes.
    #[error("{0} is no kind of {1}")]
    Kind(u8, &'static str),
}

/// What has bytes of its own.
pub trait Coded: Sized {
    /// Appends its bytes.
    fn encode(&self, to: &mut Vec<u8>);
    /// Takes it from the front of `from`.
    ///
    /// # Errors
    /// If that is not one.
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError>;

    /// Its bytes, behind the format.
    #[must_use]
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        self.encode(&mut bytes);
        bytes
    }

    /// From all of `bytes`, behind the format.
    ///
    /// # Errors
    /// If they are not exactly one.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut from = bytes;
        match u8::decode(&mut from)? {
            FORMAT => {}
            other => return Err(DecodeError::Format(other)),
        }
        let decoded = Self::decode(&mut from)?;
        if from.is_empty() { Ok(decoded) } else { Err(DecodeError::Length) }
    }
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Result<&'a [u8], DecodeError> {
    let (taken, rest) = from.split_at_checked(count).ok_or(DecodeError::Length)?;
    *from = rest;
    Ok(taken)
}

macro_rules! integers {
    ($($name:ty),*) => {$(
        impl Coded for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
                let bytes = take(from, size_of::<Self>())?;
                Ok(Self::from_le_bytes(bytes.try_into().expect("as many as were asked for")))
            }
        }
    )*};
}
integers!(u8, u32, u64, i64);

/// A struct is its fields in order.
#[macro_export]
macro_rules! fields {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl $crate::codec::Coded for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                $($crate::codec::Coded::encode(&self.$field, to);)*
            }
            fn decode(from: &mut &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                Ok(Self { $($field: $crate::codec::Coded::decode(from)?),* })
            }
        }
    )*};
}
fields! {
    SiteId { cluster, number }
    Era { takeovers, number, by }
    CertifierTerm { era, term }
    TransactionId { client, sequence }
    Write { key, change }
    KeyRange { from, to }
    Transaction { id, attempt, snapshot, reads, ranges, writes }
    Configuration { era, certifier, live }
    Entry { version, era, body }
    Status { site, term, serial, eras, promised, delivered, received, certifying, is_whole }
    Base { position, delivered, promised, eras, takeover }
    Stored { version, position, era, digest }
    Past { delivered, eras }
    Declaration { takeovers, by, lost }
}

/// A newtype is what it wraps.
macro_rules! wraps {
    ($($name:ident($inner:ty)),* $(,)?) => {$(
        impl Coded for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                self.0.encode(to);
            }
            fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
                <$inner>::decode(from).map(Self)
            }
        }
    )*};
}
wraps!(ClusterSet(u64), Version(u64), Term(u64));

impl Coded for ClusterId {
    fn encode(&self, to: &mut Vec<u8>) {
        self.0.encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        match u8::decode(from)? {
            number @ ..64 => Ok(Self(number)),
            other => Err(DecodeError::Kind(other, "cluster")),
        }
    }
}

impl Coded for bool {
    fn encode(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        match u8::decode(from)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(DecodeError::Kind(other, "truth")),
        }
    }
}

fn encode_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    u32::try_from(bytes.len()).expect("lengths are checked where transactions are submitted").encode(to);
    to.extend_from_slice(bytes);
}

fn decode_bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = u32::decode(from)?;
    take(from, length as usize)
}

impl Coded for String {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_bytes(self.as_bytes(), to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Self::from_utf8(decode_bytes(from)?.to_vec()).map_err(|_| DecodeError::Length)
    }
}

impl Coded for Key {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_bytes(self.as_bytes(), to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        decode_bytes(from).map(Self::new)
    }
}

impl Coded for Value {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_bytes(self.encoded(), to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let form = decode_bytes(from)?;
        let kind = form.first().copied().ok_or(DecodeError::Length)?;
        Self::from_encoded(form).ok_or(DecodeError::Kind(kind, "value"))
    }
}

impl<T: Coded> Coded for Option<T> {
    fn encode(&self, to: &mut Vec<u8>) {
        self.is_some().encode(to);
        if let Some(inner) = self {
            inner.encode(to);
        }
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        bool::decode(from)?.then(|| T::decode(from)).transpose()
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn encode(&self, to: &mut Vec<u8>) {
        u32::try_from(self.len()).expect("lists are short").encode(to);
        self.iter().for_each(|part| part.encode(to));
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let count = u32::decode(from)? as usize;
        // Every part has a byte at least: a length that lies costs no memory.
        if count > from.len() {
            return Err(DecodeError::Length);
        }
        (0..count).map(|_| T::decode(from)).collect()
    }
}

impl<T: Coded> Coded for Arc<T> {
    fn encode(&self, to: &mut Vec<u8>) {
        (**self).encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        T::decode(from).map(Self::new)
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn encode(&self, to: &mut Vec<u8>) {
        self.0.encode(to);
        self.1.encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

/// An enum is its kind and the fields of that kind; what stands behind a semicolon is all bytes that are left.
#[macro_export]
macro_rules! kinds {
    ($($name:ident, $what:literal { $($kind:literal => $variant:ident $(($($tuple:ident),* $(; $rest:ident)?))? $({ $($field:ident),* })?),* $(,)? })*) => {$(
        impl $crate::codec::Coded for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $(($($tuple,)* $($rest)?))? $({ $($field),* })? => {
                        to.push($kind);
                        $($($crate::codec::Coded::encode($tuple, to);)* $(to.extend_from_slice($rest);)?)?
                        $($($crate::codec::Coded::encode($field, to);)*)?
                    })*
                }
            }
            fn decode(from: &mut &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                match <u8 as $crate::codec::Coded>::decode(from)? {
                    $($kind => {
                        $($(let $tuple = $crate::codec::Coded::decode(from)?;)* $(let $rest = core::mem::take(from).to_vec();)?)?
                        $($(let $field = $crate::codec::Coded::decode(from)?;)*)?
                        Ok(Self::$variant $(($($tuple,)* $($rest)?))? $({ $($field),* })?)
                    })*
                    other => Err($crate::codec::DecodeError::Kind(other, $what)),
                }
            }
        }
    )*};
}
kinds! {
    Change, "change" { 1 => Put(value), 2 => Delete, 3 => Add(delta) }
    Body, "entry" { 1 => Update { id, attempt, writes }, 2 => Configure(configuration) }
    LogEntry, "log entry" { 1 => Stream { era, entry }, 2 => Fence(configuration), 3 => Discard { era, keep }, 4 => Adopt { era, past }, 5 => WitnessedFence(configuration) }
    AbortReason, "reason" { 1 => Conflict(version), 2 => TooOld, 3 => Behind, 4 => Void }
    Message, "message" {
        1 => Certify { reign, transaction },
        2 => Abort { reign, id, attempt, reason },
        3 => Status(status),
        4 => Stream { era, entries },
        5 => Rewind { era, keep },
        6 => Promise { configuration, delivered },
        7 => Promised { era, delivered, entries },
        8 => Adopt { era, past },
    }
    Command, "command" {
        1 => DeclareLost(lost),
        2 => Admit(cluster),
        3 => Migrate(cluster),
        4 => Granted(declared),
        5 => Unwitnessed(lost),
        6 => Renew,
    }
}
