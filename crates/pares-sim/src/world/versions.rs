//! A venue of a build whose rules differ.
//!
//! Nothing about requests or their order is wrong, so nothing stops it at once. The promise is that the recorders find it by what
//! venues hand out: by results that differ, at the latest by the state hashes that are due every 1,024 positions; and that
//! no record of the shard is taken any more then. (Two venues cannot say which of them is wrong; of three the wrong one would be
//! shut out, which is not simulated.) Until they do, the simulator's own comparison looks away.
//!
//! What is recorded is not handed out again, and a hash is of the state, not of how it came about. So another result that only
//! the wrong venue hands out, and whose traces are gone before the next hash is due, is found by nobody; such runs are counted.

use pares_recorder::Divergence;

use crate::Broken;
use crate::build::Build;
use crate::record::{NodeId, RecorderEntry};

use super::World;

const INVARIANT: &str = "a divergence is found within 1,024 positions";

impl World<'_> {
    /// One venue is stopped and started as another build; once in a run.
    pub(super) fn upgrade(&mut self, venue: NodeId) {
        let NodeId::Venue(own) = venue else { return };
        if self.mixed() || !self.process(venue).up {
            return;
        }
        self.note("venue {} becomes another build", &[own as u64]);
        self.venues[own].build = Build::Other;
        self.crash(venue);
    }

    fn mixed(&self) -> bool {
        self.venues.iter().any(|host| host.build == Build::Other)
    }

    /// A recorder, whose log ended at `before` when its cycle began, has halted a shard, since venues differ.
    ///
    /// # Errors
    /// If they should not differ, or not there, or if it goes on all the same.
    pub(super) fn on_divergence(
        &mut self,
        own: usize,
        shard: usize,
        divergence: Divergence,
        before: u64,
    ) -> Result<(), Broken> {
        let what = format!("recorder {own} halted shard {shard}: {divergence:?}");
        let at = match divergence {
            Divergence::State { position, .. } | Divergence::Content { position, .. } if self.mixed() => {
                position
            }
            _ => return Err(Broken { invariant: "I1 agreement", what }),
        };
        let host = &mut self.recorders[own];
        if std::mem::replace(&mut host.found, true) {
            let of_shard = |entry: &RecorderEntry| matches!(entry, RecorderEntry::Result(record) if usize::from(record.shard().0) == shard);
            let goes_on = host.log.range(before, host.log.end()).iter().any(of_shard);
            let what = format!("{what}, and takes more of it");
            return if goes_on { Err(Broken { invariant: INVARIANT, what }) } else { Ok(()) };
        }
        self.note("recorder {} halts shard {} at position {}", &[own as u64, shard as u64, at.0]);
        self.summary.ills.divergences += 1;
        // Nobody is answered any more, as it must be.
        self.disturbed_until_ns = u64::MAX;
        if self.ledger.contradicted[shard].contains(&at) {
            return Ok(());
        }
        Err(Broken { invariant: INVARIANT, what: format!("{what}, and nobody has said anything else") })
    }

    /// Whether every recorder has found it: there is nothing more to come.
    pub(super) fn is_halted(&self) -> bool {
        self.recorders.iter().all(|host| host.found)
    }

    /// The end of a run in which builds may have differed: found by every recorder, or no two hashes said so.
    ///
    /// # Errors
    /// As `ended`, where all venues had the same rules; or if a difference that hashes showed went on.
    pub(super) fn judge_versions(&mut self, ended: Result<(), Broken>) -> Result<(), Broken> {
        if !self.mixed() || self.is_halted() {
            return if self.is_halted() { Ok(()) } else { ended };
        }
        if let Some(shard) = self.ledger.contradicted.iter().position(|at| !at.is_empty()) {
            let at = self.ledger.contradicted[shard].first();
            let found = self.recorders.iter().filter(|host| host.found).count();
            let what =
                format!("venues differ at {at:?} of shard {shard}, and {found} recorders have noticed");
            return Err(Broken { invariant: INVARIANT, what });
        }
        match ended {
            Err(Broken { invariant: "sequential replay" | "I5 conservation", .. }) => {
                self.summary.ills.unnoticed += 1;
                Ok(())
            }
            ended => ended,
        }
    }
}
