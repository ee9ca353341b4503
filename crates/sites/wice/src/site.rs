//! One site, as a state machine: what the cluster's log, other sites, the application and the operator tell it goes in; what to
//! propose, send and answer comes out.
//!
//! ```text
//!            submit, command         receive                role, committed
//!            (application,           (other sites)          (the cluster's log)
//!             operator)                  |                        |
//!                  |                     v                        v
//!            +-----+------------------------------------------------------+
//!            |  initiator   certifier   streams   eras   delivery         |
//!            +------------------------------------------------------------+
//!                  |                     |                        |
//!               outcome                 send                   propose
//! ```
//! Every site can be all of these at once; which of them it is follows from its log ([`LogRole`]) and from the configuration delivered last.
//! Inputs change state at once; what can wait for the rest of a batch (status, streams, stability) happens in [`Site::flush`], which is
//! called once after each batch of inputs.
//!
//! | module | what |
//! |---|---|
//! | `initiator` | own transactions, from submission to outcome |
//! | `certifier` | which get a version |
//! | `delivery` | what the log commits |
//! | `streams` | what other clusters are sent, and what is stable |
//! | `eras` | clusters lost, returning, admitted; the certifier moved |
//! | `adopting` | a cluster that lacks what no other keeps any more |
//! | `settings` | what bounds all of it, and how much of that it takes |

mod adopting;
mod certifier;
mod delivery;
mod eras;
mod initiator;
mod settings;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::entry::{Configuration, Entry, LogEntry};
use crate::ids::{CertifierTerm, ClusterId, ClusterSet, Era, SiteId, Term, TransactionId, Version};
use crate::index::Index;
use crate::message::{AbortReason, Message, Status};
use crate::overlay::Overlay;
use crate::transaction::Transaction;

use certifier::Certifying;
use eras::Takeover;
use initiator::Pending;
use streams::Cursor;

pub use delivery::{Base, Stored};
pub use eras::{Command, Refused};
pub use initiator::Unsubmitted;
pub use settings::{HeldBytes, Settings};

/// The site's place in its cluster's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogRole {
    /// The current term.
    pub term: Term,
    /// Whether this site is the delegate (the log's leader) **and** has been given everything that was committed before its term.
    pub leads: bool,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is in the logs of all living clusters.
    Committed {
        /// Its version.
        version: Version,
        /// The attempt that passed; none if that was not this one.
        attempt: Option<u32>,
    },
    /// It is not, and this attempt never will be.
    Aborted(AbortReason),
}

/// What an operator would want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// An era has begun.
    Era(Configuration),
    /// Versions above this one were discarded: the other clusters continued without them.
    Discarded(Version),
    /// A cluster has answered clients for versions of its own that the others do not have: two histories, which nothing can merge.
    Split(ClusterId),
    /// A cluster lacks versions that are not kept any more: its sites take copies of a store.
    NeedsCopy(ClusterId),
    /// A site has applied something else than this one, up to this version.
    Differs(SiteId, Version),
}

/// Where a site's effects go. Nothing is answered; whatever fails is as good as lost, and said again.
pub trait Effects {
    /// Append to the cluster's log.
    fn propose(&mut self, entry: LogEntry);
    /// Send to another site.
    fn send(&mut self, to: SiteId, message: Message);
    /// Tell the submitter. Exactly once for each submission that was taken.
    fn outcome(&mut self, id: TransactionId, outcome: Outcome);
    /// Tell the operator.
    fn notice(&mut self, notice: Notice);
}

/// All that a site wants done, until it is done.
#[derive(Debug, Default)]
pub struct Wanted {
    /// For the cluster's log.
    pub proposals: Vec<LogEntry>,
    /// For other sites.
    pub messages: Vec<(SiteId, Message)>,
    /// For who submitted.
    pub outcomes: Vec<(TransactionId, Outcome)>,
    /// For the operator.
    pub notices: Vec<Notice>,
}

