//! What the cluster's log commits, at every site of the cluster, in the same order.
//!
//! Whether an entry counts is decided by what the log held before it, so all sites of a cluster decide alike: a version is delivered if
//! it is the next one and nothing later than its era has been promised.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::entry::{Body, Configuration, Entry, LogEntry};
use crate::ids::{ClusterId, ClusterSet, Era, Version};
use crate::index::Index;
use crate::overlay::Overlay;
use crate::site::eras::Takeover;
use crate::site::{ERAS_KEPT, Effects, LogRole, Notice, Settings, Site};

/// What a log's entries up to some position came to, apart from the items: where a log begins that is not kept from its first entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Base {
    /// Entries of the log before.
    pub position: u64,
    /// The last version they delivered.
    pub delivered: Version,
    /// The promise they made.
    pub promised: Era,
    /// The latest eras they began, and with which versions; at least one.
    pub eras: Vec<(Version, Configuration)>,
    /// The era this cluster was about to begin.
    pub takeover: Option<Configuration>,
}

impl Base {
    /// The beginning of everything.
    #[must_use]
    pub fn first(first: Configuration) -> Self {
        let eras = vec![(Version(0), first)];
        Self { position: 0, delivered: Version(0), promised: first.era, eras, takeover: None }
    }

    /// The beginning of a database: everything lives, `certifier` certifies.
    #[must_use]
    pub fn founding(settings: &Settings, certifier: ClusterId) -> Self {
        Self::first(Configuration::first(settings.clusters(), certifier))
    }

    /// The beginning for a cluster that has lost everything, or that has come later: it does not live, another certifies, and nothing is taken from eras before
    /// `promised`, which must be the era in which it was declared lost, or a later one. (With its log it lost its promises; a cluster that
    /// has not heard of anything since could otherwise make it the certifier it once was.)
    ///
    /// # Panics
    /// If there is no other cluster.
    #[must_use]
    pub fn returning(settings: &Settings, promised: Era) -> Self {
        let others = settings.clusters().without(settings.site.cluster);
        let certifier = others.iter().next().expect("a cluster returns to others");
        Self { promised, ..Self::first(Configuration::first(others, certifier)) }
    }
}

/// What a store says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stored {
    /// It holds all versions up to this one.
    pub version: Version,
    /// Entries of the log the site had been given when it wrote that.
    pub position: u64,
    /// The era that had begun last there. A copy is of the history that counts; the site's log may hold another of the same versions first, and discard it.
    pub era: Era,
    /// The running digest of all versions up to this one. The rules neither make nor use it.
    pub digest: u64,
}

impl Stored {
    /// What no store holds: a site with it recalls for ever.
    pub const ENDLESS: Self = Self {
        version: Version(0),
        position: u64::MAX,
        era: Era { takeovers: 0, number: 0, by: ClusterId(0) },
        digest: 0,
    };
}

impl Site {
    /// A site as its log begins and as its store is. The log must be given to [`Site::committed`], from `base` on; until it has come to where
    /// the store was written, the site [recalls](Site::is_recalling).
    ///
    /// Versions of the log may have been discarded by later entries of it; what of it the store holds is known only behind
    /// those. That is why nothing is read before.
    ///
    /// # Panics
    /// If no era is given.
    #[must_use]
    pub fn restore(settings: Settings, base: Base, stored: Stored) -> Self {
        let era = base.eras.last().expect("a base has an era").1.era;
        let mut site = Self {
            index: Index::new(base.delivered, settings.index_versions, settings.index_bytes_max),
            settings,
            role: LogRole::default(),
            position: base.position,
            recall_until: stored,
            recalls: true,
            lacking: None,
            eras: base.eras.into(),
            promised: base.promised,
            delivered: base.delivered,
            overlay: Overlay::new(stored.version),
            recent: VecDeque::new(),
            recent_bytes: 0,
            takeover: base.takeover.map(Takeover::new),
            received: base.delivered,
            received_era: era,
            proposed_bytes: 0,
            serial: 0,
            told: None,
            streams: BTreeMap::new(),
            certifying: None,
            spent: None,
            early: VecDeque::new(),
            early_bytes: 0,
            on_probation: ClusterSet::default(),
            peers: BTreeMap::new(),
            stable: stored.version,
            needed: Version(0),
            is_whole: true,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            awaiting_stable: BTreeMap::new(),
            reconsider: false,
            branch: 0,
            cuts: VecDeque::new(),
        };
        site.recalls = !site.has_recalled();
        site
    }

    /// Whether the log has come to where the store was written, and to the history that it is of.
    fn has_recalled(&self) -> bool {
        let Stored { position, era, .. } = self.recall_until;
        let applied = self.overlay.applied();
        self.position >= position
            && self.delivered >= applied
            && self.era_at(applied).is_none_or(|here| here == era)
    }

    /// The era that had begun last at a version; none if that is older than all that are kept.
    #[must_use]
    pub fn era_at(&self, version: Version) -> Option<Era> {
        self.eras
            .iter()
            .rev()
            .find(|(began, _)| *began <= version)
            .map(|(_, configuration)| configuration.era)
    }

    /// Whether it has not been given its log up to where its store was written, or up to what a copy holds: nothing can be read or submitted.
    #[must_use]
    pub fn is_recalling(&self) -> bool {
        self.recalls
    }

    /// Entries of the log it has been given, those before its base counted.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What the log has come to here: where a log may begin, once the store durably holds the version.
    #[must_use]
    pub fn base(&self) -> Base {
        Base {
            position: self.position,
            delivered: self.delivered,
            promised: self.promised,
            eras: self.eras.iter().copied().collect(),
            takeover: self.takeover.as_ref().map(|takeover| takeover.configuration),
        }
    }

