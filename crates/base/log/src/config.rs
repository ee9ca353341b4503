//! What an owner of a log chooses.

use std::sync::Arc;

use crate::device::{Device, Plain};
use crate::error::OpenError;
use crate::offset::Offset;
use crate::record;

/// What `durable` promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// In the page cache: survives the death of any process. Publishing makes a record durable.
    Os = 1,
    /// On the device: survives the loss of power. Syncing makes a record durable.
    Disk = 2,
}

/// Settings of a [`Writer`](crate::Writer).
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) segment_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) existing: bool,
    pub(crate) prepared_only: bool,
    /// Of a mirror: the segment it begins with, if it is made.
    pub(crate) mirror_from: Option<u64>,
    pub(crate) device: Arc<dyn Device>,
}

/// 64 MiB segments, durable in the page cache.
impl Default for Config {
    fn default() -> Config {
        Config {
            segment_bytes: 64 << 20,
            durability: Durability::Os,
            existing: false,
            prepared_only: false,
            mirror_from: None,
            device: Arc::new(Plain),
        }
    }
}

impl Config {
    /// Bytes per segment: a multiple of 4,096 up to 1 GiB. Only for a log that is new; one that exists keeps its own.
    pub fn segment_bytes(self, segment_bytes: u64) -> Config {
        Config { segment_bytes, ..self }
    }

    /// What `durable` promises. May change from one opening to the next.
    pub fn durability(self, durability: Durability) -> Config {
        Config { durability, ..self }
    }

    /// Opens only a log that is there; makes none.
    pub fn existing(self) -> Config {
        Config { existing: true, ..self }
    }

    /// Where a mirror begins that is made: with the segment there, of the source's.
    pub fn mirror_from(self, first: Offset) -> Config {
        Config { mirror_from: Some(first.0), ..self }
    }

    /// Makes no segment in line: while the next one is not ready, records are refused as `Full`. For a log that may lack something, and whose
    /// writer may not wait.
    pub fn prepared_only(self) -> Config {
        Config { prepared_only: true, ..self }
    }

    /// The device that the log lies on, if it is not to be taken as it is.
    pub fn device(self, device: Arc<dyn Device>) -> Config {
        Config { device, ..self }
    }

    /// What `durable` promises, as chosen.
    pub fn promises(&self) -> Durability {
        self.durability
    }

    /// Whether a log that is not there is not made.
    pub fn wants_existing(&self) -> bool {
        self.existing
    }

    /// Where its first segment begins, if it is made.
    pub fn begins_at(&self) -> Offset {
        Offset(self.mirror_from.unwrap_or(0))
    }

    /// Whether another log is copied there.
    pub(crate) fn is_mirror(&self) -> bool {
        self.mirror_from.is_some()
    }

    /// Whether what is published is durable by that alone.
    pub(crate) fn promises_when_published(&self) -> bool {
        self.durability == Durability::Os && !self.is_mirror()
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let sane = (4096..=1 << 30).contains(&self.segment_bytes)
            && self.segment_bytes.is_multiple_of(4096)
            && self.mirror_from.is_none_or(|from| from.is_multiple_of(self.segment_bytes));
        if sane { Ok(()) } else { Err(OpenError::SegmentBytes { segment_bytes: self.segment_bytes }) }
    }
}

/// Longest payload in a log with such segments: a quarter of a segment, 1 MiB at most.
pub fn payload_bytes_max(segment_bytes: u64) -> usize {
    (segment_bytes / 4).min(1 << 20) as usize - record::HEADER_BYTES
}
