//! Transactions that were executed outside: at this site's SQL server, by its sessions; and [barriers](super::reading), which nobody executes.
//!
//! A request can be executed again, here or by the certifier's site; such a transaction cannot, since who executed it is a client's program. So it is submitted
//! once, and its outcome is reported as it is. It is reported done only when it is in this site's store: the same client's next transaction begins there.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::Duration;

use pares_sql::{Executed, Ready, Verdict};
use pares_wice::{AbortReason, Outcome, SiteId, Snapshot, Transaction, TransactionId, Unsubmitted, Version};

use super::Cycle;
use crate::application::Application;
use crate::config::number_of;
use crate::error::ProcessError;
use crate::world::World;

/// Above the numbers of clients that ask.
pub(super) const OWN: u64 = 1 << 63;

/// A transaction that lost against a version which does not come to this site has its verdict after this time at the latest.
const LOSER_PATIENCE: Duration = Duration::from_secs(1);

/// Such transactions.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The last one's number. Begins anywhere: a site that has lost its disk counts its lives again, and a barrier that found one of before, which is empty too, would be taken for
    /// committed.
    last: u64,
    /// Without an outcome.
    submitted: BTreeMap<TransactionId, Sender<Verdict>>,
    /// Stable, and not yet in the store.
    stable: BTreeMap<Version, Sender<Verdict>>,
    /// Lost against these versions, which are not in the store: who runs one again before that loses again. And until when that is waited for.
    lost: Vec<(Version, Duration, Sender<Verdict>)>,
    /// All that the site can have answered in an earlier life, once it is known.
    answered: Option<Version>,
}

impl Transactions {
    /// None yet; they are numbered behind `last`.
    pub(super) fn numbered_behind(last: u64) -> Self {
        Self { last, ..Self::default() }
    }

    pub(super) fn outcome(&mut self, id: TransactionId, outcome: Outcome, now: Duration) {
        let Some(verdict) = self.submitted.remove(&id) else { return };
        match outcome {
            Outcome::Committed { version, attempt: Some(_) } => {
                let other = self.stable.insert(version, verdict);
                assert!(other.is_none(), "a version is that of one transaction");
            }
            // Another one of an earlier life had this name. This one has no version, and never will.
            Outcome::Committed { .. } => tell(&verdict, Verdict::Aborted(AbortReason::Void)),
            Outcome::Aborted(AbortReason::Conflict(version)) => {
                self.lost.push((version, now + LOSER_PATIENCE, verdict));
            }
            Outcome::Aborted(reason) => tell(&verdict, Verdict::Aborted(reason)),
        }
    }

    fn stored(&mut self, version: Version, now: Duration) {
        for (against, _, verdict) in
            self.lost.extract_if(.., |(against, until, _)| *against <= version || *until <= now)
        {
            tell(&verdict, Verdict::Aborted(AbortReason::Conflict(against)));
        }
        let later = self.stable.split_off(&version.next());
        for verdict in std::mem::replace(&mut self.stable, later).into_values() {
            tell(&verdict, Verdict::Committed);
        }
    }
}

/// A session that does not listen any more has ended.
fn tell(verdict: &Sender<Verdict>, what: Verdict) {
    let _ = verdict.send(what);
}

impl<W: World, A: Application> Cycle<W, A> {
    /// Submits what has come, and tells what is in the store.
    pub(super) fn take_transactions(&mut self) -> Result<(), ProcessError> {
        let stored = self.base.version();
        let all_answered = self.has_stored_all_answered().then_some(stored);
        for ready in self.world.transactions(all_answered)? {
            self.transact(ready);
        }
        self.transactions.stored(stored, self.world.now());
        Ok(())
    }

    /// Whether this site's store has all that it can have answered: what it had delivered when it knew how far the others are.
    fn has_stored_all_answered(&mut self) -> bool {
        if self.shows_all && !self.site.is_recalling() {
            self.transactions.answered.get_or_insert(self.site.delivered());
        }
        self.transactions.answered.is_some_and(|answered| self.base.version() >= answered)
    }

    pub(super) fn transact(&mut self, ready: Ready) {
        let Ready { executed: Executed { snapshot, reads, writes }, verdict } = ready;
        self.work.executed += 1;
        self.transactions.last = self.transactions.last.wrapping_add(1);
        let place = u64::from(number_of(self.site.id())) << 16 | u64::from(self.life);
        let id = TransactionId { client: OWN | place, sequence: self.transactions.last };
        let attempt = attempt_of(self.site.id(), self.life, 1);
        let transaction = Transaction { id, attempt, snapshot, reads, writes, ..Transaction::default() };
        // What the store has is stable: no branch of the history is without it. A barrier has read nothing.
        let snapshot = Snapshot { version: snapshot, ..self.site.snapshot() };
        match self.site.submit(transaction, snapshot, &mut self.wanted) {
            Ok(()) => {
                let other = self.transactions.submitted.insert(id, verdict);
                assert!(other.is_none(), "a number is that of one transaction");
            }
            Err(Unsubmitted::Recalling) => tell(&verdict, Verdict::Starting),
            Err(other) => tell(&verdict, Verdict::Impossible(other.to_string())),
        }
    }
}

/// Numbers an execution: two of one request, at two sites or in two lives of one, have two numbers.
pub(super) fn attempt_of(site: SiteId, life: u16, executions: u16) -> u32 {
    assert!(site.cluster.0 < 64 && site.number < 16, "the name of a site fits into its numbers");
    let place = u32::from(site.cluster.0 & 0x3f) << 4 | u32::from(site.number & 0xf);
    u32::from(life & 0x3fff) << 18 | place << 8 | u32::from(executions & 0xff)
}
