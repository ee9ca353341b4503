//! Own transactions, from submission to outcome.
//!
//! ```text
//!   submitted --> asked --(ABORT of the reign asked)----------------------> aborted
//!                  |  ^
//!                  |  +--(another reign, and all that the old one could have committed is delivered: ask it)
//!                  v
//!              has a version --(stable)----------------------------------> committed
//!                  |
//!                  +--(discarded)--> asked, or aborted as void if it had read what was discarded
//! ```
//! The paper's certifier that dies with a question open leaves its initiator waiting; asking the next one at once can report a
//! transaction aborted because it conflicts with *itself* (fault 13). Here an initiator asks again only when it has delivered all that the
//! old reign can have committed, and a certifier knows the ids of what it or those before it committed.

use thiserror::Error;

use crate::ids::{CertifierTerm, SiteId, TransactionId, Version};
use crate::item::Write;
use crate::message::{AbortReason, Message};
use crate::site::{Effects, Outcome, Site, Snapshot};
use crate::transaction::{Isolation, Malformed, Transaction};

/// A transaction without an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    transaction: Transaction,
    /// What it read.
    snapshot: Snapshot,
    asked: Option<CertifierTerm>,
    /// Its version, once delivered here, and the attempt that has it (none: not the one submitted).
    version: Option<(Version, Option<u32>)>,
    /// Ticks since it was asked.
    waited_ticks: u32,
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) reign: CertifierTerm,
    pub(super) site: SiteId,
    /// Everything earlier reigns committed lies at or below it.
    floor: Version,
}

/// Why a transaction was not taken. Nothing has changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unsubmitted {
    /// It cannot be.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It has been, and its outcome is not known yet.
    #[error("this transaction is already in progress at this site: wait for its outcome")]
    UnderWay,
    /// The site is starting.
    #[error("this site is reading its log: wait, or ask another site")]
    Recalling,
}

impl Site {
    /// Asks for `transaction`, executed on `snapshot` (which replaces what it says of that itself), to be committed. [`Effects::outcome`] tells what became of it, exactly once.
    ///
    /// # Errors
    /// It was not taken; nothing has changed and no outcome will be told.
    pub fn submit(
        &mut self,
        transaction: Transaction,
        snapshot: Snapshot,
        out: &mut impl Effects,
    ) -> Result<(), Unsubmitted> {
        let transaction = Transaction { snapshot: snapshot.version, ..transaction };
        transaction.check()?;
        let id = transaction.id;
        if self.is_recalling() {
            return Err(Unsubmitted::Recalling);
        }
        if self.pending.contains_key(&id) {
            return Err(Unsubmitted::UnderWay);
        }
        let earlier = self.index.version_of(id).filter(|version| *version <= self.delivered);
        if earlier.is_none()
            && let Some(reason) = self.refusal(snapshot)
        {
            out.outcome(id, Outcome::Aborted(reason));
            return Ok(());
        }
        let version = earlier.map(|version| (version, None));
        if let Some(version) = earlier {
            self.awaiting_stable.insert(version, id);
        }
        self.pending_bytes += transaction.held_bytes();
        self.pending.insert(id, Pending { transaction, snapshot, asked: None, version, waited_ticks: 0 });
        if version.is_none() {
            self.ask(id, out);
        }
        Ok(())
    }

    /// Why nothing new that was executed on `snapshot` is asked for.
    fn refusal(&self, snapshot: Snapshot) -> Option<AbortReason> {
        match self.holds(snapshot) {
            false => Some(AbortReason::Void),
            true => self.is_behind().then_some(AbortReason::Behind),
        }
    }

