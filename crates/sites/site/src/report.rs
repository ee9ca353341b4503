//! How a site is, for operators.

use pares_wice::HeldBytes;
use serde::{Deserialize, Serialize};

use crate::protocol::Code;

/// How a site is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReport {
    /// Which site.
    pub site: String,
    /// Takeovers, changes and the beginner of its era.
    pub era: (u32, u32, u8),
    /// The cluster that certifies.
    pub certifier: u8,
    /// Clusters that live.
    pub live: Vec<u8>,
    /// The version that it speaks with other sites.
    #[serde(default)]
    pub speaks: u16,
    /// The version that all sites speak, or a later one, as this one has heard; 0 while it takes no part.
    #[serde(default)]
    pub all_speak: u16,
    /// Whether this site is its cluster's delegate.
    pub delegate: bool,
    /// The term of its cluster's log: who certifies in a later one of the same era has followed.
    #[serde(default)]
    pub term: u64,
    /// Whether it certifies.
    pub certifies: bool,
    /// Whether it is still reading its log.
    pub recalling: bool,
    /// The last version of its cluster.
    pub delivered: u64,
    /// The last stable version.
    pub stable: u64,
    /// The store's version.
    pub stored: u64,
    /// Requests without an answer.
    pub open: usize,
    /// Whether it refuses requests, because too much is not stable or has no outcome.
    #[serde(default)]
    pub behind: bool,
    /// What it keeps in memory.
    #[serde(default)]
    pub held: HeldMemory,
    /// What other delegates said last: cluster, era's number, delivered.
    pub heard: Vec<(u8, u32, u64)>,
    /// Whether it has a vote in its cluster, under the name of this life of its disk.
    #[serde(default)]
    pub votes: bool,
    /// Numbers of the sites whose votes count in its cluster, as its log says.
    #[serde(default)]
    pub voters: Vec<u8>,
    /// Sites whose `sites.toml` names other sites than this one's.
    #[serde(default)]
    pub other_lists: Vec<String>,
    /// Why it takes no part, or executes nothing; none if it does.
    #[serde(default)]
    pub apart: Option<String>,
    /// Why the server under its store does not answer, or its figures are not shown.
    #[serde(default)]
    pub trouble: Option<String>,
    /// Who has applied something else than this site.
    #[serde(default)]
    pub differing: Vec<String>,
    /// Who is refused and why: sites, and strangers by their address, of whom nobody knows who they are.
    #[serde(default)]
    pub refused: Vec<String>,
    /// Whether it gets a copy of the items.
    #[serde(default)]
    pub is_filling: bool,
    /// How many copies its store did not take, since it started, while it has none.
    #[serde(default)]
    pub fills_failed: u32,
    /// Its connections to other sites.
    #[serde(default)]
    pub links: LinkFigures,
    /// What it did since it started.
    pub work: Worked,
    /// What it told those who asked, other than what they wanted to hear, since it started.
    #[serde(default)]
    pub told: ToldNo,
}

/// A site's connections to other sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkFigures {
    /// Sites that are connected.
    pub connected: usize,
    /// Bytes that wait to be taken by their sockets.
    pub backlog: usize,
    /// How many of its versions the living cluster lacks that has the fewest, as far as was heard.
    pub lag: u64,
}

/// How often a site said no, in which way; the codes are those of the [protocol](crate::protocol::Code).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToldNo {
    /// The application said no.
    pub refused: u64,
    /// It lost too often.
    pub aborted: u64,
    /// Too much waits for a cluster.
    pub behind: u64,
    /// Not possible here.
    pub impossible: u64,
    /// The certificate does not give the right.
    pub denied: u64,
    /// Too much of it is under way.
    pub busy: u64,
    /// Another site may do it.
    pub elsewhere: u64,
}

impl ToldNo {
    pub(crate) fn count(&mut self, code: Code) {
        let counted = match code {
            Code::Done | Code::Unknown => return,
            Code::Refused => &mut self.refused,
            Code::Aborted => &mut self.aborted,
            Code::Behind => &mut self.behind,
            Code::Impossible => &mut self.impossible,
            Code::Denied => &mut self.denied,
            Code::Busy => &mut self.busy,
            Code::Elsewhere => &mut self.elsewhere,
        };
        *counted += 1;
    }
}

/// What is said of a stranger begins so.
pub(crate) const STRANGER: &str = "a stranger at ";

impl SiteReport {
    /// Of those who are refused the sites: an operator has to put that right, while any process can be a stranger.
    pub fn refused_sites(&self) -> impl Iterator<Item = &str> {
        self.refused.iter().map(String::as_str).filter(|told| !told.starts_with(STRANGER))
    }

    /// Of those who are refused the others.
    pub fn refused_strangers(&self) -> impl Iterator<Item = &str> {
        self.refused.iter().map(String::as_str).filter(|told| told.starts_with(STRANGER))
    }
}

/// What a site did since it started: how much of its work was for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worked {
    /// Executions of requests, those of other sites that were forwarded here included.
    pub executed: u64,
    /// Of them, those that lost against a concurrent transaction.
    pub lost: u64,
    /// Requests sent on to the certifier's site.
    pub forwarded: u64,
    /// Requests done, and told to their clients.
    pub done: u64,
    /// How often clients received "not known yet".
    #[serde(default)]
    pub unknown: u64,
    /// Copies of the items that it began to give to other sites.
    #[serde(default)]
    pub copies: u64,
    /// And to backups.
    #[serde(default)]
    pub backups: u64,
    /// Batches written to the store.
    #[serde(default)]
    pub batches: u64,
    /// Versions in them.
    #[serde(default)]
    pub stored: u64,
    /// How often all that was written was brought to the disk.
    #[serde(default)]
    pub flushes: u64,
    /// How often its log was shortened.
    #[serde(default)]
    pub bases: u64,
}

impl Worked {
    /// What two sites did together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            executed: self.executed + other.executed,
            lost: self.lost + other.lost,
            forwarded: self.forwarded + other.forwarded,
            done: self.done + other.done,
            unknown: self.unknown + other.unknown,
            copies: self.copies + other.copies,
            backups: self.backups + other.backups,
            batches: self.batches + other.batches,
            stored: self.stored + other.stored,
            flushes: self.flushes + other.flushes,
            bases: self.bases + other.bases,
        }
    }
}

/// What a site keeps in memory, bytes, about. Values that several parts hold are counted by each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldMemory {
    /// Requests without an answer.
    pub requests: usize,
    /// Their transactions.
    pub pending: usize,
    /// Versions that are not stable.
    pub unstable: usize,
    /// Stable versions that are not in the store.
    pub unstored: usize,
    /// Versions kept for other clusters.
    pub retained: usize,
    /// The certification index.
    pub index: usize,
    /// What was proposed to the log and not committed.
    pub proposed: usize,
    /// Questions to a reign that has not begun.
    pub early: usize,
}

impl HeldMemory {
    pub(crate) fn of(rules: &HeldBytes, requests: usize) -> Self {
        assert!(rules.unstable <= rules.versions, "what is not stable is a part of all versions");
        Self {
            requests,
            pending: rules.pending,
            unstable: rules.unstable,
            unstored: rules.versions - rules.unstable,
            retained: rules.retained,
            index: rules.index,
            proposed: rules.proposed,
            early: rules.early,
        }
    }
}
