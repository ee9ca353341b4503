//! What there is around the sites: their clusters' logs, the messages under way, the clients.

use std::collections::{BTreeMap, BTreeSet};

use pares_wice::site::Stored;
use pares_wice::{
    Change, ClusterId, ClusterSet, Command, Era, Key, LogEntry, Message, Register, Settings, Site, SiteId,
    Snapshot, Transaction, TransactionId, Value, Version, Write,
};

use crate::shared::Shared;

/// What a version contains, in one number: a transaction, its item and its attempt; or, from 128 on, the beginning of an
/// era. 0 is nothing.
pub type Code = u8;

const ERAS: Code = 128;

pub fn code(script: usize, item: usize, attempt: u32) -> Code {
    (16 * (script + 1) + 8 * item) as u8 + attempt as u8
}

pub fn script_of(code: Code) -> Option<usize> {
    (code > 0 && code < ERAS).then(|| usize::from(code / 16) - 1)
}

pub fn attempt_of(code: Code) -> usize {
    usize::from(code % 8)
}

/// Who wrote an item last; 0 for nobody.
pub fn last_writer(history: &[Code], item: usize) -> Code {
    let wrote = |code: &&Code| script_of(**code).is_some() && usize::from(**code / 8 % 2) == item;
    history.iter().rev().find(wrote).copied().unwrap_or(0)
}

pub const ITEMS: [&str; 2] = ["a", "b"];

/// A transaction that a client wants: it reads both items and writes one.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub site: SiteId,
    pub item: usize,
    /// How often it is executed again at most, if it aborts or its site dies (then at `elsewhere`).
    pub retries: u32,
    pub elsewhere: SiteId,
    /// It is executed for a while: the versions that it reads may be given up meanwhile.
    pub slow: bool,
}

impl Script {
    pub const fn new(site: SiteId, item: usize) -> Self {
        Self { site, item, retries: 0, elsewhere: site, slow: false }
    }
}

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// What the certifier proposes leaves its cluster before the log has committed it (as in the paper).
    StreamsAtOnce,
    /// A delegate says *delivered* of what it has only proposed (fault 3).
    AcknowledgesEarly,
    /// What comes from an earlier era is taken as if it came from this one (faults 10 and 11).
    BelievesOldEras,
    /// Watermarks are compared by their number alone, without regard to the eras behind them.
    NumbersAlone,
    /// A certifier takes requests that were meant for an earlier one.
    AnswersForOthers,
    /// A returning cluster keeps what the others do not have.
    NeverDiscards,
    /// The witness has forgotten whom it granted something.
    WitnessForgets,
}

/// What may happen, each at any time, and how often.
#[derive(Clone, Debug)]
pub struct Faults {
    /// New delegates without a crash of the old one.
    pub elections: u8,
    pub crashes: u8,
    /// Proposals that a log refuses: the site steps down, and again becomes delegate.
    pub refusals: u8,
    /// How often time passes at a site, so that what had no effect is said again: only when nothing is under way, since
    /// `repeats` is for the rest.
    pub ticks: u8,
    /// Where it does; none for everywhere.
    pub ticking: Option<SiteId>,
    /// Whether operators declare lost only what is lost.
    pub honest: bool,
    /// Messages that are delivered twice.
    pub repeats: u8,
    /// A cluster that is lost with all that it had.
    pub loss: Option<ClusterId>,
    /// Whether it comes back from nothing, once the others have continued.
    pub returns: bool,
    /// An operator's decisions, each told to a cluster's delegate.
    pub commands: Vec<(ClusterId, Command)>,
    /// Whether a witness is asked before a cluster is declared lost.
    pub witness: bool,
    /// Whether it loses its disk once; then operators renew, and give it another register.
    pub forgets: bool,
}

pub const NONE: Faults = Faults {
    elections: 0,
    crashes: 0,
    refusals: 0,
    ticks: 0,
    ticking: None,
    honest: false,
    repeats: 0,
    loss: None,
    returns: false,
    commands: vec![],
    witness: false,
    forgets: false,
};

#[derive(Clone, Debug)]
pub struct World {
    /// Sites of each cluster.
    pub sites: Vec<u8>,
    /// The cluster that certifies first.
    pub certifier: ClusterId,
    pub scripts: Vec<Script>,
    pub faults: Faults,
    pub broken: Broken,
    /// Besides states with nothing left to do, progress is demanded from one state in this many.
    pub sampled: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// None while it is down.
    pub site: Option<Shared<Site>>,
    /// Entries of the log it has been given.
    pub applied: usize,
    /// What its store says.
    pub stored: Stored,
    /// Whether it takes itself for the delegate.
    pub leads: bool,
}

/// A cluster: a log that nothing but its loss can harm, and the sites that read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    pub members: Vec<Member>,
    /// Committed entries, then those that the leader has proposed.
    pub log: Vec<Shared<LogEntry>>,
    pub committed: usize,
    pub leader: Option<u8>,
    pub term: u64,
    pub lost: bool,
    /// What the committed entries come to: contents of versions from 1.
    pub history: Vec<Code>,
}

impl Cluster {
    /// With nothing in its log.
    pub fn of(members: impl Iterator<Item = Member>) -> Self {
        Self {
            members: members.collect(),
            log: vec![],
            committed: 0,
            leader: Some(0),
            term: 1,
            lost: false,
            history: vec![],
        }
    }
}

