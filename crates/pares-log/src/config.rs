//! What an owner of a log chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::error::OpenError;
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
    pub(crate) faults: Arc<Faults>,
}

/// 64 MiB segments, durable in the page cache.
impl Default for Config {
    fn default() -> Config {
        Config { segment_bytes: 64 << 20, durability: Durability::Os, faults: Arc::default() }
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

    /// Failures to inject, for tests and drills.
    pub fn faults(self, faults: Arc<Faults>) -> Config {
        Config { faults, ..self }
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let sane = (4096..=1 << 30).contains(&self.segment_bytes) && self.segment_bytes.is_multiple_of(4096);
        if sane { Ok(()) } else { Err(OpenError::SegmentBytes { segment_bytes: self.segment_bytes }) }
    }
}

/// Longest payload in a log with such segments: a quarter of a segment, 1 MiB at most.
pub fn payload_bytes_max(segment_bytes: u64) -> usize {
    (segment_bytes / 4).min(1 << 20) as usize - record::HEADER_BYTES
}

/// Failures injected into a running log: error numbers as the kernel would give them, zero for none.
#[derive(Debug, Default)]
pub struct Faults {
    /// Returned by every sync to the device.
    pub sync: AtomicI32,
    /// Milliseconds that every sync takes longer.
    pub slow_sync_ms: AtomicU32,
    /// Syncs until one fails, that one included, with EIO; 0 for none.
    pub syncs_to_failure: AtomicU64,
    /// Returned whenever a segment is made, ahead or in line.
    pub make_segment: AtomicI32,
    /// Returned when a segment is made ahead, so that the writer has to make it in line.
    pub prepare: AtomicI32,
}

impl Faults {
    /// What befalls a sync.
    pub(crate) fn on_sync(&self) -> std::io::Result<()> {
        let slow_ms = self.slow_sync_ms.load(Ordering::Relaxed);
        if slow_ms > 0 {
            std::thread::sleep(Duration::from_millis(slow_ms.into()));
        }
        let left = self.syncs_to_failure.load(Ordering::Relaxed);
        self.syncs_to_failure.store(left.saturating_sub(1), Ordering::Relaxed);
        match left {
            1 => Err(rustix::io::Errno::IO.into()),
            _ => Faults::check(&self.sync),
        }
    }

    pub(crate) fn check(fault: &AtomicI32) -> std::io::Result<()> {
        match fault.load(Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(std::io::Error::from_raw_os_error(errno)),
        }
    }
}
