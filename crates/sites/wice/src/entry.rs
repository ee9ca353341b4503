//! What stands in a cluster's log, and the stream that leaves it.

use std::sync::Arc;

use crate::ids::{ClusterId, ClusterSet, Era, TransactionId, Version};
use crate::item::Write;

/// Which clusters live and which of them certifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Configuration {
    /// The era it begins.
    pub era: Era,
    /// The cluster whose delegate certifies; it lives.
    pub certifier: ClusterId,
    /// The clusters without which nothing is stable.
    pub live: ClusterSet,
}

impl Configuration {
    /// The first one.
    #[must_use]
    pub fn first(live: ClusterSet, certifier: ClusterId) -> Self {
        Self { era: Era::default(), certifier, live }
    }
}

/// What a version consists of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// A transaction that passed certification.
    Update {
        /// Its name.
        id: TransactionId,
        /// The attempt that passed.
        attempt: u32,
        /// What it changes.
        writes: Vec<Write>,
    },
    /// An era begins; no item changes.
    Configure(Configuration),
}

/// One version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its place in the commit order, from 1.
    pub version: Version,
    /// The era that had begun last before it. Two histories that part in a version differ in the eras of the next ones, so who has everything
    /// before a version and is in its era has the same (as the term of the previous entry says in Raft).
    pub era: Era,
    /// What it consists of.
    pub body: Body,
}

/// What a version, or a transaction that has none yet, costs in memory beside its items, about.
pub(crate) const VERSION_HELD_BYTES: usize = 256;

impl Entry {
    /// What it changes; nothing if an era begins.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        if let Body::Update { writes, .. } = &self.body { writes } else { &[] }
    }

    /// Bytes that it takes in memory, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        held_bytes(self.writes())
    }
}

/// Bytes that a version with these writes takes in memory, about.
pub(crate) fn held_bytes(writes: &[Write]) -> usize {
    writes.iter().map(Write::held_bytes).sum::<usize>() + VERSION_HELD_BYTES
}

/// A history without its entries: where it has come to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Past {
    /// Its last version, which is stable.
    pub delivered: Version,
    /// The latest eras up to there, and with which versions they began; at least one.
    pub eras: Vec<(Version, Configuration)>,
}

/// One entry of a cluster's replicated log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogEntry {
    /// The next version, as a certifier of `era` vouches for it.
    Stream {
        /// The era of the one that vouches for it; void if a later one has been promised.
        era: Era,
        /// The version.
        entry: Arc<Entry>,
    },
    /// The promise to take nothing from eras below that of this configuration, which its certifier's cluster is about to begin.
    Fence(Configuration),
    /// The same where there is a [witness](crate::witness): skipped if the count of takeovers has been reached, or was promised to another cluster. What it
    /// means is in the log, and not in the settings of who reads it: a database may get a witness later.
    WitnessedFence(Configuration),
    /// Versions above `keep` never were: this cluster was declared lost, and the others continued without them.
    Discard {
        /// The era of those who continued.
        era: Era,
        /// The last version both histories share.
        keep: Version,
    },
    /// The history up to here is that of those who continued, and what it left behind is in a copy of a store: this cluster was declared lost, and lacks
    /// what no other keeps any more.
    Adopt {
        /// The era of those who continued.
        era: Era,
        /// What they had come to.
        past: Past,
    },
}
