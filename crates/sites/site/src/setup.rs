//! What a duty cycle is told when it begins.

use std::time::Duration;

use pares_wice::{ClusterId, Settings};

/// A site's place among all sites, and its bounds.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Names the database, for ever.
    pub identity: String,
    /// The settings of its rules.
    pub settings: Settings,
    /// Its place in its cluster's log. What is applied is found in the site's notes.
    pub log: pares_cluster::ReplicaConfig,
    /// The cluster that certifies at first.
    pub certifier: ClusterId,
    /// How much it keeps and does at a time.
    pub bounds: Bounds,
}

/// How much a site keeps and does at a time.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Requests of clients without an answer. More are turned away.
    pub open_requests_max: usize,
    /// Requests executed in one turn.
    pub executed_max: usize,
    /// Versions in memory and not in the store. Beyond, requests wait until the store has caught up.
    pub unstored_max: u64,
    /// Versions in one batch for the store.
    pub applied_max: usize,
    /// Bytes handed out by the log between two bases.
    pub base_every_bytes: u64,
    /// Time between two flushes of the store. A flush lets the log be shortened and the engine let go of memory.
    pub flush_every: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            open_requests_max: 1 << 16,
            executed_max: 1_024,
            unstored_max: 1 << 17,
            applied_max: 4_096,
            base_every_bytes: 64 << 20,
            flush_every: Duration::from_secs(5),
        }
    }
}