impl Member {
    /// Given nothing yet.
    pub fn of(site: Site) -> Self {
        Self { site: Some(Shared::new(site)), applied: 0, stored: Stored::default(), leads: false }
    }
}

/// What a client knew when it executed an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Execution {
    pub snapshot: Version,
    /// Of both items: who wrote what it saw.
    pub seen: Vec<Code>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    Executing(Snapshot),
    Waiting,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    pub at: SiteId,
    pub phase: Phase,
    pub executions: Vec<Execution>,
    /// Attempts it knows to be aborted, and the version it knows to be committed.
    pub aborted: Vec<u32>,
    pub committed: Option<Version>,
}

pub type Post = BTreeMap<(SiteId, SiteId, u64), Shared<Message>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub clusters: Vec<Cluster>,
    pub post: Post,
    pub clients: Vec<Client>,
    /// Ghost: contents of the versions that were stable anywhere.
    pub stable: Vec<Code>,
    /// Ghost: the clusters that lived when the last of them became so.
    pub living: ClusterSet,
    /// Ghost: what a step found wrong.
    pub wrong: BTreeSet<&'static str>,
    /// Used up: elections, crashes, ticks, repeats, refusals.
    pub used: [u8; 5],
    /// Commands carried out, a bit each; and the losses, of a cluster and of the witness's disk.
    pub commanded: u8,
    /// What the witness has granted; none if it has lost its disk.
    pub register: Option<Register>,
    /// The cluster that was asked to renew last, and the count of takeovers it had then.
    pub renewing: Option<(ClusterId, u32)>,
    /// Ghost: two clusters that have answered different things have met.
    pub split: bool,
}

pub fn number(cluster: ClusterId) -> usize {
    usize::from(cluster.0)
}

/// A status takes the place of the one before it: a site that hears the later one first does not listen to the earlier.
pub fn place(message: &Shared<Message>) -> u64 {
    if matches!(**message, Message::Status(_)) { 0 } else { message.fingerprint() }
}

impl State {
    pub fn member(&self, id: SiteId) -> &Member {
        &self.clusters[number(id.cluster)].members[usize::from(id.number)]
    }

    pub fn member_mut(&mut self, id: SiteId) -> &mut Member {
        &mut self.clusters[number(id.cluster)].members[usize::from(id.number)]
    }

    pub fn site(&self, id: SiteId) -> Option<&Site> {
        self.member(id).site.as_deref()
    }

    pub fn sites(&self) -> impl Iterator<Item = &Site> {
        self.clusters.iter().flat_map(|cluster| &cluster.members).filter_map(|member| member.site.as_deref())
    }

    pub fn leader(&self, cluster: usize) -> Option<SiteId> {
        self.clusters[cluster].leader.map(|number| SiteId::new(cluster as u8, number))
    }

    /// Contents of the versions up to `to` as a site has them. What is in its store was stable.
    pub fn history(&self, site: &Site, to: Version) -> Vec<Code> {
        let stored = site.overlay().applied();
        let mut history = self.stable[..stored.0 as usize].to_vec();
        let eras = site.base().eras;
        let begun = |version| {
            eras.iter().find(|(began, _)| *began == version).map_or(0, |(_, begun)| begins(begun.era))
        };
        let installed = site.overlay().after(stored, to);
        history.extend(installed.map(|(version, writes)| contents(writes).unwrap_or_else(|| begun(version))));
        history
    }

    /// Who wrote what a snapshot shows of an item.
    pub fn seen(&self, site: &Site, item: usize, at: Version) -> Code {
        let stored = &self.stable[..site.overlay().applied().0 as usize];
        let below = || Some(value(last_writer(stored, item)));
        site.overlay().get(&Key::from(ITEMS[item]), at).over(below).map_or(0, |value| decoded(&value))
    }
}

/// An attempt's value names it and the item, so that contents tell all.
fn value(code: Code) -> Value {
    Value::new([code].as_slice())
}

fn decoded(value: &Value) -> Code {
    value.as_bytes()[0]
}

fn contents(writes: &[Write]) -> Option<Code> {
    match &writes.first()?.change {
        Change::Put(value) => Some(decoded(value)),
        other => unreachable!("no script makes {other:?}"),
    }
}

/// The code of an era's beginning.
pub fn begins(era: Era) -> Code {
    ERAS | (32 * era.takeovers + 4 * era.number + u32::from(era.by.0)) as Code
}

impl World {
    pub fn ids(&self) -> Vec<SiteId> {
        let of = |(cluster, &count): (usize, &u8)| {
            (0..count).map(move |number| SiteId::new(cluster as u8, number))
        };
        self.sites.iter().enumerate().flat_map(of).collect()
    }

    pub fn ids_of(&self, cluster: usize) -> impl Iterator<Item = SiteId> + use<> {
        self.ids().into_iter().filter(move |id| number(id.cluster) == cluster)
    }

    pub fn settings(&self, site: SiteId) -> Settings {
        Settings { patience_ticks: 1, witnessed: self.faults.witness, ..Settings::new(site, self.ids()) }
    }

    pub fn code(&self, script: usize, attempt: u32) -> Code {
        code(script, self.scripts[script].item, attempt)
    }

    pub fn transaction(&self, script: usize, attempt: u32) -> Transaction {
        let id = TransactionId { client: script as u64, sequence: 1 };
        let write = Write::put(ITEMS[self.scripts[script].item], value(self.code(script, attempt)));
        Transaction { id, attempt, writes: vec![write], ..Transaction::default() }
    }
}
