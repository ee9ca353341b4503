//! What a process sees of logs, whatever they are made of.
//!
//! A role that opens files by name can only be tried with files, and what a loss of power does to it only with a plug. So
//! roles know logs by these traits. Two kinds of log have them: the mapped one of this crate, and the simulator's in memory, which
//! has the same bytes and checksums (`record`). A method does what that of the mapped log does, and fails as it does. One suite holds both to the same behaviour: append, tail, tear, sync, fill up,
//! vanish (`conformance` in `pares-sim`).

use crate::error::{AppendError, MirrorError, OpenError, ReadError};
use crate::mirror::Mirror;
use crate::offset::Offset;
use crate::reader::{RawStretch, Reader, Record};
use crate::replace::Replacement;
use crate::salvage::Salvage;
use crate::shared::Syncer;
use crate::writer::Writer;

/// The one writer of a log.
pub trait LogWriter: Send + 'static {
    /// What syncs it from another thread.
    type Syncer: LogSyncer;

    /// As [`Writer::append_with`].
    fn append_with(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Offset, AppendError>;

    /// As [`Writer::append`].
    fn append(&mut self, payload: &[u8]) -> Result<Offset, AppendError> {
        self.append_with(payload.len(), |bytes| bytes.copy_from_slice(payload))
    }

    /// As [`Writer::reserve`].
    fn reserve(&mut self, bytes: usize) -> Result<(), AppendError>;

    /// As [`Writer::begin_segment`].
    fn begin_segment(&mut self) -> Result<(), AppendError>;

    /// As [`Writer::publish`].
    fn publish(&mut self) -> Offset;

    /// As [`Writer::sync`].
    fn sync(&mut self) -> Result<Offset, AppendError>;

    /// As [`Writer::syncer`].
    fn syncer(&self) -> Self::Syncer;

    /// As [`Writer::release_before`].
    fn release_before(&mut self, offset: Offset) -> Offset;

    /// As [`Writer::tail`].
    fn tail(&self) -> Offset;

    /// As [`Writer::durable`].
    fn durable(&self) -> Offset;
}

/// The one writer of a mirror.
pub trait LogMirror: Send + 'static {
    /// As [`Mirror::next`].
    fn next(&self) -> Offset;

    /// As [`Mirror::take`].
    fn take(&mut self, from: Offset, stretch: &[u8]) -> Result<(), MirrorError>;

    /// As [`Mirror::publish`].
    fn publish(&mut self, durable: Offset) -> Offset;

    /// As [`Mirror::release_before`].
    fn release_before(&mut self, offset: Offset) -> Offset;
}

/// Syncs a log from another thread than its writer's.
pub trait LogSyncer: Send + 'static {
    /// As [`Syncer::sync_to_written`].
    fn sync_to_written(&self) -> Result<Offset, AppendError>;
}

/// A reader of a log: a place in it that moves from record to record.
pub trait LogReader: Send + 'static {
    /// As [`Reader::next`].
    #[inline]
    fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.next_below(Offset(u64::MAX))
    }

    /// As [`Reader::next_below`].
    fn next_below(&mut self, end: Offset) -> Result<Option<Record<'_>>, ReadError>;

    /// As [`Reader::pass_if`].
    fn pass_if(&mut self, end: Offset, is_known: impl FnOnce(&[u8]) -> bool) -> bool;

    /// As [`Reader::next_stretch`].
    fn next_stretch(&mut self, end: Offset, bytes_max: usize) -> Result<Option<RawStretch<'_>>, ReadError>;

    /// As [`Reader::read_at`].
    fn read_at(&mut self, offset: Offset) -> Result<Record<'_>, ReadError>;

    /// As [`Reader::seek`].
    fn seek(&mut self, from: Offset) -> Result<(), ReadError>;

    /// As [`Reader::skip_damage`].
    fn skip_damage(&mut self) -> Offset;

    /// As [`Reader::is_replaced`].
    fn is_replaced(&self) -> bool;

    /// As [`Reader::offset`].
    fn offset(&self) -> Offset;

    /// As [`Reader::written`].
    fn written(&self) -> Offset;

    /// As [`Reader::durable`].
    fn durable(&self) -> Offset;

    /// As [`Reader::released`].
    fn released(&self) -> Offset;

    /// As [`Reader::segment_bytes`].
    fn segment_bytes(&self) -> u64;
}

