//! Names that wait to be looked for on disk, so that no session's keep those of the others from it.
//!
//! Names that may have been used cost nothing to think of, and each a look at files. One queue for all would be filled by the first program that
//! counts from 1 again. So a session that is alone may fill half of it, and each has a share of the rest.

use std::collections::{BTreeMap, VecDeque};

use pares_gateway::{LookUp, SessionId};
use pares_roles::index::Sought;
use pares_roles::world::{Counters as _, Sockets, World};
use pares_types::Timestamp;

use crate::GatewayNode;
use crate::counters::Counter;

const WAITING_MAX: usize = 32_768;
/// How many a session may have waiting once half of the queue is full.
const SHARE: usize = 512;

#[derive(Default)]
pub(crate) struct LookUps {
    queue: VecDeque<LookUp>,
    of: BTreeMap<SessionId, usize>,
}

impl LookUps {
    /// Whether there was room.
    pub(crate) fn push(&mut self, look_up: LookUp) -> bool {
        let of_session = self.of.get(&look_up.session).copied().unwrap_or(0);
        let has_room =
            self.queue.len() < WAITING_MAX / 2 || (self.queue.len() < WAITING_MAX && of_session < SHARE);
        if has_room {
            self.of.insert(look_up.session, of_session + 1);
            self.queue.push_back(look_up);
            assert!(self.of.len() <= self.queue.len(), "a session is counted for names that wait");
        }
        has_room
    }

    pub(crate) fn pop(&mut self) -> Option<LookUp> {
        let look_up = self.queue.pop_front()?;
        assert!(self.of.contains_key(&look_up.session), "a name that waits is counted for its session");
        if let Some(count) = self.of.get_mut(&look_up.session) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(&look_up.session);
            }
        }
        assert!(!self.queue.is_empty() || self.of.is_empty(), "a session is counted for names that wait");
        Some(look_up)
    }
}

impl<W: World, S: Sockets> GatewayNode<W, S> {
    /// Has the names looked for that wait for it. Says how many were.
    pub(crate) fn look_up(&mut self) -> usize {
        let Self { search, edge, rules, committed, .. } = self;
        search.begin(|| edge.look_ups.pop());
        let mut work = 0;
        while let Some(Sought { look_up, mut found }) = search.take_found() {
            // What too few recorders have is answered when it is committed.
            found.retain(|one| committed.has_committed(one.request.shard, one.position));
            let now = Timestamp(edge.world.now_ns());
            rules.on_looked_up(now, &look_up, &found, edge);
            edge.counters.add(Counter::LookedUp, 1);
            work += 1;
        }
        work
    }
}
