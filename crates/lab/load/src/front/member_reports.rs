//! What members received, over whichever protocol.
//!
//! What members receive has a place in the record: `SHARD-POSITION-A` of what became of a request, `SHARD-POSITION-INDEX-NAME` of a trade. FIX has it
//! as ExecID. So what a member received can be compared with the record later; and what comes a second time must say that it may have been sent before.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pares_types::MemberId;

/// What all members of a load received.
#[derive(Debug, Default)]
pub struct FrontTold {
    executions: Mutex<HashSet<(MemberId, String)>>,
    repeated: AtomicU64,
    marked: AtomicU64,
    refused: Mutex<HashSet<u64>>,
    gaps: AtomicU64,
    low: AtomicU64,
}

impl FrontTold {
    /// Whether a member received the report of an execution.
    pub fn has(&self, member: MemberId, exec_id: &str) -> bool {
        let executions = self.executions.lock().expect("nobody panics while holding this");
        executions.contains(&(member, exec_id.to_owned()))
    }

    /// Different places of which members received a report.
    pub fn executions(&self) -> u64 {
        self.executions.lock().expect("nobody panics while holding this").len() as u64
    }

    /// Executions told again that did not say so, by 97=Y or 43=Y.
    pub fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// Executions told again that said so.
    pub fn marked(&self) -> u64 {
        self.marked.load(Ordering::Relaxed)
    }

    /// Names of changes whose answers do not say that they are in the record: refused there, or at once by a gateway that has forgotten their order, which
    /// has ended; over OUCH all cancels, which have no names of their own.
    pub fn refused(&self) -> HashSet<u64> {
        self.refused.lock().expect("nobody panics while holding this").clone()
    }

    /// Gaps in the numbers of what members received: over FIX each was asked for, over WebSocket there may be none.
    pub fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }

    /// Messages under a number that was used, which do not say that they come again.
    pub fn low(&self) -> u64 {
        self.low.load(Ordering::Relaxed)
    }

    pub(crate) fn note_low(&self) {
        self.low.fetch_add(1, Ordering::Relaxed);
    }

    /// A member receives a report of that place; a repeat, if it had one before; the report says whether it may be one.
    pub fn note(&self, member: MemberId, exec_id: String, says_so: bool) {
        let is_new =
            self.executions.lock().expect("nobody panics while holding this").insert((member, exec_id));
        let counter = match (is_new, says_so) {
            (true, _) => return,
            (false, true) => &self.marked,
            (false, false) => &self.repeated,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A change was answered, and by nothing of the record.
    pub fn note_refused(&self, name: u64) {
        self.refused.lock().expect("nobody panics while holding this").insert(name);
    }

    pub(crate) fn note_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }
}