    /// The log has committed an entry.
    pub fn committed(&mut self, entry: LogEntry, out: &mut impl Effects) {
        let recalls = self.is_recalling();
        self.position += 1;
        match entry {
            LogEntry::Stream { era, entry } => {
                let is_next = entry.version == self.delivered.next() && entry.era == self.era();
                if era >= self.promised && is_next {
                    self.promised = era;
                    self.deliver(entry, recalls, out);
                } else if entry.version > self.delivered {
                    // What this site proposed after it, as a delegate, is void too: from here again.
                    self.stop_certifying();
                    self.receive_from_delivered();
                }
            }
            LogEntry::Fence(configuration) => self.fenced(configuration, false),
            LogEntry::WitnessedFence(configuration) => self.fenced(configuration, true),
            LogEntry::Discard { era, keep } => {
                if era > self.promised {
                    self.promised = era;
                    self.discard(keep, recalls, out);
                }
            }
            LogEntry::Adopt { era, past } => self.adopt(era, past),
        }
        if recalls && self.has_recalled() {
            self.recalls = false;
            self.install_recalled();
        }
    }

    /// The log has come to where the store was written: what it holds above the store's version is as it was then.
    fn install_recalled(&mut self) {
        let stored = self.overlay.applied();
        assert!(
            self.delivered >= stored,
            "the store holds version {stored}, and its log only {}",
            self.delivered
        );
        for entry in self.recent.iter().filter(|entry| entry.version > stored) {
            let writes = if let Body::Update { writes, .. } = &entry.body { writes.as_slice() } else { &[] };
            self.overlay.install(entry.version, writes);
        }
    }

    fn deliver(&mut self, entry: Arc<Entry>, recalls: bool, out: &mut impl Effects) {
        let version = entry.version;
        let is_own = self.take_own_proposal(&entry);
        if !is_own {
            self.stop_certifying();
        }
        if let Body::Update { id, attempt, writes } = &entry.body {
            if !is_own {
                self.index.record(version, *id, writes);
            }
            self.has_version(*id, *attempt, writes, version);
        }
        if !is_own && !recalls {
            let writes = if let Body::Update { writes, .. } = &entry.body { writes.as_slice() } else { &[] };
            self.overlay.install(version, writes);
        }
        self.delivered = version;
        if let Body::Configure(configuration) = entry.body {
            self.begin_era(version, configuration, out);
        }
        self.proposed_bytes = self.proposed_bytes.saturating_sub(entry.held_bytes());
        self.keep_recent(entry, recalls);
        if self.received <= version {
            self.receive_from_delivered();
        }
    }

    fn begin_era(&mut self, version: Version, configuration: Configuration, out: &mut impl Effects) {
        let own = self.cluster();
        self.eras.push_back((version, configuration));
        if self.eras.len() > ERAS_KEPT {
            self.eras.pop_front();
        }
        self.promised = self.promised.max(configuration.era);
        // Nothing has been certified after a configuration; whether this site certifies in its era, it finds out again.
        self.certifying = None;
        if self.takeover.as_ref().is_some_and(|takeover| takeover.configuration.era <= configuration.era) {
            self.takeover = None;
        }
        self.reconsider = true;
        self.on_probation = ClusterSet::default();
        // A lost cluster may come back without its disks, and count its terms again; it may have done so before this site heard of the loss.
        self.peers.retain(|&cluster, _| configuration.live.contains(cluster) || cluster == own);
        self.needed = self.everywhere();
        out.notice(Notice::Era(configuration));
    }

    fn fenced(&mut self, configuration: Configuration, witnessed: bool) {
        if !self.may_promise(configuration.era, witnessed) {
            return;
        }
        self.promised = configuration.era;
        self.stop_certifying();
        self.receive_from_delivered();
        if configuration.certifier == self.cluster() {
            self.takeover = Some(Takeover::new(configuration));
        }
    }

    fn discard(&mut self, keep: Version, recalls: bool, out: &mut impl Effects) {
        if keep >= self.delivered {
            return;
        }
        self.certifying = None;
        if recalls {
            self.index.truncate(keep); // the store was written later, and holds what came instead
        } else {
            assert!(
                keep >= self.stable,
                "version {} was stable and cannot be discarded down to {keep}",
                self.stable
            );
            self.cut(keep);
        }
        self.delivered = keep;
        self.streams.clear();
        while self.eras.back().is_some_and(|(began, _)| *began > keep) {
            self.eras.pop_back();
        }
        assert!(!self.eras.is_empty(), "version {keep} is older than all eras known");
        self.receive_from_delivered();
        while let Some(lost) = self.recent.pop_back_if(|entry| entry.version > keep) {
            self.recent_bytes -= lost.held_bytes();
        }
        self.lost_versions(keep);
        self.reconsider = true;
        out.notice(Notice::Discarded(keep));
    }

    /// Kept for clusters that lack it, at least until it is stable and every living one has it.
    fn keep_recent(&mut self, entry: Arc<Entry>, recalls: bool) {
        self.recent_bytes += entry.held_bytes();
        self.recent.push_back(entry);
        // What the store lacks is installed from here when all is recalled.
        let recalled = if recalls { self.overlay.applied() } else { self.stable };
        let needless = recalled.min(self.stable).min(self.needed);
        let (most, bytes_max) = (self.settings.retained_versions, self.settings.retained_bytes_max);
        while self.recent.len() > most || self.recent_bytes > bytes_max {
            let Some(oldest) = self.recent.pop_front_if(|oldest| oldest.version <= needless) else {
                break;
            };
            self.recent_bytes -= oldest.held_bytes();
        }
    }
}
