//! What the cluster's log commits, at every site of the cluster, in the same order.
//!
//! Whether an entry counts is decided by what the log held before it, so all sites of a cluster decide alike: a version is delivered if
//! it is the next one and nothing later than its era has been promised.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::entry::{Body, Configuration, Entry, LogEntry};
use crate::ids::{Era, Version};
use crate::index::Index;
use crate::overlay::Overlay;
use crate::site::eras::Takeover;
use crate::site::{ERAS_KEPT, Effects, Notice, Role, Settings, Site};

/// What a site that restarts has in its store, before it is given its log again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Restored {
    /// The store's version.
    pub version: Version,
    /// The latest eras begun up to that version, and the versions they began with; at least one.
    pub eras: Vec<(Version, Configuration)>,
    /// The promise, as it was when that version was applied or later.
    pub promised: Era,
}

/// Reading the log again, up to the store's version: nothing is installed, but what others may still lack is found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Recall {
    promised: Era,
    until: Version,
}

impl Site {
    /// A site as its store is; its log, from the beginning that is left of it, must be given to [`Site::committed`] next.
    ///
    /// # Panics
    /// If no era is given.
    #[must_use]
    pub fn restore(settings: Settings, restored: Restored) -> Self {
        assert!(!restored.eras.is_empty(), "a store without an era");
        let version = restored.version;
        Self {
            index: Index::new(version, settings.index_versions),
            settings,
            role: Role::default(),
            eras: restored.eras.into(),
            promised: restored.promised,
            delivered: version,
            overlay: Overlay::new(version),
            recent: VecDeque::new(),
            takeover: None,
            recall: (version > Version(0)).then_some(Recall { promised: Era::default(), until: version }),
            received: version,
            serial: 0,
            told: None,
            streams: BTreeMap::new(),
            certifying: None,
            early: VecDeque::new(),
            peers: BTreeMap::new(),
            stable: version,
            pending: BTreeMap::new(),
            awaiting_stable: BTreeMap::new(),
            reconsider: false,
            branch: 0,
            cuts: VecDeque::new(),
        }
    }

    /// What a store must keep beside `version` for [`Site::restore`].
    #[must_use]
    pub fn restorable(&self, version: Version) -> Restored {
        let begun = self.eras.iter().filter(|(began, _)| *began <= version);
        Restored { version, eras: begun.copied().collect(), promised: self.promised }
    }

    /// The log has committed an entry.
    pub fn committed(&mut self, entry: LogEntry, out: &mut impl Effects) {
        self.recall(&entry);
        match entry {
            LogEntry::Stream { era, entry } => {
                if era >= self.promised && entry.version == self.delivered.next() {
                    self.promised = era;
                    self.deliver(entry, out);
                }
            }
            LogEntry::Fence(configuration) => self.fenced(configuration),
            LogEntry::Discard { era, keep } => {
                if era > self.promised {
                    self.promised = era;
                    self.discard(keep, out);
                }
            }
        }
    }

    fn deliver(&mut self, entry: Arc<Entry>, out: &mut impl Effects) {
        let version = entry.version;
        let is_own = self.is_own_proposal(&entry);
        if !is_own {
            self.stop_certifying();
        }
        match &entry.body {
            Body::Update { id, attempt, writes } => {
                if !is_own {
                    self.overlay.install(version, writes);
                    self.index.record(version, *id, writes);
                }
                self.has_version(*id, *attempt, version);
            }
            Body::Configure(_) if !is_own => self.overlay.install(version, &[]),
            Body::Configure(_) => {}
        }
        self.delivered = version;
        self.received = self.received.max(version);
        if let Body::Configure(configuration) = entry.body {
            self.begin_era(version, configuration, out);
        }
        self.keep_recent(entry);
    }

    fn begin_era(&mut self, version: Version, configuration: Configuration, out: &mut impl Effects) {
        self.eras.push_back((version, configuration));
        if self.eras.len() > ERAS_KEPT {
            self.eras.pop_front();
        }
        self.promised = self.promised.max(configuration.era);
        // Nothing has been certified after a configuration; whether this site certifies in its era, it finds out anew.
        self.certifying = None;
        self.received = self.delivered;
        if self.takeover.as_ref().is_some_and(|takeover| takeover.configuration.era <= configuration.era) {
            self.takeover = None;
        }
        self.reconsider = true;
        out.notice(Notice::Era(configuration));
    }

    fn fenced(&mut self, configuration: Configuration) {
        if configuration.era < self.promised || configuration.era <= self.era() {
            return;
        }
        self.promised = configuration.era;
        self.stop_certifying();
        if configuration.certifier == self.cluster() {
            self.takeover = Some(Takeover::new(configuration));
        }
    }

    fn discard(&mut self, keep: Version, out: &mut impl Effects) {
        if keep >= self.delivered {
            return;
        }
        assert!(
            keep >= self.stable,
            "version {} was stable and cannot be discarded down to {keep}",
            self.stable
        );
        self.certifying = None;
        self.cut(keep);
        self.delivered = keep;
        self.received = keep;
        self.streams.clear();
        while self.eras.back().is_some_and(|(began, _)| *began > keep) {
            self.eras.pop_back();
        }
        assert!(!self.eras.is_empty(), "version {keep} is older than all eras known");
        while self.recent.pop_back_if(|entry| entry.version > keep).is_some() {}
        self.lost_versions(keep);
        self.reconsider = true;
        out.notice(Notice::Discarded(keep));
    }

    /// Kept for clusters that lack it, at least until it is stable.
    fn keep_recent(&mut self, entry: Arc<Entry>) {
        if self.recent.back().is_some_and(|last| last.version.next() != entry.version) {
            self.recent.clear(); // a log that began after the store's version
        }
        self.recent.push_back(entry);
        let (most, stable) = (self.settings.retained_versions, self.stable);
        while self.recent.len() > most
            && self.recent.pop_front_if(|oldest| oldest.version <= stable).is_some()
        {}
    }

    /// As [`Site::committed`], for the part of the log that the store has already: only `recent` is filled.
    fn recall(&mut self, entry: &LogEntry) {
        let Some(recall) = &mut self.recall else { return };
        match entry {
            LogEntry::Stream { era, entry } if *era >= recall.promised && entry.version <= recall.until => {
                let follows = self.recent.back().is_none_or(|last| last.version.next() == entry.version);
                if follows {
                    recall.promised = *era;
                    self.recent.push_back(Arc::clone(entry));
                }
            }
            LogEntry::Stream { .. } => {}
            LogEntry::Fence(Configuration { era, .. }) => recall.promised = recall.promised.max(*era),
            LogEntry::Discard { era, keep } => {
                if *era > recall.promised {
                    recall.promised = *era;
                    while self.recent.pop_back_if(|entry| entry.version > *keep).is_some() {}
                }
            }
        }
        if self.recent.back().is_some_and(|last| last.version == self.delivered) {
            self.recall = None;
        }
    }
}
