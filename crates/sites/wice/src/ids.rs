//! Who and when: clusters, sites, versions, eras and transactions.

use core::fmt;

/// A cluster: sites near each other that share one replicated log. At most 64 (0 to 63).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u8);

/// A site: one full copy of the database and its users there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId {
    /// The cluster it belongs to, for ever.
    pub cluster: ClusterId,
    /// Its number within the cluster, from 0.
    pub number: u8,
}

impl SiteId {
    /// Site `number` of cluster `cluster`.
    #[must_use]
    pub const fn new(cluster: u8, number: u8) -> Self {
        Self { cluster: ClusterId(cluster), number }
    }
}

/// A set of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterSet(pub u64);

impl ClusterSet {
    /// Whether `cluster` is in it.
    #[must_use]
    pub const fn contains(self, cluster: ClusterId) -> bool {
        self.0 & (1 << cluster.0) != 0
    }

    /// With `cluster` in it.
    #[must_use]
    pub const fn with(self, cluster: ClusterId) -> Self {
        Self(self.0 | 1 << cluster.0)
    }

    /// Without `cluster`.
    #[must_use]
    pub const fn without(self, cluster: ClusterId) -> Self {
        Self(self.0 & !(1 << cluster.0))
    }

    /// Those in it, in order.
    pub fn iter(self) -> impl Iterator<Item = ClusterId> {
        (0..64).map(ClusterId).filter(move |&cluster| self.contains(cluster))
    }
}

impl FromIterator<ClusterId> for ClusterSet {
    fn from_iter<I: IntoIterator<Item = ClusterId>>(clusters: I) -> Self {
        clusters.into_iter().fold(Self::default(), Self::with)
    }
}

/// A place in the commit order, and the database as it is after everything up to that place. Version 0 is the empty
/// database; the first transaction makes version 1 (the paper's *gts*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The one after.
    ///
    /// # Panics
    /// After 2^64 transactions.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("2^64 versions"))
    }

    /// The one before; of 0 it is 0.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// One composition of clusters: who counts as alive, and whose delegate certifies. Every change begins the next era,
/// and nothing said in an earlier era is believed in a later one. Eras are totally ordered, and no two
/// clusters can begin the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Era {
    /// Of two eras the one with more is the later: whatever eras a certifier begins that was declared lost and does not know it, they lie below that of the one that took over.
    /// Counts how often the certifier was declared lost. Where there is a [witness](crate::witness) it counts every declaration of loss, and every renewal.
    pub takeovers: u32,
    /// Counts up.
    pub number: u32,
    /// The cluster that began it.
    pub by: ClusterId,
}

impl Era {
    /// Whether no era can follow: nobody has come so far, whatever a peer says.
    #[must_use]
    pub const fn is_last(self) -> bool {
        self.takeovers == u32::MAX || self.number == u32::MAX
    }

    /// The next era, begun by its certifier, `by`.
    ///
    /// # Panics
    /// After 2^32 eras.
    #[must_use]
    pub const fn next(self, by: ClusterId) -> Self {
        Self { number: self.number.checked_add(1).expect("2^32 eras"), by, ..self }
    }

    /// The era in which `by` takes over in this one: from a certifier that was declared lost, or from itself, if it renews or a [witness](crate::witness) counts what it
    /// declares.
    ///
    /// # Panics
    /// After 2^32 eras.
    #[must_use]
    pub const fn taken_over(self, by: ClusterId) -> Self {
        Self { takeovers: self.takeovers.checked_add(1).expect("2^32 takeovers"), ..self.next(by) }
    }
}

/// A delegate's time in office within its cluster, as the cluster's replicated log counts it (a Raft term).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// A certifier's time in office: what it says is believed only by who asked in the same reign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertifierTerm {
    /// The era that names its cluster.
    pub era: Era,
    /// Its term as that cluster's delegate.
    pub term: Term,
}

/// A transaction, as its client names it: commits at most once, however often and wherever it is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId {
    /// Who asked; unique among all clients of all clusters.
    pub client: u64,
    /// Its number with that client.
    pub sequence: u64,
}

macro_rules! shown {
    ($($name:ty => $form:literal),* $(,)?) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $form, self.0)
            }
        }
    )*};
}
shown!(ClusterId => "cluster {}", Version => "{}", Term => "{}");

impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "site {}.{}", self.cluster.0, self.number)
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (by {})", self.number, self.by)
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.client, self.sequence)
    }
}
