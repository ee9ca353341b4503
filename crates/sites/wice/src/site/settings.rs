//! What a site receives before anything else, and what it takes in memory.
//!
//! Whatever grows with load, or while a cluster is cut off, has two bounds: one of versions, and one of bytes, since versions may be small or of
//! three quarters of a mebibyte. Bytes are counted, not measured: content, and a little more for each write and version, so that all sites count
//! alike and tests need no large memory.
//!
//! ```text
//!   what                     bound                    beyond it
//!   versions, not stable     unstable_*_max           initiators refuse (behind); the certifier is silent at twice as much
//!   recent                   retained_*               stable versions go: who lacks them must copy a store
//!   index                    index_*                  the oldest version is forgotten: older snapshots are refused
//!   proposed, not committed  proposed_bytes_max       no more is taken; others ask or send again
//!   pending                  pending_bytes_max        refused (behind)
//!   sent, not received       stream_window*           the rest waits
//! ```

use crate::ids::{ClusterSet, SiteId};
use crate::index::INDEX_VERSIONS_MAX;
use crate::site::Site;
use crate::transaction::Isolation;

/// What a site receives before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Which site it is.
    pub site: SiteId,
    /// All sites of all clusters, itself among them.
    pub sites: Vec<SiteId>,
    /// What counts as a conflict for what is executed at the site; the same at all sites.
    pub isolation: Isolation,
    /// Whether a [witness](crate::witness) must have granted it before a cluster is declared lost; the same at all sites.
    pub witnessed: bool,
    /// Versions whose items are remembered for certification, at least 1, at most [`INDEX_VERSIONS_MAX`]. A transaction with an older snapshot is refused.
    pub index_versions: usize,
    /// Bytes that these may take, as [`Index::held_bytes`](crate::index::Index::held_bytes) counts.
    pub index_bytes_max: usize,
    /// Versions that may be installed and not stable; beyond, initiators refuse, and at twice as many the certifier does not answer.
    pub unstable_versions_max: u64,
    /// Bytes of such versions, in the same way. They cannot be let go of.
    pub unstable_bytes_max: usize,
    /// Bytes of a site's own transactions without an outcome; beyond, it refuses.
    pub pending_bytes_max: usize,
    /// Versions kept for clusters that are behind, the unstable ones included.
    pub retained_versions: usize,
    /// Bytes of them; what is not stable is kept all the same.
    pub retained_bytes_max: usize,
    /// Versions sent to a cluster that it has not said to have received.
    pub stream_window: u64,
    /// Bytes of them, about.
    pub stream_window_bytes: usize,
    /// Versions in one message, at least 1.
    pub stream_entries_max: usize,
    /// Bytes in one message, about; a single version may be more.
    pub stream_bytes_max: usize,
    /// Bytes that a delegate has proposed to its cluster's log and not been given; beyond, it takes no more, and others say it again.
    pub proposed_bytes_max: usize,
    /// Ticks without effect after which something is said again, at least 1.
    pub patience_ticks: u32,
}

impl Settings {
    /// What fits most: a million versions remembered, a quarter of a million not stable; some 64 MiB for each of the things kept.
    #[must_use]
    pub fn new(site: SiteId, sites: Vec<SiteId>) -> Self {
        Self {
            site,
            sites,
            isolation: Isolation::Snapshot,
            witnessed: false,
            index_versions: INDEX_VERSIONS_MAX,
            index_bytes_max: 64 << 20,
            unstable_versions_max: 1 << 18,
            unstable_bytes_max: 64 << 20,
            pending_bytes_max: 64 << 20,
            retained_versions: 1 << 18,
            retained_bytes_max: 128 << 20,
            stream_window: 1 << 14,
            stream_window_bytes: 16 << 20,
            stream_entries_max: 256,
            stream_bytes_max: 1 << 20,
            proposed_bytes_max: 32 << 20,
            patience_ticks: 10,
        }
    }

    pub(super) fn clusters(&self) -> ClusterSet {
        self.sites.iter().map(|site| site.cluster).collect()
    }
}

/// What the parts of a site take in memory, bytes, about. Values that several parts hold are counted by each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBytes {
    /// Versions that are not in the store.
    pub versions: usize,
    /// Of them, those that are not stable.
    pub unstable: usize,
    /// Versions kept for clusters that are behind.
    pub retained: usize,
    /// The certification index.
    pub index: usize,
    /// What was proposed to the log and not committed.
    pub proposed: usize,
    /// Questions to a reign that has not begun.
    pub early: usize,
    /// Own transactions without an outcome.
    pub pending: usize,
}

impl Site {
    /// What its parts take in memory, bytes, about.
    #[must_use]
    pub fn held(&self) -> HeldBytes {
        HeldBytes {
            versions: self.overlay.held_bytes(),
            unstable: self.overlay.unsettled_bytes(),
            retained: self.recent_bytes,
            index: self.index.held_bytes(),
            proposed: self.proposed_bytes,
            early: self.early_bytes,
            pending: self.pending_bytes,
        }
    }
}
