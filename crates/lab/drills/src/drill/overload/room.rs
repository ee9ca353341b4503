//! Whether a run fits this machine: what is recorded is kept for ever, and so is every name.
//!
//! A run that fills the disk half way proves something else than what it set out to prove. So a short run measures what a request
//! costs, and the long one is refused if that many of them do not fit.

use std::path::Path;

use pares_gateway::NAME_BYTES;
use pares_load::LabError;
use pares_node::{Layout, SystemConfig};

use super::memory;

/// Left free on the disk, bytes.
pub(super) const DISK_RESERVE: u64 = 1 << 30;
/// What a name takes with its share of the indexes, twice: they may be nearly half empty.
const NAME_BYTES_MAX: u64 = NAME_BYTES as u64 + 24;

/// What a run needs and what there is, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// On the disk, for each request taken in.
    pub(super) request_bytes: u64,
    pub(super) disk_bytes: u64,
    pub(super) memory_bytes: u64,
}

impl Room {
    /// What there is where the system's files are to lie, if a request costs so much.
    pub(super) fn measure(dir: &Path, request_bytes: u64) -> Result<Self, LabError> {
        // Half of the memory is the page cache's: what is recorded goes through it.
        let memory_bytes = memory::available_bytes()? / 2;
        Ok(Self { request_bytes, disk_bytes: free_bytes(dir)?.saturating_sub(DISK_RESERVE), memory_bytes })
    }

    /// Requests that fit.
    fn requests(&self, gateways: u64) -> u64 {
        let on_disk = self.disk_bytes / self.request_bytes.max(1);
        on_disk.min(self.memory_bytes / (NAME_BYTES_MAX * gateways))
    }

    /// Names to make room for, if a run of so many seconds at that rate fits; a fifth more than it should need.
    ///
    /// # Errors
    /// If it does not fit; the message says how long would.
    pub(super) fn names(&self, rate: u64, seconds: u64, gateways: u64) -> Result<usize, LabError> {
        let needed = rate * seconds * 6 / 5;
        let fits = self.requests(gateways);
        if needed <= fits {
            // The last sixteenth is for cancels only.
            return Ok((needed + needed / 8).max(1 << 16) as usize);
        }
        Err(LabError::Usage(format!(
            "{seconds} seconds at {rate} requests a second do not fit: they need {} GiB on the disk ({} are \
             free) and {} GiB of memory for names ({} are available); {:.1} minutes would fit",
            gib(needed * self.request_bytes),
            gib(self.disk_bytes),
            gib(needed * NAME_BYTES_MAX * gateways),
            gib(self.memory_bytes),
            (fits * 5 / 6) as f64 / rate.max(1) as f64 / 60.0
        )))
    }
}

fn gib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 30)
}

/// Free room where `dir` lies, bytes.
pub(super) fn free_bytes(dir: &Path) -> Result<u64, LabError> {
    let stat = rustix::fs::statvfs(dir)
        .map_err(|error| LabError::io(format!("asking for room in {}", dir.display()))(error.into()))?;
    Ok(stat.f_bavail * stat.f_frsize)
}

/// What the recorders' logs of a system take on the disk, bytes.
pub(super) fn recorded_bytes(layout: &Layout, config: &SystemConfig) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files =
        config.recorder_ids().filter_map(|id| std::fs::read_dir(layout.recorder_log(id)).ok()).flatten();
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.blocks() * 512)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { request_bytes: 500, disk_bytes: 60 << 30, memory_bytes: 10 << 30 };

    #[test]
    fn a_run_that_fits_gets_names_for_more_than_it_should_need() {
        assert_eq!(ROOM.names(100_000, 600, 1).unwrap(), 81_000_000);
    }

    #[test]
    fn a_run_that_does_not_fit_is_refused_and_told_how_long_would() {
        let refused = ROOM.names(400_000, 600, 1).unwrap_err().to_string();
        assert!(refused.contains("4.5 minutes would fit"), "{refused}");
        let two = ROOM.names(100_000, 1_200, 2).unwrap_err().to_string();
        assert!(two.contains("minutes would fit"), "names at both gateways: {two}");
    }
}
