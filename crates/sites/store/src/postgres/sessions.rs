//! Who is in the writer's way, and gives way when asked.
//!
//! Versions are applied in the commit order, whatever transactions are open here: one that holds rows which the next version
//! changes has lost against it already. To end its connection would be enough; but an application that is told so as a lost connection has
//! nothing to run again. So a port that runs sessions says how each of them gives way, by the number of its process at the server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session that can be asked to take back its transaction.
pub trait GivesWay: Send + Sync {
    /// Takes back what it has open, without waiting for its client. Whether the statement that it executes has to be cancelled for that.
    fn give_way(&self) -> Way;
}

/// What has to be done yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Free,
    /// To cancel its statement.
    Cancel,
}

/// Sessions of one store, by the numbers of their processes. Clones are the same.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<BTreeMap<i32, Arc<dyn GivesWay>>>>);

impl Sessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<i32, Arc<dyn GivesWay>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that process `pid` of the server serves.
    pub fn enter(&self, pid: i32, session: Arc<dyn GivesWay>) {
        self.all().insert(pid, session);
    }

    /// It has ended.
    pub fn leave(&self, pid: i32) {
        self.all().remove(&pid);
    }

    pub(super) fn find(&self, pid: i32) -> Option<Arc<dyn GivesWay>> {
        self.all().get(&pid).cloned()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.all().len()).finish()
    }
}