/// Reads what is whole of a log.
pub trait LogSalvage {
    /// As [`Salvage::next`].
    fn next(&mut self) -> Option<Record<'_>>;

    /// As [`Salvage::read_at`].
    fn read_at(&mut self, offset: Offset) -> Option<Record<'_>>;
}

/// A log being made to take the place of a damaged one. Dropped before it is complete, it changes nothing.
pub trait LogReplacement {
    /// What reads the damaged log.
    type Salvage: LogSalvage;

    /// As [`Replacement::promised`].
    fn promised(&self) -> Offset;

    /// As [`Replacement::damaged`].
    fn damaged(&self) -> Result<Self::Salvage, OpenError>;

    /// As [`Replacement::append`].
    fn append(&mut self, payload: &[u8]) -> Result<Offset, AppendError>;

    /// As [`Replacement::tail`].
    fn tail(&self) -> Offset;

    /// As [`Replacement::complete`]; says where the damaged log lies now.
    fn complete(self) -> Result<std::path::PathBuf, OpenError>;
}

/// Methods of a trait that are the type's own.
macro_rules! own {
    ($type:ident: $(fn $name:ident(self: $me:ty $(, $argument:ident: $kind:ty)*) -> $given:ty;)*) => {
        $(#[inline]
        fn $name(self: $me $(, $argument: $kind)*) -> $given {
            $type::$name(self $(, $argument)*)
        })*
    };
}

impl LogWriter for Writer {
    type Syncer = Syncer;

    own! { Writer:
        fn append_with(self: &mut Self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Offset, AppendError>;
        fn reserve(self: &mut Self, bytes: usize) -> Result<(), AppendError>;
        fn begin_segment(self: &mut Self) -> Result<(), AppendError>;
        fn publish(self: &mut Self) -> Offset;
        fn sync(self: &mut Self) -> Result<Offset, AppendError>;
        fn syncer(self: &Self) -> Syncer;
        fn release_before(self: &mut Self, offset: Offset) -> Offset;
        fn tail(self: &Self) -> Offset;
        fn durable(self: &Self) -> Offset;
    }
}

impl LogSyncer for Syncer {
    own! { Syncer: fn sync_to_written(self: &Self) -> Result<Offset, AppendError>; }
}

impl LogMirror for Mirror {
    own! { Mirror:
        fn next(self: &Self) -> Offset;
        fn take(self: &mut Self, from: Offset, stretch: &[u8]) -> Result<(), MirrorError>;
        fn publish(self: &mut Self, durable: Offset) -> Offset;
        fn release_before(self: &mut Self, offset: Offset) -> Offset;
    }
}

impl LogReader for Reader {
    own! { Reader:
        fn next_stretch(self: &mut Self, end: Offset, bytes_max: usize) -> Result<Option<RawStretch<'_>>, ReadError>;
        fn next_below(self: &mut Self, end: Offset) -> Result<Option<Record<'_>>, ReadError>;
        fn pass_if(self: &mut Self, end: Offset, is_known: impl FnOnce(&[u8]) -> bool) -> bool;
        fn read_at(self: &mut Self, offset: Offset) -> Result<Record<'_>, ReadError>;
        fn seek(self: &mut Self, from: Offset) -> Result<(), ReadError>;
        fn skip_damage(self: &mut Self) -> Offset;
        fn is_replaced(self: &Self) -> bool;
        fn offset(self: &Self) -> Offset;
        fn written(self: &Self) -> Offset;
        fn durable(self: &Self) -> Offset;
        fn released(self: &Self) -> Offset;
        fn segment_bytes(self: &Self) -> u64;
    }
}

impl LogSalvage for Salvage {
    own! { Salvage:
        fn next(self: &mut Self) -> Option<Record<'_>>;
        fn read_at(self: &mut Self, offset: Offset) -> Option<Record<'_>>;
    }
}

impl LogReplacement for Replacement {
    type Salvage = Salvage;

    own! { Replacement:
        fn promised(self: &Self) -> Offset;
        fn damaged(self: &Self) -> Result<Salvage, OpenError>;
        fn append(self: &mut Self, payload: &[u8]) -> Result<Offset, AppendError>;
        fn tail(self: &Self) -> Offset;
        fn complete(self: Self) -> Result<std::path::PathBuf, OpenError>;
    }
}
