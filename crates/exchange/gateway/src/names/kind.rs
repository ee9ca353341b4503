//! Orders, and what else a name may stand for.

use pares_types::{Command, InstrumentId, NewOrder, OrderKind, Request, Side};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An order, which amends and cancels may name. One at market has no price, whatever an amend says.
    Enter { side: Side, at_market: bool },
    /// An amend of an order of that side that is known here.
    Amend(Side),
    /// A cancel of one order.
    Cancel,
    /// Any other request to one shard.
    Other,
    /// A request to all shards, with a part for each.
    FanOut,
}

impl Kind {
    pub(crate) fn of(request: &Request) -> Self {
        match request.command {
            Command::Enter(NewOrder { side, kind, .. }) => {
                Self::Enter { side, at_market: kind == OrderKind::Market }
            }
            Command::Cancel { .. } => Self::Cancel,
            Command::Register(_) => Self::Other,
            // No instrument has the id 0.
            _ if request.instrument == InstrumentId(0) => Self::FanOut,
            _ => Self::Other,
        }
    }

    pub(crate) fn side(self) -> Option<Side> {
        match self {
            Self::Enter { side, .. } => Some(side),
            _ => None,
        }
    }

    pub(crate) fn is_order(self) -> bool {
        matches!(self, Self::Enter { .. })
    }
}
