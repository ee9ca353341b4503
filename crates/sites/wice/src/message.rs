//! What sites tell each other. Any of it may be lost, late, repeated or overtaken.

use std::sync::Arc;

use crate::entry::{Configuration, Entry, Past};
use crate::ids::{CertifierTerm, Era, SiteId, Term, TransactionId, Version};
use crate::transaction::Transaction;

/// How a cluster stands, as its delegate says it to every site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// The delegate.
    pub site: SiteId,
    /// Since when it is.
    pub term: Term,
    /// Counts what it has said in this term, so that a late message is known to be late.
    pub serial: u64,
    /// The latest eras that have begun there and the versions they began with, in order; at least one.
    pub eras: Vec<(Era, Version)>,
    /// The lowest era anything is still taken from.
    pub promised: Era,
    /// All versions up to this one are committed by its cluster's log: what the paper acknowledges one by one.
    pub delivered: Version,
    /// All versions up to this one have been proposed there: where the stream continues.
    pub received: Version,
    /// Whether it certifies.
    pub certifying: bool,
    /// Whether most of its cluster's sites have their items: one that is being filled has delivered what it could not bring back.
    pub is_whole: bool,
}

/// Why a transaction was not committed. Nothing of it has happened, and it may be executed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbortReason {
    /// The version of a transaction it had not seen, and that changed what this one changed (or read).
    Conflict(Version),
    /// Its snapshot is older than what the certifier remembers.
    TooOld,
    /// Too many versions are not stable yet: a cluster is behind, or cut off.
    Behind,
    /// It had read what was lost with a delegate or a cluster, before a client received any of it.
    Void,
}

impl Status {
    /// The era the cluster is in.
    #[must_use]
    pub fn era(&self) -> Era {
        self.eras.last().map(|(era, _)| *era).unwrap_or_default()
    }
}

/// A message from one site to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Initiator to certifier: may this commit?
    Certify {
        /// Whom it takes the receiver for.
        reign: CertifierTerm,
        /// The transaction.
        transaction: Transaction,
    },
    /// Certifier to initiator: no. (Yes comes by the stream.)
    Abort {
        /// The reign that was asked.
        reign: CertifierTerm,
        /// Which transaction.
        id: TransactionId,
        /// Which attempt.
        attempt: u32,
        /// Why.
        reason: AbortReason,
    },
    /// Delegate to all sites.
    Status(Status),
    /// The certifier's delegate to the delegate of another cluster: the next versions.
    Stream {
        /// The sender's era.
        era: Era,
        /// In order, without gaps.
        entries: Vec<Arc<Entry>>,
    },
    /// The certifier's delegate to that of a cluster whose history has gone its own way: above `keep` it never was.
    Rewind {
        /// The sender's era.
        era: Era,
        /// The last version both histories share.
        keep: Version,
    },
    /// From a site about to begin an era whose certifier is lost, or renews, to the delegates of the others that are to live: take nothing from earlier eras any more,
    /// and send what I lack.
    Promise {
        /// The configuration to be.
        configuration: Configuration,
        /// The sender's last version.
        delivered: Version,
    },
    /// The answer, once the promise is in the cluster's log.
    Promised {
        /// What is promised.
        era: Era,
        /// The last version of this cluster.
        delivered: Version,
        /// Versions the asker lacks, the next ones first; as many as fit.
        entries: Vec<Arc<Entry>>,
    },
    /// From the certifier's delegate to that of a cluster that does not live and lacks versions that are not kept any more: continue from here.
    Adopt {
        /// The sender's era.
        era: Era,
        /// Where to continue.
        past: Past,
    },
}
