//! A cluster's replicated log, as one list: what Raft promises of it, and nothing more.
//!
//! A leader that is replaced may not know; what it had under way is committed up to some point, and lost from there. Nothing
//! commits without a majority of the members.

use std::collections::VecDeque;

use pares_wice::{Body, LogEntry, TransactionId, Version};

use crate::random::Random;

#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// Committed, for ever.
    pub(super) entries: Vec<LogEntry>,
    under_way: VecDeque<LogEntry>,
    pub(super) term: u64,
    /// Which member, by number.
    pub(super) leader: Option<u8>,
    /// What the leader must have been given before it leads.
    pub(super) elected_with: usize,
}

impl Cluster {
    /// A member's proposal, made in the belief that it leads in `term`. Whether it is under way.
    pub(super) fn propose(&mut self, member: u8, term: u64, entry: LogEntry) -> bool {
        let leads = self.leader == Some(member) && self.term == term;
        if leads {
            self.under_way.push_back(entry);
        }
        leads
    }

    /// A majority has all that is under way in `term`. Whether that commits anything.
    pub(super) fn commit(&mut self, term: u64) -> bool {
        if term != self.term || self.under_way.is_empty() {
            return false;
        }
        self.entries.extend(self.under_way.drain(..));
        true
    }

    /// Another leader, or the same in another term.
    pub(super) fn elect(&mut self, member: u8, random: &mut Random) {
        let kept = random.index(self.under_way.len() + 1);
        self.entries.extend(self.under_way.drain(..kept));
        self.under_way.clear();
        self.term += 1;
        self.leader = Some(member);
        self.elected_with = self.entries.len();
    }

    /// Whether its log has a transaction as this version, whoever has been given it since the last start.
    pub(super) fn holds(&self, wanted: TransactionId, version: Version) -> bool {
        self.entries.iter().any(|entry| match entry {
            LogEntry::Stream { entry, .. } if entry.version == version => {
                matches!(&entry.body, Body::Update { id, .. } if *id == wanted)
            }
            _ => false,
        })
    }

    /// All disks are gone.
    pub(super) fn wipe(&mut self) {
        *self = Self { term: self.term, ..Self::default() };
    }
}
