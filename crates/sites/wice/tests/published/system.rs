//! What there is: sites, their clusters, the messages between them; what may be repaired, and what goes wrong.

use std::collections::{BTreeMap, BTreeSet};

/// A transaction, counted from 0.
pub type Tid = u8;
/// A commit order number (*gts*), from 1.
pub type Version = u8;

/// The repairs, each named after what holds with it. The paper as printed has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repairs {
    /// Fault 2: a transaction is refused only because of versions it did not see.
    pub own_snapshot_is_no_conflict: bool,
    /// Fault 3: inside a cluster a message is delivered nowhere before it is certain to be delivered everywhere.
    pub uniform: bool,
    /// Fault 5: once asked to commit, only the certifier reports an abort.
    pub outcome_is_awaited: bool,
    /// Fault 7: updates become visible in commit order.
    pub visible_in_order: bool,
    /// Fault 8: a new certifier knows what its own site delivered, and not only what it was sent.
    pub certified_is_rebuilt: bool,
    /// Fault 9: a new certifier counts on from the highest version delivered anywhere.
    pub counts_from_highest: bool,
    /// Faults 10 and 11: who has answered a new certifier believes no older one.
    pub fenced: bool,
    /// Fault 12: what was delivered is not delivered again, and nothing out of turn.
    pub idempotent: bool,
    /// Fault 13: the certifier knows a transaction again; who asked again does not believe the older answer.
    pub deduplicated: bool,
    /// Faults 14 and 15: one cumulative mark per cluster, looked at whenever anything changes.
    pub watermarks: bool,
}

/// As printed, typographic errors apart.
pub const PRINTED: Repairs = Repairs {
    own_snapshot_is_no_conflict: false,
    uniform: false,
    outcome_is_awaited: false,
    visible_in_order: false,
    certified_is_rebuilt: false,
    counts_from_highest: false,
    fenced: false,
    idempotent: false,
    deduplicated: false,
    watermarks: false,
};

/// As the prose has it, or can be read with good will (faults 2, 3, 5 and 7 repaired): what failover is judged on.
pub const PUBLISHED: Repairs = Repairs {
    own_snapshot_is_no_conflict: true,
    uniform: true,
    outcome_is_awaited: true,
    visible_in_order: true,
    ..PRINTED
};

/// With everything.
pub const REPAIRED: Repairs = Repairs {
    certified_is_rebuilt: true,
    counts_from_highest: true,
    fenced: true,
    idempotent: true,
    deduplicated: true,
    watermarks: true,
    ..PUBLISHED
};

/// What may happen, once, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disaster {
    Nothing,
    /// The first delegate of the cluster crashes; of cluster 0 it is the certifier.
    Crash(usize),
    /// It is expelled from its cluster's view, but lives.
    Expulsion(usize),
    /// All sites of the cluster crash, and the other cluster hears of it.
    Loss(usize),
    /// Each cluster may think that it was the other one.
    SplitBrain,
}

/// A transaction: where it runs and the one item that it writes.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub site: usize,
    pub item: u8,
}

/// Two clusters: 0, which begins with the certifier, and 1.
#[derive(Clone, Debug)]
pub struct Wice {
    /// Number of sites of each cluster; numbered through.
    pub sites: [usize; 2],
    pub transactions: Vec<Script>,
    /// Whose database takes its time; elsewhere what is delivered is installed.
    pub slow: Vec<usize>,
    pub disaster: Disaster,
    pub repairs: Repairs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Update {
    pub tid: Tid,
    pub version: Version,
}

/// What is multicast within a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Local {
    /// `UPDATE_LOC`
    Update(Update, u8),
    /// `STABLE_REM`
    Stable(Tid),
    /// In its place with watermarks: everything up to a version.
    StableTo(Version),
    /// The fence: nothing of an earlier reign from here on; then answer.
    Promise { reign: u8, after: Version, to: usize },
}

