//! One simulated site: the rules' state, its store, and what it was given of its cluster's log.

use std::collections::BTreeMap;
use std::sync::Arc;

use pares_wice::{
    Base, ClusterId, ClusterSet, Configuration, Effects, Entry, Era, Key, LogEntry, Message, Notice, Outcome,
    Settings, Site, SiteId, Stored, TransactionId, Value, Version,
};

use super::bank;

/// A store that is never synced by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) items: BTreeMap<Key, Value>,
    pub(super) version: Version,
    position: u64,
}

/// What the rules want done.
#[derive(Debug)]
pub(super) enum Effect {
    Propose(LogEntry),
    Send(SiteId, Message),
    Outcome(TransactionId, Outcome),
    Notice(Notice),
}

#[derive(Debug, Default)]
pub(super) struct Collected(pub(super) Vec<Effect>);

impl Effects for Collected {
    fn propose(&mut self, entry: LogEntry) {
        self.0.push(Effect::Propose(entry));
    }
    fn send(&mut self, to: SiteId, message: Message) {
        self.0.push(Effect::Send(to, message));
    }
    fn outcome(&mut self, id: TransactionId, outcome: Outcome) {
        self.0.push(Effect::Outcome(id, outcome));
    }
    fn notice(&mut self, notice: Notice) {
        self.0.push(Effect::Notice(notice));
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: SiteId,
    settings: Settings,
    /// None while it is down.
    pub(super) site: Option<Site>,
    /// Counts its starts: what was meant for an earlier one does not reach a later one.
    pub(super) life: u64,
    /// Entries of the cluster's log it was given in this life.
    pub(super) given: usize,
    /// The term it has been told of.
    pub(super) term: u64,
    pub(super) store: Store,
    flushed: Store,
    /// Delivered versions, the first one at index 0: of the store before this life, and from the log since.
    pub(super) delivered: Vec<Arc<Entry>>,
    /// Who waits for which transaction.
    pub(super) waiting: BTreeMap<TransactionId, usize>,
    /// Attempts without an outcome.
    pub(super) submitted: BTreeMap<TransactionId, u32>,
    /// How often it has lost its disk, with its cluster.
    pub(super) wipes: u64,
    /// The era of those who went on, as the operator says.
    pub(super) returns_to: Era,
}

impl Node {
    pub(super) fn new(id: SiteId, settings: Settings) -> Self {
        let site = Some(Site::new(settings.clone(), ClusterId(0)));
        Self {
            id,
            settings,
            site,
            life: 0,
            given: 0,
            term: 0,
            store: Store::default(),
            flushed: Store::default(),
            delivered: Vec::new(),
            waiting: BTreeMap::new(),
            submitted: BTreeMap::new(),
            wipes: 0,
            returns_to: Era::default(),
        }
    }

    pub(super) fn crash(&mut self) {
        self.site = None;
        self.life += 1;
        self.waiting.clear();
        self.submitted.clear();
    }

    /// Starts with its store, or what was flushed of it.
    pub(super) fn start(&mut self, keeps_unflushed: bool) {
        if !keeps_unflushed {
            self.store = self.flushed.clone();
        }
        self.flushed = self.store.clone();
        self.delivered.clear();
        let clusters: ClusterSet = self.settings.sites.iter().map(|site| site.cluster).collect();
        let base = match self.wipes {
            0 => Base::first(Configuration::first(clusters, ClusterId(0))),
            _ => Base::returning(&self.settings, self.returns_to),
        };
        let stored = Stored { version: self.store.version, position: self.store.position };
        let site = Site::restore(self.settings.clone(), base, stored);
        self.site = Some(site);
        (self.given, self.term) = (0, 0);
    }

    pub(super) fn wipe(&mut self, returns_to: Era) {
        self.returns_to = returns_to;
        self.store = Store::default();
        self.flushed = Store::default();
        self.delivered.clear();
        self.wipes += 1;
    }

    /// An entry of the log, and what became of it.
    pub(super) fn give(&mut self, entry: &LogEntry, out: &mut Collected) {
        self.given += 1;
        let Some(site) = &mut self.site else { return };
        let before = site.delivered();
        site.committed(entry.clone(), out);
        let after = site.delivered();
        if after < before {
            self.delivered.truncate(usize::try_from(after.0).expect("few"));
        } else if after > before {
            let LogEntry::Stream { entry, .. } = entry else { panic!("only the stream has versions") };
            self.delivered.push(Arc::clone(entry));
        }
    }

    /// The value at the newest snapshot, or at `version`.
    pub(super) fn read(&self, key: &Key, version: Version) -> Option<Value> {
        let site = self.site.as_ref().expect("reading at a site that is up");
        site.overlay().get(key, version).over(|| self.store.items.get(key).cloned())
    }

    /// Applies what is stable (or, by a defect, more).
    pub(super) fn apply(&mut self, too_early: bool, flush: bool) {
        let Some(site) = self.site.as_mut().filter(|site| !site.is_recalling()) else { return };
        let until = if too_early { site.delivered() } else { site.stable() };
        let writes: Vec<_> =
            site.overlay().after(self.store.version, until).map(|(_, writes)| writes.to_vec()).collect();
        for writes in writes {
            bank::apply(&mut self.store.items, &writes);
            self.store.version = self.store.version.next();
        }
        self.store.position = site.position();
        if !too_early {
            site.applied(self.store.version);
        }
        if flush {
            self.flushed = self.store.clone();
        }
    }
}
