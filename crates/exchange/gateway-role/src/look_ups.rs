//! Names that wait to be looked for on disk: they cost nothing to think of, and each a look at files.

use pares_roles::index::Sought;
use pares_roles::world::{Counters as _, Sockets, World};
use pares_types::Timestamp;

use crate::GatewayNode;
use crate::counters::Counter;

impl<W: World, S: Sockets> GatewayNode<W, S> {
    /// Has the names looked for that wait for it. Says how many were.
    pub(crate) fn look_up(&mut self) -> usize {
        let Self { search, edge, rules, committed, .. } = self;
        search.begin(|| edge.look_ups.pop().map(|(_, look_up)| look_up));
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