/// What is sent between two sites, in no order, but for `UPDATE_REM`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    Certify {
        tid: Tid,
        snapshot: Version,
    },
    Abort {
        tid: Tid,
        reign: u8,
    },
    Ack {
        tid: Tid,
    },
    /// In its place with watermarks.
    AckTo {
        delivered: Version,
    },
    AckSync {
        upto: Version,
        reply: bool,
    },
    DelegateSync {
        after: Version,
    },
    CertSyncRequest {
        after: Version,
        reign: u8,
    },
    CertSyncReply {
        upto: Version,
        missing: Vec<Update>,
        reign: u8,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Envelope {
    pub from: usize,
    pub to: usize,
    pub message: Message,
}

/// A certifier's own state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Certifier {
    pub reign: u8,
    pub certified: Vec<Update>,
    pub gts: Version,
    /// While it awaits answers (3b): the requests that came meanwhile.
    pub blocked: Option<Vec<(usize, Tid, Version)>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    pub alive: bool,
    /// The last reign it has promised to believe.
    pub reign: u8,
    /// Delivered, in the order of delivery.
    pub updated: Vec<Update>,
    /// Came out of turn.
    pub early: Vec<Update>,
    pub installed: Vec<Tid>,
    pub lts: Version,
    /// Acknowledged by the other cluster: each, or with watermarks up to.
    pub acks: BTreeSet<Tid>,
    pub acked_to: Version,
    pub stable: BTreeSet<Tid>,
    pub stable_to: Version,
    pub certifier: Option<Certifier>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cluster {
    pub delegate: usize,
    /// Its multicast: on its way from the delegate.
    pub sending: Vec<Local>,
    /// Whether it counts the other cluster as alive.
    pub remote: bool,
    /// `certifier()`, and since which reign.
    pub certifier: usize,
    pub reign: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Told {
    Nothing,
    Committed,
    Aborted,
}

/// A transaction on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    pub snapshot: Option<Version>,
    /// The reign in which it was last asked for.
    pub asked: u8,
    pub told: Told,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub sites: Vec<Site>,
    pub clusters: [Cluster; 2],
    pub attempts: Vec<Attempt>,
    pub post: BTreeSet<Envelope>,
    /// `fifo_rsend(UPDATE_REM)`, by sender and receiver, with the reign of the sender.
    pub updates: BTreeMap<(usize, usize), Vec<(Update, u8)>>,
    pub disasters: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Begin(Tid),
    Resubmit(Tid),
    /// The database kills a transaction of its own.
    Kill(Tid),
    /// The first message of the delegate's multicast becomes certain and is delivered in its cluster.
    Deliver(usize),
    Receive(Envelope),
    ReceiveUpdate(usize, usize),
    /// The last update that a dead site sent never left it.
    LoseUpdate(usize, usize),
    Install(usize, Tid),
    /// A new view: the cluster has a new delegate.
    Elect(usize),
    Strike,
    Suspect(usize),
}

impl Wice {
    pub fn cluster(&self, site: usize) -> usize {
        usize::from(site >= self.sites[0])
    }

    pub fn members(&self, cluster: usize) -> core::ops::Range<usize> {
        if cluster == 0 { 0..self.sites[0] } else { self.sites[0]..self.sites[0] + self.sites[1] }
    }

    pub fn initial(&self) -> State {
        let site = Site { alive: true, ..Site::default() };
        let mut sites = vec![site; self.sites[0] + self.sites[1]];
        sites[0].certifier = Some(Certifier::default());
        let cluster =
            |number| Cluster { delegate: self.members(number).start, remote: true, ..Cluster::default() };
        State {
            sites,
            clusters: [cluster(0), cluster(1)],
            attempts: vec![
                Attempt { snapshot: None, asked: 0, told: Told::Nothing };
                self.transactions.len()
            ],
            post: BTreeSet::new(),
            updates: BTreeMap::new(),
            disasters: 0,
        }
    }
}
