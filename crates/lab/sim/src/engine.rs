//! What brings a matching engine down here.
//!
//! Poison is in the request: every venue that executes it falls, so none may. A venue may also fail for reasons of its own (memory, a bit), and
//! then the others have executed, or will execute, what it failed at. Which of the two it was nobody can tell from inside. A
//! failure unwinds out of the rules, as a panic of the engine does, and its node catches it; or it ends the process.
//!
//! One venue at a time fails for reasons of its own in a shard: two at once may wait for each other's checkpoints until one of
//! them restarts (docs/decisions/0010).

use pares_random::mix;
use pares_types::{Command, Request};

/// How an engine fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It panics; or does not come back, and another thread takes the venue over.
    Panics,
    /// Its process ends: no memory, no stack.
    Ends,
}

/// Which requests are poison; none without more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Poison {
    /// Of 1,000 orders.
    pub(crate) permille: u64,
    /// Only orders for the first so many shards are.
    pub(crate) shards: usize,
}

impl Poison {
    /// What the request does to any engine: a matter of its content alone.
    pub(crate) fn harm(self, request: &Request) -> Option<Harm> {
        let Command::Enter(order) = request.command else { return None };
        let name = u64::from(request.member.0) << 48 ^ request.client_order_id.0;
        let dice = mix(mix(name) ^ order.quantity.0 << 32 ^ u64::from(request.instrument.0));
        let poisonous = usize::from(request.shard.0) < self.shards && dice % 1_000 < self.permille;
        let harm = if dice >> 32 & 3 == 0 { Harm::Ends } else { Harm::Panics };
        poisonous.then_some(harm)
    }
}
