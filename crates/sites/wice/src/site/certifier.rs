//! Certifying: who gets the next version (paper 3 section 3.1).
//!
//! A site certifies while it is the delegate of the cluster that the configuration names, and has delivered all that its log holds.
//! What it has certified is installed here at once and proposed to the log, many versions before the first of them is
//! committed: the next transaction may read them. If another delegate takes over, they are lost together, in reverse order, since they stand
//! in the log in this order.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::entry::{Body, Configuration, Entry, LogEntry};
use crate::ids::{CertifierTerm, SiteId, Version};
use crate::message::Message;
use crate::site::{Effects, Site};
use crate::transaction::Transaction;

/// Questions to a reign that has not begun here, kept for it, and their bytes. What is not kept is asked again.
const EARLY_MAX: usize = 1 << 16;
const EARLY_BYTES_MAX: usize = 16 << 20;

/// The state of certifying, apart from what every site of the cluster has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Certifying {
    reign: CertifierTerm,
    /// What the log has not committed yet, in order.
    proposed: VecDeque<Arc<Entry>>,
    /// The version that the next one gets.
    next: Version,
    /// The configuration of another era has been proposed: nothing more has a version in this one.
    pub(super) handed_over: bool,
}

impl Site {
    pub(super) fn begin_certifying(&mut self, out: &mut impl Effects) {
        let configuration = self.configuration();
        let may = self.role.leads
            && configuration.certifier == self.cluster()
            && self.promised == configuration.era
            && !self.is_recalling();
        if !may || self.certifying.is_some() || self.received != self.delivered {
            return;
        }
        let reign = CertifierTerm { era: configuration.era, term: self.role.term };
        if self.spent == Some(reign) {
            return;
        }
        let next = self.delivered.next();
        self.certifying = Some(Certifying { reign, proposed: VecDeque::new(), next, handed_over: false });
        self.reconsider = true;
        self.early_bytes = 0;
        for (from, reign, transaction) in std::mem::take(&mut self.early) {
            self.asked(from, reign, transaction, out);
        }
    }

    /// What was proposed and not committed is given up here; the log may still commit it. What this reign has refused for its sake might
    /// now pass, so this reign certifies no more.
    pub(super) fn stop_certifying(&mut self) {
        if let Some(certifying) = self.certifying.take() {
            self.spent = Some(certifying.reign);
            self.cut(self.delivered);
            self.receive_from_delivered();
            self.reconsider = true;
        }
    }

    /// Whether this site leads its cluster's log, and would certify, but must do so in another term: its process should give up its office. Not while it
    /// renews: what it waits for are promises, and they lead to another era.
    #[must_use]
    pub fn wants_another_term(&self) -> bool {
        let reign = CertifierTerm { era: self.era(), term: self.role.term };
        let is_renewing = self.takeover.is_some();
        let certifies = self.configuration().certifier == self.cluster() && !is_renewing;
        self.role.leads && certifies && self.spent == Some(reign)
    }

    /// Whether an entry of the log is the next one this site proposed as the certifier, and has installed already.
    pub(super) fn take_own_proposal(&mut self, entry: &Arc<Entry>) -> bool {
        let Some(certifying) = &mut self.certifying else { return false };
        let is_same = |proposed: &mut Arc<Entry>| Arc::ptr_eq(proposed, entry) || *proposed == *entry;
        certifying.proposed.pop_front_if(is_same).is_some()
    }

    /// May this commit?
    pub(super) fn asked(
        &mut self,
        from: SiteId,
        reign: CertifierTerm,
        transaction: Transaction,
        out: &mut impl Effects,
    ) {
        let Some(certifying) = self.certifying.as_ref().filter(|certifying| certifying.reign == reign) else {
            self.asked_early(from, reign, transaction);
            return;
        };
        // What is known already is answered by the stream; one that comes after the handing over asks again in the next era.
        if certifying.handed_over || self.index.version_of(transaction.id).is_some() {
            return;
        }
        let next = certifying.next;
        if self.certifies_no_more_now(next) {
            return;
        }
        match self.index.certify(&transaction) {
            Ok(()) => self.certified(next, transaction, out),
            Err(reason) if from == self.settings.site => {
                self.aborted(reign, transaction.id, transaction.attempt, reason, out);
            }
            Err(reason) => {
                let (id, attempt) = (transaction.id, transaction.attempt);
                out.send(from, Message::Abort { reign, id, attempt, reason });
            }
        }
    }

    /// It has the next version.
    fn certified(&mut self, next: Version, transaction: Transaction, out: &mut impl Effects) {
        let Transaction { id, attempt, writes, .. } = transaction;
        self.index.record(next, id, &writes);
        self.overlay.install(next, &writes);
        self.propose_version(Body::Update { id, attempt, writes }, out);
    }

    /// Too much is not stable, or not in the log. Initiators refuse long before; one that does not know yet asks again. (A refusal from here
    /// would not stay one.)
    fn certifies_no_more_now(&self, next: Version) -> bool {
        let settings = &self.settings;
        next.0 - self.stable.0 > 2 * settings.unstable_versions_max
            || self.overlay.unsettled_bytes() > settings.unstable_bytes_max.saturating_mul(2)
            || self.proposed_bytes > settings.proposed_bytes_max
    }

    fn asked_early(&mut self, from: SiteId, reign: CertifierTerm, transaction: Transaction) {
        let bytes = self.early_bytes + transaction.held_bytes();
        let fits = self.early.len() < EARLY_MAX && bytes <= EARLY_BYTES_MAX;
        if reign.era > self.era() && reign.term == self.role.term && fits {
            self.early_bytes = bytes;
            self.early.push_back((from, reign, transaction));
        }
    }

    /// The next version is the beginning of another era.
    pub(super) fn propose_configuration(&mut self, configuration: Configuration, out: &mut impl Effects) {
        let certifying = self.certifying.as_mut().expect("only a certifier proposes one so");
        certifying.handed_over = true;
        self.overlay.install(certifying.next, &[]);
        self.propose_version(Body::Configure(configuration), out);
    }

    fn propose_version(&mut self, body: Body, out: &mut impl Effects) {
        let certifying = self.certifying.as_mut().expect("only a certifier gives versions");
        let entry = Arc::new(Entry { version: certifying.next, era: certifying.reign.era, body });
        certifying.next = certifying.next.next();
        certifying.proposed.push_back(Arc::clone(&entry));
        self.received = entry.version;
        self.proposed_bytes += entry.held_bytes();
        out.propose(LogEntry::Stream { era: certifying.reign.era, entry });
    }
}
