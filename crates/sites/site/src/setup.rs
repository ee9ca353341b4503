//! What a duty cycle receives when it begins.

use std::time::Duration;

use pares_wice::{ClusterId, Settings, Version};

use crate::protocol::OPEN_MAX;

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
    /// The version with which the database begins: 0, or that of the backup that its sites' stores were filled from.
    pub begins: Version,
    /// How much it keeps and does at a time.
    pub bounds: Bounds,
}

/// How much a site keeps and does at a time.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Requests of clients without an answer. More are refused; of other sites' as many again are taken.
    pub open_requests_max: usize,
    /// Bytes of them and of their answers, in the same way.
    pub open_bytes_max: usize,
    /// How long a client waits before it receives "not known yet".
    pub answer_patience: Duration,
    /// Requests executed in one turn, which syncs once for all of them.
    pub executed_max: usize,
    /// How long a turn executes, about: others wait to hear of this site meanwhile.
    pub executing_max: Duration,
    /// Stable versions that are not in the store. Beyond, requests wait until the store has caught up.
    pub unstored_max: u64,
    /// Bytes of them.
    pub unstored_bytes_max: usize,
    /// Versions in one batch for the store.
    pub applied_max: usize,
    /// Bytes of one, about; a single version may be more.
    pub applied_bytes_max: usize,
    /// Bytes handed out by the log between two bases.
    pub base_every_bytes: u64,
    /// Threads that answer reads, at least 1.
    pub readers: usize,
    /// Reads without a reply, and bytes of their requests. More are refused.
    pub reads_max: usize,
    /// See `reads_max`.
    pub reads_bytes_max: usize,
    /// How long one read may take: so long its snapshot keeps what was replaced or deleted since from being reused.
    pub read_time_max: Duration,
    /// Executions a client may have open, and reads a connection. More are refused.
    pub client_open_max: usize,
    /// How long a site that has begun waits to hear how far all living clusters are, before it shows what it has. Longer than any client waits: it could be
    /// less than it has answered.
    pub catch_up_patience: Duration,
    /// Time between two flushes of the store. A flush lets the log be shortened and the engine let go of memory.
    pub flush_every: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            open_requests_max: 1 << 16,
            open_bytes_max: 64 << 20,
            answer_patience: Duration::from_millis(1_500),
            executed_max: 4_096,
            executing_max: Duration::from_millis(20),
            unstored_max: 1 << 17,
            unstored_bytes_max: 64 << 20,
            applied_max: 4_096,
            applied_bytes_max: 8 << 20,
            base_every_bytes: 64 << 20,
            readers: 2,
            reads_max: 1_024,
            reads_bytes_max: 16 << 20,
            read_time_max: Duration::from_secs(10),
            client_open_max: OPEN_MAX as usize,
            catch_up_patience: Duration::from_secs(u32::MAX as u64),
            flush_every: Duration::from_secs(5),
        }
    }
}