impl Effects for Wanted {
    fn propose(&mut self, entry: LogEntry) {
        self.proposals.push(entry);
    }
    fn send(&mut self, to: SiteId, message: Message) {
        self.messages.push((to, message));
    }
    fn outcome(&mut self, id: TransactionId, outcome: Outcome) {
        self.outcomes.push((id, outcome));
    }
    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// The state an update transaction is executed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// It sees versions up to this one.
    pub version: Version,
    /// Which of the site's pasts it belongs to: changes when versions that could be read are given up.
    pub branch: u64,
}

/// One site's state. See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    settings: Settings,
    role: LogRole,

    // What follows from the log.
    position: u64,
    recall_until: Stored,
    recalls: bool,
    /// The store is void: what it must hold.
    lacking: Option<Stored>,
    eras: VecDeque<(Version, Configuration)>,
    promised: Era,
    delivered: Version,
    index: Index,
    overlay: Overlay,
    recent: VecDeque<Arc<Entry>>,
    recent_bytes: usize,
    takeover: Option<Takeover>,

    // As a delegate.
    received: Version,
    /// The era at `received`.
    received_era: Era,
    /// What was proposed and is not delivered, bytes.
    proposed_bytes: usize,
    serial: u64,
    told: Option<Status>,
    streams: BTreeMap<ClusterId, Cursor>,
    certifying: Option<Certifying>,
    /// The last reign that has given up what it had certified.
    spent: Option<CertifierTerm>,
    early: VecDeque<(SiteId, CertifierTerm, Transaction)>,
    early_bytes: usize,

    // What others said.
    on_probation: ClusterSet,
    peers: BTreeMap<ClusterId, Status>,
    stable: Version,
    /// What every living cluster has delivered; below *stable* where one was admitted that still catches up.
    needed: Version,
    /// Whether most sites of this cluster have their items.
    is_whole: bool,

    // As an initiator.
    pending: BTreeMap<TransactionId, Pending>,
    pending_bytes: usize,
    awaiting_stable: BTreeMap<Version, TransactionId>,
    reconsider: bool,
    branch: u64,
    cuts: VecDeque<(u64, Version)>,
}

/// Eras kept to compare histories by: a site that returns after more of them must copy a store.
const ERAS_KEPT: usize = 64;
/// How many of these, the last, others receive.
const ERAS_TOLD: usize = 8;
/// Cuts of the past that are remembered; snapshots from before are void.
const CUTS_KEPT: usize = 16;

impl Site {
    /// A site of an empty database: everything lives, `certifier` certifies.
    #[must_use]
    pub fn new(settings: Settings, certifier: ClusterId) -> Self {
        let base = Base::founding(&settings, certifier);
        Self::restore(settings, base, Stored::default())
    }

    /// Which site it is.
    #[must_use]
    pub fn id(&self) -> SiteId {
        self.settings.site
    }

    /// The configuration delivered last.
    #[must_use]
    pub fn configuration(&self) -> Configuration {
        self.eras.back().expect("there is always an era").1
    }

