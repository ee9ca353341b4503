//! The executions that members were told.
//!
//! An ExecID says the place in the record, so what a member was told can be held against the record later; and one that comes a
//! second time must say that it may have been told before.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pares_types::MemberId;

/// What all members of a load were told.
#[derive(Debug, Default)]
pub struct FixTold {
    executions: Mutex<HashSet<(MemberId, String)>>,
    repeated: AtomicU64,
    marked: AtomicU64,
    refused: Mutex<HashSet<u64>>,
    gaps: AtomicU64,
}

impl FixTold {
    /// Whether a member was told of an execution.
    pub fn has(&self, member: MemberId, exec_id: &str) -> bool {
        let executions = self.executions.lock().expect("nobody panics while holding this");
        executions.contains(&(member, exec_id.to_owned()))
    }

    /// Different executions that members were told.
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

    /// Names of changes that were refused: in the record, or at once by a gateway that has forgotten their order, which has ended. FIX
    /// does not say which.
    pub fn refused(&self) -> HashSet<u64> {
        self.refused.lock().expect("nobody panics while holding this").clone()
    }

    /// Gaps in the gateways' numbers, each asked for.
    pub fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, member: MemberId, exec_id: &[u8], says_so: bool) {
        let exec_id = String::from_utf8_lossy(exec_id).into_owned();
        let is_new =
            self.executions.lock().expect("nobody panics while holding this").insert((member, exec_id));
        let counter = match (is_new, says_so) {
            (true, _) => return,
            (false, true) => &self.marked,
            (false, false) => &self.repeated,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_refused(&self, name: u64) {
        self.refused.lock().expect("nobody panics while holding this").insert(name);
    }

    pub(crate) fn note_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }
}
