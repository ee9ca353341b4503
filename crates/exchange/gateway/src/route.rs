//! Where a request goes: to one shard, or to all.

use pares_types::{ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, OrderId, Reason};

use crate::names::Name;
use crate::{Gateway, fan_out};

/// Where a request goes and what it says there.
pub(crate) struct Route {
    pub(crate) instrument: InstrumentId,
    /// The shard's place in the list of shards; `None`: a part for each of them.
    pub(crate) shard: Option<usize>,
    pub(crate) command: Command,
    /// The order that an amend names, as far as it is known here.
    pub(crate) target: Option<Name>,
}

impl Route {
    pub(crate) fn new(instrument: InstrumentId, shard: Option<usize>, command: Command) -> Self {
        Self { instrument, shard, command, target: None }
    }
}

impl Gateway {
    /// Where the member's request goes.
    ///
    /// # Errors
    /// If it may not ask for that, or names what is not known.
    pub(crate) fn route(&self, member: MemberId, request: ClientRequest) -> Result<Route, Reason> {
        let mut amended = None;
        let (instrument, command) = match request {
            ClientRequest::Enter { instrument, order, .. } => (instrument, Command::Enter(order)),
            ClientRequest::Amend { target, terms, .. } => {
                let order = self.order_named(member, target)?;
                amended = Some(*order);
                (order.instrument, Command::Amend(terms.of(OrderId(order.id), target)))
            }
            ClientRequest::Cancel { target, .. } => {
                let order = self.order_named(member, target)?;
                (order.instrument, Command::Cancel { target: OrderId(order.id) })
            }
            ClientRequest::MassCancel { instrument, side, .. } => (instrument, Command::MassCancel { side }),
            ClientRequest::Exchange { instrument, command, .. } => {
                check_permission(member, command)?;
                (instrument, command)
            }
        };
        if fan_out::is_for_all(instrument, command) && !self.shards.is_empty() {
            return Ok(Route::new(InstrumentId(0), None, command));
        }
        // The register is state of the lowest.
        let lowest = matches!(command, Command::Register(_)) && !self.shards.is_empty();
        let shard = if lowest { Some(0) } else { self.shard_of(instrument) };
        let shard = shard.ok_or(Reason::UnknownInstrument)?;
        Ok(Route { target: amended, ..Route::new(instrument, Some(shard), command) })
    }

    fn order_named(&self, member: MemberId, name: ClientOrderId) -> Result<&Name, Reason> {
        let entry = self.names.find(member, name).map(|index| self.names.get(index));
        match entry {
            Some(entry) if entry.kind.is_order() => Ok(entry),
            // No order that lives is forgotten.
            None if self.names.is_below_floor(member, name) => Err(Reason::UnknownOrder),
            _ => Err(Reason::UnknownClientOrderId),
        }
    }
}

/// What only the exchange may ask for, and a member of itself.
fn check_permission(member: MemberId, command: Command) -> Result<(), Reason> {
    match command {
        Command::Enter(_) | Command::Amend(_) | Command::Cancel { .. } | Command::MassCancel { .. } => {
            Err(Reason::MalformedRequest)
        }
        Command::Block { member: blocked } if blocked == member => Ok(()),
        _ if member == MemberId(0) => Ok(()),
        _ => Err(Reason::NotPermitted),
    }
}