    /// The state new update transactions are executed on: the newest installed here. At the certifier's site that includes what it has
    /// certified and the log has not committed: if that is lost, so is what was read of it.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { version: self.overlay.top(), branch: self.branch }
    }

    /// The newest version that no loss of a cluster can undo: what read-only transactions read and the store may have.
    #[must_use]
    pub fn stable(&self) -> Version {
        self.stable
    }

    /// The newest version this site's log has committed.
    #[must_use]
    pub fn delivered(&self) -> Version {
        self.delivered
    }

    /// The versions that are not in the store.
    #[must_use]
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// The store has everything up to `version`, and nobody reads an older state of it.
    ///
    /// # Panics
    /// If that is not stable.
    pub fn applied(&mut self, version: Version) {
        assert!(version <= self.stable, "version {version} is in the store; stable is {}", self.stable);
        self.overlay.forget(version);
    }

    /// Whether this site certifies now.
    #[must_use]
    pub fn certifies(&self) -> bool {
        self.certifying.as_ref().is_some_and(|certifying| !certifying.handed_over)
    }

    /// The site that certifies, as far as is known here.
    #[must_use]
    pub fn certifier(&self) -> Option<SiteId> {
        self.asked_now().map(|asked| asked.site)
    }

    /// What each cluster's delegate said last.
    pub fn statuses(&self) -> impl Iterator<Item = &Status> {
        self.peers.values()
    }

    /// Transactions submitted here that have no outcome yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The log says who leads.
    pub fn role(&mut self, role: LogRole) {
        if role == self.role {
            return;
        }
        self.stop_certifying();
        self.role = role;
        self.receive_from_delivered();
        self.serial = 0;
        self.told = None;
        self.streams.clear();
        self.early.clear();
        self.early_bytes = 0;
        if let Some(takeover) = &mut self.takeover {
            takeover.begin_again();
        }
        self.reconsider = true;
    }

    /// A message from another site.
    pub fn receive(&mut self, from: SiteId, message: Message, out: &mut impl Effects) {
        let era = match &message {
            Message::Stream { era, .. }
            | Message::Rewind { era, .. }
            | Message::Promised { era, .. }
            | Message::Adopt { era, .. } => *era,
            Message::Promise { configuration, .. } => configuration.era,
            Message::Certify { .. } | Message::Abort { .. } | Message::Status(_) => Era::default(),
        };
        if era.is_last() {
            return; // it would be promised, and nothing could follow
        }
        match message {
            Message::Certify { reign, transaction } => self.asked(from, reign, transaction, out),
            Message::Abort { reign, id, attempt, reason } => self.aborted(reign, id, attempt, reason, out),
            Message::Status(status) => self.heard(status, out),
            Message::Stream { era, entries } => self.streamed(era, &entries, out),
            Message::Rewind { era, keep } => self.rewound(from, era, keep, out),
            Message::Adopt { era, past } => self.offered_past(era, past, out),
            Message::Promise { configuration, delivered } => {
                self.asked_to_promise(from, configuration, delivered, out)
            }
            Message::Promised { era, delivered, entries } => {
                self.promised_by(from, era, delivered, &entries, out)
            }
        }
    }

    /// Some time has passed: what had no effect is said again.
    pub fn tick(&mut self, out: &mut impl Effects) {
        self.tick_pending(out);
        self.tick_streams();
        self.told = None;
        if let Some(takeover) = &mut self.takeover {
            takeover.ask_again();
        }
        self.flush(out);
    }

    /// After each batch of inputs: begins to certify if it may, says how far the cluster is, streams, and tells outcomes.
    pub fn flush(&mut self, out: &mut impl Effects) {
        self.begin_certifying(out);
        self.go_on_with_takeover(out);
        self.raise_stable(out);
        self.say_status(out);
        self.stream(out);
        self.ask_again(out);
    }

    /// Nothing is under way in the log that the stream could continue after.
    fn receive_from_delivered(&mut self) {
        (self.received, self.received_era) = (self.delivered, self.era());
        self.proposed_bytes = 0;
    }

    fn cluster(&self) -> ClusterId {
        self.settings.site.cluster
    }

    fn era(&self) -> Era {
        self.configuration().era
    }

    /// Versions above `keep`, which could be read here, are given up.
    fn cut(&mut self, keep: Version) {
        if self.overlay.top() <= keep {
            return;
        }
        self.overlay.truncate(keep);
        self.index.truncate(keep);
        self.branch += 1;
        self.cuts.push_back((self.branch, keep));
        if self.cuts.len() > CUTS_KEPT {
            self.cuts.pop_front();
        }
    }

    /// Whether everything `snapshot` sees is still part of the history, as far as is known here.
    #[must_use]
    pub fn holds(&self, snapshot: Snapshot) -> bool {
        let forgotten = self.branch - snapshot.branch > self.cuts.len() as u64;
        let later = self.cuts.iter().filter(|(branch, _)| *branch > snapshot.branch);
        !forgotten && later.map(|(_, keep)| *keep).all(|keep| snapshot.version <= keep)
    }
}