    /// What counts as a conflict for what is executed here.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.settings.isolation
    }

    /// Whether too much is not stable, or has no outcome. Decided before a transaction is sent anywhere, so that a refusal is final.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let settings = &self.settings;
        self.delivered.0.saturating_sub(self.stable.0) > settings.unstable_versions_max
            || self.overlay.unsettled_bytes() > settings.unstable_bytes_max
            || self.pending_bytes > settings.pending_bytes_max
    }

    /// A transaction has its outcome.
    fn take_pending(&mut self, id: TransactionId) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.pending_bytes -= pending.transaction.held_bytes();
        Some(pending)
    }

    /// Whom to ask now, if that is known.
    pub(super) fn asked_now(&self) -> Option<Asked> {
        let configuration = self.configuration();
        if self.certifies() {
            let reign = CertifierTerm { era: configuration.era, term: self.role.term };
            return Some(Asked { reign, site: self.settings.site, floor: self.delivered });
        }
        let status = self.peers.get(&configuration.certifier)?;
        let reign = CertifierTerm { era: configuration.era, term: status.term };
        let began = self.eras.back().expect("there is always an era").0;
        let floor = match status.era().cmp(&configuration.era) {
            _ if status.site == self.settings.site => return None, // itself, and not certifying
            // At least what it had when its reign began.
            std::cmp::Ordering::Equal if status.certifying => status.delivered,
            // It will certify when it has delivered the era's beginning, and keeps what comes before.
            std::cmp::Ordering::Less => began,
            _ => return None,
        };
        Some(Asked { reign, site: status.site, floor })
    }

    fn ask(&mut self, id: TransactionId, out: &mut impl Effects) {
        let Some(asked) = self.asked_now() else {
            self.reconsider = true;
            return;
        };
        let pending = self.pending.get_mut(&id).expect("only what is pending is asked for");
        pending.asked = Some(asked.reign);
        pending.waited_ticks = 0;
        let transaction = pending.transaction.clone();
        if asked.site == self.settings.site {
            self.asked(asked.site, asked.reign, transaction, out);
        } else {
            out.send(asked.site, Message::Certify { reign: asked.reign, transaction });
        }
    }

    /// Asks the present reign for what an earlier one was asked, where it is certain that the earlier one has not committed it.
    pub(super) fn ask_again(&mut self, out: &mut impl Effects) {
        if !std::mem::take(&mut self.reconsider) {
            return;
        }
        let Some(now) = self.asked_now() else {
            self.reconsider = !self.pending.is_empty();
            return;
        };
        let open =
            self.pending.iter().filter(|(_, open)| open.version.is_none() && open.asked != Some(now.reign));
        let open: Vec<(TransactionId, bool)> = open.map(|(&id, open)| (id, open.asked.is_some())).collect();
        for (id, was_asked) in open {
            if was_asked && self.delivered < now.floor {
                self.reconsider = true;
            } else if self.holds(self.pending[&id].snapshot) {
                self.ask(id, out);
            } else {
                self.take_pending(id);
                out.outcome(id, Outcome::Aborted(AbortReason::Void));
            }
        }
    }

    pub(super) fn tick_pending(&mut self, out: &mut impl Effects) {
        let patience = self.settings.patience_ticks;
        let mut impatient = Vec::new();
        for (&id, pending) in self.pending.iter_mut().filter(|(_, pending)| pending.version.is_none()) {
            pending.waited_ticks += 1;
            if pending.waited_ticks >= patience {
                impatient.push((id, pending.asked));
            }
        }
        let now = self.asked_now().map(|asked| asked.reign);
        for (id, asked) in impatient {
            // Asking the same reign twice is harmless: it knows what it has committed, and a conflict stays one.
            if asked.is_some() && asked == now {
                self.ask(id, out);
            }
        }
        self.reconsider = true;
    }

    pub(super) fn aborted(
        &mut self,
        reign: CertifierTerm,
        id: TransactionId,
        attempt: u32,
        reason: AbortReason,
        out: &mut impl Effects,
    ) {
        let Some(pending) = self.pending.get(&id) else { return };
        if pending.asked == Some(reign) && pending.transaction.attempt == attempt && pending.version.is_none()
        {
            self.take_pending(id);
            out.outcome(id, Outcome::Aborted(reason));
        }
    }

    /// Delivery: a transaction has its version. An attempt's number alone does not say that it is the pending one: a site that has lost its disks
    /// counts again, and may meet what it did before.
    pub(super) fn has_version(
        &mut self,
        id: TransactionId,
        attempt: u32,
        writes: &[Write],
        version: Version,
    ) {
        if let Some(pending) = self.pending.get_mut(&id) {
            let own = pending.transaction.attempt == attempt && pending.transaction.writes == writes;
            pending.version = Some((version, own.then_some(attempt)));
            self.awaiting_stable.insert(version, id);
        }
    }

    /// Versions above `keep` never were.
    pub(super) fn lost_versions(&mut self, keep: Version) {
        for (_, id) in self.awaiting_stable.split_off(&keep.next()) {
            if let Some(pending) = self.pending.get_mut(&id) {
                pending.version = None;
            }
        }
    }

    /// Tells the outcome of everything that is stable now.
    pub(super) fn tell_stable(&mut self, out: &mut impl Effects) {
        let later = self.awaiting_stable.split_off(&self.stable.next());
        for (version, id) in std::mem::replace(&mut self.awaiting_stable, later) {
            let Some(pending) = self.take_pending(id) else { continue };
            let attempt = pending.version.and_then(|(_, attempt)| attempt);
            out.outcome(id, Outcome::Committed { version, attempt });
        }
    }
}
