//! Orders, and what else a name may stand for.

use pares_types::{Command, InstrumentId, Request, Side};

/// What kind of request a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An order of that side, which amends and cancels may name.
    Enter(Side),
    /// An amend that would add shares to an order of that side.
    Raise(Side),
    /// Any other request to one shard.
    Other,
    /// A request to all shards, with a part for each.
    FanOut,
}

impl Kind {
    pub(crate) fn of(request: &Request) -> Self {
        match request.command {
            Command::Enter(order) => Self::Enter(order.side),
            Command::Register(_) => Self::Other,
            // No instrument has the id 0.
            _ if request.instrument == InstrumentId(0) => Self::FanOut,
            _ => Self::Other,
        }
    }

    pub(crate) fn is_order(self) -> bool {
        matches!(self, Self::Enter(_))
    }
}
